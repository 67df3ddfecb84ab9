#include "transforms/redistribution/dtensor_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace orrery::transforms::redistribution {
namespace dtensor_bound_cc {
namespace {

using ir::AxisIndex;

// What an axis does. The last two mean something by what it does in the target.
enum Class : int32_t {
  kReplicated,
  kPartial,    // with the target's reduction, if it is partial there
  kSplit,      // as in the target, if it splits there
  kElsewhere,  // splits another dimension than in the target; or partial with another reduction
  kStuck,
};

std::vector<DtensorGoal> GoalsOf(const PackedLayout& target, int axes) {
  std::vector<DtensorGoal> goals;
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(axes); ++axis) {
    DtensorGoal goal = {.axis = axis, .role = target.role(axis), .classes = 3};
    if (goal.role == AxisRole::kPartial) {
      goal.reduction = target.reduction(axis);
      goal.classes = 4;
    } else if (goal.role == AxisRole::kSplits) {
      goal.dim = target.dim(axis);
      goal.position = target.position(axis);
      const ir::AxisList list = target.axes(goal.dim);
      if (goal.position > 0) goal.outside = list.axes()[static_cast<size_t>(goal.position) - 1];
      goal.classes = 5;
    }
    goals.push_back(goal);
  }
  std::ranges::stable_sort(goals, {}, &DtensorGoal::position);
  int32_t stride = 1;
  for (DtensorGoal& goal : goals) {
    goal.stride = stride;
    stride *= goal.classes;
  }
  return goals;
}

// The smaller graph, solved by Dijkstra's algorithm.
class Solver {
 public:
  Solver(const std::vector<DtensorGoal>& goals, const DtensorPrices& prices,
         const std::vector<double>& make_partial, double launch)
      : goals_(goals), prices_(prices), make_partial_(make_partial), launch_(launch) {
    const DtensorGoal& last = goals.back();
    least_.assign(static_cast<size_t>(last.stride) * static_cast<size_t>(last.classes),
                  std::numeric_limits<double>::infinity());
  }

  std::vector<double> Run() && {
    int32_t target = 0;
    for (const DtensorGoal& goal : goals_) target += goal.stride * ClassInTarget(goal);
    Reach(target, 0);
    while (!open_.empty()) {
      const auto [distance, node] = open_.top();
      open_.pop();
      if (distance > least_[static_cast<size_t>(node)]) continue;
      const AxisMask splitting = Splitting(node);
      for (const DtensorGoal& goal : goals_) GoBack(node, goal, splitting);
    }
    return std::move(least_);
  }

 private:
  static Class ClassInTarget(const DtensorGoal& goal) {
    if (goal.role == AxisRole::kReplicates) return kReplicated;
    return goal.role == AxisRole::kPartial ? kPartial : kSplit;
  }

  static Class ClassAt(int32_t node, const DtensorGoal& goal) {
    return static_cast<Class>(node / goal.stride % goal.classes);
  }

  AxisMask Splitting(int32_t node) const {
    AxisMask splitting = 0;
    for (const DtensorGoal& goal : goals_) {
      const Class c = ClassAt(node, goal);
      const bool splits = c == kSplit || (c > kSplit && goal.role == AxisRole::kSplits);
      if (splits) splitting |= 1u << goal.axis;
    }
    return splitting;
  }

  void Reach(int32_t node, double distance) {
    double& least = least_[static_cast<size_t>(node)];
    if (distance >= least) return;
    least = distance;
    open_.emplace(distance, node);
  }

  // The steps over one axis that lead to `node`. Those that split elsewhere what could split as it
  // should cost no less, and are of no use.
  void GoBack(int32_t node, const DtensorGoal& goal, AxisMask splitting) {
    const Class to = ClassAt(node, goal);
    const AxisMask axis = 1u << goal.axis;
    const AxisMask others = splitting & ~axis;
    const double distance = least_[static_cast<size_t>(node)];
    const auto from = [&](Class c, double cost) {
      if (c < goal.classes) Reach(node + (c - to) * goal.stride, distance + cost);
    };
    const auto price = [&](double cost) { return std::max(cost - launch_, 0.0); };
    const double gather = price(prices_.scatter(axis, others));  // or reduce-scatter
    const double reduce = price(prices_.reduce(axis, others));
    const double exchange = price(prices_.exchange(goal.axis, others | axis));
    const bool partial = goal.role == AxisRole::kPartial;
    switch (to) {
      case kReplicated:
        from(kPartial, reduce);
        from(kSplit, gather);
        from(kElsewhere, partial ? reduce : gather);
        from(kStuck, gather);
        return;
      case kPartial:
        from(kReplicated, make_partial_[others]);
        return;
      case kSplit:
        from(kReplicated, 0);
        from(kPartial, gather);
        from(kElsewhere, partial ? gather : exchange);
        return;
      case kElsewhere:
        if (!partial) from(kStuck, exchange);
        return;
      case kStuck:
        return;
    }
  }

  const std::vector<DtensorGoal>& goals_;
  const DtensorPrices& prices_;
  const std::vector<double>& make_partial_;
  const double launch_;  // taken off each step
  std::vector<double> least_;
  using Node = std::pair<double, int32_t>;
  std::priority_queue<Node, std::vector<Node>, std::greater<>> open_;
};

}  // namespace
}  // namespace dtensor_bound_cc

DtensorBound::DtensorBound(const DtensorTopology& topology, const DtensorPrices& prices,
                           const std::vector<double>& make_partial, const PackedLayout& target,
                           bool merge)
    : goals_(dtensor_bound_cc::GoalsOf(target, topology.axes())) {
  if (goals_.empty()) {
    least_ = {0};
    return;
  }
  const std::vector<double> nothing(make_partial.size());
  const double launch = merge ? kDtensorLaunch : 0;
  least_ = dtensor_bound_cc::Solver(goals_, prices, merge ? nothing : make_partial, launch).Run();
  for (double& least : least_) {
    if (least > 0) least += launch;
    // Sums are rounded in another order than along a plan; without this, a bound could be over the
    // cost by the last bit.
    least *= 1 - 1e-12;
  }
}

double DtensorBound::operator()(const PackedLayout& layout) const {
  int32_t node = 0;
  AxisMask in_place = 0;
  for (const DtensorGoal& goal : goals_) {
    dtensor_bound_cc::Class c = dtensor_bound_cc::kReplicated;
    switch (layout.role(goal.axis)) {
      case AxisRole::kReplicates:
        break;
      case AxisRole::kPartial:
        c = goal.role == AxisRole::kPartial && layout.reduction(goal.axis) != goal.reduction
                ? dtensor_bound_cc::kElsewhere
                : dtensor_bound_cc::kPartial;
        break;
      case AxisRole::kSplits:
        c = dtensor_bound_cc::kSplit;
        if (goal.role != AxisRole::kSplits) break;
        if (layout.dim(goal.axis) != goal.dim) {
          c = dtensor_bound_cc::kElsewhere;
        } else if (layout.position(goal.axis) == goal.position &&
                   (goal.position == 0 || (in_place >> goal.outside & 1) != 0)) {
          in_place |= 1u << goal.axis;
        } else {
          c = dtensor_bound_cc::kStuck;
        }
    }
    node += goal.stride * c;
  }
  return least_[static_cast<size_t>(node)];
}

}  // namespace orrery::transforms::redistribution
