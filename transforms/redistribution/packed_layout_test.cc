#include "transforms/redistribution/packed_layout.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// A packed layout against the ir::Sharding that it stands for, call by call.

namespace orrery::transforms::redistribution {
namespace packed_layout_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Reduction;

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

size_t HashOf(const PackedLayout& layout) { return absl::Hash<PackedLayout>{}(layout); }

// A sharding and the packed layout, changed in step by random calls.
class Pair {
 public:
  Pair(uint32_t seed, size_t rank) : random_(seed), rank_(rank) {}

  const ir::Sharding& sharding() const { return sharding_; }
  const PackedLayout& packed() const { return packed_; }
  size_t rank() const { return rank_; }

  void Change() {
    const auto axis = static_cast<AxisIndex>(Below(ir::kMaxAxes));
    const auto dim = static_cast<size_t>(Below(static_cast<int>(rank_)));
    switch (Below(6)) {
      case 0:
        return SetSplit(dim);
      case 1:
        return SetSplit(dim, {}, ir::kNestedChunks);
      case 2:
        return Push(dim, axis);
      case 3:
        return Pop(dim);
      case 4:
        return SetPartial(axis);
      default:
        return SetReplicated(axis);
    }
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }

  // Some of the axes that split the dimension or nothing, in any order.
  void SetSplit(size_t dim) {
    std::vector<int> axes;
    for (int axis = 0; axis < ir::kMaxAxes; ++axis) {
      const bool here = sharding_.at(dim).contains(static_cast<AxisIndex>(axis));
      if (!here && sharding_.Uses(static_cast<AxisIndex>(axis))) continue;
      if (Below(3) > 0) axes.insert(axes.begin() + Below(static_cast<int>(axes.size()) + 1), axis);
    }
    SetSplit(dim, Axes(axes), Below(2) == 0 ? ir::kNestedChunks : Below(7) - 1);
  }
  void SetSplit(size_t dim, const AxisList& axes, int64_t block) {
    sharding_.Set(dim, rank_, axes, block);
    packed_.SetSplit(static_cast<int>(dim), axes, block);
  }
  void Push(size_t dim, AxisIndex axis) {
    if (sharding_.Uses(axis) || sharding_.block(dim) != ir::kNestedChunks) return;
    AxisList axes = sharding_.at(dim);
    packed_.PushSplit(static_cast<int>(dim), axis, static_cast<int>(axes.axes().size()));
    axes.push_back(axis);
    sharding_.Set(dim, rank_, axes);
  }
  void Pop(size_t dim) {
    const AxisList axes = sharding_.at(dim);
    if (axes.empty() || sharding_.block(dim) != ir::kNestedChunks) return;
    packed_.PopSplit(axes.axes().back());
    sharding_.Set(dim, rank_, axes.Without(axes.axes().back()));
  }
  void SetPartial(AxisIndex axis) {
    if (sharding_.Uses(axis)) return;
    const auto reduction = static_cast<Reduction>(Below(5));
    sharding_.partial.push_back(axis);
    sharding_.partial = sharding_.partial.Sorted();
    sharding_.reductions[axis] = reduction;
    packed_.SetPartial(axis, reduction);
  }
  void SetReplicated(AxisIndex axis) {
    if (!sharding_.partial.contains(axis)) return;
    sharding_.partial = sharding_.partial.Without(axis);
    sharding_.reductions[axis] = Reduction::kSum;
    packed_.SetReplicated(axis);
  }

  std::mt19937 random_;
  const size_t rank_;
  ir::Sharding sharding_;
  PackedLayout packed_;
};

void ExpectSame(const PackedLayout& packed, const ir::Sharding& sharding, size_t rank) {
  ASSERT_EQ(packed.Unpack(rank), sharding);
  ASSERT_EQ(packed, PackedLayout(sharding));
  ASSERT_EQ(HashOf(packed), HashOf(PackedLayout(sharding)));
  for (size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<int>(d);
    const AxisList axes = sharding.at(d);
    EXPECT_EQ(packed.axes(dim), axes);
    EXPECT_EQ(packed.block(dim), axes.empty() ? ir::kNestedChunks : sharding.block(d));
    EXPECT_EQ(packed.major(dim), axes.empty() ? -1 : int{axes.axes().front()});
    for (size_t position = 0; position < axes.axes().size(); ++position) {
      const AxisIndex axis = axes.axes()[position];
      EXPECT_EQ(packed.role(axis), AxisRole::kSplits);
      EXPECT_EQ(packed.dim(axis), dim);
      EXPECT_EQ(packed.position(axis), static_cast<int>(position));
    }
  }
  for (AxisIndex axis = 0; axis < ir::kMaxAxes; ++axis) {
    const bool partial = sharding.partial.contains(axis);
    EXPECT_EQ(packed.role(axis) == AxisRole::kPartial, partial);
    EXPECT_EQ(packed.role(axis) == AxisRole::kReplicates, !sharding.Uses(axis));
    EXPECT_EQ(packed.dim(axis) < 0, packed.role(axis) != AxisRole::kSplits);
    if (partial) {
      EXPECT_EQ(packed.reduction(axis), sharding.reductions[axis]);
    }
  }
}

TEST(PackedLayout, IsTheShardingAfterAnyChanges) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const size_t ranks[] = {1, 2, 5, PackedLayout::kMaxDims};
    Pair pair(seed, ranks[seed % 4]);
    for (int change = 0; change < 60; ++change) {
      pair.Change();
      ExpectSame(pair.packed(), pair.sharding(), pair.rank());
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " change " << change;
    }
  }
}

