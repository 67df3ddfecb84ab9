#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// How a step is sharded over hp, cp and ep, from the command line.

namespace orrery::cli {
namespace sharding_test_cc {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string kGpt =
    "simulate --model "
    "gpt:layers=2,hidden=2048,heads=16,seq=1024,vocab=32000,tied_embeddings=0,flash=1 --batch-size "
    "4 "
    "--cluster dgx-h100:1 ";
const std::string kMlp =
    "simulate --model mlp:layers=4,dim=64 --batch-size 48 --cluster "
    "uniform:8@200Gbps ";

double StepTime(const std::string& command) { return JsonOf(command).value("step_time_s", 0.0); }

std::vector<std::string> Communications(const std::string& command) {
  std::vector<std::string> kinds;
  const json report = JsonOf(command);
  for (const json& row : report["communication"]) kinds.push_back(row["kind"]);
  return kinds;
}

TEST(Sharding, ByCostIsNoSlowerThanMegatron) {
  for (const std::string hp : {"--hp 2", "--hp 4", "--hp 8", "--hp 4 --dp 2", "--hp 2 --pp 2"}) {
    const double ours = StepTime(kGpt + hp);
    EXPECT_GT(ours, 0);
    EXPECT_LE(ours, StepTime(kGpt + hp + " --sharding megatron") * 1.001) << hp;
    EXPECT_LE(ours, StepTime(kGpt + hp + " --sequence-parallel") * 1.001) << hp;
  }
}

// The largest that issues and papers compare.
TEST(Sharding, OfGpt3IsNoSlowerThanMegatronWithSequenceParallelism) {
  const std::string gpt3 =
      "simulate --model gpt3-175b --dtype bf16 --batch-size 8 --cluster dgx-h100:1 --hp 8 "
      "--memory-limit none ";
  EXPECT_LE(StepTime(gpt3), StepTime(gpt3 + "--sequence-parallel"));
}

TEST(Sharding, SequenceParallelismScatters) {
  const auto plain = Communications(kGpt + "--hp 4 --sharding megatron --sequence-parallel=0");
  EXPECT_THAT(plain, testing::Contains("all-reduce hp"));
  EXPECT_THAT(plain, testing::Not(testing::Contains("reduce-scatter hp")));
  EXPECT_THAT(Communications(kGpt + "--hp 4 --sequence-parallel"),
              testing::IsSupersetOf({"reduce-scatter hp", "all-gather hp"}));
}

const std::string kExperts =
    "simulate --model "
    "gpt:layers=2,hidden=512,heads=8,kv_heads=4,seq=512,vocab=8000,experts=8,topk=2,"
    "mlp=swiglu,flash=1 --dtype bf16 --memory-limit none --batch-size 64 --cluster dgx-h100:4 ";

// As many bytes go along the links with the stream split along the sequence as without, and the
// memory is less: so it is, where nobody says otherwise, no slower and no larger.
TEST(Sharding, ByThePatternSplitsTheSequenceWhereThatCostsNothing) {
  int split = 0;  // not where an all-reduce of short messages takes less than both
  for (const std::string& plan : CasesToWalk<std::string>(
           {"--hp 8", "--hp 2", "--dp 2 --hp 4", "--hp 4 --cp 2", "--hp 2 --ep 8", "--hp 16",
            "--dp 2 --hp 2 --cp 2 --ep 4", "--hp 4 --pp 2 --micro-batches 4 --stages-by layers"})) {
    const std::string command = kExperts + plan + " --sharding megatron";
    const json by_itself = JsonOf(command), whole = JsonOf(command + " --sequence-parallel=0");
    EXPECT_LE(by_itself["step_time_s"], whole["step_time_s"]) << plan;
    EXPECT_LE(by_itself["peak_memory_bytes"], whole["peak_memory_bytes"]) << plan;
    split += by_itself["peak_memory_bytes"] < whole["peak_memory_bytes"] ? 1 : 0;
  }
  EXPECT_GE(split, CasesToWalk(4));
  // Here gradients hide an all-reduce better, which no price tells.
  const std::string hidden =
      "simulate --model gpt:layers=2,hidden=1024,heads=16,seq=1024,vocab=32000,flash=1,experts=16,"
      "topk=2 --batch-size 64 --dtype bf16 --cluster dgx-a100:8 --memory-limit none --dp 2 --hp 2 "
      "--micro-batches 2 --sharding megatron";
  EXPECT_EQ(StepTime(hidden), StepTime(hidden + " --sequence-parallel=0"));
  // Where it does not divide, it is not split.
  const std::string odd =
      "simulate --model gpt:layers=2,hidden=512,heads=8,seq=513,vocab=8000 --batch-size 8 "
      "--cluster "
      "dgx-h100:1 --hp 8 --sharding megatron";
  EXPECT_EQ(StepTime(odd), StepTime(odd + " --sequence-parallel=0"));
}

// Nothing that divides is refused, and ranks of ep share what experts are: parameters of a rank are
// those of its experts, and of all else.
TEST(Sharding, ByThePatternTakesAllDegrees) {
  std::vector<std::string> plans;
  for (const int dp : {1, 2}) {
    for (const int hp : {1, 2, 8}) {
      for (const int pp : {1, 2}) {
        for (const int cp : {1, 2}) {
          for (const int ep : {1, 2, 8}) {
            if (dp * hp * pp * cp * ep > 32) continue;
            plans.push_back(absl::StrFormat(
                "--dp %d --hp %d --pp %d --cp %d --ep %d --micro-batches 2 ", dp, hp, pp, cp, ep));
          }
        }
      }
    }
  }
  EXPECT_GT(plans.size(), 50u);
  for (const std::string& degrees : CasesToWalk(plans)) {
    EXPECT_GT(StepTime(kExperts + degrees + "--sharding megatron"), 0) << degrees;
  }
}

TEST(Sharding, RanksOfEpShareExpertsAndNothingElse) {
  for (const std::string sharding : {"--sharding megatron", "--sharding auto"}) {
    std::vector<double> parameters;
    for (const int ep : {1, 2, 4, 8}) {
      parameters.push_back(JsonOf(absl::StrFormat("%s--ep %d %s", kExperts, ep,
                                                  sharding))["devices"][0]["memory"]["parameters"]);
    }
    const double experts = 2 * (parameters[0] - parameters[1]), rest = parameters[0] - experts;
    EXPECT_GT(experts, rest) << sharding;
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(parameters[i], rest + experts / std::pow(2, static_cast<double>(i))) << sharding;
    }
  }
}

// A weight that stays whole is kept by every rank.
TEST(Sharding, KeepsPins) {
  const std::string few = "--hp 2 --memory-limit none";
  const auto parameters = [&](const std::string& more) {
    return JsonOf(kMlp + few + more)["devices"][0]["memory"]["parameters"].get<double>();
  };
  const double split = parameters(" --shard '^w[0-9]$=hp@0'");
  EXPECT_EQ(parameters(" --shard '^w[0-9]$=hp@whole'"), 2 * split);
  EXPECT_EQ(parameters(" --shard '^w0$=hp@whole' --shard '^w[0-9]$=hp@1'"), 1.25 * split);
}

TEST(Sharding, SplitsSequencesAndBatches) {
  EXPECT_GT(StepTime(kGpt + "--cp 4 --hp 2"), 0);
  EXPECT_LT(StepTime(kGpt + "--cp 4"), StepTime(kGpt));
  const std::string experts =
      "simulate --model gpt:layers=2,hidden=1024,heads=16,seq=512,vocab=32000,experts=8,topk=2 "
      "--batch-size 8 --cluster dgx-h100:1 ";
  EXPECT_THAT(Communications(experts + "--ep 8"), testing::Contains("all-to-all ep"));
}

TEST(Sharding, TakesTheFastestContextAttention) {
  const std::string few =
      "simulate --model gpt:layers=1,hidden=512,heads=4,seq=8192,vocab=1000,tied_embeddings=0,"
      "flash=1 --batch-size 1 --cluster dgx-h100:1 --cp 8 ";
  const std::string gather = few + "--context-attention all-gather",
                    ring = few + "--context-attention ring";
  EXPECT_LT(StepTime(gather), StepTime(ring));
  EXPECT_LE(StepTime(few), StepTime(gather));
  EXPECT_EQ(StepTime(few + "--cost-model roofline"), StepTime(gather + " --cost-model roofline"));
  EXPECT_THAT(Communications(few), testing::Not(testing::Contains("send-receive cp")));
  EXPECT_THAT(Communications(ring), testing::Contains("send-receive cp"));
  EXPECT_THAT(Communications(gather), testing::Not(testing::Contains("send-receive cp")));
  EXPECT_THAT(Communications(kGpt + "--cp 4 --context-attention all-to-all"),
              testing::Contains("all-to-all cp"));
  // It shares sequences, and leaves samples to dp and ep.
  EXPECT_NE(StepTime(kGpt + "--cp 4"), StepTime(kGpt + "--ep 4"));
}

// More ranks than an all-to-all is carried out among.
TEST(Sharding, TakesManyRanks) {
  EXPECT_GT(StepTime("simulate --model mlp:layers=2,dim=4096 --batch-size 2048 --cluster "
                     "dgx-h100:256 --hp 2048"),
            0);
}

// A limit that the fastest layout keeps anyway changes nothing; one that another keeps is kept.
TEST(Sharding, KeepsToTheMemoryOfADevice) {
  const std::string wide =
      "simulate --model mlp:layers=8,dim=4096 --batch-size 64 --cluster dgx-h100:1 --hp 8 ";
  const json free = JsonOf(wide + "--memory-limit none");
  EXPECT_EQ(StepTime(wide + "--memory-limit 275MB"), free["step_time_s"].get<double>());
  const json tight = JsonOf("simulate --model " + SourceDir() +
                            "/examples/models/mlp_64x512.onnx --batch-size 64 --cluster "
                            "dgx-h100:1 --hp 8 --memory-limit 60MB");
  EXPECT_EQ(tight["fits"], true);
}

TEST(Sharding, ByCostSplitsWhatDividesAndNoMore) {
  EXPECT_GT(StepTime(kMlp + "--hp 3"), 0);  // the batch, if nothing else
  EXPECT_GT(StepTime(kMlp + "--hp 7"), 0);  // nothing at all
  EXPECT_GT(StepTime(kMlp + "--pp 3"), 0);
}

TEST(Sharding, SaysWhatIsWrong) {
  const auto error = [](const std::string& command) {
    const Finished finished = Execute(command);
    EXPECT_EQ(finished.code, 1) << command;
    return finished.err;
  };
  EXPECT_EQ(error(kMlp + "--hp 2 --sharding best"),
            "simulate: --sharding 'best': wanted auto, megatron or distir\n");
  EXPECT_EQ(
      error(kMlp + "--hp 2 --shard w0"),
      "simulate: --shard 'w0': wanted REGEX=AXIS@DIMENSION with one of the axes hp, cp and ep, as "
      "in 'mlp.up.weight$=hp@1', or @whole; or batch=hp\n");
  EXPECT_EQ(error(kMlp + "--hp 2 --shard w9=hp@0"),
            "simulate: mlp: pin 'w9=hp@0': matches the name of no value\n");
  EXPECT_EQ(
      error(kMlp + "--dp 2 --shard w0=hp@0"),
      "simulate: infeasible (unsupported): values are pinned to hp, and mesh(pp=1, dp=2, hp=1) "
      "has no such axis of several ranks; wanted hp of at least 2\n");
  EXPECT_EQ(error(kMlp + "--dp 2 --shard w0=dp@0"),
            "simulate: --shard 'w0=dp@0': wanted REGEX=AXIS@DIMENSION with one of the axes hp, cp "
            "and ep, as in 'mlp.up.weight$=hp@1', or @whole; or batch=hp\n");
  EXPECT_EQ(error(kMlp + "--cp 2 --context-attention foo"),
            "simulate: --context-attention 'foo': wanted auto, all-to-all, all-gather or ring\n");
  EXPECT_EQ(
      error(kMlp + "--context-attention ring"),
      "simulate: --context-attention ring: wanted a context-parallel degree (cp) of at least 2\n");
  EXPECT_EQ(error(kMlp + "--hp 2 --sequence-parallel --sharding auto"),
            "simulate: --sharding auto: wanted megatron beside sequence-parallel; by itself it is "
            "found where it pays\n");
  EXPECT_EQ(error(kMlp + "--sequence-parallel"),
            "simulate: --sequence-parallel 1: wanted a horizontal degree (hp) of at least 2\n");
  EXPECT_THAT(
      error("simulate --model gpt:layers=1,hidden=64,heads=4,seq=64,vocab=64 --batch-size 4 "
            "--cluster uniform:8@200Gbps --cp 4 --context-attention ring"),
      HasSubstr("no attention can do what --context-attention wants"));
  EXPECT_EQ(error(kMlp + "--hp 2 --shard w0=hp@0 --sharding megatron"),
            "simulate: --shard: sharding by Megatron's pattern places all; wanted auto\n");
  EXPECT_THAT(error(kMlp + "--cp 5"), HasSubstr("infeasible (divisibility): cp=5: dimension 1 of"));
  EXPECT_THAT(error(kMlp + "--ep 5"), HasSubstr("infeasible (divisibility): ep=5: dimension 0 of"));
}

// Heads of Mamba-2 are split as those of attention are: of seven layers each is reduced behind its
// last product, and its gradient before its first one; the embedding and the logits' gradient once.
TEST(Sharding, ByThePatternReducesEachLayerOfAHybridOnce) {
  const std::string command =
      "simulate --model hybrid:pattern=MM*-MM-,hidden=1024,heads=16,kv_heads=8,seq=1024,vocab=8000,"
      "mamba_heads=32,flash=1 --batch-size 2 --dtype bf16 --cluster dgx-h100:1 --hp 8 "
      "--sharding megatron --sequence-parallel=0 --memory-limit none";
  EXPECT_THAT(Execute(command).out,
              HasSubstr("hp splits                embedding: vocabulary, 1 all-reduce; mlp: "
                        "columns, rows, 14 all-reduces; state space: heads; attention: columns, "
                        "heads, rows, 1 all-reduce; logits: columns"));
  for (const std::string plan :
       {"--dp 8 --zero 1", "--pp 2 --hp 2 --micro-batches 2", "--pp 2 --dp 2 --recompute full",
        "--hp 4 --cp 2 --sharding megatron"}) {
    EXPECT_GT(StepTime("simulate --model nemotron-h-8b:seq=1024 --batch-size 8 --dtype bf16 "
                       "--cluster dgx-h100:1 --memory-limit none " +
                       plan),
              0)
        << plan;
  }
}

// Each sample of one side against each of the other, as in CLIP.
constexpr char kMeeting[] = R"(func @towers (
  %u: f32[64,512] data,
  %v: f32[64,512] data,
  %w: f32[512,512] parameter
) {
  %a: f32[64,512] = MatMul(%u, %w)
  %logits: f32[64,64] = MatMul(%a, %v) {transpose_w=1}
  return %logits: result
}
)";

