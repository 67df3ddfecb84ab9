#include "lowering/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/models/mlp.h"
#include "simulator/longest_path.h"
#include "simulator/report.h"
#include "transforms/parallel.h"
#include "transforms/training_step.h"

namespace orrery::lowering {
namespace {

using simulator::MemoryKind;
using simulator::RankClassId;
using transforms::ParallelDegrees;

constexpr int64_t kLayers = 4, kDim = 8, kBatch = 16;
constexpr int64_t kWeight = kDim * kDim * 4;  // bytes

struct Options {
  std::string schedule = "1f1b";
  std::string cluster = "uniform:8@200Gbps";
  std::string optimizer = "sgd";
  LoweringOptions lowering = {};
  int32_t rounds = 1;
};

absl::StatusOr<simulator::Program> LowerMlp(const ParallelDegrees& degrees,
                                            const Options& options = {}) {
  ir::Function step = ir::Mlp({.layers = kLayers, .dim = kDim, .batch = kBatch}).value();
  EXPECT_TRUE(transforms::AppendOptimizer(step, options.optimizer).ok());
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const auto spread = transforms::ParallelTransform3d(step, degrees).value();
  const auto cluster = cluster::ParseCluster(options.cluster).value();
  return Lower({.step = spread,
                .schedule = *transforms::FindSchedule(options.schedule).value(),
                .cluster = cluster,
                .cost_model = *cost_model,
                .options = options.lowering,
                .rounds = options.rounds});
}

TEST(Lower, SaysWhenTheClusterIsTooSmall) {
  EXPECT_EQ(
      LowerMlp({.dp = 4, .pp = 4}).status().message(),
      "cluster uniform:8@200Gbps has 8 devices; mesh(pp=4, dp=4, hp=1) wants device 15 of it");
  EXPECT_EQ(LowerMlp({.dp = 2, .devices = {3, 8}}).status().message(),
            "cluster uniform:8@200Gbps has 8 devices; mesh(pp=1, dp=2, hp=1) wants device 8 of it");
}

TEST(Lower, FoldsEqualRanksIntoOneAStage) {
  const auto program = LowerMlp({.dp = 2, .hp = 2, .pp = 2});
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->rank_count(), 2);
  EXPECT_THAT(program->rank(RankClassId(1)).members, testing::ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(program->rank(RankClassId(1)).name, "pp1 dp0 hp0");
}

TEST(Lower, HoldsParametersStateAndItsShareOfTheBatch) {
  const auto program =
      LowerMlp({.dp = 2, .hp = 2, .pp = 2, .microbatches = 2}, {.optimizer = "adam"});
  ASSERT_TRUE(program.ok()) << program.status();
  const RankClassId first(0);
  EXPECT_EQ(program->resident(first, MemoryKind::kParameters), Bytes(2 * kWeight / 2));
  EXPECT_EQ(program->resident(first, MemoryKind::kOptimizer), Bytes(2 * 2 * kWeight / 2));
  EXPECT_EQ(program->resident(first, MemoryKind::kOther), Bytes(kBatch / 2 * kDim * 4));
}

// PipeDream keeps p-k versions of the weights of stage k.
TEST(Lower, KeepsTheWeightVersionsOfItsSchedule) {
  const auto program =
      LowerMlp({.pp = 4, .microbatches = 4}, {.schedule = "pipedream", .rounds = 3});
  ASSERT_TRUE(program.ok()) << program.status();
  for (int32_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(program->resident(RankClassId(stage), MemoryKind::kParameters),
              Bytes((4 - stage) * kWeight));
  }
}

// A synchronous step updates once, an asynchronous one after each backward.
TEST(Lower, UpdatesAsOftenAsItsScheduleSays) {
  const auto updates = [](const std::string& schedule, int32_t rounds) {
    const auto program =
        LowerMlp({.pp = 4, .microbatches = 4}, {.schedule = schedule, .rounds = rounds});
    EXPECT_TRUE(program.ok()) << program.status();
    int count = 0;
    for (int32_t t = 0; t < program->task_count(); ++t) {
      const auto& label = program->label(program->label_of(simulator::TaskId(t)));
      count += label.phase == simulator::Phase::kUpdate;
    }
    return count;
  };
  EXPECT_EQ(updates("1f1b", 1), 4);
  EXPECT_EQ(updates("pipedream", 3), 4 * 4 * 3);
}

TEST(Lower, BlockingHasOneStreamARank) {
  const auto overlapped = LowerMlp({.dp = 2, .pp = 2});
  const auto blocking =
      LowerMlp({.dp = 2, .pp = 2}, {.lowering = {.blocking = true, .memory_limit = {}}});
  ASSERT_TRUE(overlapped.ok() && blocking.ok());
  EXPECT_EQ(overlapped->stream_count(), 2 * simulator::kStreamKindCount);
  EXPECT_EQ(blocking->stream_count(), 2);
}

// One rank, one microbatch: the step is the sum of its kernels.
TEST(Lower, OneRankTakesTheSumOfItsKernels) {
  const auto program = LowerMlp({});
  ASSERT_TRUE(program.ok()) << program.status();
  Duration sum;
  for (const Duration duration : program->durations()) sum += duration;
  EXPECT_EQ(simulator::RunLongestPath(*program).makespan, sum);
  EXPECT_EQ(program->task_count(), 4 * kLayers + 2 + 1);
}

TEST(Lower, MarksRanksThatExceedTheLimit) {
  for (const int64_t limit : {1, 1'000'000}) {
    const auto program = LowerMlp(
        {.pp = 2}, {.lowering = {.blocking = false, .fold = true, .memory_limit = Bytes(limit)}});
    ASSERT_TRUE(program.ok()) << program.status();
    const auto report = simulator::Summarize(*program, simulator::RunLongestPath(*program));
    EXPECT_EQ(report.fits, limit > 1);
  }
}

}  // namespace
}  // namespace orrery::lowering
