#include "transforms/redistribution/testing/execute.h"

#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/layout.h"
#include "transforms/redistribution/testing/summands.h"

namespace orrery::transforms::redistribution {
namespace execute_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Dims;
using ir::Mesh;
using ir::Reduction;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

Mesh MeshOf(const std::vector<int64_t>& sizes) {
  std::vector<ir::Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({absl::StrCat("a", i), sizes[i]});
  return Mesh(axes);
}

// A layout that splits one dimension.
PackedLayout Split(int dim, const std::vector<int>& axes, int64_t block = ir::kNestedChunks) {
  PackedLayout layout;
  layout.SetSplit(dim, Axes(axes), block);
  return layout;
}

PackedLayout Partial(const std::vector<int>& axes, Reduction reduction = Reduction::kSum) {
  PackedLayout layout;
  for (const int axis : axes) layout.SetPartial(static_cast<AxisIndex>(axis), reduction);
  return layout;
}

// A way from a layout to another, on a mesh and a tensor.
struct Walk {
  std::vector<int64_t> mesh;
  Dims dims;
  PackedLayout from;
  std::vector<Step> steps;

  absl::StatusOr<Execution> Run() const { return RunTo(steps.empty() ? from : steps.back().after); }
  absl::StatusOr<Execution> RunTo(const PackedLayout& to) const {
    const Problem problem{.mesh = MeshOf(mesh),
                          .dims = dims,
                          .from = from.Unpack(dims.size()),
                          .to = to.Unpack(dims.size())};
    return Execute(problem, steps);
  }
  std::string Trouble() const {
    const auto run = Run();
    return run.ok() ? "ok" : std::string(run.status().message());
  }
};

TEST(Execute, CountsWhatAnAllGatherMoves) {
  const Walk walk{{2, 4}, {16, 3}, Split(0, {1}), {{MoveKind::kAllGather, Axes({1}), 0, -1, {}}}};
  const auto run = walk.Run();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, Each(3 * 12));  // its 4 rows of 3 to each of the 3 others
  EXPECT_THAT(run->steps[0].received, Each(3 * 12));
  EXPECT_EQ(run->steps[0].held, 48);
  EXPECT_EQ(run->sent(), 8 * 36);
}

TEST(Execute, CountsWhatReductionsMove) {
  const PackedLayout from = Partial({0});
  const Walk scatter{{4}, {8}, from, {{MoveKind::kReduceScatter, Axes({0}), -1, 0, Split(0, {0})}}};
  const Walk reduce{{4}, {8}, from, {{MoveKind::kAllReduce, Axes({0}), -1, -1, {}}}};
  const auto scattered = scatter.Run(), reduced = reduce.Run();
  ASSERT_TRUE(scattered.ok() && reduced.ok()) << scattered.status() << reduced.status();
  EXPECT_THAT(scattered->steps[0].sent, Each(6));
  EXPECT_THAT(scattered->steps[0].received, Each(6));
  EXPECT_THAT(reduced->steps[0].sent, Each(12));  // 2 (n - 1) / n of its 8, as on a ring
  EXPECT_EQ(scattered->steps[0].held, 2);
}

TEST(Execute, CountsWhatAnAllToAllMoves) {
  const Walk walk{
      {4}, {8, 4}, Split(0, {0}), {{MoveKind::kAllToAll, Axes({0}), 0, 1, Split(1, {0})}}};
  const auto run = walk.Run();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, Each(6));  // 3/4 of 8: a p-th of what the all-gather would move
  EXPECT_EQ(run->steps[0].most_received(), 6);
}

// Regression of others: torch issue 194457, where a merged all-gather lost row 4.
TEST(Execute, TellsNestedFromFlatChunks) {
  const Walk nested{
      {2, 2}, {5, 3}, Split(0, {0, 1}), {{MoveKind::kAllGather, Axes({0, 1}), 0, -1, {}}}};
  const auto run = nested.Run();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, ElementsAre(18, 9, 9, 9));
  const auto flat = nested.RunTo(Split(0, {0, 1}, 2));
  EXPECT_THAT(std::string(flat.status().message()), HasSubstr("rank 0 holds 15 elements at the"));
}

TEST(Execute, LetsEquallyLargeAxesTradePlaces) {
  const Walk walk{{2, 2},
                  {5, 3},
                  Split(0, {0, 1}),
                  {{MoveKind::kPermute, Axes({0, 1}), 0, 0, Split(0, {1, 0})}}};
  const auto run = walk.Run();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, ElementsAre(0, 3, 3, 0));
}

