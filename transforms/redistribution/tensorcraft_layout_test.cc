#include "transforms/redistribution/tensorcraft_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace orrery::transforms::redistribution {
namespace tensorcraft_layout_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;

AxisList Axes(std::initializer_list<AxisIndex> axes) {
  AxisList list;
  for (const AxisIndex axis : axes) list.push_back(axis);
  return list;
}

PackedLayout Split(int dim, const AxisList& axes, int64_t block = ir::kNestedChunks) {
  PackedLayout layout;
  layout.SetSplit(dim, axes, block);
  return layout;
}

// Elements of each part, dealt block by block.
std::vector<int64_t> Deal(int64_t size, int64_t block, int64_t parts) {
  std::vector<int64_t> held(static_cast<size_t>(parts));
  for (int64_t i = 0; i < size; ++i) ++held[static_cast<size_t>(i / block % parts)];
  return held;
}

TEST(LargestPart, IsTheFirst) {
  EXPECT_EQ(LargestPart(10, 3, 2), 6);  // 3 3 3 1: of the first two of them
  EXPECT_EQ(LargestPart(10, 4, 2), 6);  // 4 4 2
  EXPECT_EQ(LargestPart(10, 1, 3), 4);
  EXPECT_EQ(LargestPart(7, 1, 1), 7);
  EXPECT_EQ(LargestPart(8, 8, 4), 8);
  EXPECT_EQ(LargestPart(8, 100, 4), 8);
  EXPECT_EQ(LargestPart(1, 1, 1), 1);
}

TEST(LargestPart, IsWhatDealingGives) {
  for (int64_t size = 1; size <= 24; ++size) {
    for (int64_t block = 1; block <= 26; ++block) {
      for (int64_t parts = 1; parts <= 9; ++parts) {
        const std::vector<int64_t> held = Deal(size, block, parts);
        ASSERT_EQ(held[0], std::ranges::max(held));
        ASSERT_EQ(LargestPart(size, block, parts), held[0]) << size << " " << block << " " << parts;
      }
    }
  }
}

// A round of blocks would not fit 64 bits.
TEST(LargestPart, TakesTheLargestNumbers) {
  constexpr int64_t kSize = int64_t{1} << 60;
  EXPECT_EQ(LargestPart(kSize, kSize - 1, 1024), kSize - 1);
  EXPECT_EQ(LargestPart(kSize, kSize / 2, 1024), kSize / 2);
  EXPECT_EQ(LargestPart(kSize, 1, kSize), 1);
}

TEST(LargestBlock, LeavesABlockForEachPart) {
  EXPECT_EQ(LargestBlock(10, 4), 3);  // 3 3 3 1
  EXPECT_EQ(LargestBlock(10, 1), 10);
  EXPECT_EQ(LargestBlock(4, 4), 1);
  EXPECT_EQ(LargestBlock(3, 4), 0);
  EXPECT_EQ(LargestBlock(1, 1), 1);
}

TEST(LargestBlock, IsTheLargestThatDealsToAll) {
  for (int64_t size = 1; size <= 24; ++size) {
    for (int64_t parts = 1; parts <= 26; ++parts) {
      int64_t largest = 0;
      for (int64_t block = 1; block <= size; ++block) {
        if (std::ranges::min(Deal(size, block, parts)) > 0) largest = block;
      }
      ASSERT_EQ(LargestBlock(size, parts), largest) << size << " " << parts;
    }
  }
}

// Axes a0 of 2 ranks and a1 of 3.
class OnTwoAxes : public testing::Test {
 protected:
  std::string Trouble(const ir::Dims& dims, const PackedLayout& layout) const {
    const absl::Status status = TensorcraftTensor(mesh_, dims).Check(layout);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status));
    return std::string(status.message());
  }

  const ir::Mesh mesh_ = ir::Mesh({{"a0", 2}, {"a1", 3}});
  const TensorcraftTensor tensor_ = TensorcraftTensor(mesh_, {8, 9});
};

TEST_F(OnTwoAxes, KnowsSizes) {
  EXPECT_EQ(tensor_.rank(), 2);
  EXPECT_EQ(tensor_.axis_count(), 2);
  EXPECT_EQ(tensor_.elements(), 72);
  EXPECT_EQ(tensor_.dim(1), 9);
  EXPECT_EQ(tensor_.size(AxisIndex{1}), 3);
  EXPECT_EQ(tensor_.size(Axes({1, 0})), 6);
  EXPECT_EQ(tensor_.size(AxisList()), 1);
  const TensorcraftTensor scalar(ir::Mesh(), {});
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_TRUE(scalar.Check().ok());
}

TEST_F(OnTwoAxes, TensorsHaveElementsAndNotTooMany) {
  const auto trouble = [&](const ir::Dims& dims) {
    return std::string(TensorcraftTensor(mesh_, dims).Check().message());
  };
  const std::string wanted =
      "tensor: got dimensions without elements, or with more than 2^60; wanted sizes of at least "
      "1, and at most 2^60 elements in all";
  EXPECT_EQ(trouble({1}), "");
  EXPECT_EQ(trouble({int64_t{1} << 30, int64_t{1} << 30}), "");
  EXPECT_EQ(trouble({(int64_t{1} << 30) + 1, int64_t{1} << 30}), wanted);
  EXPECT_EQ(trouble({8, 0}), wanted);
  EXPECT_EQ(trouble({-1, 8}), wanted);
  EXPECT_EQ(trouble({0, 8}), wanted);  // and what comes after does not mend it
  EXPECT_EQ(trouble(ir::Dims(30, 1)), "");
  EXPECT_EQ(trouble(ir::Dims(31, 1)), "tensor: got 31 dimensions; wanted at most 30");
}

