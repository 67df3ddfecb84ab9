#include "cost_models/collectives/collective_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cost_models/collectives/execution_test_util.h"
#include "cost_models/collectives/graph_call_test_util.h"
#include "support/sanitized_test_util.h"

// What holds for every line of collectives.def: a new algorithm is tested here without an edit. And
// for the known ones, how much is sent.

namespace orrery::cost_models {
namespace collective_algorithm_test_cc {
namespace {

using enum CollectiveKind;

std::vector<int32_t> GroupSizes() {
  std::vector<int32_t> sizes(16);
  std::iota(sizes.begin(), sizes.end(), 2);
  sizes.push_back(64);
  return CasesToWalk(sizes);
}

// All ways to put ranks into equal nodes, linked or not, and all switches that could reduce; few
// chunks and many; all grids; a graph.
std::vector<CollectiveCall> CallsOf(CollectiveKind kind, int32_t ranks) {
  std::vector<CollectiveCall> calls;
  for (int32_t a_node = 1; a_node <= ranks; ++a_node) {
    for (int variant = 0; variant < 5 && ranks % a_node == 0; ++variant) {
      calls.push_back({.kind = kind,
                       .size = Bytes(variant % 2 == 0 ? 8 : 1'000'000),
                       .ranks = ranks,
                       .ranks_a_node = a_node,
                       .node_reduces = variant % 4 >= 1,
                       .fabric_reduces = variant % 4 >= 2,
                       .linked = variant == 4,
                       .hop = {Bandwidth(1'000'000'000), Duration(50'000'000)}});
    }
  }
  for (const std::vector<int32_t>& grid : GridsOf(ranks)) {
    calls.push_back({.kind = kind, .size = Bytes(8), .ranks = ranks, .grid = grid});
  }
  calls.push_back(GraphCall(kind, ranks, Bytes(8)));
  calls.push_back(GraphCall(kind, ranks, Bytes(1'000'000)));
  return calls;
}

// Every algorithm with every kind and group that it supports.
template <typename Check>
void ForAllCalls(Check check) {
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (const int32_t ranks : GroupSizes()) {
        for (const CollectiveCall& call : CallsOf(kind.kind, ranks)) {
          // A grid and a graph are nothing to the others.
          const bool grid = algorithm->name == "multidimensional-ring";
          if (grid == call.grid.empty() || !algorithm->Supports(call)) continue;
          if (call.laid.on_graph != LaysTrees(*algorithm)) continue;
          SCOPED_TRACE(absl::StrCat(algorithm->name, " ", kind.name, " of ", ranks, ", ",
                                    call.ranks_a_node, " a node, of ", call.size.count(),
                                    " bytes, linked ", call.linked, ", grid ",
                                    absl::StrJoin(call.grid, "x")));
          check(*algorithm, call);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(CollectiveAlgorithms, RecordsAreComplete) {
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    EXPECT_FALSE(algorithm->name.empty());
    EXPECT_FALSE(algorithm->summary.empty()) << algorithm->name;
    EXPECT_FALSE(algorithm->source.empty()) << algorithm->name;
    EXPECT_FALSE(algorithm->kinds.empty()) << algorithm->name;
    EXPECT_NE(algorithm->rounds, nullptr) << algorithm->name;
    EXPECT_EQ(algorithm->supports == nullptr, algorithm->wanted.empty()) << algorithm->name;
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      EXPECT_LE(algorithm->chosen.contains(kind.kind), algorithm->kinds.contains(kind.kind))
          << algorithm->name << " " << kind.name;
    }
    EXPECT_EQ(*FindCollectiveAlgorithm(algorithm->name), algorithm);
  }
}

TEST(CollectiveAlgorithms, EveryKindHasOneThatIsChosen) {
  for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
    const auto algorithms = AllCollectiveAlgorithms();
    EXPECT_TRUE(std::any_of(algorithms.begin(), algorithms.end(), [&](const auto* algorithm) {
      return algorithm->chosen.contains(kind.kind) && algorithm->Supports({.kind = kind.kind});
    })) << kind.name;
  }
}

// The proof: each rank ends up with exactly its data, each contribution once.
TEST(CollectiveAlgorithms, GiveEachRankItsData) {
  ForAllCalls([](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    const Rounds rounds = algorithm.rounds(call);
    EXPECT_EQ(rounds.ranks, call.ranks);
    EXPECT_EQ(Execution(rounds).error(), "");
  });
}

TEST(CollectiveAlgorithms, NoRankSendsToItself) {
  ForAllCalls([](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    for (const Round& round : algorithm.rounds(call).rounds) {
      EXPECT_GE(round.repeat, 1);
      for (const Transfer& transfer : round.transfers) {
        EXPECT_NE(transfer.from, transfer.to);
        EXPECT_LT(std::max(transfer.from, transfer.to), call.ranks);
        EXPECT_GE(transfer.parts, 1);
      }
    }
  });
}

// Sent by all ranks together, in sizes: as a fraction over the parts of a size.
int64_t PartsSent(const Execution& execution) {
  return std::accumulate(execution.sent().begin(), execution.sent().end(), int64_t{0});
}

// Without switches that reduce, nobody beats this (Chan et al. 2007, table 1); all that send only
// what is needed meet it: (n-1) sizes for a tensor to pass through all ranks once.
int64_t LeastSizesSentTimesN(const CollectiveCall& call) {
  const int64_t n = call.ranks;
  switch (call.kind) {
    case kAllReduce:
      return 2 * (n - 1) * n;
    case kAllGather:
    case kReduceScatter:
    case kAllToAll:
    case kBroadcast:
    case kReduce:
      return (n - 1) * n;
    case kScatter:
    case kGather:
      return n - 1;
    case kSendReceive:
      return n * n;
    case kBarrier:
      return 0;
  }
  return 0;
}

TEST(CollectiveAlgorithms, SendNoLessThanMustBeSent) {
  ForAllCalls([](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    if (call.node_reduces || call.fabric_reduces) return;
    const Rounds rounds = algorithm.rounds(call);
    const Execution execution(rounds);
    EXPECT_GE(PartsSent(execution) * call.ranks, LeastSizesSentTimesN(call) * rounds.parts_a_size);
  });
}

// Bytes sent, by the formula of each algorithm.
TEST(CollectiveAlgorithms, SendWhatTheirFormulasSay) {
  int checked = 0;
  ForAllCalls([&](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    const Rounds rounds = algorithm.rounds(call);
    const Execution execution(rounds);
    const absl::string_view name = algorithm.name;
    const int64_t n = call.ranks, unit = rounds.parts_a_size;
    const bool power = (n & (n - 1)) == 0;
    const bool symmetric = !GetCollectiveKind(call.kind).has_root && call.kind != kBarrier;
    const bool ring = name == "ring" || name == "bidirectional-ring" || name == "hierarchical" ||
                      name == "multidimensional-ring";
    if (name == "ring" && call.kind == kAllToAll) {  // hop by hop: n-1 hops, n/2 of them a block
      for (const int64_t sent : execution.sent()) EXPECT_EQ(sent * 2, (n - 1) * unit);
      for (const int64_t sent : execution.sent()) EXPECT_EQ(sent, n * (n - 1) / 2);
    } else if (symmetric && (ring || name == "direct" || (name == "halving-doubling" && power))) {
      const Share share = GetCollectiveKind(call.kind).bus_share(n);
      for (const std::vector<int64_t>& moved : {execution.sent(), execution.received()}) {
        for (const int64_t parts : moved) {
          EXPECT_EQ(parts * share.denominator, share.numerator * unit);
        }
      }
    } else if (name == "tree" || LaysTrees(algorithm) || name == "minimum-spanning-tree" ||
               name == "ring" || name == "direct") {
      if (call.kind == kBarrier || (name != "direct" && call.kind == kScatter) ||
          (name != "direct" && call.kind == kGather)) {
        return;
      }
      EXPECT_EQ(PartsSent(execution) * n, LeastSizesSentTimesN(call) * unit);
    } else {
      return;
    }
    ++checked;
  });
  EXPECT_GT(checked, CasesToWalk(1000));
}

// A binary tree moves no more than four halves of the tensor through any rank, whatever their
// number: up and twice down in one tree, up in the other.
TEST(Tree, BurdensNoRankWithMoreThanTwoTensors) {
  for (const int32_t ranks : GroupSizes()) {
    const CollectiveCall call{
        .size = Bytes(1 << 20), .ranks = ranks, .hop = {Bandwidth(1 << 30), Duration(1'000'000)}};
    const Rounds rounds = (*FindCollectiveAlgorithm("tree"))->rounds(call);
    const Execution execution(rounds);
    for (const std::vector<int64_t>& moved : {execution.sent(), execution.received()}) {
      EXPECT_LE(*std::max_element(moved.begin(), moved.end()), 2 * rounds.parts_a_size) << ranks;
    }
  }
}

// By its network card no rank sends more than its share of those two tensors, however many ranks a
// node has: each leads a chain of its own. Within the node it is a little more, as a head has two
// children elsewhere.
TEST(Tree, UsesTheNetworkCardsOfANodeAlike) {
  const CollectiveAlgorithm& tree = **FindCollectiveAlgorithm("tree");
  for (const int32_t a_node : {2, 3, 4, 8}) {
    for (const int32_t nodes : {2, 3, 4, 7, 8}) {
      const CollectiveCall call{.size = Bytes(1 << 20),
                                .ranks = nodes * a_node,
                                .ranks_a_node = a_node,
                                .hop = {Bandwidth(1 << 30), Duration(1'000'000)}};
      const Rounds rounds = tree.rounds(call);
      std::vector<int64_t> leaving(static_cast<size_t>(call.ranks), 0), entering = leaving;
      for (const Round& round : rounds.rounds) {
        for (const Transfer& transfer : round.transfers) {
          if (transfer.from / a_node == transfer.to / a_node) continue;
          const int64_t parts = ActiveRepetitions(transfer, round, rounds.parts) /
                                (round.pipelined ? 1 : round.repeat);
          leaving[static_cast<size_t>(transfer.from)] += parts;
          entering[static_cast<size_t>(transfer.to)] += parts;
        }
      }
      const int64_t share = 2 * rounds.parts_a_size / a_node;
      EXPECT_THAT(leaving,
                  ::testing::Each(::testing::AllOf(::testing::Gt(0), ::testing::Le(share))));
      EXPECT_THAT(entering, ::testing::Each(::testing::Le(share)));
      const Execution execution(rounds);
      EXPECT_LE(*std::max_element(execution.sent().begin(), execution.sent().end()) * a_node,
                (2 * a_node + 1) * rounds.parts_a_size);
    }
  }
}

// One chunk goes up chains and trees and down again: hops within a node come in rounds of their
// own.
TEST(Tree, OfOneChunkCrossesNodesInAsFewRoundsAsTreesHaveLevels) {
  const CollectiveCall call{.size = Bytes(8), .ranks = 32, .ranks_a_node = 8};
  const Rounds rounds = (*FindCollectiveAlgorithm("tree"))->rounds(call);
  ASSERT_EQ(rounds.rounds.size(), 2u * (7 + 2));  // 7 in the chain, 2 between four nodes
  size_t crossing = 0;
  for (const Round& round : rounds.rounds) {
    crossing +=
        std::any_of(round.transfers.begin(), round.transfers.end(),
                    [](const Transfer& transfer) { return transfer.from / 8 != transfer.to / 8; });
  }
  EXPECT_EQ(crossing, 4u);
}

// In each round every link of a torus carries as much as any other, in both directions.
TEST(MultidimensionalRing, UsesAllLinksOfACubeAlike) {
  const CollectiveCall call{.ranks = 64, .grid = {4, 4, 4}};
  const Rounds rounds = (*FindCollectiveAlgorithm("multidimensional-ring"))->rounds(call);
  ASSERT_EQ(rounds.rounds.size(), 6u);
  EXPECT_EQ(RepetitionCount(rounds), 2 * 3 * 3);
  for (const Round& round : rounds.rounds) {
    std::map<std::pair<int32_t, int32_t>, int64_t> carried;
    for (const Transfer& transfer : round.transfers) {
      carried[{transfer.from, transfer.to}] += transfer.parts;
    }
    EXPECT_EQ(carried.size(), 64u * 6);
    for (const auto& [link, parts] : carried) EXPECT_EQ(parts, carried.begin()->second);
  }
}

// Of 4 x 2 and 2 x 4 x 3: who is through with a short side waits for the long ones.
TEST(MultidimensionalRing, TakesAsManyRoundsAsItsLongestSides) {
  const auto count = [](std::vector<int32_t> grid, CollectiveKind kind) {
    int32_t ranks = 1;
    for (const int32_t side : grid) ranks *= side;
    const CollectiveCall call{.kind = kind, .ranks = ranks, .grid = std::move(grid)};
    return RepetitionCount((*FindCollectiveAlgorithm("multidimensional-ring"))->rounds(call));
  };
  EXPECT_EQ(count({4, 2}, kReduceScatter), 2 * 3);
  EXPECT_EQ(count({4, 2}, kAllReduce), 2 * 2 * 3);
  EXPECT_EQ(count({2, 4, 3}, kAllGather), 3 * 3);
}

// With switches that reduce, a rank sends its tensor once, and once more its share of the result.
TEST(InNetwork, SendsTheTensorOnce) {
  for (const int32_t ranks : {2, 8, 64}) {
    const CollectiveCall call{.ranks = ranks, .ranks_a_node = ranks, .node_reduces = true};
    const Rounds rounds = (*FindCollectiveAlgorithm("in-network"))->rounds(call);
    const Execution execution(rounds);
    for (const int64_t sent : execution.sent()) EXPECT_EQ(sent, rounds.parts_a_size + 1);
    for (const int64_t got : execution.received()) EXPECT_EQ(got, rounds.parts_a_size + 1);
  }
}

TEST(Ring, IsShortToSay) {
  const Rounds rounds = (*FindCollectiveAlgorithm("ring"))->rounds({.ranks = 1024});
  ASSERT_EQ(rounds.rounds.size(), 2u);
  EXPECT_EQ(rounds.rounds[0].transfers.size(), 1024u);
  EXPECT_EQ(RepetitionCount(rounds), 2 * 1023);
  EXPECT_EQ(TransferCount(rounds), 2 * 1023 * 1024);  // 2,095,104 messages
}

TEST(Ring, LeavesEachNodeByAllItsRanks) {
  for (const auto& [name, times] : {std::pair{"ring", 1}, {"bidirectional-ring", 2}}) {
    const Rounds rounds =
        (*FindCollectiveAlgorithm(name))->rounds({.ranks = 32, .ranks_a_node = 8});
    std::vector<int> leaving(32, 0), entering(32, 0);
    for (const Transfer& transfer : rounds.rounds[0].transfers) {
      if (transfer.from / 8 == transfer.to / 8) continue;
      ++leaving[static_cast<size_t>(transfer.from)];
      ++entering[static_cast<size_t>(transfer.to)];
      EXPECT_EQ(transfer.from % 8, transfer.to % 8) << "between cards of one rail";
    }
    EXPECT_THAT(leaving, ::testing::Each(times)) << name;
    EXPECT_THAT(entering, ::testing::Each(times)) << name;
  }
}

TEST(PipelineChunks, AreTheSquareRootOfWhatFillsOverLatency) {
  const cluster::PathInfo hop{Bandwidth(1'000'000'000), Duration(1'000'000)};
  // 4 MB take 4 ms, a hop 1 us: sqrt(9 × 4000) = 190.
  EXPECT_EQ(PipelineChunks({.size = Bytes(4'000'000), .hop = hop}, 9, 1.0), 190);
  EXPECT_EQ(PipelineChunks({.size = Bytes(1), .hop = hop}, 9, 1.0), 1);
  EXPECT_EQ(PipelineChunks({.size = Bytes(0), .hop = hop}, 9, 1.0), 1);
  EXPECT_EQ(PipelineChunks({.size = Bytes(4'000'000), .hop = hop}, 0, 1.0), 1);
  EXPECT_EQ(PipelineChunks({.size = Bytes(1), .hop = {hop.rate, Duration(0)}}, 9, 1.0), 1024);
}

TEST(FindCollectiveAlgorithm, ListsWhatThereIs) {
  EXPECT_EQ(FindCollectiveAlgorithm("rings").status().message(),
            "algorithm 'rings' is unknown; did you mean ring? `list-algorithms` names all");
  EXPECT_EQ(FindCollectiveAlgorithm("bucket").status().message(),
            "algorithm 'bucket' is unknown; wanted one of ring, bidirectional-ring, "
            "multidimensional-ring, tree, minimum-spanning-tree, halving-doubling, direct, "
            "hierarchical, in-network, shortest-path-tree, packed-trees");
}

TEST(FindCollectiveKind, ListsWhatThereIs) {
  EXPECT_EQ(*FindCollectiveKind("all-to-all"), kAllToAll);
  EXPECT_EQ(FindCollectiveKind("allreduce").status().message(),
            "collective 'allreduce' is unknown; wanted one of all-reduce, all-gather, "
            "reduce-scatter, all-to-all, broadcast, reduce, scatter, gather, send-receive, "
            "barrier; did you mean all-reduce?");
}

}  // namespace
}  // namespace collective_algorithm_test_cc
}  // namespace orrery::cost_models