TEST(Execute, RefusesWhatIsOutsideOfTheGroup) {
  const PackedLayout from = Split(0, {0, 1});
  EXPECT_EQ((Walk{{2, 2}, {4}, from, {{MoveKind::kAllGather, Axes({1}), 0, -1, {}}}}.Trouble()),
            "step 0 (all-gather): rank 0 needs element 2, which no rank of its group holds");
  EXPECT_EQ((Walk{{2, 2}, {4}, from, {{MoveKind::kSlice, Axes({}), -1, 0, {}}}}.Trouble()),
            "step 0 (slice): rank 0 needs element 1, which no rank of its group holds");
  EXPECT_EQ(
      (Walk{{4}, {8}, Split(0, {0}), {{MoveKind::kPermute, Axes({0}), 0, 0, Split(0, {0}, 1)}}}
           .Trouble()),
      "step 0 (permute): rank 0 needs elements of ranks 0 and 2; wanted one rank's");
}

TEST(Execute, RefusesToReduceWhatItMayNot) {
  const PackedLayout from = Partial({0});
  EXPECT_EQ((Walk{{2, 2}, {4}, from, {{MoveKind::kAllReduce, Axes({1}), -1, -1, from}}}.Trouble()),
            "step 0 (all-reduce): reduces axis 1, which is whole");
  EXPECT_EQ((Walk{{2, 2}, {4}, from, {{MoveKind::kAllReduce, Axes({}), -1, -1, {}}}}.Trouble()),
            "step 0 (all-reduce): leaves axis 0 whole, which such a step does not");
  EXPECT_EQ((Walk{{2}, {4}, from, {{MoveKind::kAllGather, Axes({0}), -1, -1, from}}}.Trouble()),
            "step 0 (all-gather): moves summands along axis 0, which is partial");
  EXPECT_EQ(
      (Walk{{2}, {4}, from, {{MoveKind::kLocalCopy, {}, -1, -1, Partial({0}, Reduction::kMax)}}}
           .Trouble()),
      "step 0 (local-copy): changes the reduction of axis 0");
  EXPECT_EQ((Walk{{2}, {4}, from, {{MoveKind::kMakePartial, Axes({0}), -1, -1, from}}}.Trouble()),
            "step 0 (make-partial): makes axis 0 partial, which does not replicate");
}

TEST(Execute, RefusesStepsThatAreNotOfTheTensor) {
  EXPECT_EQ((Walk{{2}, {4}, {}, {{MoveKind::kSlice, {}, -1, 3, Split(3, {0})}}}.Trouble()),
            "step 0 (slice): splits a dimension that there is not");
  EXPECT_THAT((Walk{{2}, {4}, {}, {{MoveKind::kSlice, {}, -1, 0, Split(0, {1})}}}.Trouble()),
              HasSubstr("found axis 1; wanted one of the 1 of mesh(a0=2)"));
  EXPECT_THAT((Walk{{2}, {4}, {}, {{MoveKind::kAllReduce, Axes({5}), -1, -1, {}}}}.Trouble()),
              HasSubstr("works over axis 5, which the mesh lacks"));
  EXPECT_THAT((Walk{{2}, {4, 0}, {}, {}}.Trouble()), HasSubstr("found a dimension of 0"));
  EXPECT_THAT((Walk{{int64_t{1} << 30}, {4}, {}, {}}.Trouble()), HasSubstr("elements times ranks"));
  EXPECT_THAT((Walk{{2}, {4}, Split(0, {1}), {}}.Trouble()), HasSubstr("source: found axis 1"));
}

TEST(Execute, RefusesAWrongEnd) {
  const Walk idle{{2, 1}, {4}, Split(0, {0}), {}};
  EXPECT_TRUE(idle.Run().ok());
  EXPECT_TRUE(idle.RunTo(Split(0, {1, 0}, 2)).ok());  // the same by another name
  EXPECT_EQ(idle.RunTo({}).status().message(), "rank 0 lacks element 2 at the end");
  const Walk partial{{2}, {4}, Partial({0}), {}};
  EXPECT_EQ(partial.RunTo({}).status().message(),
            "axis 0 is not as partial as the target wants it");
  // A step may not drop what its kind keeps.
  const Walk drops{{2}, {4}, {}, {{MoveKind::kLocalCopy, {}, -1, -1, Split(0, {0})}}};
  EXPECT_EQ(drops.Trouble(),
            "step 0 (local-copy): rank 0 drops element 2; such a step keeps what a rank holds");
}

