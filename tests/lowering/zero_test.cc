#include "transforms/memory/zero.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "importer/load_model.h"
#include "ir/models/mlp.h"
#include "simulator/report/memory.h"
#include "tests/lowering/played.h"
#include "transforms/training/training_step.h"

// What ZeRO takes of memory, time and network.

namespace orrery::lowering {
namespace zero_test_cc {
namespace {

using simulator::MemoryKind;
using simulator::MemoryUse;
using simulator::RankClassId;
using simulator::TaskId;

constexpr int64_t kLayers = 8, kDim = 512, kParameters = kLayers * kDim * kDim;

ir::Function Mlp(ir::DType dtype, int64_t batch = 64, absl::string_view optimizer = "adam") {
  ir::Function step =
      ir::Mlp({.layers = kLayers, .dim = kDim, .batch = batch, .dtype = dtype}).value();
  transforms::AppendOptimizer(step, optimizer).value();
  return step;
}

Configuration With(int64_t dp, int64_t stage, int64_t microbatches = 2) {
  return {.plan = {.dp = dp, .microbatches = microbatches, .zero = stage}};
}

// What rank 0 holds when its optimizer begins.
MemoryUse AtTheUpdate(const Played& played) {
  Time update;
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    const simulator::TaskLabel label = played.program.label(played.program.label_of(TaskId(t)));
    const bool optimizer = label.kind == simulator::TaskKind::kCompute &&
                           label.phase == simulator::Phase::kUpdate && label.stage == 0;
    if (optimizer) update = played.trace.start_of(TaskId(t));
  }
  MemoryUse held;
  const auto timelines = MemoryTimeline(played.program, played.trace);
  for (const MemoryUse& use : timelines[RankClassId(0)]) {
    if (use.time <= update) held = use;
  }
  return held;
}

// Bytes a parameter: of parameters, gradients, and the optimizer's state with master copies.
std::array<double, 3> BytesAParameter(const Played& played, int64_t parameters = kParameters) {
  const MemoryUse use = AtTheUpdate(played);
  const auto of = [&](MemoryKind kind) {
    return static_cast<double>(use.of(kind).count()) / static_cast<double>(parameters);
  };
  return {of(MemoryKind::kParameters), of(MemoryKind::kGradients), of(MemoryKind::kOptimizer)};
}

// Rajbhandari et al. 2020, Figure 1: 2 + 2 + 12 bytes in mixed precision, of which each stage
// divides one more by p. In fp32, 4 + 4 + 8.
TEST(Zero, BytesAParameterAreThoseOfTheTable) {
  using testing::ElementsAre;
  for (const int64_t microbatches : {1, 2}) {
    for (const int64_t p : {2, 4, 8}) {
      SCOPED_TRACE(absl::StrCat("p=", p, " K=", microbatches));
      const auto bytes = [&](ir::DType dtype, int64_t stage) {
        return BytesAParameter(Play(Mlp(dtype), With(p, stage, microbatches)));
      };
      const double part = 1.0 / static_cast<double>(p);
      EXPECT_THAT(bytes(ir::DType::kBF16, 0), ElementsAre(2, 2, 12));
      EXPECT_THAT(bytes(ir::DType::kBF16, 1), ElementsAre(2, 2, 12 * part));
      EXPECT_THAT(bytes(ir::DType::kBF16, 2), ElementsAre(2, 2 * part, 12 * part));
      EXPECT_THAT(bytes(ir::DType::kBF16, 3), ElementsAre(2 * part, 2 * part, 12 * part));
      EXPECT_THAT(bytes(ir::DType::kF32, 0), ElementsAre(4, 4, 8));
      EXPECT_THAT(bytes(ir::DType::kF32, 1), ElementsAre(4, 4, 8 * part));
      EXPECT_THAT(bytes(ir::DType::kF32, 2), ElementsAre(4, 4 * part, 8 * part));
      EXPECT_THAT(bytes(ir::DType::kF32, 3), ElementsAre(4 * part, 4 * part, 8 * part));
    }
  }
}

// Within a group of 4 of 8 ranks; beside horizontal parallelism, on what a rank has of the model;
// and where nothing divides, by the rank that has most.
TEST(Zero, BytesOfGroupsOfPartsAndOfWhatDoesNotDivide) {
  using testing::ElementsAre;
  Configuration grouped = With(8, 3);
  grouped.plan.zero_group = 4;
  EXPECT_THAT(BytesAParameter(Play(Mlp(ir::DType::kBF16), grouped)), ElementsAre(0.5, 0.5, 3));
  Configuration parts = With(4, 3);
  parts.plan.hp = 2;
  EXPECT_THAT(BytesAParameter(Play(Mlp(ir::DType::kBF16), parts), kParameters / 2),
              ElementsAre(0.5, 0.5, 3));
  // 512 rows over 3 ranks are 171 for two of them.
  const int64_t most = kLayers * 171 * kDim;
  EXPECT_THAT(BytesAParameter(Play(Mlp(ir::DType::kBF16, 48), With(3, 3)), most),
              ElementsAre(2, 2, 12));
}

// In units of one all-reduce of the gradients: reduce-scatter and all-gather are half of one each.
// Parameters are gathered twice in stage 3; each microbatch scatters in stages 2 and 3.
TEST(Zero, TrafficIsOneAndAHalfOfThatWithout) {
  for (const int64_t microbatches : {1, 2, 4}) {
    const auto traffic = [&](int64_t stage) {
      const Played played = Play(Mlp(ir::DType::kBF16), With(4, stage, microbatches));
      return static_cast<double>(played.report.bytes_reduced.count()) / (2.0 * kParameters);
    };
    const auto k = static_cast<double>(microbatches);
    EXPECT_EQ(traffic(0), 1);
    EXPECT_EQ(traffic(1), 1);
    EXPECT_EQ(traffic(2), 0.5 * k + 0.5);
    EXPECT_EQ(traffic(3), 1.5 * k);
  }
}

// The gathered weights of at most prefetch + 1 layers are there at a time, in each phase and from
// one phase to the next; of so many at least once, where the network lets them come in time.
TEST(Zero, GathersNoFartherAheadThanItIsTold) {
  for (const auto& [pp, microbatches] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 2}, {2, 1}, {2, 4}}) {
    for (const int64_t prefetch : {0, 1, 2}) {
      for (const char* cluster : {"uniform:8@200Gbps", "dgx-h100:1"}) {
        SCOPED_TRACE(absl::StrCat("pp=", pp, " K=", microbatches, " prefetch=", prefetch));
        Configuration configuration = With(4, 3, microbatches);
        configuration.plan.pp = pp;
        configuration.cluster = cluster;
        configuration.plan.prefetch = prefetch;
        const Played played = Play(Mlp(ir::DType::kBF16, 4096), configuration);
        Bytes most;
        for (int32_t r = 0; r < played.program.rank_count(); ++r) {
          const auto timelines = MemoryTimeline(played.program, played.trace);
          for (const MemoryUse& use : timelines[RankClassId(r)]) {
            most = std::max(most, use.of(MemoryKind::kBuffers));
          }
        }
        const int64_t units = std::min(prefetch + 1, kLayers / pp);
        EXPECT_EQ(most, Bytes(units * 2 * kDim * kDim));
      }
    }
  }
}

