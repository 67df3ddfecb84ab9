#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lowering/network/cluster_move_set.h"

// The moves of ClusterMoveSet out of one layout, in the order in which the search meets them, with
// the most elements that a rank holds during each.

namespace orrery::lowering {
namespace cluster_moves_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using redistribution::AxisRole;
using redistribution::Move;
using redistribution::PackedLayout;
using redistribution::Problem;
using testing::ElementsAre;

const ir::Mesh& Mesh() {
  static const auto& mesh = *new ir::Mesh({{"a", 2}, {"b", 2}, {"c", 4}, {"one", 1}});
  return mesh;
}

AxisList Axes(const std::string& names) {
  AxisList list;
  for (const char name : names) list.push_back(static_cast<AxisIndex>(name - 'a'));
  return list;
}

PackedLayout SplitBy(const std::string& rows, const std::string& columns, int64_t row_block = 0) {
  PackedLayout layout;
  const int64_t block = row_block > 0 ? row_block : ir::kNestedChunks;
  if (!rows.empty()) layout.SetSplit(0, Axes(rows), block);
  if (!columns.empty()) layout.SetSplit(1, Axes(columns));
  return layout;
}

// "ab|c sum(d)": the axes of rows and columns, with the size of blocks, and those of a sum.
std::string Text(const PackedLayout& layout) {
  const auto names = [](const AxisList& axes) {
    std::string text;
    for (const AxisIndex axis : axes.axes()) text += static_cast<char>('a' + axis);
    return text;
  };
  std::vector<std::string> dims;
  for (int d = 0; d < 2; ++d) {
    const int64_t block = layout.axes(d).empty() ? ir::kNestedChunks : layout.block(d);
    dims.push_back(absl::StrCat(names(layout.axes(d)),
                                block == ir::kNestedChunks ? "" : absl::StrCat("/", block)));
  }
  AxisList sums;
  for (AxisIndex axis = 0; axis < ir::kMaxAxes; ++axis) {
    if (layout.role(axis) == AxisRole::kPartial) sums.push_back(axis);
  }
  return absl::StrCat(absl::StrJoin(dims, "|"),
                      sums.empty() ? "" : absl::StrCat(" sum(", names(sums), ")"));
}

PackedLayout WithSum(PackedLayout layout, const std::string& axes,
                     ir::Reduction reduction = ir::Reduction::kSum) {
  const AxisList list = Axes(axes);
  for (const AxisIndex axis : list.axes()) layout.SetPartial(axis, reduction);
  return layout;
}

// The moves of a tensor of 64 rows and as many columns, towards `to`.
std::vector<std::string> MovesOf(const PackedLayout& from, const PackedLayout& to,
                                 int64_t rows = 64) {
  static const auto& cluster =
      *new cluster::Cluster(cluster::ParseCluster("dgx-a100:2,ideal-collectives").value());
  static const auto& cost_model = *cost_models::MakeCostModel("roofline").value().release();
  const Problem problem{.mesh = Mesh(),
                        .dims = {rows, 64},
                        .itemsize = 4,
                        .from = from.Unpack(2),
                        .to = to.Unpack(2)};
  const ClusterMoveSet set(problem, cluster, cost_model);
  std::vector<Move> moves;
  set.Expand(from, moves);
  std::vector<std::string> texts;
  for (const Move& move : moves) {
    EXPECT_EQ(move.cost, set.CostOf(from, move.step).total());
    texts.push_back(
        absl::StrCat(set.NameOf(from, move.step), ": ", Text(move.step.after), ", ", move.peak));
  }
  return texts;
}

TEST(ClusterMoves, OfAWholeTensorSliceIt) {
  EXPECT_THAT(
      MovesOf(PackedLayout(), PackedLayout()),
      ElementsAre("slice a to 0: a|, 4096", "slice b to 0: b|, 4096", "slice c to 0: c|, 4096",
                  "slice a to 1: |a, 4096", "slice b to 1: |b, 4096", "slice c to 1: |c, 4096"));
}

TEST(ClusterMoves, OfASplitTensor) {
  EXPECT_THAT(MovesOf(SplitBy("ac", ""), SplitBy("", "")),
              ElementsAre("slice b to 0: acb|, 512", "all-gather c from 0: a|, 2560",
                          "all-to-all c from 0 to 1: a|c, 1024", "all-gather a.c from 0: |, 4608",
                          "all-to-all a.c from 0 to 1: |ac, 1024", "permute a.c from 0: ca|, 1024",
                          "slice b to 1: ac|b, 512", "permute a.b from 0: bc|, 1024"));
}

TEST(ClusterMoves, OfTwoSplitDimensions) {
  EXPECT_THAT(MovesOf(SplitBy("a", "c"), SplitBy("c", "a")),
              ElementsAre("slice b to 0: ab|c, 512", "all-gather a from 0: |c, 1536",
                          "all-to-all a from 0 to 1: |ca, 1024", "slice b to 1: a|cb, 512",
                          "all-gather c from 1: a|, 2560", "all-to-all c from 1 to 0: ac|, 1024",
                          "permute a.b from 0: b|c, 1024"));
}

TEST(ClusterMoves, OfSums) {
  EXPECT_THAT(
      MovesOf(WithSum(PackedLayout(), "ac"), SplitBy("", "")),
      ElementsAre("slice b to 0: b| sum(ac), 4096", "slice b to 1: |b sum(ac), 4096",
                  "all-reduce a: | sum(c), 4096", "reduce-scatter a to 0: a| sum(c), 6144",
                  "reduce-scatter a to 1: |a sum(c), 6144", "all-reduce c: | sum(a), 4096",
                  "reduce-scatter c to 0: c| sum(a), 5120",
                  "reduce-scatter c to 1: |c sum(a), 5120", "all-reduce a.c: |, 4096",
                  "reduce-scatter a.c to 0: ac|, 4608", "reduce-scatter a.c to 1: |ac, 4608"));
}

TEST(ClusterMoves, OfSumsAndMaximaAreNotReducedTogether) {
  EXPECT_THAT(
      MovesOf(WithSum(WithSum(PackedLayout(), "a"), "bc", ir::Reduction::kMax), SplitBy("", "")),
      ElementsAre("all-reduce a: | sum(bc), 4096", "reduce-scatter a to 0: a| sum(bc), 6144",
                  "reduce-scatter a to 1: |a sum(bc), 6144", "all-reduce b: | sum(ac), 4096",
                  "reduce-scatter b to 0: b| sum(ac), 6144",
                  "reduce-scatter b to 1: |b sum(ac), 6144", "all-reduce c: | sum(ab), 4096",
                  "reduce-scatter c to 0: c| sum(ab), 5120",
                  "reduce-scatter c to 1: |c sum(ab), 5120", "all-reduce b.c: | sum(a), 4096",
                  "reduce-scatter b.c to 0: bc| sum(a), 4608",
                  "reduce-scatter b.c to 1: |bc sum(a), 4608"));
}

TEST(ClusterMoves, MakeSumsWhereTheTargetHasThem) {
  EXPECT_THAT(
      MovesOf(PackedLayout(), WithSum(PackedLayout(), "c")),
      ElementsAre("slice a to 0: a|, 4096", "slice b to 0: b|, 4096", "slice c to 0: c|, 4096",
                  "slice a to 1: |a, 4096", "slice b to 1: |b, 4096", "slice c to 1: |c, 4096",
                  "make-partial c: | sum(c), 4096"));
}

TEST(ClusterMoves, ToBlocksAndOutOfThem) {
  EXPECT_THAT(
      MovesOf(PackedLayout(), SplitBy("ca", "", 4)),
      ElementsAre("slice c.a to 0: ca/4|, 4096", "slice a to 0: a|, 4096", "slice b to 0: b|, 4096",
                  "slice c to 0: c|, 4096", "slice a to 1: |a, 4096", "slice b to 1: |b, 4096",
                  "slice c to 1: |c, 4096"));
  EXPECT_THAT(MovesOf(SplitBy("b", ""), SplitBy("ca", "", 4)),
              ElementsAre("slice a to 0: ba|, 2048", "slice c to 0: bc|, 2048",
                          "all-gather b from 0: |, 6144", "all-to-all b from 0 to 1: |b, 4096",
                          "reblock b from 0: b/4|, 4096", "slice a to 1: b|a, 2048",
                          "slice c to 1: b|c, 2048", "permute a.b from 0: a|, 4096"));
  EXPECT_THAT(MovesOf(SplitBy("ac", "", 8), SplitBy("ca", "", 4)),
              ElementsAre("all-gather a.c from 0: |, 4608", "all-to-all a.c from 0 to 1: |ac, 1024",
                          "reblock a.c from 0: ca/4|, 1024", "slice b to 1: ac/8|b, 512",
                          "permute a.b from 0: bc/8|, 1024"));
  EXPECT_THAT(
      MovesOf(SplitBy("ac", "b", 8), SplitBy("", "")),
      ElementsAre("all-gather a.c from 0: |b, 2304", "all-to-all a.c from 0 to 1: |bac, 512",
                  "reblock a.c from 0: ac|b, 512", "all-gather b from 1: ac/8|, 768",
                  "permute a.b from 0 to 1: bc/8|a, 512"));
}

TEST(ClusterMoves, GoToATargetOfTheSameSums) {
  const PackedLayout from = WithSum(SplitBy("ab", ""), "c");
  EXPECT_THAT(MovesOf(from, WithSum(SplitBy("ba", ""), "c")).back(),
              "permute a.b: ba| sum(c), 2048");
  EXPECT_THAT(MovesOf(from, SplitBy("ba", "")).back(), "reduce-scatter c to 1: ab|c, 1280");
  EXPECT_THAT(MovesOf(from, WithSum(SplitBy("ba", ""), "c", ir::Reduction::kMax)).back(),
              "reduce-scatter c to 1: ab|c, 1280");
}

TEST(ClusterMoves, GoToTheTargetWhereOnlyRanksChange) {
  EXPECT_THAT(MovesOf(SplitBy("ab", ""), SplitBy("c", "")),
              ElementsAre("slice c to 0: abc|, 1024", "all-gather b from 0: a|, 3072",
                          "all-to-all b from 0 to 1: a|b, 2048", "all-gather a.b from 0: |, 5120",
                          "all-to-all a.b from 0 to 1: |ab, 2048", "permute a.b from 0: ba|, 2048",
                          "slice c to 1: ab|c, 1024", "permute a.b.c: c|, 2048"));
  EXPECT_THAT(MovesOf(SplitBy("ab", ""), SplitBy("c", ""), 62),
              ElementsAre("slice c to 0: abc|, 1024", "all-gather b from 0: a|, 3008",
                          "all-to-all b from 0 to 1: a|b, 2016", "all-gather a.b from 0: |, 4992",
                          "all-to-all a.b from 0 to 1: |ab, 2016", "permute a.b from 0: ba|, 2048",
                          "slice c to 1: ab|c, 1024"));
}

}  // namespace
}  // namespace cluster_moves_test_cc
}  // namespace orrery::lowering