TEST(Summands, FoldToTheTruth) {
  for (int r = 0; r <= static_cast<int>(Reduction::kMin); ++r) {
    for (const int64_t parts : {1, 2, 3, 7, 12}) {
      Folding folding{.reduction = static_cast<Reduction>(r), .parts = parts};
      if (folding.reduction == Reduction::kAverage) folding.divisor = parts;
      for (int64_t element = 0; element < 20; ++element) {
        std::vector<Number> summands;
        for (int64_t part = 0; part < parts; ++part) {
          summands.push_back(SummandOf(element, part, folding));
        }
        EXPECT_EQ(Fold(summands, folding), TruthOf(element));
        if (parts == 1) continue;
        summands[static_cast<size_t>(element % parts)] = TruthOf(element + 1);
        const bool order = r >= static_cast<int>(Reduction::kMax);  // may not mind one summand
        EXPECT_TRUE(order || Fold(summands, folding) != TruthOf(element));
      }
    }
  }
}

// Random walks by steps that are known to be possible, whatever does not divide.
class Walker {
 public:
  explicit Walker(uint64_t seed) : random_(seed) {
    walk_.mesh = {1 + Below(3), 1 + Below(3), 2, 1 + Below(2)};
    for (int64_t d = 1 + Below(2); d >= 0; --d) walk_.dims.push_back(1 + Below(9));
    const Reduction reduction = static_cast<Reduction>(Below(5));
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(walk_.mesh.size()); ++axis) {
      const int64_t role = Below(5);
      if (role == 0) at_.SetPartial(axis, reduction);
      if (role > 1) Append(axis, AnyDim());
    }
    walk_.from = at_;
    for (int64_t steps = Below(8); steps > 0; --steps) Go();
  }
  const Walk& walk() const { return walk_; }

 private:
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  int AnyDim() { return static_cast<int>(Below(static_cast<int64_t>(walk_.dims.size()))); }
  AxisIndex AnyAxis() {
    return static_cast<AxisIndex>(Below(static_cast<int64_t>(walk_.mesh.size())));
  }
  void Append(AxisIndex axis, int dim) {
    AxisList axes = at_.axes(dim);
    axes.push_back(axis);
    at_.SetSplit(dim, axes, ir::kNestedChunks);
  }
  void Take(MoveKind kind, const AxisList& axes, int from, int to) {
    walk_.steps.push_back({kind, axes, static_cast<int8_t>(from), static_cast<int8_t>(to), at_});
  }

  // By what the axis does now, one of the things that it may do next.
  void Go() {
    const AxisIndex axis = AnyAxis();
    const int to = AnyDim();
    switch (at_.role(axis)) {
      case AxisRole::kReplicates:
        return Below(3) == 0 ? MakePartial(axis) : Slice(axis, to);
      case AxisRole::kPartial:
        return ReduceWith(axis, to);
      case AxisRole::kSplits:
        return Below(4) == 0 ? Reblock(at_.dim(axis)) : Unsplit(axis, to);
    }
  }
  // Only nested chunks can be cut further by each rank for itself.
  bool Nested(int dim) const { return at_.block(dim) == ir::kNestedChunks; }

  void Slice(AxisIndex axis, int to) {
    if (!Nested(to)) return;
    Append(axis, to);
    Take(MoveKind::kSlice, AxisList(axis), -1, to);
  }
  void MakePartial(AxisIndex axis) {
    Reduction reduction = static_cast<Reduction>(Below(5));
    for (AxisIndex other = 0; other < static_cast<AxisIndex>(walk_.mesh.size()); ++other) {
      if (at_.role(other) == AxisRole::kPartial) reduction = at_.reduction(other);
    }
    if (reduction == Reduction::kSum && Below(2) == 0) reduction = Reduction::kAverage;
    at_.SetPartial(axis, reduction);
    Take(MoveKind::kMakePartial, AxisList(axis), -1, -1);
  }
  // Over all partial axes at once, or one.
  void ReduceWith(AxisIndex axis, int to) {
    const bool scatter = Nested(to) && Below(2) == 0;
    AxisList axes(axis);
    for (AxisIndex other = 0; other < static_cast<AxisIndex>(walk_.mesh.size()) && Below(2) == 0;
         ++other) {
      if (at_.role(other) == AxisRole::kPartial && other != axis) axes.push_back(other);
    }
    for (const AxisIndex reduced : axes.axes()) {
      at_.SetReplicated(reduced);
      if (scatter) Append(reduced, to);
    }
    Take(scatter ? MoveKind::kReduceScatter : MoveKind::kAllReduce, axes, -1, scatter ? to : -1);
  }
  void Reblock(int dim) {
    const AxisList axes = at_.axes(dim);
    std::vector<int> order;
    for (const AxisIndex axis : axes.axes()) order.push_back(axis);
    std::shuffle(order.begin(), order.end(), random_);
    at_.SetSplit(dim, Axes(order), Below(5) - 1);
    Take(MoveKind::kReblock, Below(2) == 0 ? axes : AxisList(), dim, dim);
  }
  // Gathers the innermost axis, or all of them, or hands it on to another dimension.
  void Unsplit(AxisIndex axis, int to) {
    const int from = at_.dim(axis);
    const AxisList before = at_.axes(from);
    if (!Nested(from) || Below(5) == 0) {
      at_.SetSplit(from, AxisList());
      return Take(MoveKind::kAllGather, before, from, -1);
    }
    const AxisIndex last = before.axes().back();
    at_.SetSplit(from, before.Without(last));
    if (to == from || !Nested(to) || Below(2) == 0) {
      return Take(MoveKind::kAllGather, AxisList(last), from, -1);
    }
    Append(last, to);
    Take(MoveKind::kAllToAll, AxisList(last), from, to);
  }

  std::mt19937_64 random_;
  Walk walk_;
  PackedLayout at_;
};

