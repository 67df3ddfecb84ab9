#include "transforms/redistribution/testing/summands.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::transforms::redistribution {
namespace summands_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Reduction;

constexpr Number kPrime = (Number{1} << 61) - 1;

std::vector<Number> SummandsOf(int64_t element, const Folding& folding) {
  std::vector<Number> summands;
  for (int64_t part = 0; part < folding.parts; ++part) {
    summands.push_back(SummandOf(element, part, folding));
  }
  return summands;
}

TEST(Summands, AreNumbersBelowThePrimeThatDiffer) {
  std::set<Number> seen;
  for (int64_t element = 0; element < 200; ++element) {
    EXPECT_LT(TruthOf(element), kPrime);
    EXPECT_TRUE(seen.insert(TruthOf(element)).second);
    for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct}) {
      const std::vector<Number> summands =
          SummandsOf(element, {.reduction = reduction, .parts = 4});
      EXPECT_LT(*std::ranges::max_element(summands), kPrime);
      EXPECT_EQ(std::set<Number>(summands.begin(), summands.end()).size(), 4);
      EXPECT_EQ(std::ranges::count(summands, TruthOf(element)), 0);
    }
  }
}

// A plan that leaves a summand out, or takes one twice, has to be found out.
TEST(Summands, MindEachOfTheirNumber) {
  for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kProduct}) {
    const Folding folding{
        .reduction = reduction, .parts = 5, .divisor = reduction == Reduction::kAverage ? 5 : 1};
    for (size_t i = 0; i < 5; ++i) {
      std::vector<Number> fewer = SummandsOf(9, folding), more = fewer;
      fewer.erase(fewer.begin() + static_cast<int64_t>(i));
      more.push_back(more[i]);
      EXPECT_NE(Fold(fewer, folding), TruthOf(9));
      EXPECT_NE(Fold(more, folding), TruthOf(9));
    }
  }
}

// Of a maximum one part holds the truth, not always the same, and the others less.
TEST(Summands, OfAnExtremeHaveItOnce) {
  std::set<int64_t> positions;
  for (int64_t element = 0; element < 60; ++element) {
    const Number truth = TruthOf(element);
    const auto largest = SummandsOf(element, {.reduction = Reduction::kMax, .parts = 3});
    const auto smallest = SummandsOf(element, {.reduction = Reduction::kMin, .parts = 3});
    EXPECT_EQ(*std::ranges::max_element(largest), truth);
    EXPECT_EQ(*std::ranges::min_element(smallest), truth);
    EXPECT_EQ(std::ranges::count(largest, truth), 1);
    EXPECT_EQ(std::ranges::count(smallest, truth), 1);
    EXPECT_LT(*std::ranges::max_element(smallest), kPrime);
    positions.insert(std::ranges::find(largest, truth) - largest.begin());
  }
  EXPECT_EQ(positions.size(), 3);
}

TEST(Summands, OfOnePartAreTheTruth) {
  for (int r = 0; r <= static_cast<int>(Reduction::kMin); ++r) {
    const Folding folding{.reduction = static_cast<Reduction>(r)};
    EXPECT_EQ(SummandOf(5, 0, folding), TruthOf(5));
    EXPECT_EQ(Fold(std::vector<Number>{17}, folding), 17);
  }
}

TEST(Summands, FoldToWhatAPersonCanAdd) {
  const auto fold = [](Reduction reduction, int64_t divisor = 1) {
    return Fold(std::vector<Number>{6, 10, 2},
                {.reduction = reduction, .parts = 3, .divisor = divisor});
  };
  EXPECT_EQ(fold(Reduction::kSum), 18);
  EXPECT_EQ(fold(Reduction::kAverage, 3), 6);
  EXPECT_EQ(fold(Reduction::kSum, 2), 9) << "sums over some axes and averages over others";
  EXPECT_EQ(fold(Reduction::kProduct), 120);
  EXPECT_EQ(fold(Reduction::kMax), 10);
  EXPECT_EQ(fold(Reduction::kMin), 2);
  const Folding sum{.parts = 2}, product{.reduction = Reduction::kProduct, .parts = 2};
  EXPECT_EQ(Fold(std::vector<Number>{kPrime - 1, 3}, sum), 2);
  EXPECT_EQ(Fold(std::vector<Number>{kPrime - 1, kPrime - 1}, product), 1) << "-1 times -1";
}

// The first rank keeps the value; with what the others hold, it folds to the value again.
TEST(MadePartial, LeavesTheValue) {
  for (int r = 0; r <= static_cast<int>(Reduction::kMin); ++r) {
    Folding folding{.reduction = static_cast<Reduction>(r), .parts = 4};
    if (folding.reduction == Reduction::kAverage) folding.divisor = 4;
    std::vector<Number> values(4, MadePartial(77, folding.reduction));
    values[0] = 77;
    EXPECT_EQ(Fold(values, folding), 77) << r;
  }
  EXPECT_EQ(MadePartial(77, Reduction::kSum), 0);
  EXPECT_EQ(MadePartial(77, Reduction::kProduct), 1);
  EXPECT_EQ(MadePartial(77, Reduction::kAverage), 77);
}

TEST(FoldingOver, DividesByTheAxesThatAreAveraged) {
  const ir::Mesh mesh({{"a", 2}, {"b", 3}, {"c", 5}});
  ir::Sharding sharding;
  for (AxisIndex axis = 0; axis < 3; ++axis) sharding.partial.push_back(axis);
  sharding.reductions[0] = Reduction::kAverage;
  sharding.reductions[2] = Reduction::kAverage;
  const Folding all = FoldingOver(sharding.partial, sharding, mesh);
  EXPECT_EQ(all.parts, 30);
  EXPECT_EQ(all.divisor, 10);
  const Folding one = FoldingOver(AxisList(1), sharding, mesh);
  EXPECT_EQ(one.parts, 3);
  EXPECT_EQ(one.divisor, 1);
  EXPECT_EQ(one.reduction, Reduction::kSum);
  const Folding none = FoldingOver({}, sharding, mesh);
  EXPECT_EQ(none.parts, 1);
  EXPECT_EQ(none.divisor, 1);
  sharding.reductions[1] = Reduction::kMax;
  EXPECT_EQ(FoldingOver(AxisList(1), sharding, mesh).reduction, Reduction::kMax);
}

}  // namespace
}  // namespace summands_test_cc
}  // namespace orrery::transforms::redistribution
