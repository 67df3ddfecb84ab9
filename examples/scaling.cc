// How long a simulation takes, against the number of ops: the MLP of DistIR's notebook on one
// device, 32 to 4,096 layers of 64. Prints CSV, medians of five: `simulate_ms` plays a program that
// has been lowered; `total_ms` also builds, parallelizes, lowers and summarizes the step.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "ir/models/mlp.h"
#include "search/evaluate.h"
#include "simulator/engine/longest_path.h"
#include "support/heap.h"
#include "support/status.h"

namespace orrery {
namespace {

template <typename Work>
double MedianMilliseconds(const Work& work) {
  std::array<double, 5> times;
  for (double& time : times) {
    const auto start = std::chrono::steady_clock::now();
    work();
    time =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

absl::Status Measure(int64_t layers) {
  const ir::MlpShape shape = {.layers = layers, .dim = 64, .batch = 64};
  search::Setting setting;
  ORRERY_ASSIGN_OR_RETURN(setting.step, ir::Mlp(shape));
  ORRERY_ASSIGN_OR_RETURN(setting.cluster, cluster::ParseCluster("uniform:1@200Gbps"));
  ORRERY_ASSIGN_OR_RETURN(setting.cost_model, cost_models::MakeCostModel("distir"));
  const transforms::ParallelPlan sequential = {.schedule = "distir", .blocking = true};
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, search::Play(setting, sequential));
  simulator::Trace trace;
  const double simulate_ms =
      MedianMilliseconds([&] { simulator::RunLongestPath(run.program, trace); });
  const double total_ms = MedianMilliseconds([&] {
    setting.step = *ir::Mlp(shape);
    (void)search::Play(setting, sequential);
  });
  std::printf("%lld,%zu,%.4f,%.4f\n", static_cast<long long>(layers), setting.step.order().size(),
              simulate_ms, total_ms);
  return absl::OkStatus();
}

}  // namespace
}  // namespace orrery

int main() {
  orrery::TuneHeap();
  std::printf("layers,ops,simulate_ms,total_ms\n");
  for (int64_t layers = 32; layers <= 4096; layers *= 2) {
    const absl::Status status = orrery::Measure(layers);
    if (status.ok()) continue;
    std::cerr << status << "\n";
    return 1;
  }
}
