#include "transforms/sharding/axis_layout.h"

#include <utility>

namespace orrery::transforms {

using ir::AxisIndex;
using ir::AxisList;
using ir::TensorType;

TensorType InLayout(TensorType type, AxisLayout layout, AxisIndex axis) {
  if (layout == kPartialLayout) {
    type.sharding.partial.push_back(axis);
    type.sharding.partial = type.sharding.partial.Sorted();
  } else if (layout >= 0) {
    AxisList axes = type.sharding.at(static_cast<size_t>(layout));
    axes.push_back(axis);
    type.sharding.Set(static_cast<size_t>(layout), type.dims.size(), axes);
  }
  return type;
}

AxisLayout LayoutOf(const ir::Sharding& sharding, AxisIndex axis) {
  if (sharding.partial.contains(axis)) return kPartialLayout;
  for (size_t d = 0; d < sharding.split.size(); ++d) {
    if (sharding.split[d].contains(axis)) return static_cast<AxisLayout>(d);
  }
  return kWholeLayout;
}

bool CanSplit(const TensorType& type, size_t dim, AxisIndex axis, const ir::Mesh& mesh) {
  const int64_t parts = mesh.size(type.sharding.at(dim)) * mesh.size(axis);
  return type.dims[dim] > 0 && type.dims[dim] % parts == 0;
}

bool CanSplit(const TensorType& type, size_t dim, const AxisProblem& problem) {
  if (CanSplit(type, dim, problem.axis, problem.mesh)) return true;
  const int64_t parts = problem.mesh.size(type.sharding.at(dim)) * problem.mesh.size(problem.axis);
  return problem.uneven && type.dims[dim] >= parts;
}

ir::ValueId WeightUnder(const ir::Function& function, ir::ValueId value) {
  for (ir::OpId op = function.producer(value);
       op.valid() && function.operands(op).size() == 1 &&
       function.type(function.operands(op)[0]).dims == function.type(value).dims;
       op = function.producer(value)) {
    value = function.operands(op)[0];
  }
  return value;
}

LayoutWay LayoutWays::Direct(const TensorType& type, AxisLayout from, AxisLayout to) const {
  if (from == to) return {.seconds = 0, .steps = {}};
  if (to == kPartialLayout) return {};
  redistribution::MoveKind kind = redistribution::MoveKind::kAllToAll;
  if (from == kWholeLayout) {
    kind = redistribution::MoveKind::kSlice;
  } else if (from == kPartialLayout) {
    kind = to == kWholeLayout ? redistribution::MoveKind::kAllReduce
                              : redistribution::MoveKind::kReduceScatter;
  } else if (to == kWholeLayout) {
    kind = redistribution::MoveKind::kAllGather;
  }
  const AxisLayout larger = kind == redistribution::MoveKind::kAllGather ? to : from;
  const Bytes size = SizeOf(ir::LocalType(InLayout(type, larger, problem_.axis), problem_.mesh));
  const double seconds = kind == redistribution::MoveKind::kSlice
                             ? 0
                             : problem_.prices.StepSeconds(kind, AxisList(problem_.axis), size);
  return {.seconds = seconds, .steps = {{kind, from, to}}};
}

std::vector<LayoutWay> LayoutWays::All(const TensorType& type) const {
  std::vector<AxisLayout> layouts = {kPartialLayout, kWholeLayout};
  for (size_t d = 0; d < type.dims.size(); ++d) {
    if (CanSplit(type, d, problem_)) layouts.push_back(static_cast<AxisLayout>(d));
  }
  const auto count = type.dims.size() + 2;
  std::vector<LayoutWay> ways(count * count);
  for (const AxisLayout from : layouts) {
    for (const AxisLayout to : layouts) {
      LayoutWay& best = ways[static_cast<size_t>(from + 2) * count + static_cast<size_t>(to + 2)];
      best = Direct(type, from, to);
      for (const AxisLayout between : layouts) {
        if (between == from || between == to || from == to) continue;
        LayoutWay first = Direct(type, from, between);
        const LayoutWay second = Direct(type, between, to);
        if (first.seconds + second.seconds >= best.seconds) continue;
        first.seconds += second.seconds;
        first.steps.push_back(second.steps[0]);
        best = std::move(first);
      }
    }
  }
  return ways;
}

const LayoutWay& LayoutWays::Find(ir::ValueId value, AxisLayout from, AxisLayout to) {
  const auto type = static_cast<size_t>(problem_.function.type_id(value).index());
  if (ways_.size() <= type) ways_.resize(static_cast<size_t>(problem_.function.types().size()));
  if (ways_[type].empty()) ways_[type] = All(problem_.function.type(value));
  const size_t count = problem_.function.type(value).dims.size() + 2;
  return ways_[type][static_cast<size_t>(from + 2) * count + static_cast<size_t>(to + 2)];
}

}  // namespace orrery::transforms
