#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/layout.h"
#include "ir/tensor_parts.h"

// InBlocks and InNestedChunks against all layouts that there are, and Part by hand.

namespace orrery::ir {
namespace layout_forms_test_cc {
namespace {

using testing::ElementsAre;

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

Mesh MeshOf(const std::vector<int64_t>& sizes) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({absl::StrCat("a", i), sizes[i]});
  return Mesh(axes);
}

Sharding SplitBy(const AxisList& axes, int64_t block) {
  Sharding sharding;
  sharding.Set(0, 1, axes, block);
  return sharding;
}

// Which ranks hold each element: dealt out one by one.
using Owners = std::vector<std::vector<bool>>;

bool Owns(const Sharding& sharding, int64_t size, const Mesh& mesh, int64_t rank, int64_t element) {
  const AxisList axes = sharding.at(0);
  const int64_t block = sharding.block(0), part = PartOf(mesh, rank, axes);
  if (axes.empty()) return true;
  if (block > 0) return element / block % mesh.size(axes) == part;
  if (block == kBalancedChunks) {
    const int64_t parts = mesh.size(axes);
    int64_t end = 0;
    for (int64_t p = 0; p <= part; ++p) end += size / parts + (p < size % parts ? 1 : 0);
    return element < end && element >= end - size / parts - (part < size % parts ? 1 : 0);
  }
  int64_t begin = 0, end = size;
  for (const AxisIndex axis : axes.axes()) {
    const int64_t chunk = (end - begin + mesh.size(axis) - 1) / mesh.size(axis);
    begin += chunk * PartOf(mesh, rank, AxisList(axis));
    end = std::min(end, begin + chunk);
    if (begin >= end) return false;
  }
  return begin <= element && element < end;
}

Owners OwnersOf(const Sharding& sharding, int64_t size, const Mesh& mesh) {
  Owners owners;
  for (const int64_t rank : AllRanks(mesh)) {
    std::vector<bool>& row = owners.emplace_back();
    for (int64_t i = 0; i < size; ++i) row.push_back(Owns(sharding, size, mesh, rank, i));
  }
  return owners;
}

// Every ordered choice of axes.
std::vector<AxisList> AllLists(const Mesh& mesh) {
  std::vector<AxisList> lists = {AxisList()};
  for (size_t i = 0; i < lists.size(); ++i) {
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh.axes().size()); ++axis) {
      if (lists[i].contains(axis)) continue;
      AxisList longer = lists[i];
      longer.push_back(axis);
      lists.push_back(longer);
    }
  }
  return lists;
}

// All ways in which `mesh` may split a dimension: nested, balanced, and blocks up to its size.
std::vector<Sharding> AllSplits(int64_t size, const Mesh& mesh) {
  std::vector<Sharding> splits;
  for (const AxisList& axes : AllLists(mesh)) {
    for (int64_t block = kBalancedChunks; block <= std::max<int64_t>(size, 1); ++block) {
      if (!axes.empty() || block == kNestedChunks) splits.push_back(SplitBy(axes, block));
    }
  }
  return splits;
}

// Of a layout that must be of a kind: the right one, or an error where there is none.
void ExpectForm(const absl::StatusOr<Sharding>& form, const Sharding& of, const Owners& owners,
                int64_t size, const Mesh& mesh, bool exists) {
  const std::string what = absl::StrCat("block ", of.block(0), " of ", size, " over ",
                                        mesh.Names(of.at(0)), " of ", ToString(mesh));
  ASSERT_EQ(form.ok(), exists) << what << " " << form.status();
  if (!form.ok()) return;
  ASSERT_TRUE(CheckSharding(*form, {size}, mesh).ok()) << what;
  ASSERT_EQ(OwnersOf(*form, size, mesh), owners) << what;
}

