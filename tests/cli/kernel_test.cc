#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/file.h"
#include "support/paths_test_util.h"
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
  EXPECT_THAT(*ReadFile(SourceDir() + "/docs/kernels.md"), HasSubstr(out.substr(0, 300)));
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
  EXPECT_EQ(product["tiles"].get<int>() % 8, 0);
  EXPECT_EQ(product["limit"], product["limited_by"]);
  EXPECT_DOUBLE_EQ(product["flops_per_byte"].get<double>(),
                   product["flops"].get<double>() / product["bytes"].get<double>());
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

// One kernel for 64 experts, or a kernel each.
TEST(Kernel, PricesProductsOfExperts) {
  const std::string shape = "--op grouped --shape 64,128,4096,2048 --device b200 ";
  const nlohmann::json one = Figures(shape), each = Figures(shape + "--kernel-each"),
                       batch = Figures("--shape 64,128,4096,2048 --device b200");
  EXPECT_EQ(one["op"], "grouped");
  EXPECT_DOUBLE_EQ(one["flops"], 2.0 * 64 * 128 * 4096 * 2048);
  EXPECT_EQ(one["time_s"], batch["time_s"]);
  EXPECT_EQ(each["flops"], one["flops"]);
  EXPECT_GT(each["time_s"].get<double>(), 1.2 * one["time_s"].get<double>());
  // Tiles and waves of a kernel each are those of one.
  EXPECT_LT(each["waves"].get<double>(), 4);
  EXPECT_GT(one["waves"].get<double>(), each["waves"].get<double>());
  EXPECT_EQ(Ask("--op grouped --shape 128,4096,2048 --device b200").code, 1);
  Write("k.csv", "op,dtype,shape,layout,seconds\ngrouped,bf16,64x128x4096x2048,TN,5e-4\n");
  EXPECT_THAT(Ask(shape + "--cost-model kernels:k.csv").out,
              HasSubstr("500 us from start to start, measured\n"));
}

TEST(Kernel, TakesBlocksOf8Bits) {
  const std::string product = "--shape 4096,8192,8192 --device h100 --dtype ";
  const double block = Figures(product + "f8b")["time_s"],
               plain = Figures(product + "f8")["time_s"],
               half = Figures(product + "bf16")["time_s"];
  EXPECT_GT(block, plain);
  EXPECT_LT(block, half);
}

TEST(Kernel, MovesBytes) {
  const nlohmann::json moved = Figures("--op elementwise --shape 33554432 --device h100");
  EXPECT_EQ(moved["bytes"], 33554432);
  EXPECT_EQ(moved["limit"], "memory");
  EXPECT_GT(moved["time_s"].get<double>(), 33554432 / 3.35e12);
  EXPECT_THAT(Ask("--op elementwise --shape 33554432 --device h100").out, HasSubstr(" GB/s, "));
}

TEST(Kernel, NamesTheNearestMeasuredOnes) {
  Clear();
  Write("k.csv",
        "op,dtype,shape,layout,seconds\n"
        "matmul,bf16,4096x4096x4096,TN,3e-4\n"
        "matmul,bf16,4096x8192x4096,TN,5e-4\n"
        "matmul,bf16,64x64x64,any,5e-6\n");
  const std::string asks = " --device h100 --cost-model kernels:k.csv";
  const nlohmann::json one = Figures("--shape 4096,4096,4096" + asks);
  EXPECT_EQ(one["table_s"], 3e-4);
  EXPECT_EQ(one["table_source"], "measured");
  EXPECT_EQ(one["nearest"].size(), 3u);
  EXPECT_EQ(one["nearest"][0]["shape"], "4096x4096x4096");
  EXPECT_EQ(one["nearest"][2]["in_reach"], false);
  EXPECT_EQ(Figures("--shape 4096,4096,4096 --layout NT" + asks)["table_source"], "interpolated");
  const std::string out = Ask("--shape 4096,6144,4096" + asks).out;
  EXPECT_THAT(out, HasSubstr(" from start to start, interpolated\n"));
  EXPECT_THAT(out, HasSubstr("4096x8192x4096 TN: 500 us, "));
  EXPECT_THAT(out, HasSubstr("(k.csv: line 3)"));
  EXPECT_THAT(out, HasSubstr(", out of reach (k.csv: line 4)"));
  EXPECT_THAT(Ask("--op elementwise --shape 64" + asks).out,
              HasSubstr("none of this form, type and device"));
}

const std::string kModel =
    "kernel --model gpt:layers=2,hidden=512,heads=8,seq=512,vocab=8192,flash=1 --batch-size 4 "
    "--dtype bf16 --cluster dgx-h100:1 --hp 2 ";

TEST(Kernel, ListsThoseOfAModel) {
  Clear();
  const Finished listed = Execute(kModel + "--csv k.csv --json k.json");
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("kernel "));
  EXPECT_THAT(listed.out, HasSubstr("AttentionGrad 4x8x512x64 causal"));
  EXPECT_GT(nlohmann::json::parse(Contents("k.json"))["kernels"].size(), 10u);
  // As a table, it has all but what is of no form that a table has.
  const Finished finished =
      Execute("simulate" + kModel.substr(6) + "--json step.json --cost-model kernels:k.csv");
  ASSERT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json shares = nlohmann::json::parse(Contents("step.json"))["kernel_shares"];
  EXPECT_GT(shares["measured"].get<double>(), 0.95) << shares;
}

TEST(Kernel, DrawsThoseOfAModelOnTheRoofline) {
  Clear();
  const Finished drawn = Execute(kModel + "--roofline r.svg");
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  const std::string svg = Contents("r.svg");
  for (const char* text : {"<svg", "bf16: 989 TFLOP/s, 3.35 TB/s", "products", "attention",
                           "others", "flops a byte"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  Execute(kModel + "--roofline again.svg");
  EXPECT_EQ(Contents("again.svg"), svg);
  EXPECT_THAT(Execute(kModel + "--roofline r.png").err,
              HasSubstr("--roofline: r.png: wanted a name that ends in .svg or .pdf"));
  EXPECT_THAT(Execute(kModel + "--roofline r.svg --csv r.svg").err, HasSubstr("r.svg"));
  EXPECT_EQ(Execute("kernel --model gpt2 --batch-size 4").code, 2);
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
        "device_kinds { name: \"slow\" like: \"h100-80gb\" rates { sustained: 0.4 } }");
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
      {"--op conv --shape 1 --device h100",
       "--op 'conv': wanted matmul, grouped, attention or "
       "elementwise"},
      {"--op grouped --shape 1,2,3 --device h100", "wanted experts,m,n,k, m rows of each"},
      {"--shape 1,2,3 --device h100 --kernel-each", "--kernel-each: wanted with --op grouped"},
      {"--shape 1,2,3 --device abacus", "device 'abacus' is unknown; wanted one of"},
      {"--shape 1,2,3 --device h100 --dtype i32", "--dtype 'i32': wanted bf16"},
      {"--shape 1,2,3 --device h100 --backward",
       "--backward, --all-keys, --attention: wanted with"},
      {"--shape 1,2,3 --device h100 --attention flash1", "--attention: wanted with"},
      {"--shape 1,2,3 --device h100 --layout TT", "--layout: 'TT': wanted TN, NN or NT"},
      {"--op elementwise --shape 64 --device h100 --layout NT",
       "--layout: wanted with --op matmul"},
      {"--op elementwise --shape 1,2 --device h100", "wanted the bytes that are read and written"},
      {"--shape 1,2,3 --device h100 --cost-model roofline",
       "--cost-model 'roofline': wanted kernels or kernels:FILE"},
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
