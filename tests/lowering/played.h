#ifndef ORRERY_TESTS_LOWERING_PLAYED_H_
#define ORRERY_TESTS_LOWERING_PLAYED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/function.h"
#include "lowering/lower.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/report.h"
#include "transforms/parallel.h"
#include "transforms/schedules/schedule.h"

// A training step from the function to its trace, in one call.

namespace orrery::lowering {

/// Everything that a program is made from, besides the step.
struct Configuration {
  transforms::ParallelPlan plan;  // stages by flops, where it leaves them to the cost
  std::string cluster = "uniform:16@200Gbps";
  std::string cost_model = "roofline";
  bool fold = true;
  int64_t most_unfolded_tasks = lowering::LoweringOptions().most_unfolded_tasks;
  std::vector<transforms::SliceRange> slices = {};  // of the sequence
  bool fuse_runs = false;
};
std::string ToString(const Configuration& configuration);

struct Played {
  transforms::PipelinedStep step;
  std::vector<LoweredStep> lowered;
  simulator::Program program;
  simulator::Trace trace;
  simulator::Report report;
};

/// Parallelizes, lowers and plays `step`, in the orders of the schedule or, where given, in
/// `orders`; aborts when that cannot be.
Played Play(const ir::Function& step, const Configuration& configuration,
            const transforms::RankOrders* orders = nullptr);

/// A figure of each global rank, in rank order: ranks of a class have the same.
template <typename F>
auto ByRank(const Played& played, F figure) {
  std::vector<decltype(figure(simulator::RankClassId(0)))> figures(
      static_cast<size_t>(played.report.rank_count));
  for (int32_t r = 0; r < played.program.rank_count(); ++r) {
    const simulator::RankClassId id(r);
    for (const int32_t rank : played.program.rank(id).members) {
      figures[static_cast<size_t>(rank)] = figure(id);
    }
  }
  return figures;
}

/// The shape of the pipeline; aborts when the schedule is not for it.
transforms::PipelineShape ShapeOf(const Configuration& configuration);

/// Random configurations of a step whose dimensions are multiples of 12: any degrees from 1 to 6
/// that divide what they split.
struct RandomCase {
  ir::Function step;
  Configuration configuration;
};
RandomCase MakeRandomCase(uint32_t seed);

}  // namespace orrery::lowering

#endif  // ORRERY_TESTS_LOWERING_PLAYED_H_
