#include "search/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cluster/cluster_file.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "search/bounds/least_memory.h"
#include "search/settings/model_flops.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace evaluate_test_cc {
namespace {

using transforms::ByFlops;

constexpr double kLayers = 4, kDim = 64, kBatch = 48;

// Forward, and twice that backward: for each layer a product.
constexpr double kProducts = 6 * kLayers * kBatch * kDim * kDim;

TEST(CountModelFlops, IsTheSumOverProducts) {
  EXPECT_DOUBLE_EQ(CountModelFlops(MlpSetting().step).count(), kProducts);
}

// Regression: a frozen model has no parameter, and its fp16 products were set against fp32's peak.
TEST(ProductType, IsThatOfMostProductsWhateverIsAParameter) {
  const auto type = [](const char* text) { return ProductType(ir::ParseFunction(text).value()); };
  EXPECT_EQ(type("func @f (\n  %x: f16[8,4] data,\n  %w: f16[4,4] data\n) {\n"
                 "  %y: f16[8,4] = MatMul(%x, %w)\n  return %y: result\n}\n"),
            ir::DType::kF16);
  EXPECT_EQ(type("func @f (\n  %x: f32[8,4] data,\n  %w: f32[4,4] parameter,\n"
                 "  %a: bf16[8,64] data,\n  %b: bf16[64,64] parameter\n) {\n"
                 "  %y: f32[8,4] = MatMul(%x, %w)\n  %z: bf16[8,64] = MatMul(%a, %b)\n"
                 "  return %y: result, %z: result\n}\n"),
            ir::DType::kBF16);
  EXPECT_EQ(type("func @f (\n  %x: f16[8,4] data\n) {\n  %y: f16[8,4] = Relu(%x)\n"
                 "  return %y: result\n}\n"),
            ir::DType::kF32);
}

// Parallelism over data and stages repeats nothing but the update of each replica. Elements: ReLU
// and its gradient a layer, loss and its gradient. Causal attention in m equal slices has (m + 1) /
// 2m of its products.
TEST(CountModelFlops, LeavesOutWhatSlicesDoNotMeet) {
  ir::Function step = ir::BuildModel("gpt", "layers=1,hidden=32,heads=4,seq=16,vocab=64", 2);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "sgd"}).ok());
  EXPECT_EQ(FlopsBeyondSlices(step, {}).count(), 0);
  std::vector<transforms::SliceRange> slices;
  for (int64_t m = 0; m < 4; ++m) slices.push_back({.begin = 4 * m, .rows = 4});
  // Two products forward and four backward, of each 2 * 2 * 16 * 16 * 32.
  EXPECT_DOUBLE_EQ(FlopsBeyondSlices(step, slices).count(), 6 * 32768 * (1 - 5.0 / 8));
}

// Regression: with slices mfu counted products that nobody carries out, and exceeded hfu.
TEST(Play, SlicesUseNoMoreThanThePeak) {
  Setting setting = MlpSetting();
  setting.step = ir::BuildModel("gpt", "layers=4,hidden=32,heads=4,seq=512,vocab=64,flash=1", 2);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  setting.batch_size = 2;
  setting.model_flops = CountModelFlops(setting.step);
  const auto run = Play(setting, ByFlops({.pp = 2, .microbatches = 8, .schedule = "terapipe"}));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_LE(run->figures.mfu, run->figures.hfu);
  EXPECT_GT(run->figures.mfu, 0.5 * run->figures.hfu);
}

TEST(Play, DoesTheFlopsOfTheStep) {
  const Setting setting = MlpSetting("uniform:8@200Gbps", "none");
  for (const ParallelPlan& c : {ParallelPlan{}, ParallelPlan{.dp = 4}, ParallelPlan{.pp = 4},
                                ParallelPlan{.dp = 2, .pp = 4}}) {
    const auto run = Play(setting, ByFlops(c));
    ASSERT_TRUE(run.ok()) << run.status();
    const double elements = (2 * kLayers + 2) * kBatch * kDim;
    EXPECT_NEAR(run->report.flops.count(), kProducts + elements, 1) << ToString(c);
    EXPECT_NEAR(run->figures.hfu / run->figures.mfu, 1 + elements / kProducts, 1e-9) << ToString(c);
  }
}

