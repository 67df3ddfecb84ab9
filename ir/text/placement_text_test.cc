#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "ir/text/layout_text.h"

// DTensor's placements: every order of axes in each of its forms.

namespace orrery::ir {
namespace placement_text_test_cc {
namespace {

using testing::HasSubstr;

const Mesh& Ranks() {
  static const auto& kMesh = *new Mesh({{"a", 2}, {"b", 3}, {"c", 4}, {"d", 2}});
  return kMesh;
}

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

// The product of the sizes of axes further right that stand in front of `axis`.
int64_t FactorOf(const AxisList& order, AxisIndex axis) {
  int64_t factor = 1;
  for (const AxisIndex before : order.axes()) {
    if (before == axis) break;
    if (before > axis) factor *= Ranks().size(before);
  }
  return factor;
}

// "_StridedShard(0, split_factor=2)" where it must be, else "S0".
std::string Strided(const Sharding& sharding, size_t rank) {
  std::vector<std::string> placements;
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(Ranks().axes().size()); ++axis) {
    std::string text = sharding.partial.contains(axis)
                           ? absl::StrCat("P", ToString(sharding.reductions[axis]))
                           : "R";
    for (size_t d = 0; d < rank; ++d) {
      if (!sharding.at(d).contains(axis)) continue;
      const int64_t factor = FactorOf(sharding.at(d), axis);
      text = factor == 1 ? absl::StrCat("S", d)
                         : absl::StrCat("_StridedShard(", d, ", split_factor=", factor, ")");
    }
    placements.push_back(text);
  }
  return absl::StrJoin(placements, ",");
}

// Each axis splits one of two dimensions, in any order, or is partial, or replicates.
Sharding AnySharding(std::mt19937_64& random) {
  Sharding sharding;
  const auto reduction = static_cast<Reduction>(random() % 5);
  std::vector<AxisIndex> order = {0, 1, 2, 3};
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (const AxisIndex axis : order) {
    const size_t to = random() % 5 / 2 * (random() % 4 == 0 ? 1 : 0) + random() % 2;
    if (to < 2) {
      AxisList axes = sharding.at(to);
      axes.push_back(axis);
      sharding.Set(to, 2, axes);
    } else if (random() % 2 == 0) {
      sharding.partial.push_back(axis);
      sharding.reductions[axis] = reduction;
    }
  }
  sharding.partial = sharding.partial.Sorted();
  return sharding;
}

TEST(Placements, ReadEveryOrderInEveryForm) {
  std::mt19937_64 random(1);
  int strided = 0, reduced = 0;
  for (int i = 0; i < 500; ++i) {
    const Sharding sharding = AnySharding(random);
    const Dims dims = {96, 35};
    const std::string old = Strided(sharding, 2);
    strided += absl::StrContains(old, "_") ? 1 : 0;
    reduced += sharding.partial.empty() ? 0 : 1;
    for (const std::string& text :
         {old, *PlacementText(sharding, dims, Ranks(), PlacementStyle::kShort),
          *PlacementText(sharding, dims, Ranks(), PlacementStyle::kLong)}) {
      const auto read = ParsePlacements(text, Ranks(), 2);
      ASSERT_TRUE(read.ok()) << text << " " << read.status();
      EXPECT_EQ(*read, sharding) << text;
    }
  }
  EXPECT_GT(strided, 100);
  EXPECT_GT(reduced, 30);
}

TEST(Placements, ArePrintedInBothStyles) {
  Sharding sharding;
  sharding.Set(0, 3, Axes({3, 0}));
  sharding.partial = Axes({1});
  sharding.reductions[1] = Reduction::kAverage;
  const auto text = [&](PlacementStyle style) {
    return *PlacementText(sharding, {8, 8, 8}, Ranks(), style);
  };
  EXPECT_EQ(text(PlacementStyle::kShort), "S0,P(avg),R,S0 order(0:3.0)");
  EXPECT_EQ(text(PlacementStyle::kLong),
            "[Shard(0), Partial(avg), Replicate, Shard(0)] order(0:3.0)");
  sharding.Set(2, 3, Axes({2}));
  sharding.reductions[1] = Reduction::kSum;
  EXPECT_EQ(text(PlacementStyle::kShort), "S0,P,S2,S0 order(0:3.0)");
  EXPECT_EQ(text(PlacementStyle::kLong),
            "[Shard(0), Partial(sum), Shard(2), Shard(0)] order(0:3.0)");
  sharding.Set(0, 3, AxisList());
  sharding.Set(1, 3, Axes({3, 0}));
  sharding.partial = {};
  sharding.Set(2, 3, Axes({2, 1}));
  EXPECT_EQ(text(PlacementStyle::kShort), "S1,S2,S2,S1 order(1:3.0,2:2.1)");
}

// What is written in blocks and lies in nested chunks is a placement too; idle axes go inside.
TEST(Placements, ArePrintedOfBlocksThatLieAlike) {
  const auto text = [](const AxisList& axes, int64_t block, int64_t size) {
    Sharding sharding;
    sharding.Set(0, 1, axes, block);
    const auto printed = PlacementText(sharding, {size}, Ranks(), PlacementStyle::kShort);
    return printed.ok() ? *printed : std::string(printed.status().message());
  };
  EXPECT_EQ(text(Axes({0, 1}), 2, 12), "S0,S0,R,R");
  EXPECT_EQ(text(Axes({1, 0}), 2, 12), "S0,S0,R,R order(0:1.0)");
  EXPECT_EQ(text(Axes({1}), kBalancedChunks, 5), "R,S0,R,R");
  EXPECT_EQ(text(Axes({0, 1}), 1, 3), "S0,S0,R,R order(0:1.0)");
  EXPECT_EQ(text(Axes({1}), 1, 4),
            "dimension 0 of 4 is split into parts that are not nested chunks; wanted those");
  EXPECT_EQ(text(Axes({1}), kBalancedChunks, 4),
            "dimension 0 of 4 is split into parts that are not nested chunks; wanted those");
}

std::string Short(absl::string_view text) {
  const auto sharding = ParsePlacements(text, Ranks(), 2);
  if (!sharding.ok()) return std::string(sharding.status().message());
  return *PlacementText(*sharding, {96, 96}, Ranks(), PlacementStyle::kShort);
}

TEST(Placements, ReadWhatPythonPrints) {
  EXPECT_EQ(Short("(Shard(dim=0), Shard(dim=1), Replicate(), Partial(sum))"), "S0,S1,R,P");
  EXPECT_EQ(Short("(_StridedShard(dim=0, sf=4), Replicate(), Shard(dim=0), Replicate())"),
            "S0,R,S0,R order(0:2.0)");
  EXPECT_EQ(Short("[S(0),S(1),R,P(max)]"), "S0,S1,R,P(max)");
  EXPECT_EQ(Short("(_S(1, 4),R,S(1),P(average))"), "S1,R,S1,P(avg) order(1:2.0)");
  EXPECT_EQ(Short("  S-2 , S -1,R,R"), "S0,S1,R,R");
  EXPECT_EQ(Short("_S(0, 1),R,R,R"), "S0,R,R,R");
  EXPECT_EQ(Short("S0,S0,S1,S1 order(1:3.2,0:1.0)"), "S0,S0,S1,S1 order(0:1.0,1:3.2)");
  EXPECT_EQ(Short("_S(0,3),S0,R,R order(0:0.1)"), "S0,S0,R,R");  // the order has the last word
  EXPECT_EQ(Short("Pmin,R,R,Partial(min)"), "P(min),R,R,P(min)");
  EXPECT_EQ(Short("Psum,R,R,Pavg"), "P,R,R,P(avg)");
}

TEST(Placements, SayWhatTheyFindInstead) {
  const std::string placement = "wanted a placement: S0, R, P, P(max), or _S(0, 2)";
  EXPECT_EQ(Short(""), "at 1: found the end of the text; " + placement);
  EXPECT_EQ(Short("S0,,R,R"), "at 4: found \",R,R\"; " + placement);
  EXPECT_EQ(Short("Pmean,R,R,R"), "at 1: found \"Pmean,R,R,R\"; " + placement);
  EXPECT_EQ(Short("Shards(0),R,R,R"), "at 1: found \"Shards(0),R,\"…; " + placement);
  EXPECT_EQ(Short("S,R,R,R"), "at 2: found \",R,R,R\"; wanted a dimension below 2");
  EXPECT_EQ(Short("S-3,R,R,R"), "at 2: found \"-3,R,R,R\"; wanted a dimension below 2");
  EXPECT_EQ(Short("S2,R,R,R"), "at 2: found \"2,R,R,R\"; wanted a dimension below 2");
  EXPECT_EQ(Short("S(0,R,R,R"), "at 4: found \",R,R,R\"; wanted ')'");
  EXPECT_EQ(Short("S(dim 0),R,R,R"), "at 7: found \"0),R,R,R\"; wanted '='");
  EXPECT_EQ(Short("_S(0),R,R,R"), "at 5: found \"),R,R,R\"; wanted ','");
  EXPECT_EQ(Short("_S(0, x),R,R,R"), "at 7: found \"x),R,R,R\"; wanted the split factor");
  EXPECT_EQ(Short("R(1),R,R,R"), "at 3: found \"1),R,R,R\"; wanted ')'");
  EXPECT_EQ(Short("P(max,R,R,R"), "at 6: found \",R,R,R\"; wanted ')'");
  EXPECT_EQ(Short("[R,R,R,R"), "at 9: found the end of the text; wanted ')'");
  EXPECT_EQ(Short("R R,R,R"), "at 3: found \"R,R,R\"; wanted ','");
  EXPECT_EQ(Short("R,R,R"), "at 6: found the end of the text; wanted ','");
  EXPECT_EQ(Short("R,R,R,R x"), "at 9: found \"x\"; wanted the end of the placements");
}

TEST(Placements, SayWhichFactorsAndOrdersThereAre) {
  const auto factor = [](int axis, int64_t found) {
    return absl::StrCat("axis ", axis, ": found split factor ", found,
                        "; wanted the number of parts that axes further right make of dimension 0");
  };
  EXPECT_EQ(Short("_S(0, 3),R,R,R"), factor(0, 3));
  EXPECT_EQ(Short("_S(0, 3),S1,S0,R"), factor(0, 3));
  EXPECT_EQ(Short("_S(0, 0),R,S0,R"), factor(0, 0));
  EXPECT_EQ(Short("_S(0, -4),R,S0,R"), factor(0, -4));
  EXPECT_EQ(Short("_S(0, 2),S0,S0,R"), factor(0, 2));
  EXPECT_EQ(Short("S0,S0,_S(0, 8),S0"), factor(2, 8));
  EXPECT_EQ(Short("S0,_S(0, 9223372036854775807),S0,S0"), factor(1, 9223372036854775807));
  EXPECT_EQ(Short("S0,S0,R,R order"), "at 16: found the end of the text; wanted '('");
  EXPECT_EQ(Short("S0,S0,R,R order()"), "at 17: found \")\"; wanted a dimension below 2");
  EXPECT_EQ(Short("S0,S0,R,R order(0)"), "at 18: found \")\"; wanted ':'");
  const std::string axis = "wanted an axis that splits dimension 0, each at most once";
  EXPECT_EQ(Short("S0,S0,R,R order(0:)"), "at 19: found \")\"; " + axis);
  EXPECT_EQ(Short("S0,S0,R,R order(0:1.1)"), "at 21: found \"1)\"; " + axis);
  EXPECT_EQ(Short("S0,S0,R,R order(0:1.-1)"), "at 21: found \"-1)\"; " + axis);
  EXPECT_EQ(Short("S0,S0,R,R order(0:257)"), "at 19: found \"257)\"; " + axis);
  EXPECT_EQ(Short("S0,S0,S1,R order(0:2)"), "at 20: found \"2)\"; " + axis);
  EXPECT_EQ(Short("S0,S0,R,R order(0:1)"),
            "at 19: found \"1)\"; wanted the order of all axes that split dimension 0");
  EXPECT_EQ(Short("S0,S0,R,R order(0:1.0"), "at 22: found the end of the text; wanted ')'");
  EXPECT_THAT(Short("Pmax,R,Pmin,R"), HasSubstr("different reductions"));
  EXPECT_THAT(Short("Psum,R,Pmin,R"), HasSubstr("different reductions"));
}

}  // namespace
}  // namespace placement_text_test_cc
}  // namespace orrery::ir