TEST(Execute, FollowsRandomWalks) {
  std::vector<int> kinds(9, 0);
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Walk walk = Walker(seed).walk();
    const auto run = walk.Run();
    ASSERT_TRUE(run.ok()) << "seed " << seed << ": " << run.status();
    for (size_t i = 0; i < walk.steps.size(); ++i) {
      const ExecutedStep& step = run->steps[i];
      ++kinds[static_cast<size_t>(walk.steps[i].kind)];
      const auto sum = [](const std::vector<int64_t>& counts) {
        return std::accumulate(counts.begin(), counts.end(), int64_t{0});
      };
      EXPECT_EQ(sum(step.sent), sum(step.received));
      EXPECT_EQ(step.held, ir::LargestLocalElements(walk.steps[i].after.Unpack(walk.dims.size()),
                                                    walk.dims, MeshOf(walk.mesh)));
      if (!Communicates(walk.steps[i].kind)) {
        EXPECT_EQ(sum(step.sent), 0);
      }
    }
  }
  for (const MoveKind kind :
       {MoveKind::kSlice, MoveKind::kAllGather, MoveKind::kReduceScatter, MoveKind::kAllReduce,
        MoveKind::kAllToAll, MoveKind::kReblock, MoveKind::kMakePartial}) {
    EXPECT_GT(kinds[static_cast<size_t>(kind)], 100) << ToString(kind);
  }
}

// A walk ends at its own target only: at another one there is an error, unless it owns the same.
TEST(Execute, TellsOneTargetFromAnother) {
  int told = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Walk walk = Walker(seed).walk();
    const PackedLayout end = walk.steps.empty() ? walk.from : walk.steps.back().after;
    const size_t rank = walk.dims.size();
    const PackedLayout& other = walk.from;
    const bool same =
        ir::SameOwnership(end.Unpack(rank), other.Unpack(rank), walk.dims, MeshOf(walk.mesh));
    EXPECT_EQ(walk.RunTo(other).ok(), same) << "seed " << seed;
    told += same ? 0 : 1;
  }
  EXPECT_GT(told, 500);
}

TEST(Execute, RunsAPlan) {
  RedistributionPlan plan;
  plan.steps.push_back({.step = {MoveKind::kAllGather, Axes({0}), 0, -1, {}}});
  const Problem problem{
      .mesh = MeshOf({4}), .dims = {8}, .from = Split(0, {0}).Unpack(1), .to = {}};
  const auto run = Execute(problem, plan);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->sent(), 24);
}

}  // namespace
}  // namespace execute_test_cc
}  // namespace orrery::transforms::redistribution
