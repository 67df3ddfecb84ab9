#include <map>
#include <random>
#include <tuple>

#include "gmock/gmock.h"
#include "transforms/redistribution/dtensor.h"
#include "transforms/redistribution/dtensor_test_util.h"

// What ReplicaConsistency promises, checked by following bits instead of numbers: whatever two
// groups add up differs, even when both add the same numbers.

namespace orrery::transforms::redistribution {
namespace dtensor_replica_test_cc {
namespace {

using Bits = int64_t;

class Machine {
 public:
  explicit Machine(const Problem& problem) : problem_(problem), from_(problem.from) {
    for (size_t axis = 0; axis < problem.mesh.axes().size(); ++axis) {
      const auto index = static_cast<ir::AxisIndex>(axis);
      if (from_.role(index) != AxisRole::kReplicates) watched_.push_back(index);
    }
    held_.resize(static_cast<size_t>(problem.mesh.size()));
    for (int64_t rank = 0; rank < problem.mesh.size(); ++rank) {
      for (const int64_t element : Owned(from_, rank)) {
        Held(rank)[element] = Fresh({-1, Watched(rank, {}), element, {}});
      }
    }
  }

  void Take(int step, const Step& taken) {
    std::vector<std::map<int64_t, Bits>> after(held_.size());
    for (int64_t rank = 0; rank < problem_.mesh.size(); ++rank) {
      for (const int64_t element : Owned(taken.after, rank)) {
        const std::vector<Bits> group = InGroup(rank, taken.axes, element);
        ASSERT_FALSE(group.empty()) << "rank " << rank << " cannot know element " << element;
        Bits bits = group[0];
        if (taken.kind == MoveKind::kAllReduce || taken.kind == MoveKind::kReduceScatter) {
          bits = Fresh({step, Watched(rank, taken.axes), element, group});
        } else if (taken.kind == MoveKind::kMakePartial) {
          bits = Fresh({step, Coordinate(rank, taken.axes.axes()[0]), -1, group});
        }
        after[static_cast<size_t>(rank)][element] = bits;
      }
    }
    held_ = after;
  }

  // Whether ranks that differ only on axes that replicate in `layout` and did not at first agree.
  bool ReplicasAgree(const PackedLayout& layout) {
    ir::AxisList replicas;
    for (const ir::AxisIndex axis : watched_) {
      if (layout.role(axis) == AxisRole::kReplicates) replicas.push_back(axis);
    }
    for (int64_t rank = 0; rank < problem_.mesh.size(); ++rank) {
      if (Held(rank) != Held(WithZeros(rank, replicas))) return false;
    }
    return true;
  }

 private:
  // What bits come from: the step, the group that made them, the element, the summands.
  using Origin = std::tuple<int, int64_t, int64_t, std::vector<Bits>>;

  std::map<int64_t, Bits>& Held(int64_t rank) { return held_[static_cast<size_t>(rank)]; }
  Bits Fresh(const Origin& origin) {
    return known_.emplace(origin, static_cast<Bits>(known_.size())).first->second;
  }
  int64_t Coordinate(int64_t rank, ir::AxisIndex axis) const {
    return rank / problem_.mesh.stride(axis) % problem_.mesh.size(axis);
  }
  int64_t WithZeros(int64_t rank, const ir::AxisList& axes) const {
    for (const ir::AxisIndex axis : axes.axes()) {
      rank -= Coordinate(rank, axis) * problem_.mesh.stride(axis);
    }
    return rank;
  }
  // Which group over `axes` it is, as far as groups may add in orders of their own: those that the
  // source's replicas are in add alike.
  int64_t Watched(int64_t rank, const ir::AxisList& axes) const {
    int64_t group = 0;
    for (const ir::AxisIndex axis : watched_) {
      if (!axes.contains(axis)) group += Coordinate(rank, axis) * problem_.mesh.stride(axis);
    }
    return group;
  }

  // What the members of the rank's group hold of an element, in their order.
  std::vector<Bits> InGroup(int64_t rank, const ir::AxisList& axes, int64_t element) {
    std::vector<Bits> group;
    for (int64_t other = 0; other < problem_.mesh.size(); ++other) {
      if (WithZeros(other, axes) != WithZeros(rank, axes)) continue;
      const auto held = Held(other).find(element);
      if (held != Held(other).end()) group.push_back(held->second);
    }
    return group;
  }

  // Elements of nested chunks.
  std::vector<int64_t> Owned(const PackedLayout& layout, int64_t rank) const {
    std::vector<int64_t> owned = {0};
    for (size_t d = 0; d < problem_.dims.size(); ++d) {
      int64_t begin = 0, end = problem_.dims[d];
      const ir::AxisList axes = layout.axes(static_cast<int>(d));
      for (const ir::AxisIndex axis : axes.axes()) {
        const int64_t parts = problem_.mesh.size(axis);
        const int64_t part = (end - begin + parts - 1) / parts;
        begin = std::min(end, begin + part * Coordinate(rank, axis));
        end = std::min(end, begin + part);
      }
      std::vector<int64_t> product;
      for (const int64_t prefix : owned) {
        for (int64_t i = begin; i < end; ++i) product.push_back(prefix * problem_.dims[d] + i);
      }
      owned = product;
    }
    return owned;
  }

  const Problem& problem_;
  const PackedLayout from_;
  std::vector<ir::AxisIndex> watched_;  // that do not replicate in the source
  std::vector<std::map<int64_t, Bits>> held_;
  std::map<Origin, Bits> known_;
};

bool ReplicasAgree(const Problem& problem, const RedistributionPlan& plan) {
  Machine machine(problem);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    machine.Take(static_cast<int>(i), plan.steps[i].step);
  }
  return machine.ReplicasAgree(PackedLayout(problem.to));
}

TEST(ReplicaConsistency, IsBrokenByDtensorsGreedyPlan) {
  const Problem problem = ProblemOf({2, 2, 2}, {4, 4}, {"Psum", "Psum", "Psum"}, {"R", "S0", "R"});
  EXPECT_FALSE(ReplicasAgree(problem, *DtensorGreedyPlan(problem, {})));
  for (const auto consistency :
       {ReplicaConsistency::kReducedOnce, ReplicaConsistency::kOneAllReduce}) {
    EXPECT_TRUE(ReplicasAgree(problem, PlanOf(problem, {.consistency = consistency})));
  }
}

TEST(ReplicaConsistency, HoldsOnRandomProblems) {
  std::mt19937 random(1);
  int broken = 0;
  for (int i = 0; i < 150; ++i) {
    Problem problem = RandomProblem(random, 4);
    for (int64_t& dim : problem.dims) dim %= 6;
    for (const auto consistency :
         {ReplicaConsistency::kReducedOnce, ReplicaConsistency::kOneAllReduce}) {
      EXPECT_TRUE(ReplicasAgree(problem, PlanOf(problem, {.consistency = consistency}))) << i;
    }
    broken += ReplicasAgree(problem, PlanOf(problem)) ? 0 : 1;
  }
  EXPECT_GT(broken, 0) << "the machine sees nothing";
}

}  // namespace
}  // namespace dtensor_replica_test_cc
}  // namespace orrery::transforms::redistribution
