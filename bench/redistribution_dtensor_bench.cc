// Planning in DTensor's graph of layouts on five mesh axes and four tensor dimensions: 21,872
// layouts with one reduction. Counters: layouts looked at. With the bound of the move set, without
// it, and with steps over several axes.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "transforms/redistribution/dtensor.h"

namespace orrery::transforms::redistribution {
namespace {

ir::Sharding Split(const std::vector<std::vector<ir::AxisIndex>>& dims,
                   const std::vector<ir::AxisIndex>& partial) {
  ir::Sharding sharding;
  for (size_t d = 0; d < dims.size(); ++d) {
    ir::AxisList axes;
    for (const ir::AxisIndex axis : dims[d]) axes.push_back(axis);
    sharding.Set(d, dims.size(), axes);
  }
  for (const ir::AxisIndex axis : partial) sharding.partial.push_back(axis);
  return sharding;
}

Problem FiveAxes(int number) {
  Problem problem = {
      .mesh = ir::Mesh({{"a", 2}, {"b", 4}, {"c", 2}, {"d", 4}, {"e", 2}}),
      .dims = {512, 256, 256, 128},
      .from = {},
      .to = {},
  };
  switch (number) {
    case 0:  // all sums end elsewhere
      problem.from = Split({{}, {}, {}, {}}, {0, 1, 2, 3, 4});
      problem.to = Split({{0, 1}, {2}, {3}, {4}}, {});
      break;
    case 1:  // all orders turn round
      problem.from = Split({{0, 1, 2}, {3, 4}, {}, {}}, {});
      problem.to = Split({{2, 1, 0}, {4, 3}, {}, {}}, {});
      break;
    case 2:
      problem.from = Split({{0}, {1}, {2}, {3}}, {4});
      problem.to = Split({{3}, {2}, {1}, {0}}, {});
      break;
    case 3:
      problem.from = Split({{0, 1, 2, 3, 4}, {}, {}, {}}, {});
      problem.to = Split({{}, {}, {}, {}}, {0, 1, 2, 3, 4});
      break;
    default:
      problem.from = Split({{4, 3, 2, 1}, {}, {}, {}}, {0});
      problem.to = Split({{0, 1, 2, 3, 4}, {}, {}, {}}, {});
      break;
  }
  return problem;
}

// The same without its bound.
class Unbounded : public MoveSet {
 public:
  explicit Unbounded(const MoveSet& move_set) : move_set_(move_set) {}
  void Expand(const PackedLayout& layout, std::vector<Move>& moves) const override {
    move_set_.Expand(layout, moves);
  }
  StepCost CostOf(const PackedLayout& before, const Step& step) const override {
    return move_set_.CostOf(before, step);
  }
  int64_t Elements(const PackedLayout& layout) const override { return move_set_.Elements(layout); }
  std::string NameOf(const PackedLayout& before, const Step& step) const override {
    return move_set_.NameOf(before, step);
  }

 private:
  const MoveSet& move_set_;
};

void Plan(benchmark::State& state, bool bounded, bool merge) {
  const Problem problem = FiveAxes(static_cast<int>(state.range(0)));
  int64_t expanded = 0;
  double cost = 0;
  for (auto _ : state) {
    const auto move_set = *MakeDtensor(problem, {.merge = merge});
    const Unbounded unbounded(*move_set);
    const auto plan = CheapestPlan(bounded ? *move_set : unbounded, PackedLayout(problem.from),
                                   PackedLayout(problem.to));
    expanded = plan->expanded;
    cost = plan->cost;
  }
  state.counters["layouts"] = static_cast<double>(expanded);
  state.counters["cost_us"] = cost;
}

BENCHMARK_CAPTURE(Plan, Bounded, true, false)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Plan, Unbounded, false, false)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Plan, Merged, true, true)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::transforms::redistribution
