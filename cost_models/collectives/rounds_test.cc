#include "cost_models/collectives/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/execution_test_util.h"
#include "cost_models/collectives/graph_call_test_util.h"

// Rounds as a data type: what a repetition moves, and what holds for the rounds of every algorithm.
// That they do what the collective wants is proven in collective_algorithm_test.cc.

namespace orrery::cost_models {
namespace rounds_test_cc {
namespace {

using enum CollectiveKind;
using ::testing::Each;
using ::testing::ElementsAre;

std::vector<int64_t> FirstParts(const Transfer& transfer, const Round& round, int64_t parts) {
  std::vector<int64_t> first_parts;
  for (int64_t repetition = 0; repetition < round.repeat; ++repetition) {
    first_parts.push_back(FirstPart(transfer, round, repetition, parts));
  }
  return first_parts;
}

TEST(Wrap, CountsFromBothEnds) {
  EXPECT_EQ(Wrap(4, 5), 4);
  EXPECT_EQ(Wrap(5, 5), 0);
  EXPECT_EQ(Wrap(13, 5), 3);
  EXPECT_EQ(Wrap(-1, 5), 4);
  EXPECT_EQ(Wrap(-5, 5), 0);
  EXPECT_EQ(Wrap(-13, 5), 2);
}

TEST(FirstPart, RotatesByTheShift) {
  EXPECT_THAT(FirstParts({.first_part = 1}, {.repeat = 4, .shift = -1}, 4),
              ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(FirstParts({.first_part = 3}, {.repeat = 4, .shift = 2}, 5), ElementsAre(3, 0, 2, 4));
  EXPECT_THAT(FirstParts({.first_part = 2}, {.repeat = 3}, 4), Each(2));
}

TEST(FirstPart, RotatesByItsOwnShiftToo) {
  EXPECT_THAT(FirstParts({.first_part = 1, .shift = 2}, {.repeat = 4, .shift = -1}, 4),
              ElementsAre(1, 2, 3, 0));
}

TEST(FirstPart, IsNoneWhileAPipelineFillsAndDrains) {
  const Round round{.repeat = 5, .shift = 1, .pipelined = true};
  EXPECT_THAT(FirstParts({.first_part = 0}, round, 3), ElementsAre(0, 1, 2, -1, -1));
  EXPECT_THAT(FirstParts({.first_part = -2}, round, 3), ElementsAre(-1, -1, 0, 1, 2));
  EXPECT_THAT(FirstParts({.first_part = -9}, round, 3), Each(-1));
}

TEST(ActiveRepetitions, AreThoseThatHaveAPart) {
  EXPECT_EQ(ActiveRepetitions({.first_part = 9}, {.repeat = 7, .shift = 3}, 4), 7);
  for (int64_t repeat = 1; repeat <= 9; ++repeat) {
    for (int64_t shift = 1; shift <= 3; ++shift) {
      const Round round{.repeat = repeat, .shift = shift, .pipelined = true};
      for (int64_t first = -12; first <= 12; ++first) {
        const std::vector<int64_t> parts = FirstParts({.first_part = first}, round, 6);
        EXPECT_EQ(ActiveRepetitions({.first_part = first}, round, 6),
                  repeat - std::count(parts.begin(), parts.end(), -1))
            << repeat << " times, shift " << shift << ", from " << first;
      }
    }
  }
}

TEST(Rounds, CountRepetitionsAndTransfers) {
  Rounds rounds;
  EXPECT_EQ(RepetitionCount(rounds), 0);
  EXPECT_EQ(TransferCount(rounds), 0);
  rounds.rounds = {{.repeat = 3, .transfers = {{}, {}}}, {.transfers = {{}}}};
  EXPECT_EQ(RepetitionCount(rounds), 4);
  EXPECT_EQ(TransferCount(rounds), 3 * 2 + 1);
  rounds.rounds[0].repeat = std::numeric_limits<int64_t>::max() / 2 + 1;
  EXPECT_EQ(TransferCount(rounds), std::numeric_limits<int64_t>::max());
}

TEST(Rounds, PartsAreOfTheirRankUnlessOwnersSayOtherwise) {
  EXPECT_EQ(Rounds{.ranks = 3}.OwnerOf(2), 2);
  EXPECT_EQ((Rounds{.ranks = 3, .owners = {0, 2, 1}}).OwnerOf(2), 1);
}

TEST(Hub, IsNoRank) {
  for (const int32_t number : {0, 1, 17}) EXPECT_TRUE(IsHub(Hub(number)));
  EXPECT_NE(Hub(0), Hub(1));
  EXPECT_FALSE(IsHub(0));
}

// Calls check(algorithm, call) for each kind, group of 2 to 17 ranks, node size and chunk count,
// and on graphs.
template <typename Check>
void ForAllCalls(Check check) {
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    int calls = 0;
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (int32_t n = 2; n <= 17; ++n) {
        for (const std::vector<int32_t>& grid : GridsOf(n)) {
          const CollectiveCall call{.kind = kind.kind, .ranks = n, .grid = grid};
          if (algorithm->name != "multidimensional-ring" || !algorithm->Supports(call)) continue;
          SCOPED_TRACE(absl::StrCat(kind.name, " on ", absl::StrJoin(grid, "x")));
          check(*algorithm, call);
          if (::testing::Test::HasFailure()) return;
          ++calls;
        }
        for (const int64_t size : {0, 1'000'000}) {
          const CollectiveCall call = GraphCall(kind.kind, n, Bytes(size));
          if (!LaysTrees(*algorithm) || !algorithm->Supports(call)) continue;
          SCOPED_TRACE(absl::StrCat(algorithm->name, " ", kind.name, " on a graph of ", n));
          check(*algorithm, call);
          if (::testing::Test::HasFailure()) return;
          ++calls;
        }
        for (int32_t variant = 0; variant < 4 * n; ++variant) {
          const CollectiveCall call{.kind = kind.kind,
                                    .size = Bytes(variant % 2 == 0 ? 0 : 100'000),
                                    .ranks = n,
                                    .ranks_a_node = variant / 4 + 1,
                                    .node_reduces = true,
                                    .fabric_reduces = variant % 4 >= 2,
                                    .linked = variant % 4 == 3,
                                    .hop = {Bandwidth(1'000'000'000), Duration(1'000'000)}};
          if (n % call.ranks_a_node != 0 || !algorithm->Supports(call)) continue;
          SCOPED_TRACE(absl::StrCat(algorithm->name, " ", kind.name, " of ", n, ", ",
                                    call.ranks_a_node, " a node, variant ", variant));
          check(*algorithm, call);
          if (::testing::Test::HasFailure()) return;
          ++calls;
        }
      }
    }
    EXPECT_GT(calls, 0) << algorithm->name;
  }
}

void ExpectPartsInRange(const Transfer& transfer, const Round& round, int64_t parts) {
  EXPECT_GE(transfer.stride, 1);
  EXPECT_LT((transfer.parts - 1) * transfer.stride, parts) << "a part is sent twice";
  EXPECT_GT(ActiveRepetitions(transfer, round, parts), 0) << "a transfer of nothing";
  if (round.pipelined) return;  // begins before part 0, on purpose
  EXPECT_GE(transfer.first_part, 0);
  EXPECT_LT(transfer.first_part, parts);
}

TEST(AllRounds, SendPartsThatThereAreBetweenTwoRanks) {
  ForAllCalls([](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    const Rounds rounds = algorithm.rounds(call);
    for (const Round& round : rounds.rounds) {
      EXPECT_GE(round.repeat, 1);
      EXPECT_FALSE(round.transfers.empty());
      for (const Transfer& transfer : round.transfers) {
        EXPECT_NE(transfer.from, transfer.to);
        EXPECT_FALSE(IsHub(transfer.from) && IsHub(transfer.to));
        EXPECT_LT(std::max(transfer.from, transfer.to), call.ranks);
        EXPECT_GE(std::min(transfer.from, transfer.to), Hub(call.nodes()));
        ExpectPartsInRange(transfer, round, rounds.parts);
      }
    }
  });
}

TEST(AllRounds, OccupyEveryRank) {
  ForAllCalls([](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    std::vector<int> transfers(static_cast<size_t>(call.ranks), 0);
    for (const Round& round : algorithm.rounds(call).rounds) {
      for (const Transfer& transfer : round.transfers) {
        if (!IsHub(transfer.from)) ++transfers[static_cast<size_t>(transfer.from)];
        if (!IsHub(transfer.to)) ++transfers[static_cast<size_t>(transfer.to)];
      }
    }
    EXPECT_THAT(transfers, Each(::testing::Gt(0)));
  });
}

TEST(AllRounds, HaveWholeSizesAndOwnersThatAreRanks) {
  ForAllCalls([](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    const Rounds rounds = algorithm.rounds(call);
    EXPECT_EQ(rounds.kind, call.kind);
    EXPECT_EQ(rounds.parts % rounds.parts_a_size, 0);
    if (rounds.owners.empty()) return;
    EXPECT_EQ(static_cast<int64_t>(rounds.owners.size()), rounds.parts);
    EXPECT_THAT(rounds.owners, Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(call.ranks))));
  });
}

// Only what streams through switches overlaps, and rings of unlike length; after the last round
// nothing comes.
TEST(AllRounds, OverlapWhereTheyMayAndNeverAtTheEnd) {
  ForAllCalls([](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    const Rounds rounds = algorithm.rounds(call);
    for (size_t i = 0; i < rounds.rounds.size(); ++i) {
      const bool last = i + 1 == rounds.rounds.size();
      const bool longer = algorithm.name == "multidimensional-ring" && !last &&
                          rounds.rounds[i + 1].transfers.size() < rounds.rounds[i].transfers.size();
      EXPECT_EQ(rounds.rounds[i].overlaps_next, longer || (algorithm.name == "in-network" && !last))
          << i;
    }
  });
}

int64_t CeilingLog2(int32_t n) { return std::bit_width(static_cast<uint32_t>(n - 1)); }

// The published number of rounds, where there is one. A pipeline of c chunks takes c-1 more.
std::optional<int64_t> RoundsByFormula(absl::string_view name, const CollectiveCall& call,
                                       int64_t chunks) {
  const int64_t n = call.ranks, k = call.ranks_a_node;
  const int64_t ways = call.kind == kAllReduce || call.kind == kBarrier ? 2 : 1;
  const bool chain = call.kind == kBroadcast || call.kind == kReduce;
  const bool power = (n & (n - 1)) == 0;
  if (name == "ring") return ways * (n - 1) + (chain ? chunks - 1 : 0);
  if (name == "bidirectional-ring") return ways * (n - 1);
  if (name == "tree") {  // two trees for each of the ranks of a node, which are a chain
    const int32_t chain = call.two_levels() ? call.ranks_a_node : 1;
    return 2 * (CeilingLog2(call.ranks / chain) + chain - 1) + chunks / (2 * chain) - 1;
  }
  if (name == "multidimensional-ring") {
    const int32_t longest = *std::max_element(call.grid.begin(), call.grid.end());
    return ways * static_cast<int64_t>(call.grid.size()) * (longest - 1);
  }
  if (name == "minimum-spanning-tree") return ways * CeilingLog2(call.ranks);
  if (name == "direct") return call.kind == kAllReduce ? 2 : 1;
  if (name == "hierarchical") return ways * ((call.linked ? 1 : k - 1) + n / k - 1);
  // Those beyond a power of two hand over before and are handed the result after.
  if (name == "halving-doubling") {
    return ways * (power ? CeilingLog2(call.ranks) : CeilingLog2(call.ranks) - 1) + (power ? 0 : 2);
  }
  return std::nullopt;
}

TEST(AllRounds, AreAsManyAsPublished) {
  int checked = 0;
  ForAllCalls([&](const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
    const Rounds rounds = algorithm.rounds(call);
    const auto wanted = RoundsByFormula(algorithm.name, call, rounds.parts);
    if (!wanted.has_value()) return;
    EXPECT_EQ(RepetitionCount(rounds), *wanted);
    ++checked;
  });
  EXPECT_GT(checked, 1000);
}

}  // namespace
}  // namespace rounds_test_cc
}  // namespace orrery::cost_models
