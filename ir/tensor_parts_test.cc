#include "ir/tensor_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace orrery::ir {
namespace tensor_parts_test_cc {
namespace {

Tensor Floats(Dims dims, std::vector<double> values) {
  return Tensor::OfFloats(DType::kF32, std::move(dims), std::move(values));
}

TEST(TensorParts, CutAndPasted) {
  Tensor a = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor middle = SlicePart(a, 1, 1, 3);
  EXPECT_EQ(middle, Floats({2, 1}, {2, 5}));
  PastePart(middle, 1, 0, a);
  EXPECT_EQ(a, Floats({2, 3}, {2, 2, 3, 5, 5, 6}));
}

TEST(TensorParts, DistanceIsTheLargestDifference) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Distance(Floats({2}, {1, 2}), Floats({2}, {1, -2})), 4);
  EXPECT_EQ(Distance(Floats({2}, {1, 2}), Floats({2, 1}, {1, 2})), infinity);
  EXPECT_EQ(Distance(Floats({1}, {infinity}), Floats({1}, {infinity})), 0);
  EXPECT_EQ(Distance(Floats({1}, {NAN}), Floats({1}, {NAN})), 0);
  EXPECT_EQ(Distance(Floats({1}, {NAN}), Floats({1}, {1})), infinity);
  EXPECT_EQ(Distance(Tensor::OfInts(DType::kI8, {1}, {3}), Tensor::OfInts(DType::kI8, {1}, {5})),
            2);
}

TEST(TensorParts, GatherPutsTogetherWhatScatterTookApart) {
  const Mesh mesh({{"a", 2}, {"b", 3}});
  const std::vector<int64_t> ranks = AllRanks(mesh);
  Tensor whole(DType::kF32, {12, 2});
  for (size_t i = 0; i < 24; ++i) whole.floats()[i] = static_cast<double>(i);
  TensorType type = whole.type();
  AxisList both(1);
  both.push_back(0);  // b outermost
  type.sharding.Set(0, 2, both);
  std::vector<Tensor> parts;
  for (const int64_t rank : ranks) parts.push_back(Scatter(whole, type, mesh, rank));
  // Rank 3 is a1 b0: part 0 * 2 + 1.
  EXPECT_EQ(parts[3], Floats({2, 2}, {4, 5, 6, 7}));
  EXPECT_EQ(PartOf(mesh, 3, both), 1);
  EXPECT_EQ(RestOf(mesh, 3, AxisList(0)), 0);
  double disagreement = 0;
  EXPECT_EQ(Gather(parts, type, mesh, ranks, disagreement), whole);
  EXPECT_EQ(disagreement, 0);
}

// 5 rows over 4 ranks are 2, 2, 1 and none.
TEST(TensorParts, UnevenPartsAreShort) {
  const Mesh mesh({{"a", 4}, {"b", 2}});
  const Tensor whole = Floats({5, 1}, {1, 2, 3, 4, 5});
  TensorType type = whole.type();
  type.sharding.Set(0, 2, AxisList(0));
  std::vector<Tensor> parts;
  for (const int64_t rank : AllRanks(mesh)) parts.push_back(Scatter(whole, type, mesh, rank));
  EXPECT_EQ(parts[2], Floats({2, 1}, {3, 4}));
  EXPECT_EQ(parts[4], Floats({1, 1}, {5}));
  EXPECT_EQ(parts[6], Floats({0, 1}, {}));
  double disagreement = 0;
  EXPECT_EQ(Gather(parts, type, mesh, AllRanks(mesh), disagreement), whole);
  EXPECT_EQ(disagreement, 0);
  EXPECT_EQ(SlicePart(whole, 0, 2, 4), Floats({2, 1}, {5, 0}));
  EXPECT_EQ(SlicePart(whole, 0, 3, 4), Floats({2, 1}, {0, 0}));
  Tensor pasted = whole;
  PastePart(Floats({2, 1}, {7, 6}), 0, 2, pasted);
  PastePart(Floats({2, 1}, {7, 6}), 0, 3, pasted);
  EXPECT_EQ(pasted, Floats({5, 1}, {1, 2, 3, 4, 7}));
}