ir::Function Gpt(int64_t batch) {
  ir::Function function =
      importer::LoadModel({.model = "gpt:layers=8,hidden=2048,heads=16,seq=1024,vocab=8192,flash=1",
                           .batch_size = batch,
                           .dtype = ir::DType::kBF16})
          .value();
  EXPECT_TRUE(transforms::MakeTrainingStep(function, {}).ok());
  return function;
}

// On a network that is fast enough all but the first gather and the last scatter hide behind
// compute; without prefetching, none does. (The optimizer has only a part to do: so the step is
// shorter than without ZeRO.)
TEST(Zero, GathersHideBehindCompute) {
  const ir::Function step = Gpt(64);
  const auto play = [&](int64_t stage, int64_t prefetch) {
    Configuration configuration = With(8, stage, 2);
    configuration.cluster = "dgx-h100:1";
    configuration.plan.prefetch = prefetch;
    return Play(step, configuration).report;
  };
  const simulator::Report without = play(0, 1), with = play(3, 1), late = play(3, 0);
  EXPECT_LT(with.step_time.seconds(), 1.01 * without.step_time.seconds());
  EXPECT_LT(with.exposed_communication_s, 0.06 * with.step_time.seconds());
  EXPECT_GT(late.exposed_communication_s, 3 * with.exposed_communication_s);
}

// Latency is paid once a layer: two gathers and a scatter of each unit, not of each parameter.
TEST(Zero, OneCollectiveAUnit) {
  const Played played = Play(Gpt(8), With(8, 3, 1));
  int gathers = 0, scatters = 0;
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    const std::string kind(played.program.label(played.program.label_of(TaskId(t))).communication);
    gathers += kind == "all-gather dp" ? 1 : 0;
    scatters += kind == "reduce-scatter dp" ? 1 : 0;
  }
  // Eight layers, the embeddings, a norm.
  EXPECT_EQ(scatters, 10);
  EXPECT_GE(gathers, 18);
  EXPECT_LE(gathers, 22);
}

// A blocking step has its gathers where they are used, in one stream.
TEST(Zero, BlockingStepsAreOneThingAfterAnother) {
  for (const int64_t stage : {1, 2, 3}) {
    Configuration configuration = With(4, stage, 2);
    configuration.plan.blocking = true;
    const Played played = Play(Mlp(ir::DType::kBF16), configuration);
    const simulator::RankReport& rank = played.report.ranks[RankClassId(0)];
    EXPECT_EQ(rank.busy, rank.finish - Time());
    EXPECT_EQ(rank.exposed_communication, rank.communication);
  }
}

}  // namespace
}  // namespace zero_test_cc
}  // namespace orrery::lowering