TEST(LayoutForms, AreFoundWhereverThereAreAny) {
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{2, 2}, {3, 2}, {1, 3}, {2, 1, 2}}) {
    const Mesh mesh = MeshOf(sizes);
    for (int64_t size = 1; size <= (sizes.size() == 3 ? 5 : 9); ++size) {
      const std::vector<Sharding> splits = AllSplits(size, mesh);
      std::map<Owners, std::pair<bool, bool>> exist;  // in blocks, in nested chunks
      for (const Sharding& split : splits) {
        auto& [blocks, nested] = exist[OwnersOf(split, size, mesh)];
        if (split.at(0).empty() || split.block(0) > 0) blocks = true;
        if (split.block(0) == kNestedChunks) nested = true;
      }
      for (const Sharding& split : splits) {
        const Owners owners = OwnersOf(split, size, mesh);
        const auto [blocks, nested] = exist[owners];
        ExpectForm(InBlocks(split, {size}, mesh), split, owners, size, mesh, blocks);
        ExpectForm(InNestedChunks(split, {size}, mesh), split, owners, size, mesh, nested);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// What is in the form already stays as it was written; the forms are those that they are called.
void ExpectKinds(const Sharding& split, int64_t size, const Mesh& mesh) {
  const auto blocked = InBlocks(split, {size}, mesh), nested = InNestedChunks(split, {size}, mesh);
  if (split.block(0) > 0 || split.at(0).empty()) {
    EXPECT_EQ(*blocked, split);
  }
  if (split.block(0) == kNestedChunks) {
    EXPECT_EQ(*nested, split);
  }
  if (blocked.ok()) {
    EXPECT_TRUE(blocked->at(0).empty() || blocked->block(0) > 0);
    EXPECT_EQ(blocked->at(0).Sorted(), split.at(0).Sorted()) << size;
  }
  if (nested.ok()) {
    EXPECT_EQ(nested->block(0), kNestedChunks);
    EXPECT_EQ(nested->at(0).Sorted(), split.at(0).Sorted()) << size;
  }
}

// No axis is lost, not even one of one rank or one that leaves ranks empty.
TEST(LayoutForms, AreOfTheirKind) {
  const Mesh mesh = MeshOf({2, 1, 3});
  for (const int64_t size : {1, 2, 3, 5, 12}) {
    for (const Sharding& split : AllSplits(size, mesh)) ExpectKinds(split, size, mesh);
  }
}

TEST(LayoutForms, ByHand) {
  const Mesh mesh = MeshOf({2, 4});
  const auto blocks = [&mesh](int64_t size, const AxisList& axes, int64_t block) {
    const auto form = InBlocks(SplitBy(axes, block), {size}, mesh);
    if (!form.ok()) return std::string(form.status().message());
    return absl::StrCat(mesh.Names(form->at(0)), "/", form->block(0));
  };
  EXPECT_EQ(blocks(16, Axes({0, 1}), kNestedChunks), "a0.a1/2");
  EXPECT_EQ(blocks(15, Axes({1, 0}), kBalancedChunks), "a1.a0/2");
  EXPECT_EQ(blocks(7, Axes({1}), kNestedChunks), "a1/2");
  EXPECT_EQ(blocks(4, Axes({1, 0}), kNestedChunks), "a0.a1/1");  // a0 is idle, and goes outside
  EXPECT_EQ(blocks(1, Axes({1, 0}), kNestedChunks), "a0.a1/1");
  EXPECT_EQ(blocks(0, Axes({1, 0}), kNestedChunks), "a1.a0/1");
  EXPECT_EQ(blocks(10, Axes({0, 1}), kNestedChunks),
            "dimension 0 of 10 is split into parts that are not blocks of one size; wanted those");
  EXPECT_EQ(blocks(10, Axes({1}), kBalancedChunks),
            "dimension 0 of 10 is split into parts that are not blocks of one size; wanted those");
  const auto nested = [&mesh](int64_t size, const AxisList& axes, int64_t block) {
    const auto form = InNestedChunks(SplitBy(axes, block), {size}, mesh);
    return form.ok() ? mesh.Names(form->at(0)) : std::string(form.status().message());
  };
  EXPECT_EQ(nested(16, Axes({1, 0}), 2), "a1.a0");
  EXPECT_EQ(nested(4, Axes({0, 1}), 1), "a1.a0");  // a0 is idle, and goes inside
  EXPECT_EQ(nested(12, Axes({1}), kBalancedChunks), "a1");
  EXPECT_EQ(nested(0, Axes({0, 1}), 3), "a0.a1");
  EXPECT_EQ(nested(16, Axes({1}), 8),
            "dimension 0 of 16 is split into parts that are not nested chunks; wanted those");
}

// Each dimension by itself, and what is partial as it was.
TEST(LayoutForms, KeepTheRest) {
  const Mesh mesh = MeshOf({2, 4, 2});
  Sharding sharding;
  sharding.Set(0, 3, Axes({0}), kBalancedChunks);
  sharding.Set(2, 3, Axes({1}), 3);
  sharding.partial = Axes({2});
  sharding.reductions[2] = Reduction::kMax;
  const Dims dims = {8, 5, 12};
  const auto blocked = InBlocks(sharding, dims, mesh),
             nested = InNestedChunks(sharding, dims, mesh);
  ASSERT_TRUE(blocked.ok() && nested.ok());
  EXPECT_THAT(blocked->blocks, ElementsAre(4, kNestedChunks, 3));
  EXPECT_TRUE(nested->blocks.empty());
  for (const Sharding* const form : {&*blocked, &*nested}) {
    EXPECT_EQ(form->partial, Axes({2}));
    EXPECT_EQ(form->reductions, sharding.reductions);
    EXPECT_EQ(form->at(0), Axes({0}));
    EXPECT_EQ(form->at(1), AxisList());
    EXPECT_EQ(form->at(2), Axes({1}));
  }
  EXPECT_THAT(std::string(InNestedChunks(sharding, {8, 5, 24}, mesh).status().message()),
              testing::HasSubstr("dimension 2 of 24"));
}

TEST(Part, HasOneFormForOneSet) {
  const Mesh mesh = MeshOf({3});
  const auto part = [&mesh](int64_t size, int64_t block, int64_t rank) {
    return HeldPart({size, Axes({0}), block}, mesh, rank);
  };
  EXPECT_EQ(part(10, kNestedChunks, 0), (Part{0, 4, 4, 4}));
  EXPECT_EQ(part(10, kNestedChunks, 2), (Part{8, 10, 2, 2}));
  EXPECT_EQ(part(10, kBalancedChunks, 1), (Part{4, 7, 3, 3}));
  EXPECT_EQ(part(10, 4, 1), (Part{4, 8, 4, 4}));  // one block is a range
  EXPECT_EQ(part(10, 4, 2), (Part{8, 10, 2, 2}));
  EXPECT_EQ(part(10, 2, 0), (Part{0, 8, 2, 6}));
  EXPECT_EQ(part(7, 2, 0), (Part{0, 7, 2, 6}));  // the last block is short
  EXPECT_EQ(part(10, 2, 1), (Part{2, 10, 2, 6}));
  EXPECT_EQ(part(10, 2, 2), (Part{4, 6, 2, 2}));
  EXPECT_EQ(part(4, 2, 2), Part());
  EXPECT_EQ(part(2, kNestedChunks, 2), Part());
  EXPECT_EQ(part(0, 5, 0), Part());
  EXPECT_EQ(HeldPart({10, {}, kNestedChunks}, mesh, 2), (Part{0, 10, 10, 10}));
}

TEST(Part, CountsItsElements) {
  const Part strided{3, 15, 2, 5};  // 3 4 8 9 13 14
  EXPECT_EQ(strided.size(), 6);
  EXPECT_THAT(strided.Ranges(), ElementsAre(Range{3, 5}, Range{8, 10}, Range{13, 15}));
  std::vector<int64_t> held;
  for (int64_t i = -3; i < 30; ++i) {
    if (strided.contains(i)) held.push_back(i);
  }
  EXPECT_THAT(held, ElementsAre(3, 4, 8, 9, 13, 14));
  const Part cut{3, 14, 2, 5};
  EXPECT_EQ(cut.size(), 5);
  EXPECT_THAT(cut.Ranges(), ElementsAre(Range{3, 5}, Range{8, 10}, Range{13, 14}));
  EXPECT_FALSE(cut.contains(14));
  EXPECT_TRUE(Part().empty());
  EXPECT_EQ(Part().size(), 0);
  EXPECT_FALSE(Part().contains(0));
  EXPECT_THAT(Part().Ranges(), ElementsAre());
}

TEST(LocalDims, OfEachRankAndOfTheFullest) {
  const Mesh mesh = MeshOf({2, 3});
  Sharding sharding;
  sharding.Set(0, 3, Axes({1}));
  sharding.Set(2, 3, Axes({0}), 2);
  const Dims dims = {7, 5, 3};
  EXPECT_EQ(SplitOf(sharding, dims, 2), (SplitDimension{3, Axes({0}), 2}));
  EXPECT_EQ(SplitOf(sharding, dims, 1), (SplitDimension{5, {}, kNestedChunks}));
  EXPECT_EQ(LocalDims(sharding, dims, mesh, 0), Dims({3, 5, 2}));
  EXPECT_EQ(LocalDims(sharding, dims, mesh, 1), Dims({3, 5, 2}));
  EXPECT_EQ(LocalDims(sharding, dims, mesh, 2), Dims({1, 5, 2}));
  EXPECT_EQ(LocalDims(sharding, dims, mesh, 5), Dims({1, 5, 1}));
  EXPECT_EQ(LargestLocalDims(sharding, dims, mesh), Dims({3, 5, 2}));
  EXPECT_EQ(LargestLocalElements(sharding, dims, mesh), 30);
  EXPECT_EQ(LargestLocalElements(sharding, {7, 0, 3}, mesh), 0);
  EXPECT_EQ(LargestLocalElements({}, {}, mesh), 1);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(LargestLocalElements(sharding, {kMost, 5, 3}, mesh), kMost);
  EXPECT_EQ(LargestLocalElements({}, {kMost}, mesh), kMost);
}

TEST(SameOwnership, OfNothingIsAlwaysTheSame) {
  const Mesh mesh = MeshOf({2, 2});
  EXPECT_TRUE(SameOwnership(SplitBy(Axes({0}), 1), SplitBy(Axes({1}), 0), {0}, mesh));
  EXPECT_EQ(Normalized(SplitBy(Axes({0}), 1), {0}, mesh), Sharding());
  Sharding sum = SplitBy(Axes({0}), 1);
  sum.partial = Axes({1});
  EXPECT_FALSE(SameOwnership(sum, SplitBy(Axes({0}), 1), {0}, mesh));
  EXPECT_EQ(Normalized(sum, {0}, mesh).partial, Axes({1}));
}

// Axes that leave all but one of their ranks empty, in either dimension of one element.
TEST(SameOwnership, LetsIdleAxesStandAnywhere) {
  const Mesh mesh = MeshOf({2, 3});
  Sharding rows, columns, both;
  rows.Set(0, 2, Axes({0, 1}));
  columns.Set(1, 2, Axes({1, 0}));
  both.Set(0, 2, Axes({1}));
  both.Set(1, 2, Axes({0}), 4);
  EXPECT_TRUE(SameOwnership(rows, columns, {1, 1}, mesh));
  EXPECT_TRUE(SameOwnership(rows, both, {1, 1}, mesh));
  EXPECT_TRUE(SameOwnership(both, both, {1, 4}, mesh));
  EXPECT_FALSE(SameOwnership(rows, columns, {1, 4}, mesh));
  EXPECT_FALSE(SameOwnership(rows, Sharding(), {1, 1}, mesh));
  Sharding one;
  one.Set(0, 2, Axes({0}));
  EXPECT_FALSE(SameOwnership(rows, one, {1, 1}, mesh));
}

}  // namespace
}  // namespace layout_forms_test_cc
}  // namespace orrery::ir