TEST_F(OnTwoAxes, LayoutsGiveEachRankAnElement) {
  EXPECT_EQ(Trouble({8, 9}, PackedLayout()), "");
  EXPECT_EQ(Trouble({8, 9}, Split(0, Axes({0}))), "");
  EXPECT_EQ(Trouble({8, 9}, Split(0, Axes({1}), 3)), "");
  EXPECT_EQ(Trouble({8, 9}, Split(1, Axes({1, 0}), 1)), "");
  EXPECT_EQ(Trouble({8, 9}, Split(0, Axes({1}))),
            "dimension 0 of 8 elements on 3 ranks: got chunks that differ in size; wanted an "
            "element for every rank, with a block of 1 to 3");
  EXPECT_EQ(Trouble({8, 9}, Split(0, Axes({1}), 4)),
            "dimension 0 of 8 elements on 3 ranks: got a block of 4; wanted an element for every "
            "rank, with a block of 1 to 3");
  EXPECT_EQ(Trouble({8, 2}, Split(1, Axes({1}), 1)),
            "dimension 1 of 2 elements on 3 ranks: got a block of 1; wanted an element for every "
            "rank, on at most 2 ranks");
}

TEST_F(OnTwoAxes, LayoutsAreOfThisMeshAndTensor) {
  EXPECT_EQ(Trouble({8, 9}, Split(0, Axes({5}))),
            "got axis 5, of a mesh of 2, in a tensor of 2 dimensions; wanted axes of the mesh on "
            "dimensions of the tensor");
  EXPECT_EQ(Trouble({8, 9}, Split(2, Axes({0}))),
            "got axis 0, of a mesh of 2, in a tensor of 2 dimensions; wanted axes of the mesh on "
            "dimensions of the tensor");
  PackedLayout partial;
  partial.SetPartial(1, ir::Reduction::kSum);
  EXPECT_EQ(Trouble({8, 9}, partial),
            "axis 1 is partial, which tensorcraft's layouts never are; wanted axes that split or "
            "replicate; try the costs of DTensor or of a cluster");
}

TEST_F(OnTwoAxes, NormalLayoutsHaveBlocks) {
  EXPECT_EQ(tensor_.Normal(Split(0, Axes({0}))), Split(0, Axes({0}), 4));
  EXPECT_EQ(tensor_.Normal(Split(1, Axes({1}))), Split(1, Axes({1}), 3));
  EXPECT_EQ(tensor_.Normal(Split(0, Axes({0}), 1)), Split(0, Axes({0}), 1));
  EXPECT_EQ(tensor_.Normal(PackedLayout()), PackedLayout());
  const PackedLayout once = tensor_.Normal(Split(0, Axes({0})));
  EXPECT_EQ(tensor_.Normal(once), once);
}

TEST_F(OnTwoAxes, OpensLayouts) {
  const PackedLayout layout = Split(1, Axes({1, 0}), 1);
  const TensorcraftLayout open = tensor_.Open(layout);
  EXPECT_EQ(open.packed, layout);
  ASSERT_EQ(open.dims.size(), 2u);
  EXPECT_TRUE(open.dims[0].axes.empty());
  EXPECT_EQ(open.dims[0].parts, 1);
  EXPECT_EQ(open.dims[0].largest, 8);
  EXPECT_EQ(open.dims[1].axes, Axes({1, 0}));
  EXPECT_EQ(open.dims[1].block, 1);
  EXPECT_EQ(open.dims[1].parts, 6);
  EXPECT_EQ(open.dims[1].largest, 2);  // 9 elements on 6 ranks
  EXPECT_EQ(open.used, Axes({0, 1}));
  EXPECT_EQ(open.elements, 16);
  EXPECT_EQ(open.ranks, 6);
  EXPECT_EQ(tensor_.Elements(layout), 16);
}

TEST_F(OnTwoAxes, OpensLayoutsOfSeveralDimensions) {
  PackedLayout layout = Split(0, Axes({0}), 2);
  layout.SetSplit(1, Axes({1}), 4);
  const TensorcraftLayout open = tensor_.Open(layout);
  EXPECT_EQ(open.dims[0].largest, 4);  // 2 2 2 2 on 2 ranks
  EXPECT_EQ(open.dims[1].largest, 4);  // 4 4 1 on 3 ranks
  EXPECT_EQ(open.elements, 16);
  EXPECT_EQ(open.ranks, 6);
  EXPECT_EQ(tensor_.Elements(PackedLayout()), 72);
  EXPECT_EQ(tensor_.Open(PackedLayout()).ranks, 1);
}

}  // namespace
}  // namespace tensorcraft_layout_test_cc
}  // namespace orrery::transforms::redistribution
