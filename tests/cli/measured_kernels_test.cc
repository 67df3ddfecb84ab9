#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// Steps by measured kernels: --cost-model kernels:FILE.

namespace orrery::cli {
namespace measured_kernels_test_cc {
namespace {

using testing::HasSubstr;

const std::string kStep =
    "simulate --model gpt:layers=2,hidden=1024,heads=8,seq=1024,vocab=8192,flash=1 --batch-size 4 "
    "--dtype bf16 --optimizer adam --cluster dgx-h100:1 --json step.json --cost-model ";

nlohmann::json Figures(const std::string& cost_model) {
  const Finished finished = Execute(kStep + cost_model);
  EXPECT_EQ(finished.code, 0) << finished.err;
  return nlohmann::json::parse(Contents("step.json"));
}

TEST(MeasuredKernels, TellsWhatIsFromWhere) {
  Clear();
  // Forward's and backward's second product of the MLP, the first twice as slow as any; elements.
  Write("k.csv",
        "op,dtype,shape,layout,seconds\n"
        "matmul,bf16,4096x4096x1024,TN,2e-3\n"
        "elementwise,bf16,33554432,,5e-5\n");
  const nlohmann::json plain = Figures("kernels");
  EXPECT_FALSE(plain.contains("kernel_shares"));
  const nlohmann::json table = Figures("kernels:k.csv");
  const auto share = [&](const char* name) { return table["kernel_shares"][name].get<double>(); };
  EXPECT_NEAR(share("measured") + share("interpolated") + share("modelled"), 1, 1e-6);
  EXPECT_GT(share("interpolated"), 0.01);
  EXPECT_GT(share("modelled"), 0.01);
  const double kernels_s = [&] {
    double sum = 0;
    for (const auto& [name, seconds] : table["kernels"].items()) sum += seconds.get<double>();
    return sum;
  }();
  // Two layers have such a product each.
  EXPECT_NEAR(share("measured") * kernels_s, 2 * 2e-3, 1e-6);
  EXPECT_GT(table["step_time_s"].get<double>(), plain["step_time_s"].get<double>() + 3e-3);
  EXPECT_THAT(Execute(kStep + "kernels:k.csv").out,
              HasSubstr("    of their time          measured "));
  // Runs of kernels say what their kernels do.
  EXPECT_EQ(Execute(kStep + "kernels:k.csv --trace trace.json").code, 0);
  EXPECT_EQ(nlohmann::json::parse(Contents("step.json"))["kernel_shares"], table["kernel_shares"]);
}

// What a compiler makes of several ops is a kernel that moves so many bytes.
TEST(MeasuredKernels, TellsItOfFusedKernels) {
  Clear();
  std::string table = "op,dtype,shape,layout,seconds\n";
  for (int64_t bytes = 1 << 16; bytes < int64_t{1} << 34; bytes *= 4) {
    absl::StrAppend(&table, "elementwise,bf16,", bytes, ",,", static_cast<double>(bytes) / 1e12,
                    "\n");
  }
  Write("k.csv", table);
  const nlohmann::json fused = Figures("kernels:k.csv --stack torch-compile");
  const nlohmann::json alone = Figures("kernels:k.csv");
  const nlohmann::json &shares = fused["kernel_shares"], &others = alone["kernel_shares"];
  EXPECT_NEAR(shares["interpolated"].get<double>() + shares["modelled"].get<double>(), 1, 1e-6);
  EXPECT_GT(shares["interpolated"].get<double>(), 0.1);
  EXPECT_LT(shares["interpolated"].get<double>(), others["interpolated"].get<double>());
}

TEST(MeasuredKernels, SaysThatATableHasNothingOfTheDevice) {
  Clear();
  Write("k.csv",
        "op,dtype,shape,layout,seconds,device\n"
        "matmul,bf16,4096x4096x1024,TN,2e-3,b200\n");
  const nlohmann::json plain = Figures("kernels"), table = Figures("kernels:k.csv");
  EXPECT_EQ(table["step_time_s"], plain["step_time_s"]);
  EXPECT_EQ(table["kernel_shares"]["modelled"], 1);
  EXPECT_EQ(table["assumed"], "all kernels by the model: k.csv has none of h100-80gb");
}

TEST(MeasuredKernels, SaysWhatIsWrongWithATable) {
  Clear();
  Write("k.csv", "op,dtype,shape,layout,seconds\nmatmul,bf16,4096x4096,TN,1\n");
  const Finished finished = Execute(kStep + "kernels:k.csv");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(
      finished.err,
      HasSubstr("simulate: k.csv: line 2: column 3 (shape): got '4096x4096'; wanted m x n x "
                "k or batch x m x n x k, as 4096x12288x12288"));
  EXPECT_THAT(Execute(kStep + "kernels:nowhere.csv").err, HasSubstr("nowhere.csv"));
  EXPECT_THAT(Execute(kStep + "kernels:k.csv --trace k.csv").err, HasSubstr("k.csv"));
}

}  // namespace
}  // namespace measured_kernels_test_cc
}  // namespace orrery::cli
