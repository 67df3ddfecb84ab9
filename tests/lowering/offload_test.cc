#include "transforms/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "importer/load_model.h"
#include "ir/models/mlp.h"
#include "lowering/host_work.h"
#include "simulator/play.h"
#include "tests/lowering/played.h"
#include "transforms/training_step.h"

// What offload saves on the device, and what it costs.

namespace orrery::lowering {
namespace {

using simulator::MemoryKind;
using simulator::RankClassId;
using simulator::StreamKind;
using simulator::TaskId;
using transforms::ParallelDegrees;

constexpr int64_t kLayers = 8, kDim = 1024, kBatch = 4096;
constexpr int64_t kActivation = kBatch * kDim * 4;  // bytes

struct Options {
  std::string offload = "none";
  int64_t prefetch = 1;
  Bandwidth host = Bandwidth::FromGigabytesPerSecond(1e6);
  ParallelDegrees degrees = {};
  std::string schedule = "1f1b";
  int64_t zero = 0;
  bool blocking = false;
};

Played PlayStep(const ir::Function& step, const Options& options) {
  transforms::SpreadOptions spread;
  spread.offload = transforms::ParseOffloadPolicy(options.offload).value();
  spread.offload.prefetch = options.prefetch;
  spread.zero.stage = options.zero;
  const auto schedule = transforms::FindSchedule(options.schedule).value();
  cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:1").value();
  cluster.device.host = {options.host, Duration(0)};
  Played played;
  auto parallel = transforms::ParallelTransform3d(step, options.degrees, spread);
  EXPECT_TRUE(parallel.ok()) << parallel.status();
  played.step = *std::move(parallel);
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  auto program = Lower({.step = played.step,
                        .schedule = *schedule,
                        .cluster = cluster,
                        .cost_model = *cost_model,
                        .options = {.blocking = options.blocking, .memory_limit = {}}});
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

}  // namespace
}  // namespace orrery::lowering