// A search takes equal layouts for one and all others for several.
TEST(PackedLayout, AreEqualWhereTheShardingsAre) {
  std::vector<Pair> pairs;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    pairs.emplace_back(seed, 2);
    for (uint32_t change = 0; change <= seed % 8; ++change) pairs.back().Change();
  }
  int equal = 0;
  for (const Pair& a : pairs) {
    for (const Pair& b : pairs) {
      EXPECT_EQ(a.packed() == b.packed(), a.sharding() == b.sharding());
      if (!(a.packed() == b.packed())) continue;
      EXPECT_EQ(HashOf(a.packed()), HashOf(b.packed()));
      ++equal;
    }
  }
  EXPECT_GT(equal, 60);
}

TEST(PackedLayout, ReplicatesAtFirst) {
  const PackedLayout layout;
  for (AxisIndex axis = 0; axis < ir::kMaxAxes; ++axis) {
    EXPECT_EQ(layout.role(axis), AxisRole::kReplicates);
    EXPECT_EQ(layout.dim(axis), -1);
  }
  for (int dim = 0; dim < PackedLayout::kMaxDims; ++dim) {
    EXPECT_TRUE(layout.axes(dim).empty());
    EXPECT_EQ(layout.major(dim), -1);
    EXPECT_EQ(layout.block(dim), ir::kNestedChunks);
  }
  EXPECT_TRUE(layout.Unpack(3).replicated());
  EXPECT_TRUE(layout.Unpack(0).replicated());
  EXPECT_EQ(layout, PackedLayout(ir::Sharding()));
}

TEST(PackedLayout, ReplacesWhatSplitsADimensionAndNothingElse) {
  PackedLayout layout;
  layout.SetSplit(1, Axes({4, 0, 2}), 6);
  layout.SetSplit(0, Axes({5, 1}), ir::kBalancedChunks);
  layout.SetPartial(3, Reduction::kMin);
  layout.SetSplit(1, Axes({2}), 9);
  EXPECT_EQ(layout.axes(1), Axes({2}));
  EXPECT_EQ(layout.block(1), 9);
  EXPECT_EQ(layout.role(0), AxisRole::kReplicates);
  EXPECT_EQ(layout.role(4), AxisRole::kReplicates);
  EXPECT_EQ(layout.axes(0), Axes({5, 1}));
  EXPECT_EQ(layout.block(0), ir::kBalancedChunks);
  EXPECT_EQ(layout.reduction(3), Reduction::kMin);
  layout.SetSplit(1, {});
  layout.SetSplit(0, {});
  layout.SetReplicated(3);
  EXPECT_EQ(layout, PackedLayout());
  EXPECT_EQ(HashOf(layout), HashOf(PackedLayout()));
}

// All axes on the last of 30 dimensions: positions 0 to 6 beside dimension 29, whose bits are next
// to those of what is partial or replicated.
TEST(PackedLayout, HasRoomForAllAxesOnTheLastDimension) {
  ir::Sharding sharding;
  sharding.Set(29, 30, Axes({6, 5, 4, 3, 2, 1, 0}), int64_t{1} << 62);
  const PackedLayout layout(sharding);
  EXPECT_EQ(layout.Unpack(30), sharding);
  for (AxisIndex axis = 0; axis < ir::kMaxAxes; ++axis) {
    EXPECT_EQ(layout.dim(axis), 29);
    EXPECT_EQ(layout.position(axis), 6 - axis);
  }
  EXPECT_EQ(layout.major(29), 6);
  EXPECT_EQ(layout.block(29), int64_t{1} << 62);
  EXPECT_TRUE(layout.axes(28).empty());
  EXPECT_TRUE(layout.Unpack(29).replicated());
}

TEST(PackedLayout, OfAllReductionsOfOneTensor) {
  ir::Sharding sharding;
  for (int r = 0; r <= static_cast<int>(Reduction::kMin); ++r) {
    sharding.partial.push_back(static_cast<AxisIndex>(r));
    sharding.reductions[static_cast<size_t>(r)] = static_cast<Reduction>(r);
  }
  const PackedLayout layout(sharding);
  for (int r = 0; r <= static_cast<int>(Reduction::kMin); ++r) {
    EXPECT_EQ(layout.reduction(static_cast<AxisIndex>(r)), static_cast<Reduction>(r));
    EXPECT_EQ(layout.role(static_cast<AxisIndex>(r)), AxisRole::kPartial);
  }
  EXPECT_EQ(layout.Unpack(0), sharding);
}

TEST(PackedLayoutDeathTest, HasNoRoomForMoreDimensions) {
  ir::Sharding sharding;
  sharding.Set(0, 31, AxisList(0));
  EXPECT_DEATH(PackedLayout{sharding}, "31 dimensions");
}

}  // namespace
}  // namespace packed_layout_test_cc
}  // namespace orrery::transforms::redistribution
