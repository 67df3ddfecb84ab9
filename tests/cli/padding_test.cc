#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// What hp does not divide, padded, from the command line.

namespace orrery::cli {
namespace padding_test_cc {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string kGpt =
    "simulate --model "
    "gpt:layers=2,hidden=2048,heads=16,seq=1024,vocab=32000,tied_embeddings=0,flash=1 "
    "--batch-size 4 --cluster dgx-h100:1 ";

double StepTime(const std::string& command) { return JsonOf(command).value("step_time_s", 0.0); }

// 12 heads on 5 ranks are 15, and so on: to the picosecond and the byte the model that has these
// sizes. Flops that count are the model's own.
TEST(Padding, IsTheModelOfThoseSizes) {
  const auto command = [](const std::string& sizes, const std::string& flags) {
    return absl::StrCat("simulate --model gpt:layers=2,hidden=768,head_dim=64,seq=512,", sizes,
                        " --batch-size 10 --dtype bf16 --cluster dgx-h100:2 --memory-limit none ",
                        flags);
  };
  for (const std::string flags :
       {"--hp 5", "--hp 5 --sharding megatron", "--hp 5 --dp 2 --zero 1 --micro-batches 5",
        "--hp 5 --pp 2 --micro-batches 2"}) {
    SCOPED_TRACE(flags);
    const std::string ours = command("heads=12,ffn=3072,vocab=50257", flags + " --uneven pad");
    const json padded = JsonOf(ours);
    const json larger = JsonOf(command("heads=15,ffn=3075,vocab=50260", flags));
    EXPECT_EQ(padded["step_time_s"], larger["step_time_s"]);
    EXPECT_EQ(padded["peak_memory_bytes"], larger["peak_memory_bytes"]);
    EXPECT_EQ(padded["throughput_samples_per_s"], larger["throughput_samples_per_s"]);
    EXPECT_LT(padded["mfu"].get<double>(), larger["mfu"].get<double>());
    EXPECT_GT(padded["mfu"].get<double>(), 0.9 * larger["mfu"].get<double>());
    EXPECT_THAT(Execute(ours).out,
                HasSubstr("\n  padded                   vocabulary 50257 -> 50260, heads 12 -> 15, "
                          "width 3072 -> 3075\n"));
  }
}

// Kernels of 16 bits want multiples of 8: the 50,304 words of GPT-2 that people train with.
TEST(Padding, ToSharesThatKernelsLike) {
  const std::string gpt =
      "simulate --model gpt2-small --batch-size 8 --dtype bf16 --cluster "
      "dgx-h100:1 --memory-limit none --hp 4 --uneven ";
  EXPECT_LT(StepTime(gpt + "pad-8"), StepTime(gpt + "pad"));
  EXPECT_THAT(Execute(gpt + "pad").out,
              HasSubstr("padded                   vocabulary 50257 -> 50260"));
  EXPECT_THAT(Execute(gpt + "pad-8").out,
              HasSubstr("padded                   vocabulary 50257 -> 50272"));
}

// No faster than a share of what one rank does; where all divides it is what it was.
TEST(Padding, StaysWithinBounds) {
  const double one = StepTime(kGpt);
  for (const int hp : {3, 5, 6, 7}) {
    const double padded = StepTime(absl::StrCat(kGpt, "--uneven pad --hp ", hp));
    EXPECT_GE(padded, one / hp) << hp;
    EXPECT_LE(padded, StepTime(absl::StrCat(kGpt, "--hp ", hp))) << hp;
  }
  for (const std::string hp : {"--hp 4", "--hp 8 --sharding megatron"}) {
    EXPECT_EQ(StepTime(kGpt + hp + " --uneven pad"), StepTime(kGpt + hp));
    EXPECT_THAT(Execute(kGpt + hp + " --uneven pad").out, Not(HasSubstr("padded")));
  }
}

// The pattern wants columns of the last product of the MLP, whose width is that of its target.
TEST(Padding, TakesTheModelsThatComeAlong) {
  for (const std::string model :
       {"bert_base", "gpt2_small", "llama_4layer", "mlp_64x512", "resnet50"}) {
    for (const int hp : CasesToWalk({3, 2, 5, 7})) {
      for (const std::string by : {"auto", "megatron"}) {
        SCOPED_TRACE(absl::StrCat(model, " ", hp, " ", by));
        const Finished finished = Execute(
            absl::StrCat("simulate --model $MODELS/", model,
                         ".onnx --batch-size 8 --cluster dgx-h100:1 --memory-limit none --uneven "
                         "pad --hp ",
                         hp, " --sharding ", by));
        if (model == "mlp_64x512" && by == "megatron" && hp != 2) {
          EXPECT_THAT(finished.err, HasSubstr("infeasible (divisibility): "));
        } else {
          EXPECT_EQ(finished.code, 0) << finished.err;
        }
      }
    }
  }
}

TEST(Padding, IsAnAxisOfSearches) {
  Clear();
  const std::string search =
      "grid_search --model gpt:layers=2,hidden=256,heads=10,head_dim=32,seq=128,vocab=1000 "
      "--batch-size 8 --cluster dgx-h100:1 --dp 1 --pp 1 --hp 3,5 ";
  EXPECT_EQ(Execute(search + "--uneven whole,split,pad,pad-8 --csv all.csv").code, 0);
  const std::string table = Contents("all.csv");
  for (const char* value : {",whole,", ",split,", ",pad,", ",pad-8,"})
    EXPECT_THAT(table, HasSubstr(value));
  EXPECT_EQ(Execute("simulate --model gpt2-small --batch-size 8 --cluster dgx-h100:1 --uneven pad "
                    "--stage-meshes 1x2,1x3")
                .err,
            "simulate: --uneven: pads to what hp divides, and stages have hp=3 and hp=2; wanted "
            "one --hp of all --stage-meshes, or --uneven whole\n");
  EXPECT_EQ(
      Execute(kGpt + "--uneven pad").err,
      "simulate: --uneven pad: wanted a horizontal degree (hp) of at least 2, sharded by cost "
      "where it does not pad\n");
}

}  // namespace
}  // namespace padding_test_cc
}  // namespace orrery::cli
