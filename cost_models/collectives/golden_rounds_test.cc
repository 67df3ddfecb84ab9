#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cost_models/collectives/collective_algorithm.h"

// The rounds of each algorithm for small groups, as text that a person can check by eye. A round
// is a line: how often, by how much the parts move on each time, and who sends which parts to whom.
// [1,3) are parts 1 and 2, {1,3} are parts 1 and 3. The steps of a pipeline have a line each.

namespace orrery::cost_models {
namespace golden_rounds_test_cc {
namespace {

using enum CollectiveKind;

std::string RankText(int32_t rank) {
  return IsHub(rank) ? absl::StrCat("hub", -1 - rank) : absl::StrCat(rank);
}

std::string PartsText(const Transfer& transfer, int64_t first) {
  if (transfer.parts == 1 || transfer.stride == 1) {
    return absl::StrCat("[", first, ",", first + transfer.parts, ")");
  }
  std::vector<int64_t> parts;
  for (int64_t i = 0; i < transfer.parts; ++i) parts.push_back(first + i * transfer.stride);
  return absl::StrCat("{", absl::StrJoin(parts, ","), "}");
}

// The transfers of one repetition that move something.
std::string TransfersText(const Round& round, int64_t repetition, int64_t parts) {
  std::vector<std::string> texts;
  for (const Transfer& transfer : round.transfers) {
    const int64_t first = FirstPart(transfer, round, repetition, parts);
    if (first < 0) continue;
    texts.push_back(absl::StrCat(RankText(transfer.from), ">", RankText(transfer.to), " ",
                                 PartsText(transfer, first), transfer.reduce ? " reduce" : ""));
  }
  return absl::StrJoin(texts, "; ");
}

std::string RoundText(const Round& round, int64_t parts) {
  std::string text;
  if (round.pipelined) {
    for (int64_t step = 0; step < round.repeat; ++step) {
      absl::StrAppend(&text, "step ", step, ": ", TransfersText(round, step, parts), "\n");
    }
    return text;
  }
  absl::StrAppend(&text, "x", round.repeat);
  if (round.shift != 0) absl::StrAppend(&text, " shift ", round.shift);
  if (round.overlaps_next) absl::StrAppend(&text, " overlaps");
  return absl::StrCat(text, ": ", TransfersText(round, 0, parts), "\n");
}

// Begins with a line break, so that the expected text does too.
std::string RoundsText(absl::string_view name, const CollectiveCall& call) {
  const CollectiveAlgorithm* algorithm = *FindCollectiveAlgorithm(name);
  if (!algorithm->Supports(call)) return "not supported";
  const Rounds rounds = algorithm->rounds(call);
  std::string text = "\n";
  for (const Round& round : rounds.rounds) absl::StrAppend(&text, RoundText(round, rounds.parts));
  return text;
}

TEST(GoldenRounds, Ring) {
  EXPECT_EQ(RoundsText("ring", {.kind = kAllReduce, .ranks = 2}), R"(
x1 shift -1: 0>1 [1,2) reduce; 1>0 [0,1) reduce
x1 shift -1: 0>1 [0,1); 1>0 [1,2)
)");
  EXPECT_EQ(RoundsText("ring", {.kind = kAllReduce, .ranks = 3}), R"(
x2 shift -1: 0>1 [2,3) reduce; 1>2 [0,1) reduce; 2>0 [1,2) reduce
x2 shift -1: 0>1 [0,1); 1>2 [1,2); 2>0 [2,3)
)");
  EXPECT_EQ(RoundsText("ring", {.kind = kReduceScatter, .ranks = 4}), R"(
x3 shift -1: 0>1 [3,4) reduce; 1>2 [0,1) reduce; 2>3 [1,2) reduce; 3>0 [2,3) reduce
)");
  EXPECT_EQ(RoundsText("ring", {.kind = kAllGather, .ranks = 4}), R"(
x3 shift -1: 0>1 [0,1); 1>2 [1,2); 2>3 [2,3); 3>0 [3,4)
)");
}

// Block s*3 + d, from s to d, goes from hop to hop.
TEST(GoldenRounds, RingAllToAll) {
  EXPECT_EQ(RoundsText("ring", {.kind = kAllToAll, .ranks = 3}), R"(
x1: 0>1 [1,3); 1>2 [5,6); 1>2 [3,4); 2>0 [6,8)
x1: 0>1 [7,8); 1>2 [2,3); 2>0 [3,4)
)");
}

// 2,000 bytes, of which 1,000 pass in the latency of a hop: sqrt(2 × 2) = 2 chunks.
TEST(GoldenRounds, RingChain) {
  const cluster::PathInfo hop{Bandwidth(1'000'000'000), Duration(1'000'000)};
  EXPECT_EQ(RoundsText("ring", {.kind = kBroadcast, .size = Bytes(2000), .ranks = 4, .hop = hop}),
            R"(
step 0: 0>1 [0,1)
step 1: 0>1 [1,2); 1>2 [0,1)
step 2: 1>2 [1,2); 2>3 [0,1)
step 3: 2>3 [1,2)
)");
  EXPECT_EQ(RoundsText("ring", {.kind = kReduce, .ranks = 3}), R"(
step 0: 2>1 [0,1) reduce
step 1: 1>0 [0,1) reduce
)");
}

TEST(GoldenRounds, BidirectionalRing) {
  EXPECT_EQ(RoundsText("bidirectional-ring", {.kind = kReduceScatter, .ranks = 2}), R"(
x1 shift -2: 0>1 [2,3) reduce; 1>0 [0,1) reduce; 1>0 [3,4) reduce; 0>1 [1,2) reduce
)");
  EXPECT_EQ(RoundsText("bidirectional-ring", {.kind = kAllGather, .ranks = 3}), R"(
x2 shift -2: 0>1 [0,1); 1>2 [2,3); 2>0 [4,5); 2>1 [1,2); 1>0 [3,4); 0>2 [5,6)
)");
}

TEST(GoldenRounds, Tree) {
  EXPECT_EQ(RoundsText("tree", {.kind = kAllReduce, .ranks = 2}), R"(
x1: 1>0 [0,1) reduce; 0>1 [1,2) reduce
x1: 0>1 [0,1); 1>0 [1,2)
)");
  EXPECT_EQ(RoundsText("tree", {.kind = kAllReduce, .ranks = 3}), R"(
x1: 1>2 [0,1) reduce; 2>0 [1,2) reduce
x1: 2>0 [0,1) reduce; 0>1 [1,2) reduce
x1: 0>2 [0,1); 1>0 [1,2)
x1: 2>1 [0,1); 0>2 [1,2)
)");
  EXPECT_EQ(RoundsText("tree", {.kind = kAllReduce, .ranks = 4}), R"(
x1: 1>2 [0,1) reduce; 3>2 [0,1) reduce; 2>1 [1,2) reduce; 0>1 [1,2) reduce
x1: 2>0 [0,1) reduce; 1>3 [1,2) reduce
x1: 0>2 [0,1); 3>1 [1,2)
x1: 2>1 [0,1); 2>3 [0,1); 1>2 [1,2); 1>0 [1,2)
)");
  // Two nodes of two: four trees, of which 0 and 1 are led by ranks 0 and 2, the others by 1 and 3.
  EXPECT_EQ(RoundsText("tree", {.kind = kAllReduce, .ranks = 4, .ranks_a_node = 2}), R"(
x1: 1>0 [0,1) reduce; 3>2 [0,1) reduce; 1>0 [1,2) reduce; 3>2 [1,2) reduce; 0>1 [2,3) reduce; 2>3 [2,3) reduce; 0>1 [3,4) reduce; 2>3 [3,4) reduce
x1: 2>0 [0,1) reduce; 0>2 [1,2) reduce; 3>1 [2,3) reduce; 1>3 [3,4) reduce
x1: 0>2 [0,1); 2>0 [1,2); 1>3 [2,3); 3>1 [3,4)
x1: 0>1 [0,1); 2>3 [0,1); 0>1 [1,2); 2>3 [1,2); 1>0 [2,3); 3>2 [2,3); 1>0 [3,4); 3>2 [3,4)
)");
  const cluster::PathInfo hop{Bandwidth(1'000'000'000), Duration(1'000'000)};
  EXPECT_EQ(RoundsText("tree", {.kind = kAllReduce, .size = Bytes(2000), .ranks = 2, .hop = hop}),
            R"(
step 0: 1>0 [0,1) reduce; 0>1 [1,2) reduce
step 1: 1>0 [2,3) reduce; 0>1 [0,1); 0>1 [3,4) reduce; 1>0 [1,2)
step 2: 0>1 [2,3); 1>0 [3,4)
)");
}

// Part 4b + c is block b of channel c. Channels 0 and 1 end with pairs along the first side, 2 and
// 3 with those along the second; channels 1 and 3 number their blocks from the far end.
TEST(GoldenRounds, MultidimensionalRing) {
  EXPECT_EQ(RoundsText("multidimensional-ring", {.kind = kAllGather, .ranks = 4, .grid = {2, 2}}),
            R"(
x1: 0>2 [0,1); 1>3 [4,5); 2>0 [8,9); 3>1 [12,13); 0>2 [13,14); 1>3 [9,10); 2>0 [5,6); 3>1 [1,2); 0>1 [2,3); 1>0 [10,11); 2>3 [6,7); 3>2 [14,15); 0>1 [15,16); 1>0 [7,8); 2>3 [11,12); 3>2 [3,4)
x1: 0>1 {0,8}; 1>0 {4,12}; 2>3 {0,8}; 3>2 {4,12}; 0>1 {5,13}; 1>0 {1,9}; 2>3 {5,13}; 3>2 {1,9}; 0>2 {2,10}; 1>3 {2,10}; 2>0 {6,14}; 3>1 {6,14}; 0>2 {7,15}; 1>3 {7,15}; 2>0 {3,11}; 3>1 {3,11}
)");
}

TEST(GoldenRounds, MinimumSpanningTree) {
  EXPECT_EQ(RoundsText("minimum-spanning-tree", {.kind = kBarrier, .ranks = 2}), R"(
x1: 1>0 [0,1) reduce
x1: 0>1 [0,1)
)");
  EXPECT_EQ(RoundsText("minimum-spanning-tree", {.kind = kAllReduce, .ranks = 3}), R"(
x1: 1>0 [0,1) reduce
x1: 2>0 [0,1) reduce
x1: 0>2 [0,1)
x1: 0>1 [0,1)
)");
  EXPECT_EQ(RoundsText("minimum-spanning-tree", {.kind = kScatter, .ranks = 4}), R"(
x1: 0>2 [2,4)
x1: 0>1 [1,2); 2>3 [3,4)
)");
  EXPECT_EQ(RoundsText("minimum-spanning-tree", {.kind = kGather, .ranks = 4}), R"(
x1: 1>0 [1,2); 3>2 [3,4)
x1: 2>0 [2,4)
)");
}

TEST(GoldenRounds, HalvingDoubling) {
  EXPECT_EQ(RoundsText("halving-doubling", {.kind = kAllReduce, .ranks = 2}), R"(
x1: 0>1 [1,2) reduce; 1>0 [0,1) reduce
x1: 0>1 [0,1); 1>0 [1,2)
)");
  EXPECT_EQ(RoundsText("halving-doubling", {.kind = kAllReduce, .ranks = 4}), R"(
x1: 0>1 [2,4) reduce; 2>3 [2,4) reduce; 1>0 [0,2) reduce; 3>2 [0,2) reduce
x1: 0>2 [1,2) reduce; 2>0 [0,1) reduce; 1>3 [3,4) reduce; 3>1 [2,3) reduce
x1: 0>2 [0,1); 2>0 [1,2); 1>3 [2,3); 3>1 [3,4)
x1: 0>1 [0,2); 2>3 [0,2); 1>0 [2,4); 3>2 [2,4)
)");
}

// Rank 2 has no partner: it hands its data to rank 0, which gets part 2 for it.
TEST(GoldenRounds, HalvingDoublingOfNoPowerOfTwo) {
  EXPECT_EQ(RoundsText("halving-doubling", {.kind = kReduceScatter, .ranks = 3}), R"(
x1: 2>0 [0,3) reduce
x1: 0>1 [1,2) reduce; 1>0 [0,1) reduce; 1>0 [2,3) reduce
x1: 0>2 [2,3)
)");
}

TEST(GoldenRounds, Direct) {
  EXPECT_EQ(RoundsText("direct", {.kind = kAllToAll, .ranks = 2}), R"(
x1: 0>1 [1,2); 1>0 [2,3)
)");
  EXPECT_EQ(RoundsText("direct", {.kind = kReduceScatter, .ranks = 2}), R"(
x1: 0>1 [1,2) reduce; 1>0 [0,1) reduce
)");
  EXPECT_EQ(RoundsText("direct", {.kind = kAllGather, .ranks = 3}), R"(
x1: 0>1 [0,1); 0>2 [0,1); 1>2 [1,2); 1>0 [1,2); 2>0 [2,3); 2>1 [2,3)
)");
  EXPECT_EQ(RoundsText("direct", {.kind = kSendReceive, .ranks = 3}), R"(
x1: 0>1 [0,1); 1>2 [1,2); 2>0 [2,3)
)");
  EXPECT_EQ(RoundsText("direct", {.kind = kBroadcast, .ranks = 4}), R"(
x1: 0>1 [0,1); 0>2 [0,1); 0>3 [0,1)
)");
  EXPECT_EQ(RoundsText("direct", {.kind = kGather, .ranks = 4}), R"(
x1: 1>0 [1,2); 2>0 [2,3); 3>0 [3,4)
)");
}

TEST(GoldenRounds, Hierarchical) {
  EXPECT_EQ(RoundsText("hierarchical", {.kind = kAllReduce, .ranks = 2}), "not supported");
  EXPECT_EQ(RoundsText("hierarchical", {.kind = kAllReduce, .ranks = 4, .ranks_a_node = 2}), R"(
x1 shift -1: 0>1 {1,3} reduce; 1>0 {0,2} reduce; 2>3 {1,3} reduce; 3>2 {0,2} reduce
x1 shift -2: 0>2 [2,3) reduce; 2>0 [0,1) reduce; 1>3 [3,4) reduce; 3>1 [1,2) reduce
x1 shift -2: 0>2 [0,1); 2>0 [2,3); 1>3 [1,2); 3>1 [3,4)
x1 shift -1: 0>1 {0,2}; 1>0 {1,3}; 2>3 {0,2}; 3>2 {1,3}
)");
}

// Hub 0 is the switch of the only node; with one rank a node, hub 3 is the fabric between them.
TEST(GoldenRounds, InNetwork) {
  const CollectiveCall node{.ranks = 2, .ranks_a_node = 2, .node_reduces = true};
  EXPECT_EQ(RoundsText("in-network", node), R"(
x1 overlaps: 0>hub0 [0,2) reduce; 1>hub0 [0,2) reduce
x1 overlaps: hub0>0 [0,1); hub0>1 [1,2)
x1 overlaps: 0>hub0 [0,1); 1>hub0 [1,2)
x1: hub0>0 [0,2); hub0>1 [0,2)
)");
  EXPECT_EQ(RoundsText("in-network", {.ranks = 3, .fabric_reduces = true}), R"(
x1 overlaps: 0>hub3 [0,3) reduce; 1>hub3 [0,3) reduce; 2>hub3 [0,3) reduce
x1: hub3>0 [0,3); hub3>1 [0,3); hub3>2 [0,3)
)");
}

// Both levels: hub 2 is the fabric between two nodes.
TEST(GoldenRounds, InNetworkOfTwoLevels) {
  const CollectiveCall call{.kind = kReduceScatter,
                            .ranks = 4,
                            .ranks_a_node = 2,
                            .node_reduces = true,
                            .fabric_reduces = true};
  EXPECT_EQ(RoundsText("in-network", call), R"(
x1 overlaps: 0>hub0 [0,4) reduce; 1>hub0 [0,4) reduce; 2>hub1 [0,4) reduce; 3>hub1 [0,4) reduce
x1 overlaps: hub0>0 {0,2}; hub0>1 {1,3}; hub1>2 {0,2}; hub1>3 {1,3}
x1 overlaps: 0>hub2 {0,2} reduce; 1>hub2 {1,3} reduce; 2>hub2 {0,2} reduce; 3>hub2 {1,3} reduce
x1: hub2>0 [0,1); hub2>1 [1,2); hub2>2 [2,3); hub2>3 [3,4)
)");
}

}  // namespace
}  // namespace golden_rounds_test_cc
}  // namespace orrery::cost_models