TEST(Sharding, SaysWhatDataParallelismGathers) {
  Clear();
  Write("towers.orr", kMeeting);
  const std::string towers = "--model towers.orr --batch-size 64 --cluster dgx-h100:1 ";
  EXPECT_THAT(Execute("simulate " + towers + "--dp 4").out,
              HasSubstr("  gathered over dp         %"));
  EXPECT_THAT(Execute("simulate " + towers + "--dp 4 --negatives local").out,
              Not(HasSubstr("gathered over dp")));
  EXPECT_THAT(Execute("simulate " + towers + "--micro-batches 4").out,
              Not(HasSubstr("gathered over dp")));
  EXPECT_THAT(Execute("grid_search " + towers + "--hp 1 --pp 1 --dp 4,8").out,
              HasSubstr("\nwarning: data parallelism of the best gathers activations: %"));
  EXPECT_THAT(Execute("simulate " + kMlp + "--dp 4").out, Not(HasSubstr("gathered over dp")));
  EXPECT_EQ(Execute("simulate " + towers + "--negatives local").code, 0);  // one rank has no other
}

TEST(Sharding, SaysWhatHpSplits) {
  EXPECT_THAT(Execute(kGpt + "--hp 4 --sharding megatron").out,
              HasSubstr("attention: columns, heads, rows, "));
  EXPECT_THAT(Execute(kGpt + "--hp 4").out, HasSubstr("mlp: columns, rows"));
  EXPECT_THAT(Execute("simulate --model gpt:layers=2,hidden=256,heads=4,seq=1024,vocab=512 "
                      "--batch-size 64 --cluster dgx-h100:1 --hp 4 --shard batch=hp")
                  .out,
              HasSubstr("mlp: batch"));
  EXPECT_THAT(Execute(kGpt + "--dp 4").out, Not(HasSubstr("hp splits")));
  // The leave to split the batch rules nothing out.
  EXPECT_EQ(StepTime(kGpt + "--dp 4 --shard batch=hp"), StepTime(kGpt + "--dp 4"));
}

}  // namespace
}  // namespace sharding_test_cc
}  // namespace orrery::cli