// What is rematerialized counts for the hardware alone: three products and ReLUs of four layers. Of
// every layer nothing is left to run, as each keeps its input and its ReLU's result.
TEST(Play, CountsWhatIsRematerialized) {
  const Setting setting = MlpSetting("uniform:8@200Gbps", "none");
  const auto with = [](ParallelPlan plan, const char* recompute) {
    plan.recompute = transforms::ParseRecomputePolicy(recompute).value();
    return ByFlops(plan);
  };
  const auto flops = [&](const ParallelPlan& plan) {
    return Play(setting, plan)->report.flops.count();
  };
  const double plain = flops({});
  EXPECT_NEAR(flops(with({}, "every:4")) - plain, kProducts / 4 + 3 * kBatch * kDim, 1);
  EXPECT_NEAR(flops(with({.dp = 2, .pp = 2}, "every:2")) - plain, kProducts / 4 + 3 * kBatch * kDim,
              1);  // what a stage sends, it does not keep
  EXPECT_EQ(flops(with({}, "full")), plain);
  const auto once = Play(setting, {}), again = Play(setting, with({}, "every:4"));
  EXPECT_GT(again->report.step_time, once->report.step_time);
  EXPECT_LT(again->report.peak_memory, once->report.peak_memory);
  EXPECT_LT(again->figures.mfu, once->figures.mfu);
}

TEST(Play, FiguresFollowFromTheStepTime) {
  const Setting setting = MlpSetting();
  const auto run = Play(setting, ByFlops({.dp = 2, .hp = 2, .pp = 2, .microbatches = 3}));
  ASSERT_TRUE(run.ok()) << run.status();
  const double step_s = run->report.step_time.seconds();
  EXPECT_DOUBLE_EQ(run->figures.throughput_samples_per_s, kBatch / step_s);
  EXPECT_DOUBLE_EQ(run->figures.tokens_per_s, kBatch / step_s);
  EXPECT_DOUBLE_EQ(run->figures.mfu, setting.model_flops.count() / step_s / 8 /
                                         setting.cluster.device.fp32.flops_per_second());
}

// The peak is that of the type in which the parameters are, and of no other.
TEST(Play, UtilizationIsOfThePeakOfTheType) {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16, ir::DType::kF8}) {
    Setting setting = MlpSetting("dgx-h100:1", "none");
    setting.step = ir::Mlp({.layers = 4, .dim = 64, .batch = 48, .dtype = dtype}).value();
    const auto run = Play(setting, {.dp = 2});
    ASSERT_TRUE(run.ok()) << run.status();
    const cluster::Device& device = setting.cluster.device;
    const FlopRate peak = dtype == ir::DType::kF32    ? device.fp32
                          : dtype == ir::DType::kBF16 ? device.fp16
                                                      : device.fp8;
    EXPECT_DOUBLE_EQ(run->figures.mfu,
                     kProducts / run->report.step_time.seconds() / (2 * peak.flops_per_second()))
        << ir::ToString(dtype);
  }
}

// Products in 8 bits are measured by the peak of 8 bits, and count as many flops.
TEST(Play, UtilizationOfMixedPrecisionIsOfThePeakOf8Bits) {
  Setting setting = MlpSetting("dgx-h100:1", "none");
  setting.step = ir::Mlp({.layers = 4, .dim = 64, .batch = 64, .dtype = ir::DType::kBF16}).value();
  const auto without = Play(setting, {.dp = 2});
  const ParallelPlan mixed = {.dp = 2, .dtype = transforms::StepDType::kF8Mixed};
  setting.made_for = mixed;
  const auto run = Play(setting, mixed);
  ASSERT_TRUE(run.ok() && without.ok()) << run.status();
  const cluster::Device& device = setting.cluster.device;
  EXPECT_DOUBLE_EQ(run->figures.mfu, setting.model_flops.count() / run->report.step_time.seconds() /
                                         (2 * device.fp8.flops_per_second()));
  EXPECT_GT(run->report.flops, without->report.flops) << "casts count one operation an element";
}

// Of the devices that are used: the first three of one kind and five of another.
TEST(Play, UtilizationIsOfThePeakOfAllKinds) {
  Setting setting = MlpSetting();
  setting.cluster = cluster::ParseClusterText(
                        "devices { kind: \"a100-80gb\" count: 3 }\n"
                        "devices { kind: \"h100-80gb\" count: 5 }\n"
                        "topology { kind: \"switch\" port { rate: \"50GB/s\" } }\n",
                        cluster::ClusterFormat::kText, "mixed.textproto")
                        .value();
  const double slow = setting.cluster.kind(0).fp32.flops_per_second();
  const double fast = setting.cluster.kind(1).fp32.flops_per_second();
  ASSERT_LT(slow, fast);
  for (const auto& [ranks, peak] :
       {std::pair(2, 2 * slow), std::pair(4, 3 * slow + fast), std::pair(8, 3 * slow + 5 * fast)}) {
    const auto run = Play(setting, {.dp = ranks});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_DOUBLE_EQ(run->figures.mfu,
                     setting.model_flops.count() / run->report.step_time.seconds() / peak)
        << ranks;
  }
}

