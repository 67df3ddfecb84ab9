#include "search/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/text.h"
#include "search/setting_test_util.h"

namespace orrery::search {
namespace {

constexpr double kLayers = 4, kDim = 64, kBatch = 48;

// Forward, and twice that backward: for each layer a product.
constexpr double kProducts = 6 * kLayers * kBatch * kDim * kDim;

TEST(CountModelFlops, IsTheSumOverProducts) {
  EXPECT_DOUBLE_EQ(CountModelFlops(MlpSetting().step).count(), kProducts);
}

// Spreading over data and stages repeats nothing but the update of each replica. Elements: ReLU and
// its gradient a layer, loss and its gradient.
TEST(Play, DoesTheFlopsOfTheStep) {
  const Setting setting = MlpSetting("uniform:8@200Gbps", "none");
  for (const Candidate& c :
       {Candidate{}, Candidate{.dp = 4}, Candidate{.pp = 4}, Candidate{.dp = 2, .pp = 4}}) {
    const auto run = Play(setting, c);
    ASSERT_TRUE(run.ok()) << run.status();
    const double elements = (2 * kLayers + 2) * kBatch * kDim;
    EXPECT_NEAR(run->report.flops.count(), kProducts + elements, 1) << ToString(c);
    EXPECT_NEAR(run->figures.hfu / run->figures.mfu, 1 + elements / kProducts, 1e-9) << ToString(c);
  }
}

TEST(Play, FiguresFollowFromTheStepTime) {
  const Setting setting = MlpSetting();
  const auto run = Play(setting, {.dp = 2, .hp = 2, .pp = 2, .microbatches = 3});
  ASSERT_TRUE(run.ok()) << run.status();
  const double step_s = run->report.step_time.seconds();
  EXPECT_DOUBLE_EQ(run->figures.throughput_samples_per_s, kBatch / step_s);
  EXPECT_DOUBLE_EQ(run->figures.tokens_per_s, kBatch / step_s);
  EXPECT_DOUBLE_EQ(run->figures.mfu, setting.model_flops.count() / step_s / 8 /
                                         setting.cluster.device.fp32.flops_per_second());
}

std::string WhyNot(const Setting& setting, const Candidate& candidate) {
  const auto result = Evaluate(setting, candidate);
  if (!result.ok()) return absl::StrCat("error: ", result.status().message());
  if (!result->infeasible.has_value()) return "";
  return absl::StrCat(ToString(result->infeasible->reason), ": ", result->infeasible->detail);
}

TEST(Evaluate, GivesAReason) {
  Setting setting = MlpSetting();
  EXPECT_EQ(WhyNot(setting, {}), "");
  EXPECT_EQ(WhyNot(setting, {.dp = 5}),
            "divisibility: dp=5: dimension 0 of %x (48) does not divide");
  EXPECT_EQ(WhyNot(setting, {.microbatches = 7}),
            "divisibility: a batch of 48 does not divide into 7 microbatches");
  EXPECT_EQ(WhyNot(setting, {.schedule = "foo"}),
            "error: schedule 'foo' is unknown; wanted one of gpipe, 1f1b, pipedream, distir");
  EXPECT_EQ(WhyNot(setting, {.dp = 16}),
            "error: uniform:8@200Gbps has 8 devices; --dp 16 --hp 1 --pp 1 --micro-batches 1 "
            "--schedule 1f1b wants 16");
  setting.lowering.memory_limit = Bytes(100'000);
  EXPECT_THAT(WhyNot(setting, {}),
              testing::MatchesRegex("memory: needs [0-9.]+ KiB on rank 0; the limit is 97.7 KiB"));
}

TEST(Evaluate, OneThatDoesNotFitHasItsFigures) {
  Setting setting = MlpSetting();
  setting.lowering.memory_limit = Bytes(1);
  const Result result = Evaluate(setting, {.pp = 2}).value();
  EXPECT_TRUE(result.ran);
  EXPECT_FALSE(result.fits);
  EXPECT_FALSE(result.feasible());
  EXPECT_GT(result.step_time, Duration(0));
  EXPECT_EQ(result.peak_memory, Play(setting, {.pp = 2})->report.peak_memory);
}

// An asynchronous pipeline never drains: a step is at most that of 1F1B, at least the work of its
// busiest stage, and costs memory for versions of the weights.
TEST(Play, AnAsynchronousPipelineHasNoBubbleInTheSteadyState) {
  const Setting setting = MlpSetting("uniform:8@200Gbps", "sgd");
  for (const int64_t microbatches : {1, 2, 4, 8}) {
    const Candidate flushed = {.pp = 4, .microbatches = microbatches, .schedule = "1f1b"};
    Candidate flowing = flushed;
    flowing.schedule = "pipedream";
    const auto a = Play(setting, flushed), b = Play(setting, flowing);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_LE(b->report.step_time, a->report.step_time) << microbatches;
    Duration busiest;
    for (const simulator::RankReport& rank : b->report.ranks.rows()) {
      busiest = std::max(busiest, rank.busy - rank.communication);
    }
    EXPECT_GE(b->report.step_time, busiest) << microbatches;
    EXPECT_LT(b->report.bubble_fraction, a->report.bubble_fraction) << microbatches;
    const auto parameters = [](const auto& run) {
      return run.program.resident(simulator::RankClassId(0), simulator::MemoryKind::kParameters);
    };
    EXPECT_EQ(parameters(*b), parameters(*a) * 4) << microbatches;
    EXPECT_EQ(b->report.bytes_sent, a->report.bytes_sent) << microbatches;
  }
}

// Batches of a cycle differ where sends and computing do not keep time with each other; the step is
// their mean. A single one was shorter than what a stage computes: a bubble below zero.
TEST(Play, AnAsynchronousStepIsNeverShorterThanItsWork) {
  Setting setting = MlpSetting("ring:16@50GB/s,one-way", "sgd");
  setting.step = ir::Mlp({.layers = 8, .dim = 256, .batch = 960}).value();
  transforms::AppendOptimizer(setting.step, "adam").value();
  for (const int64_t pp : {2, 4}) {
    for (const int64_t microbatches : {1, 2, 3, 4}) {
      const auto run =
          Play(setting, {.pp = pp, .microbatches = microbatches, .schedule = "pipedream"});
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_GE(run->report.bubble_fraction, 0) << pp << " stages, " << microbatches;
      for (const simulator::RankReport& rank : run->report.ranks.rows()) {
        EXPECT_GE(rank.idle, Duration(0)) << pp << " stages, " << microbatches;
        EXPECT_LE(rank.busy - rank.communication, run->report.step_time);
      }
    }
  }
}

// Twice the microbatches of the same size take twice as long, once the pipeline is full.
TEST(Play, TheSteadyStateIsSteady) {
  Setting setting = MlpSetting("uniform:8@200Gbps", "sgd");
  const Candidate few = {.pp = 4, .microbatches = 3, .schedule = "pipedream"};
  const Time once = Play(setting, few)->report.step_time;
  setting.step = ir::Mlp({.layers = 4, .dim = 64, .batch = 96}).value();
  transforms::AppendOptimizer(setting.step, "sgd").value();
  Candidate many = few;
  many.microbatches = 6;
  EXPECT_EQ(Play(setting, many)->report.step_time, once * 2);
}

}  // namespace
}  // namespace orrery::search
