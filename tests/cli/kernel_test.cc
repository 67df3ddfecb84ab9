#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/file.h"
#include "tests/cli/run.h"

// The program `kernel`.

namespace orrery::cli {
namespace kernel_test_cc {
namespace {

using testing::HasSubstr;

Finished Ask(const std::string& flags) { return Execute(absl::StrCat("kernel ", flags)); }

nlohmann::json Figures(const std::string& flags) {
  EXPECT_EQ(Ask(absl::StrCat(flags, " --json kernel.json")).code, 0) << flags;
  return nlohmann::json::parse(Contents("kernel.json"));
}

// The page shows it.
TEST(Kernel, SaysWhatDecides) {
  const std::string out = Ask("--shape 4096,12288,12288 --dtype bf16 --device h100").out;
  EXPECT_THAT(out, testing::StartsWith("matmul 4096 x 12288 x 12288 of bf16 on h100-80gb\n"));
  EXPECT_THAT(out, HasSubstr("  limited by          products\n"));
  EXPECT_THAT(*ReadFile(ORRERY_SOURCE_DIR "/docs/kernels.md"), HasSubstr(out.substr(0, 300)));
  EXPECT_THAT(Ask("--shape 1,4096,4096 --device a100").out,
              HasSubstr("  limited by          memory\n"));
}

// A name is that device's, although others begin so.
TEST(Kernel, TakesNamesAndTheirBeginnings) {
  for (const auto& [name, device] :
       {std::pair{"a100-40gb", "a100-40gb"}, std::pair{"h100-80gb", "h100-80gb"},
        std::pair{"h100-80gb-pcie", "h100-80gb-pcie"}, std::pair{"h100", "h100-80gb"}}) {
    EXPECT_EQ(Figures(absl::StrCat("--shape 64,64,64 --device ", name))["device"], device) << name;
  }
}

TEST(Kernel, WritesItsFigures) {
  const nlohmann::json product = Figures("--shape 8,512,512,64 --dtype f8 --device b200");
  EXPECT_EQ(product["shape"], (std::vector<int>{8, 512, 512, 64}));
  EXPECT_DOUBLE_EQ(product["flops"], 2.0 * 8 * 512 * 512 * 64);
  EXPECT_LE(product["burst_s"], product["time_s"]);
  EXPECT_GE(product["time_s"], product["memory_s"]);
  EXPECT_GT(product["waves"], 0);
  const nlohmann::json causal = Figures("--op attention --shape 2,16,4096,128 --device h100");
  const nlohmann::json all =
      Figures("--op attention --shape 2,16,4096,128 --device h100 --all-keys");
  const nlohmann::json back =
      Figures("--op attention --shape 2,16,4096,128 --device h100 --backward");
  EXPECT_DOUBLE_EQ(causal["visible"], 0.5);
  EXPECT_DOUBLE_EQ(all["visible"], 1);
  EXPECT_LT(causal["time_s"], all["time_s"]);
  EXPECT_GT(back["time_s"], causal["time_s"]);
  EXPECT_DOUBLE_EQ(causal["flops"], 2.0 * 2 * 16 * 4096 * 4096 * 128);
  EXPECT_DOUBLE_EQ(back["flops"], 5.0 * 2 * 16 * 4096 * 4096 * 128);
  const nlohmann::json oldest =
      Figures("--op attention --shape 2,16,4096,128 --device h100 --attention flash1");
  EXPECT_GT(oldest["time_s"].get<double>(), 2.5 * causal["time_s"].get<double>());
  const nlohmann::json wide =
      Figures("--op attention --shape 2,16,4096,128 --device h100 --dtype f32");
  EXPECT_GT(wide["time_s"].get<double>(), 10 * causal["time_s"].get<double>());
  EXPECT_GT(wide["bytes"].get<double>(), 1.9 * causal["bytes"].get<double>());
  EXPECT_EQ(Figures("--op attention --shape 2,16,1024,128,4096 --device h100")["visible"], 0.875);
}

// What it prints it reads, and edited it prices by that.
TEST(Kernel, TakesADeviceAsAFile) {
  const Finished printed = Ask("--device h100 --print-device");
  EXPECT_EQ(printed.code, 0);
  EXPECT_THAT(printed.out, HasSubstr("    cores: 132 "));
  Write("device.textproto", printed.out);
  const std::string product = "--shape 4096,4096,4096 --device ";
  EXPECT_EQ(Ask(product + "device.textproto").out, Ask(product + "h100").out);
  Write("slow.textproto",
        "device_kinds { name: \"slow\" like: \"h100-80gb\" rates { sustained: 0.395 } }");
  EXPECT_NEAR(Figures(product + "slow.textproto")["time_s"].get<double>() /
                  Figures(product + "h100")["time_s"].get<double>(),
              2, 0.02);
  Write("wrong.textproto", "device_kinds {\n  name: \"a\" like: \"h200\" rates { cores: 0 }\n}");
  const Finished wrong = Ask(product + "wrong.textproto");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err,
              HasSubstr("wrong.textproto:2: device_kinds[0].rates.cores: got 0; wanted 1 to"));
}

TEST(Kernel, SaysWhatItWants) {
  const std::pair<const char*, const char*> wrong[] = {
      {"--shape 0,1,2 --device h100", "--shape '0,1,2': wanted m,n,k or batch,m,n,k"},
      {"--shape 4,4 --device h100", "--shape '4,4': wanted m,n,k"},
      {"--shape 16777216,16777216,16777216 --device h100", "together at most 1e17"},
      {"--shape 4,4,x --device h100", "wanted m,n,k"},
      {"--op attention --shape 1,2,3 --device h100", "wanted batch,heads,queries,width"},
      {"--op conv --shape 1 --device h100", "--op 'conv': wanted matmul or attention"},
      {"--shape 1,2,3 --device abacus", "device 'abacus' is unknown; wanted one of"},
      {"--shape 1,2,3 --device h100 --dtype i32", "--dtype 'i32': wanted bf16"},
      {"--shape 1,2,3 --device h100 --backward",
       "--backward, --all-keys, --attention: wanted with"},
      {"--shape 1,2,3 --device h100 --attention flash1", "--attention: wanted with"},
      {"--op attention --shape 1,2,3,64 --device h100 --attention flash9",
       "--attention 'flash9': wanted one of cudnn, flash3, flash2, flash1, triton, cudnn-fp8"}};
  for (const auto& [flags, message] : wrong) {
    const Finished finished = Ask(flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_THAT(finished.err, HasSubstr(message)) << flags;
  }
}

}  // namespace
}  // namespace kernel_test_cc
}  // namespace orrery::cli