std::string WhyNot(const Setting& setting, const ParallelPlan& plan) {
  const auto result = Evaluate(setting, plan);
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
  EXPECT_EQ(WhyNot(setting, {.dp = 16}),
            "error: uniform:8@200Gbps has 8 devices; --dp 16 --hp 1 --pp 1 --micro-batches 1 "
            "--schedule 1f1b wants 16");
  setting.lowering.memory_limit = Bytes(200'000);
  EXPECT_THAT(WhyNot(setting, {}),
              testing::MatchesRegex("memory: needs [0-9.]+ KiB on rank 0; the limit is 195 KiB; "
                                    "[0-9.]+ KiB too much: optimizer .*"));
}

// Whichever rank that is.
TEST(Evaluate, WhatDoesNotFitIsSaidOfTheRankThatNeedsMost) {
  Setting setting = MlpSetting();
  int later = 0;
  for (const int64_t microbatches : {1, 8}) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      const ParallelPlan plan =
          ByFlops({.pp = 4, .microbatches = microbatches, .schedule = schedule});
      setting.lowering.memory_limit = Bytes(0);
      const auto played = Play(setting, plan);
      const auto& run = *played;
      int32_t most = 0;
      for (int32_t r = 1; r < 4; ++r) {
        const auto total = [&](int32_t rank) {
          return run.report.ranks[simulator::RankClassId(rank)].memory.total;
        };
        if (total(r) > total(most)) most = r;
      }
      // Some fit, or none does.
      for (const Bytes limit : {run.report.peak_memory - Bytes(1), LeastMemory(setting, plan)}) {
        setting.lowering.memory_limit = limit;
        EXPECT_THAT(WhyNot(setting, plan),
                    testing::StartsWith(
                        absl::StrCat("memory: needs ", ToString(run.report.peak_memory),
                                     " on rank ", most, "; the limit is ", ToString(limit), "; ",
                                     ToString(run.report.peak_memory - limit), " too much: ")));
      }
      later += most > 0;
    }
  }
  EXPECT_GT(later, 0);
}

TEST(Evaluate, WhatTakesTooLongToTellIsNotPossible) {
  Setting setting = MlpSetting("uniform:2@0.000000008Gbps");
  setting.step = ir::Mlp({.layers = 4, .dim = 2048, .batch = 48}).value();
  EXPECT_THAT(WhyNot(setting, {.dp = 2}),
              testing::StartsWith("unsupported: the step takes longer than "));
}

TEST(Evaluate, OneThatDoesNotFitHasItsFigures) {
  Setting setting = MlpSetting();
  const ParallelPlan plan = ByFlops({.pp = 2});
  setting.lowering.memory_limit = LeastMemory(setting, plan);
  const Result result = Evaluate(setting, plan).value();
  EXPECT_TRUE(result.ran);
  EXPECT_FALSE(result.fits);
  EXPECT_FALSE(result.feasible());
  EXPECT_GT(result.step_time, Duration(0));
  EXPECT_EQ(result.peak_memory, Play(setting, plan)->report.peak_memory);
}

