#include "transforms/memory/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/load_model.h"
#include "ir/models/mlp.h"
#include "lowering/blocks/host_work.h"
#include "simulator/engine/play.h"
#include "tests/lowering/played.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

// What offload saves on the device, and what it costs.

namespace orrery::lowering {
namespace offload_test_cc {
namespace {

using simulator::MemoryKind;
using simulator::RankClassId;
using simulator::StreamKind;
using simulator::TaskId;
using transforms::ParallelPlan;

constexpr int64_t kLayers = 8, kDim = 1024, kBatch = 4096;
constexpr int64_t kActivation = kBatch * kDim * 4;  // bytes

struct Options {
  ParallelPlan plan = {};
  Bandwidth host = Bandwidth::FromGigabytesPerSecond(1e6);
  bool splits_backward = false;
};

const transforms::OffloadPolicy kActivations = {.activations = true};

Played PlayStep(const ir::Function& step, const Options& options) {
  cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:1").value();
  cluster.device.host = {options.host, Duration(0)};
  Played played;
  auto parallel = transforms::ParallelTransform3d(step, transforms::ByFlops(options.plan),
                                                  {.split_backward = options.splits_backward});
  EXPECT_TRUE(parallel.ok()) << parallel.status();
  played.step = *std::move(parallel);
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  auto program = Lower({.step = played.step,
                        .schedule = *options.plan.schedule,
                        .cluster = cluster,
                        .cost_model = *cost_model,
                        .options = {.blocking = options.plan.blocking, .memory_limit = {}}});
  EXPECT_TRUE(program.ok()) << program.status();
  played.program = *std::move(program);
  played.trace = simulator::Play(played.program).value();
  played.report = simulator::Summarize(played.program, played.trace);
  return played;
}

ir::Function MlpStep(const std::string& optimizer = "none", int64_t layers = kLayers) {
  ir::Function step = ir::Mlp({.layers = layers, .dim = kDim, .batch = kBatch}).value();
  EXPECT_TRUE(transforms::AppendOptimizer(step, optimizer).ok());
  return step;
}

simulator::RankReport FirstRank(const Played& played) {
  return played.report.ranks[RankClassId(0)];
}

int64_t CountOn(const Played& played, StreamKind kind) {
  int64_t count = 0;
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    for (const auto stream : played.program.streams_of(TaskId(t))) {
      count += played.program.stream(stream).kind == kind ? 1 : 0;
    }
  }
  return count;
}

TEST(FindHostWork, TellsCopiesFromUpdates) {
  const auto found = [](const transforms::OffloadPolicy& policy) {
    const auto step = transforms::ParallelTransform3d(MlpStep("adam"), {.offload = policy});
    EXPECT_TRUE(step.ok()) << step.status();
    const transforms::HostWorkOfStep work = transforms::FindHostWork(*step);
    return std::pair(work.copies, work.updates);
  };
  EXPECT_EQ(found({}), std::pair(false, false));
  EXPECT_EQ(found(kActivations), std::pair(true, false));
  EXPECT_TRUE(found({.optimizer = true}).second);
}

// Of layer i, its product and the input of its product; of the first, the latter is the data. Those
// of the last stay, and so does what it takes.
constexpr int64_t kOffloaded = 2 * (kLayers - 1) - 1;

Bandwidth Link(double gigabytes_per_second) {
  return Bandwidth::FromGigabytesPerSecond(gigabytes_per_second);
}

// What is offloaded leaves the device, but for a layer that is on its way, on a slow link and on
// one so fast that copies back are there long before they are used; in between there is less of it.
// All gradients together are less than an activation here.
TEST(Offload, FreesWhatItTakesButForALayer) {
  constexpr int64_t kLarge = 16, kBytes = kLarge * kActivation;
  const ir::Function step =
      ir::Mlp({.layers = kLayers, .dim = kDim, .batch = kLarge * kBatch}).value();
  const Played before = PlayStep(step, {});
  const std::map<double, int64_t> on_the_way = {{1e6, 2}, {100, 1}, {10, 2}, {0.1, 2}};
  for (const auto& [rate, activations] : on_the_way) {
    SCOPED_TRACE(rate);
    const Played played = PlayStep(step, {.plan = {.offload = kActivations}, .host = Link(rate)});
    EXPECT_EQ(FirstRank(played).host_memory, Bytes(kOffloaded * kBytes));
    EXPECT_EQ(FirstRank(before).memory.of(MemoryKind::kActivations) -
                  FirstRank(played).memory.of(MemoryKind::kActivations),
              Bytes((kOffloaded - activations) * kBytes));
  }
}

TEST(Offload, KeepsAsManyLayersAsArePrefetched) {
  const ir::Function step = MlpStep();
  Bytes last;
  for (const int64_t prefetch : {1, 2, 3}) {
    const Played played =
        PlayStep(step, {.plan = {.offload = kActivations, .offload_prefetch = prefetch}});
    EXPECT_EQ(played.report.step_time, PlayStep(step, {}).report.step_time);
    EXPECT_GE(FirstRank(played).memory.total, last);
    last = FirstRank(played).memory.total;
  }
}

// A layer's two copies at 4/5 of 120 GB/s take less than its product.
TEST(Offload, CostsNothingWhereComputeIsLongEnough) {
  const ir::Function step = MlpStep();
  const Played played = PlayStep(step, {.plan = {.offload = kActivations}, .host = Link(120)});
  EXPECT_EQ(played.report.step_time, PlayStep(step, {}).report.step_time);
  EXPECT_EQ(CountOn(played, StreamKind::kHost), kOffloaded);
  EXPECT_EQ(CountOn(played, StreamKind::kFromHost), kOffloaded);
}

// From the first copy out to the last one back the link is never idle: before it, product and ReLU
// of the first layer; after it, their gradients.
TEST(Offload, TakesItsCopiesWhereTheLinkIsSlow) {
  const ir::Function step = MlpStep();
  const auto durations = PlayStep(step, {}).program;
  const std::span<const Duration> kernels = durations.durations();
  const Duration around = kernels[0] + kernels[1] + kernels[kernels.size() - 2] + kernels.back();
  for (const double rate : {4.0, 1.0, 0.25}) {
    cluster::Device device;
    device.host = {Link(rate), Duration(0)};
    const Duration copy = HostCopyTime(Bytes(kActivation), device);
    EXPECT_EQ(
        PlayStep(step, {.plan = {.offload = kActivations}, .host = Link(rate)}).report.step_time,
        around + copy * (2 * kOffloaded));
  }
}

TEST(Offload, OfTheOptimizerTakesItsStates) {
  constexpr int64_t kWeights = kLayers * kDim * kDim * 4;
  for (const int64_t zero : {0, 1, 2, 3}) {
    const ir::Function step = MlpStep("adam");
    const Played kept = PlayStep(step, {.plan = {.dp = 4, .zero = zero}});
    const Played played =
        PlayStep(step, {.plan = {.dp = 4, .zero = zero, .offload = {.optimizer = true}}});
    const int64_t share = zero == 0 ? 1 : 4;
    EXPECT_EQ(played.program.resident(RankClassId(0), MemoryKind::kOptimizer), Bytes(0));
    EXPECT_EQ(kept.program.resident(RankClassId(0), MemoryKind::kOptimizer),
              Bytes(2 * kWeights / share));
    // Two moments, the parameters, and the gradients.
    EXPECT_EQ(FirstRank(played).host_memory, Bytes(4 * kWeights / share));
    EXPECT_LE(FirstRank(played).memory.total,
              FirstRank(kept).memory.total - Bytes(2 * kWeights / share));
  }
}

// Gradients leave while backward runs; then the last of them, all updates, and the last parameter.
TEST(Offload, OfTheOptimizerUpdatesOnTheHost) {
  constexpr Bytes kWeight(kDim * kDim * 4);
  const Played played =
      PlayStep(MlpStep("adam"), {.plan = {.offload = {.optimizer = true}}, .host = Link(40)});
  cluster::Device device = cluster::FindDevice("a100-80gb").value();
  device.host = {Link(40), Duration(0)};
  // Adam reads weight, moments and gradient, and writes all but the gradient.
  const Duration update = HostUpdateTime(kWeight * 7, device);
  const Duration copy = HostCopyTime(kWeight, device);
  EXPECT_LT(copy, update);
  EXPECT_EQ(played.report.step_time,
            PlayStep(MlpStep(), {}).report.step_time + copy + update * kLayers + copy);
}

// On one stream everything has its turn.
TEST(Offload, BlockingIsTheSumOfAll) {
  const Played played =
      PlayStep(MlpStep("adam"),
               {.plan = {.offload = {.activations = true, .optimizer = true}, .blocking = true}});
  Duration sum;
  for (const Duration duration : played.program.durations()) sum += duration;
  EXPECT_EQ(played.report.step_time, sum);
  EXPECT_GT(FirstRank(played).host_memory, Bytes(0));
}

// What is left of it on each rank when the step is over: on the device, on the host.
using Left = std::map<RankClassId, std::pair<int64_t, int64_t>>;
Left LeftBytes(const Played& played) {
  Left left;
  for (const simulator::MemoryEvent& event : played.program.memory_events()) {
    auto& [device, host] = left[event.rank];
    (event.kind == MemoryKind::kHost ? host : device) += event.bytes;
  }
  return left;
}

// Whatever the order, the host gives back all that it took, and the device as much as without.
TEST(Offload, LeavesNothingBehindUnderAnySchedule) {
  const std::string model = "gpt:layers=8,hidden=256,heads=4,seq=128,vocab=1000,tied_embeddings=0";
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    ir::Function step = importer::LoadModel({.model = model, .batch_size = 16}).value();
    ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
    const bool splits = schedule == std::string("zb-h1");
    if (splits) {
      ASSERT_TRUE(transforms::SplitBackward(step).value());
    }
    const Options kept = {.plan = {.pp = 2, .microbatches = 4, .schedule = schedule},
                          .host = Link(50),
                          .splits_backward = splits};
    const Played without = PlayStep(step, kept);
    for (const char* offload : {"activations", "activations:.", "optimizer+activations:."}) {
      SCOPED_TRACE(absl::StrCat(schedule, " ", offload));
      Options options = kept;
      options.plan.offload = transforms::ParseOffloadPolicy(offload).value();
      const Played played = PlayStep(step, options);
      EXPECT_EQ(LeftBytes(played), LeftBytes(without));
      EXPECT_LT(played.report.peak_memory, without.report.peak_memory);
    }
  }
}

}  // namespace
}  // namespace offload_test_cc
}  // namespace orrery::lowering