// Six elements in blocks of two, dealt to two ranks; and by nested chunks to 2 x 3 ranks.
TEST(TensorParts, OfBlocksAndNestedChunksAreExact) {
  const Mesh mesh({{"a", 2}, {"b", 3}});
  const Tensor whole = Floats({5}, {1, 2, 3, 4, 5});
  TensorType blocks{DType::kF32, {5}, {}}, nested = blocks;
  blocks.sharding.Set(0, 1, AxisList(0), 2);
  EXPECT_EQ(Scatter(whole, blocks, mesh, 0), Floats({3}, {1, 2, 5}));
  EXPECT_EQ(Scatter(whole, blocks, mesh, 3), Floats({2}, {3, 4}));
  AxisList both(0);
  both.push_back(1);
  nested.sharding.Set(0, 1, both);
  std::vector<Tensor> parts;
  for (const int64_t rank : AllRanks(mesh)) parts.push_back(Scatter(whole, nested, mesh, rank));
  EXPECT_EQ(parts[0], Floats({1}, {1}));
  EXPECT_EQ(parts[3], Floats({1}, {4}));
  EXPECT_EQ(parts[5], Floats({0}, {}));
  double disagreement = 0;
  EXPECT_EQ(Gather(parts, nested, mesh, AllRanks(mesh), disagreement), whole);
  Tensor moved = Floats({3}, {0, 0, 0});
  CopyHeld(parts[1], {.type = nested, .rank = 1}, {.type = blocks, .rank = 0}, mesh, moved);
  EXPECT_EQ(moved, Floats({3}, {0, 2, 0})) << "2 alone is of both";
}

TEST(TensorParts, GatherReducesByEachReduction) {
  const Mesh mesh({{"a", 2}, {"b", 2}});
  const std::vector<Tensor> parts = {Floats({1}, {1}), Floats({1}, {3}), Floats({1}, {10}),
                                     Floats({1}, {2})};
  const std::pair<Reduction, double> wanted[] = {{Reduction::kSum, 16},
                                                 {Reduction::kAverage, 4},
                                                 {Reduction::kProduct, 60},
                                                 {Reduction::kMax, 10},
                                                 {Reduction::kMin, 1}};
  for (const auto& [reduction, result] : wanted) {
    TensorType type{DType::kF32, {1}, {}};
    type.sharding.partial = AxisList(0);
    type.sharding.partial.push_back(1);
    type.sharding.reductions[0] = type.sharding.reductions[1] = reduction;
    double disagreement = 0;
    EXPECT_EQ(Gather(parts, type, mesh, AllRanks(mesh), disagreement), Floats({1}, {result}));
    std::vector<Tensor> scattered;
    for (const int64_t rank : AllRanks(mesh)) {
      scattered.push_back(Scatter(parts[1], type, mesh, rank));
    }
    EXPECT_EQ(Gather(scattered, type, mesh, AllRanks(mesh), disagreement), parts[1]);
  }
  TensorType mixed{DType::kF32, {1}, {}};  // a sum over a, an average over b
  mixed.sharding.partial = AxisList(0);
  mixed.sharding.partial.push_back(1);
  mixed.sharding.reductions[1] = Reduction::kAverage;
  double disagreement = 0;
  EXPECT_EQ(Gather(parts, mixed, mesh, AllRanks(mesh), disagreement), Floats({1}, {8}));
}

TEST(TensorParts, GatherAddsPartsAndTellsRanksThatDisagree) {
  const Mesh mesh({{"a", 2}, {"b", 2}});
  TensorType type{DType::kF32, {1}, {}};
  type.sharding.partial = AxisList(0);
  const std::vector<Tensor> parts = {Floats({1}, {1}), Floats({1}, {2}), Floats({1}, {10}),
                                     Floats({1}, {20})};
  double disagreement = 0;
  EXPECT_EQ(Gather(parts, type, mesh, AllRanks(mesh), disagreement), Floats({1}, {11}));
  EXPECT_EQ(disagreement, 11);
}

TEST(TensorParts, OfAPartialValueOneRankHoldsAll) {
  const Mesh mesh({{"a", 2}, {"b", 2}});
  TensorType type{DType::kI64, {2}, {}};
  type.sharding.Set(0, 1, AxisList(1));
  type.sharding.partial = AxisList(0);
  const Tensor whole = Tensor::OfInts(DType::kI64, {2}, {5, 7});
  const int64_t held[] = {5, 7, 0, 0};
  for (const int64_t rank : AllRanks(mesh)) {
    EXPECT_EQ(Scatter(whole, type, mesh, rank).ints()[0], held[rank]);
  }
}

}  // namespace
}  // namespace tensor_parts_test_cc
}  // namespace orrery::ir