// An asynchronous pipeline never drains: a step is at most that of 1F1B, at least the work of its
// busiest stage, and costs memory for versions of the weights.
TEST(Play, AnAsynchronousPipelineHasNoBubbleInTheSteadyState) {
  const Setting setting = MlpSetting("uniform:8@200Gbps", "sgd");
  for (const int64_t microbatches : {1, 2, 4, 8}) {
    const ParallelPlan flushed = ByFlops({.pp = 4, .microbatches = microbatches});
    ParallelPlan flowing = flushed;
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

// Batches of a period differ where sends and computing do not keep time with each other; the step
// is their mean. A single one was shorter than what a stage computes: a bubble below zero.
TEST(Play, AnAsynchronousStepIsNeverShorterThanItsWork) {
  Setting setting = MlpSetting("ring:16@50GB/s,one-way", "sgd");
  setting.step = ir::Mlp({.layers = 8, .dim = 256, .batch = 960}).value();
  transforms::AppendOptimizer(setting.step, "adam").value();
  for (const int64_t pp : {2, 4}) {
    for (const int64_t microbatches : {1, 2, 3, 4}) {
      const auto run =
          Play(setting, ByFlops({.pp = pp, .microbatches = microbatches, .schedule = "pipedream"}));
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_GE(run->report.bubble_fraction, 0) << pp << " stages, " << microbatches;
      for (const simulator::RankReport& rank : run->report.ranks.rows()) {
        EXPECT_GE(rank.idle, Duration(0)) << pp << " stages, " << microbatches;
        EXPECT_LE(rank.busy - rank.communication, run->report.step_time);
      }
    }
  }
}

// What a batch does in a pipeline that flows on is what it does in one that is flushed, but for an
// update of each microbatch. The report of all rounds would be a multiple.
TEST(Play, TheReportOfAnAsynchronousPipelineIsOfOneBatch) {
  const Setting setting = MlpSetting("uniform:8@200Gbps", "sgd");
  for (const int64_t microbatches : {1, 3, 8}) {
    SCOPED_TRACE(microbatches);
    const ParallelPlan flushed = ByFlops({.dp = 2, .pp = 4, .microbatches = microbatches});
    ParallelPlan flowing = flushed;
    flowing.schedule = "pipedream";
    const auto first = Play(setting, flushed), second = Play(setting, flowing);
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_GT(second->rounds, 1);
    const simulator::Report &a = first->report, &b = second->report;
    constexpr double kUpdate = 2 * kLayers * kDim * kDim;  // of both replicas
    EXPECT_EQ(b.bytes_sent, a.bytes_sent);
    EXPECT_EQ(b.bytes_reduced, a.bytes_reduced * microbatches);
    const double updates = static_cast<double>(microbatches - 1);
    EXPECT_NEAR(b.flops.count(), a.flops.count() + updates * kUpdate, 1);
    ASSERT_EQ(b.communication.size(), 2u);
    double exposed = 0;
    for (size_t i = 0; i < 2; ++i) {
      const simulator::CommunicationReport& row = b.communication[i];
      EXPECT_EQ(row.kind, a.communication[i].kind);
      const double times = row.kind == "send" ? 1 : static_cast<double>(microbatches);
      EXPECT_DOUBLE_EQ(row.bytes, a.communication[i].bytes * times) << row.kind;
      EXPECT_NEAR(row.exposed_s + row.hidden_s, row.total_s, 1e-15) << row.kind;
      exposed += row.exposed_s;
    }
    EXPECT_NEAR(exposed, b.exposed_communication_s, 1e-15);
    for (int32_t r = 0; r < b.ranks.size(); ++r) {
      const simulator::RankClassId id(r);
      simulator::CommunicationShare all;
      for (int32_t c = 0; c < b.shares.column_count(); ++c) all += b.shares.at(id, c);
      EXPECT_EQ(b.ranks[id].communication, all.total);
      EXPECT_EQ(b.ranks[id].exposed_communication, all.exposed);
      EXPECT_LE(b.ranks[id].finish, b.step_time);
      EXPECT_LE(b.ranks[id].idle, b.step_time);
    }
  }
}

// Twice the microbatches of the same size take twice as long, once the pipeline is full.
TEST(Play, TheSteadyStateIsSteady) {
  Setting setting = MlpSetting("uniform:8@200Gbps", "sgd");
  const ParallelPlan few = ByFlops({.pp = 4, .microbatches = 3, .schedule = "pipedream"});
  const Time once = Play(setting, few)->report.step_time;
  setting.step = ir::Mlp({.layers = 4, .dim = 64, .batch = 96}).value();
  transforms::AppendOptimizer(setting.step, "sgd").value();
  ParallelPlan many = few;
  many.microbatches = 6;
  EXPECT_EQ(Play(setting, many)->report.step_time, once * 2);
}

// Regression: collectives that were flows took no time where orders were searched.
TEST(Play, SearchesTheSameOrdersWithAndWithoutFlows) {
  for (const char* cluster : {"uniform:8@20Gbps", "uniform:8@200Gbps"}) {
    Setting setting = MlpSetting(cluster, "sgd");
    setting.step = ir::BuildModel("gpt", "layers=8,hidden=128,heads=4,seq=64,vocab=256", 32);
    EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
    setting.batch_size = 32;
    for (const char* schedule : {"zbv", "v-half", "v-min", "zb-h1"}) {
      const ParallelPlan plan = {.hp = 2,
                                 .pp = 4,
                                 .microbatches = 8,
                                 .schedule = schedule,
                                 .sharding = transforms::ShardingMethod::kMegatron,
                                 .stages_by = transforms::StagesBy::kFlops};
      setting.lowering.every_link = false;
      const Duration without = Play(setting, plan)->report.step_time;
      setting.lowering.every_link = true;
      EXPECT_EQ(Play(setting, plan)->report.step_time, without) << schedule << " " << cluster;
    }
  }
}

}  // namespace
}  // namespace evaluate_test_cc
}  // namespace orrery::search
