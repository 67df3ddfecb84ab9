#include <benchmark/benchmark.h>

#include <memory>

#include "support/check.h"
#include "transforms/redistribution/search.h"
#include "transforms/redistribution/tensorcraft.h"

// How long a plan between two layouts takes.

namespace orrery::transforms::redistribution {
namespace {

ir::AxisList Axes(std::initializer_list<ir::AxisIndex> axes) {
  ir::AxisList list;
  for (const ir::AxisIndex axis : axes) list.push_back(axis);
  return list;
}

// The third table of tensorcraft's notebook, which takes tensorcraft 31 s: 1,899 layouts within
// the memory limit.
Problem FourDimensions() {
  Problem problem{.mesh = ir::Mesh({{"a", 4}, {"b", 2}, {"c", 4}}),
                  .dims = {800, 400, 800, 4},
                  .from = {},
                  .to = {}};
  problem.from.Set(0, 4, Axes({0, 1}), 100);
  problem.to.Set(1, 4, Axes({1}), 100);
  problem.to.Set(2, 4, Axes({0}), 100);
  return problem;
}

void PlanFourDimensions(benchmark::State& state, bool physical, int64_t limit) {
  const Problem problem = FourDimensions();
  const TensorcraftOptions options{.alpha = 0.01, .beta = 64.0 / 200003, .physical = physical};
  int64_t expanded = 0;
  for (auto _ : state) {
    const auto move_set = TensorcraftMoveSet::Create(problem, options);
    ORRERY_CHECK(move_set.ok()) << move_set.status();
    const auto plan =
        CheapestPlan(**move_set, PackedLayout(problem.from), PackedLayout(problem.to), limit);
    ORRERY_CHECK(plan.has_value()) << "no plan";
    expanded = plan->expanded;
  }
  state.counters["layouts"] = static_cast<double>(expanded);
}

BENCHMARK_CAPTURE(PlanFourDimensions, limited, false, 128000000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlanFourDimensions, unlimited, false, kNoLimit)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlanFourDimensions, physical, true, kNoLimit)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::transforms::redistribution
