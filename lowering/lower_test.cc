#include "lowering/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "simulator/engine/longest_path.h"
#include "simulator/report/report.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace lower_test_cc {
namespace {

using simulator::MemoryKind;
using simulator::RankClassId;
using transforms::ParallelPlan;

constexpr int64_t kLayers = 4, kDim = 8, kBatch = 16;
constexpr int64_t kWeight = kDim * kDim * 4;  // bytes

struct Options {
  std::string schedule = "1f1b";
  std::string cluster = "uniform:8@200Gbps";
  std::string optimizer = "sgd";
  LoweringOptions lowering = {};
  int32_t rounds = 1;
  std::vector<int32_t> ranks = {};        // the device of each
  std::vector<std::string> devices = {};  // by number, instead of the cluster's
  std::vector<double> slow_downs = {};    // of those devices, when communication runs
};

absl::StatusOr<simulator::Program> LowerMlp(const ParallelPlan& plan, const Options& options = {}) {
  ir::Function step = ir::Mlp({.layers = kLayers, .dim = kDim, .batch = kBatch}).value();
  EXPECT_TRUE(transforms::AppendOptimizer(step, options.optimizer).ok());
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const auto pipelined =
      transforms::ParallelTransform3d(step, transforms::ByFlops(plan), {.devices = options.ranks})
          .value();
  auto cluster = cluster::ParseCluster(options.cluster).value();
  if (!options.devices.empty()) {
    cluster::Cluster mixed{.name = "mixed", .device = {}, .topology = cluster.topology};
    for (size_t i = 0; i < options.devices.size(); ++i) {
      cluster::Device device = cluster::FindDevice(options.devices[i]).value();
      if (!options.slow_downs.empty()) device.communication_slowdown = options.slow_downs[i];
      mixed.AddDevices(device, 1);
    }
    cluster = mixed;
  }
  return Lower({.step = pipelined,
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
  EXPECT_EQ(LowerMlp({.dp = 2}, {.ranks = {3, 8}}).status().message(),
            "cluster uniform:8@200Gbps has 8 devices; mesh(pp=1, dp=2, hp=1) wants device 8 of it");
}

// Stages that are cut for one schedule are no use to another that has them elsewhere.
TEST(Lower, SaysWhenStagesAreNotWhereTheScheduleHasThem) {
  EXPECT_EQ(LowerMlp({.pp = 2, .microbatches = 2}, {.schedule = "zbv"}).status().message(),
            "found 2 stages on 2 ranks; schedule zbv wants 4; partition for its chunks");
}

// A part of the batch is no slice of a sequence.
TEST(Lower, SaysWhenMicrobatchesAreNotWhatTheScheduleHas) {
  EXPECT_EQ(LowerMlp({.pp = 2, .microbatches = 2}, {.schedule = "terapipe"}).status().message(),
            "schedule terapipe for a step of 2 parts of the batch; wanted slices of the sequence: "
            "ParallelTransform3d");
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
  EXPECT_EQ(overlapped->stream_count(), 2 * (simulator::kStreamKindCount - 2));  // no host
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

// The duration of the first task of a rank.
Duration FirstKernel(const simulator::Program& program, int32_t rank) {
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const simulator::TaskId task(t);
    if (program.stream(program.streams_of(task)[0]).rank == RankClassId(rank)) {
      return program.duration(task);
    }
  }
  return Duration(-1);
}

// Each rank computes on its own device and has its memory; those of a stage that are unlike are not
// folded.
TEST(Lower, DevicesOfSeveralKinds) {
  const std::vector<std::string> mixed = {"h100-80gb", "v100-32gb"};
  const auto fast = LowerMlp({}, {.cluster = "uniform:1@200Gbps", .devices = {"h100-80gb"}});
  const auto slow = LowerMlp({}, {.cluster = "uniform:1@200Gbps", .devices = {"v100-32gb"}});
  const auto data = LowerMlp({.dp = 2}, {.cluster = "uniform:2@200Gbps", .devices = mixed});
  const auto stages = LowerMlp(
      {.pp = 2},
      {.cluster = "uniform:2@200Gbps", .lowering = {.device_memory = true}, .devices = mixed});
  ASSERT_TRUE(fast.ok() && slow.ok() && data.ok() && stages.ok()) << data.status();
  ASSERT_EQ(data->rank_count(), 2);
  EXPECT_LT(FirstKernel(*data, 0), FirstKernel(*data, 1));
  ASSERT_EQ(stages->rank_count(), 2);
  EXPECT_EQ(FirstKernel(*stages, 0), FirstKernel(*fast, 0));
  EXPECT_EQ(FirstKernel(*stages, 1), FirstKernel(*slow, 0));
  EXPECT_EQ(stages->rank(RankClassId(0)).capacity, Bytes(80'000'000'000));
  EXPECT_EQ(stages->rank(RankClassId(1)).capacity, Bytes(32'000'000'000));
}

// The limit counts where it is less than what the device has.
TEST(Lower, ALimitAndTheMemoryOfTheDevice) {
  const auto capacity = [](int64_t limit) {
    const auto program =
        LowerMlp({}, {.lowering = {.memory_limit = Bytes(limit), .device_memory = true}});
    return program->rank(RankClassId(0)).capacity;
  };
  EXPECT_EQ(capacity(0), Bytes(32'000'000'000));
  EXPECT_EQ(capacity(1'000), Bytes(1'000));
  EXPECT_EQ(capacity(64'000'000'000), Bytes(32'000'000'000));
}

// A stage of unlike ranks that is too large to play rank by rank goes at the pace of the slowest,
// with the least memory.
TEST(Lower, UnlikeRanksInGreatNumberAreFolded) {
  const Options slow = {.cluster = "uniform:2@200Gbps"};
  const Options mixed = {.cluster = "uniform:2@200Gbps",
                         .lowering = {.most_unfolded_tasks = 0, .device_memory = true},
                         .devices = {"h100-80gb", "v100-32gb"}};
  const auto all_slow = LowerMlp({.dp = 2}, slow), folded = LowerMlp({.dp = 2}, mixed);
  ASSERT_TRUE(all_slow.ok() && folded.ok()) << folded.status();
  ASSERT_EQ(folded->rank_count(), 1);
  EXPECT_EQ(folded->rank(RankClassId(0)).capacity, Bytes(32'000'000'000));
  EXPECT_EQ(simulator::RunLongestPath(*folded).makespan,
            simulator::RunLongestPath(*all_slow).makespan);
}

// Communication slows a folded stage down as it does the device that it slows down most; unfolded,
// each rank as its own.
TEST(Lower, UnlikeRanksSlowDownLikeTheMostSlowedOfThem) {
  const auto slow_downs = [](int64_t most_unfolded, std::vector<double> of_devices) {
    const auto program =
        LowerMlp({.dp = 4}, {.cluster = "uniform:4@200Gbps",
                             .lowering = {.most_unfolded_tasks = most_unfolded},
                             .devices = {"h100-80gb", "v100-32gb", "a100-80gb", "h200"},
                             .slow_downs = std::move(of_devices)});
    EXPECT_TRUE(program.ok()) << program.status();
    std::vector<double> found;
    for (int32_t rank = 0; program.ok() && rank < program->rank_count(); ++rank) {
      found.push_back(program->rank(RankClassId(rank)).communication_slowdown);
    }
    return found;
  };
  const int64_t all = LoweringOptions().most_unfolded_tasks;
  EXPECT_THAT(slow_downs(0, {0.1, 0.3, 0.2, 0}), testing::ElementsAre(0.3));
  EXPECT_THAT(slow_downs(0, {0.3, 0, 0.2, 0.1}), testing::ElementsAre(0.3));
  EXPECT_THAT(slow_downs(0, {0, 0.1, 0.2, 0.3}), testing::ElementsAre(0.3));
  EXPECT_THAT(slow_downs(all, {0.1, 0.3, 0.2, 0}), testing::ElementsAre(0.1, 0.3, 0.2, 0));
}

// y = relu(x w) w, mean square error: both stages hold w and exchange what they know of its
// gradient before either updates it.
TEST(Lower, StagesExchangeTheGradientOfAWeightThatBothHave) {
  ir::Function step = ir::ParseFunction(R"(func @tied (
  %x: f32[16,8] data,
  %w: f32[8,8] parameter
) {
  %y0: f32[16,8] = MatMul(%x, %w)
  %y1: f32[16,8] = MatMul(%y0, %w)
  return %y1: result
}
)")
                          .value();
  ASSERT_TRUE(transforms::MakeTrainingStep(
                  step, {.optimizer = "adam", .loss = {.kind = "mse"}, .simplify = false})
                  .ok());
  const auto pipelined =
      transforms::ParallelTransform3d(step, transforms::ByFlops({.pp = 2, .microbatches = 4}))
          .value();
  const auto cluster = cluster::ParseCluster("uniform:2@200Gbps").value();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const auto program = Lower({.step = pipelined,
                              .schedule = *transforms::FindSchedule("1f1b").value(),
                              .cluster = cluster,
                              .cost_model = *cost_model});
  ASSERT_TRUE(program.ok()) << program.status();
  const simulator::Trace trace = simulator::RunLongestPath(*program);
  int sends = 0;
  for (int32_t t = 0; t < program->task_count(); ++t) {
    const auto label = program->label(program->label_of(simulator::TaskId(t)));
    if (label.kind != simulator::TaskKind::kSend || label.phase != simulator::Phase::kUpdate) {
      continue;
    }
    EXPECT_EQ(label.bytes, Bytes(kWeight));
    ++sends;
  }
  EXPECT_EQ(sends, 2);  // once a step, not once a microbatch
  for (const int32_t rank : {0, 1}) {
    EXPECT_EQ(program->resident(RankClassId(rank), MemoryKind::kParameters), Bytes(kWeight));
    EXPECT_EQ(program->resident(RankClassId(rank), MemoryKind::kOptimizer), Bytes(2 * kWeight));
  }
  const simulator::Report report = simulator::Summarize(*program, trace);
  // Four activations forward, four gradients back, and the exchange.
  EXPECT_EQ(report.bytes_sent, Bytes(8 * 4 * kDim * 4 + 2 * kWeight));
}

}  // namespace
}  // namespace lower_test_cc
}  // namespace orrery::lowering
