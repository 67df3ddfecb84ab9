#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/run.h"

// Where pipeline stages begin, as users ask for it.

namespace orrery::cli {
namespace stages_test_cc {
namespace {

using ::testing::HasSubstr;

const std::string kGpt =
    "simulate --model gpt:layers=8,hidden=256,heads=4,seq=128,vocab=1024,tied_embeddings=0 "
    "--batch-size 32 --cluster dgx-a100:1 --pp 4 --micro-batches 8 ";

double StepSeconds(const std::string& command) {
  const Finished finished = Execute(command + " --json report.json");
  EXPECT_EQ(finished.code, 0) << command << "\n" << finished.err;
  if (finished.code != 0) return 0;
  return nlohmann::json::parse(Contents("report.json"))["step_time_s"];
}

std::string Error(const std::string& command) {
  const Finished finished = Execute(command);
  EXPECT_EQ(finished.code, 1) << command;
  EXPECT_EQ(finished.out, "");
  return finished.err;
}

TEST(Stages, AreWhatTheUserSays) {
  const double equal = StepSeconds(kGpt + "--stages-by layers");
  EXPECT_EQ(StepSeconds(kGpt + "--layers-per-stage 2,2,2,2"), equal);
  EXPECT_EQ(StepSeconds(kGpt + "--split-at 'h[.][246][.]ln_1$'"), equal);
  EXPECT_EQ(StepSeconds(kGpt + "--split-at 'h[.][246][.]'"), equal);
  EXPECT_GT(StepSeconds(kGpt + "--layers-per-stage 1,2,2,3"), equal);
}

TEST(Stages, ThatCannotBeSayWhy) {
  EXPECT_EQ(Error(kGpt + "--layers-per-stage 2,2,2,3"),
            "simulate: infeasible (divisibility): --layers-per-stage 2,2,2,3 adds up to 9 layers; "
            "the model has 8\n");
  EXPECT_EQ(Error(kGpt + "--layers-per-stage 4,4"),
            "simulate: infeasible (divisibility): --layers-per-stage 4,4 is for 2 stages; wanted "
            "4\n");
  EXPECT_EQ(Error(kGpt + "--split-at 'h[.][46][.]'"),
            "simulate: infeasible (divisibility): --split-at 'h[.][46][.]' matches at 2 positions: "
            "h.4.ln_1, h.6.ln_1; wanted 3 for 4 stages\n");
  EXPECT_EQ(Error(kGpt + "--layers-per-stage 2,0"),
            "simulate: --layers-per-stage '2,0': wanted a number of at least 1 for each stage, as "
            "in 23,24,24,25\n");
  EXPECT_EQ(Error(kGpt + "--split-at '('"),
            "simulate: --split-at '(': missing ): (; wanted a regular expression\n");
  EXPECT_EQ(Error(kGpt + "--stages-by size"),
            "simulate: --stages-by 'size': wanted cost, ops, layers, flops or distir\n");
  for (const char* by : {"cost", "flops"}) {
    EXPECT_EQ(Error(kGpt + "--layers-per-stage 2,2,2,2 --stages-by " + by),
              absl::StrCat("simulate: --stages-by ", by,
                           ": wanted one word on where stages begin: split-at and "
                           "layers-per-stage are others\n"));
  }
  EXPECT_EQ(Error(kGpt + "--split-at h --layers-per-stage 2,2,2,2"),
            "simulate: --split-at: a pattern of first ops and layers of each stage each say where "
            "stages begin; wanted one\n");
}

// The default, by cost, is never slower than equally many layers.
TEST(Stages, ByCostAreNoSlowerThanEquallyManyLayers) {
  struct Case {
    std::string model;
    int faster = 0;
  };
  for (const Case& c : CasesToWalk<Case>({{"$MODELS/gpt2_small.onnx --batch-size 128", 6},
                                          {"$MODELS/bert_base.onnx --batch-size 128", 1},
                                          {"$MODELS/llama_4layer.onnx --batch-size 64", 0},
                                          {"$MODELS/resnet50.onnx --batch-size 256", 4},
                                          {"gpt3-175b:seq=2048 --batch-size 64", 0},
                                          {"llama3-8b --batch-size 64", 6}})) {
    int faster = 0;
    for (const int pp : {2, 4, 8}) {
      for (const int microbatches : {4, 16}) {
        const std::string command = absl::StrCat(
            "simulate --model ", c.model, " --dtype bf16 --cluster dgx-a100:1 --memory-limit none",
            " --pp ", pp, " --micro-batches ", microbatches);
        const double cost = StepSeconds(command);
        const double layers = StepSeconds(command + " --stages-by layers");
        EXPECT_LE(cost, layers * 1.003) << command;
        faster += cost < 0.99 * layers ? 1 : 0;
      }
    }
    EXPECT_GE(faster, c.faster) << c.model;
  }
}

// 49 products of GPT-2 are stages of parts of a layer where there are more stages than layers.
TEST(Stages, AreCutWithinLayersWhereThereAreTooFew) {
  EXPECT_GT(StepSeconds("simulate --model $MODELS/gpt2_small.onnx --batch-size 128 --cluster "
                        "dgx-a100:2 --pp 16 --micro-batches 16"),
            0);
}

TEST(Stages, AreMovedWhereMemoryIsShort) {
  // Four microbatches are in flight on the first stage, one on the last.
  const std::string command =
      "simulate --model gpt:layers=16,hidden=256,heads=4,seq=512,vocab=1024,tied_embeddings=0 "
      "--batch-size 64 --cluster dgx-a100:1 --pp 4 --micro-batches 8 ";
  EXPECT_THAT(Execute(command + "--stages-by layers --memory-limit 1.4GB").out,
              HasSubstr("DOES NOT FIT"));
  EXPECT_THAT(Execute(command + "--memory-limit 1.4GB").out, HasSubstr(", fits"));
}

TEST(Stages, ThatPipeDreamPlans) {
  const Finished finished = Execute(
      "simulate --model mlp:layers=4,dim=256 --batch-size 64 --micro-batches 4 --cluster "
      "uniform:4@1Gbps --plan pipedream");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("PipeDream's plan: 4 layers on 4 devices, minibatches of 16 "
                                      "samples\n"));
  EXPECT_THAT(finished.out, HasSubstr("samples/s\n"));
  EXPECT_EQ(Error(kGpt + "--plan dreams"), "simulate: --plan 'dreams': wanted pipedream\n");
  EXPECT_THAT(Error(kGpt + "--plan pipedream --json x.json"),
              HasSubstr("--plan: nothing is simulated"));
  EXPECT_THAT(Error("simulate --model mlp:layers=4,dim=8 --batch-size 8 --cluster uniform:4@1Gbps "
                    "--plan pipedream --micro-batches 0"),
              HasSubstr("0 microbatches; wanted a divisor"));
}

// Long before there are orders for them.
TEST(Stages, MoreThanThereAreOpsAreRefused) {
  for (const char* chunks : {"1000", "1000000", "1000000000", "9223372036854775807"}) {
    EXPECT_THAT(Error(absl::StrCat(kGpt, "--schedule interleaved --chunks ", chunks)),
                testing::ContainsRegex("do not cut into|at most 1048576 stages"));
  }
}

// Each stage updates by itself: whoever shares a parameter cannot.
TEST(Stages, WithATiedEmbeddingAreNotAsynchronous) {
  for (const char* degrees : {"--pp 4", "--pp 4 --dp 2 --hp 2"}) {
    EXPECT_THAT(
        Error(absl::StrCat("simulate --model gpt:layers=8,hidden=512,heads=8,seq=256,vocab=8192 "
                           "--batch-size 64 --cluster dgx-a100:2 --micro-batches 8 ",
                           "--schedule pipedream ", degrees)),
        HasSubstr("embeddings that are not tied"))
        << degrees;
  }
}

}  // namespace
}  // namespace stages_test_cc
}  // namespace orrery::cli
