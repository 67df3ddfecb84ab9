#include "cost_models/collectives/collective_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/execution_test_util.h"

namespace orrery::cost_models {
namespace collective_kind_test_cc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using enum CollectiveKind;

constexpr int64_t kRanks[] = {2, 3, 4, 7, 8, 64, 1000};

Share ShareOf(CollectiveKind kind, int64_t n) { return GetCollectiveKind(kind).bus_share(n); }

// Whether two shares are the same number, however they are written.
bool Same(Share a, Share b) { return a.numerator * b.denominator == b.numerator * a.denominator; }

// Parts that the busiest rank sends or receives, whichever is more.
int64_t MostParts(const Execution& execution) {
  return std::max(*std::max_element(execution.sent().begin(), execution.sent().end()),
                  *std::max_element(execution.received().begin(), execution.received().end()));
}

TEST(CollectiveKind, StandsAtItsNumber) {
  ASSERT_EQ(AllCollectiveKinds().size(), static_cast<size_t>(kCollectiveKindCount));
  for (int i = 0; i < kCollectiveKindCount; ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    EXPECT_EQ(AllCollectiveKinds()[static_cast<size_t>(i)].kind, kind);
    EXPECT_EQ(&GetCollectiveKind(kind), &AllCollectiveKinds()[static_cast<size_t>(i)]);
  }
}

TEST(CollectiveKind, IsFoundByItsName) {
  for (const CollectiveKindInfo& info : AllCollectiveKinds()) {
    const auto found = FindCollectiveKind(info.name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, info.kind) << info.name;
    EXPECT_EQ(GetCollectiveKind(*found).name, info.name);
  }
}

TEST(CollectiveKind, HasTheNameThatPeopleWrite) {
  EXPECT_EQ(*FindCollectiveKind("all-reduce"), kAllReduce);
  EXPECT_EQ(*FindCollectiveKind("all-gather"), kAllGather);
  EXPECT_EQ(*FindCollectiveKind("reduce-scatter"), kReduceScatter);
  EXPECT_EQ(*FindCollectiveKind("all-to-all"), kAllToAll);
  EXPECT_EQ(*FindCollectiveKind("broadcast"), kBroadcast);
  EXPECT_EQ(*FindCollectiveKind("reduce"), kReduce);
  EXPECT_EQ(*FindCollectiveKind("scatter"), kScatter);
  EXPECT_EQ(*FindCollectiveKind("gather"), kGather);
  EXPECT_EQ(*FindCollectiveKind("send-receive"), kSendReceive);
  EXPECT_EQ(*FindCollectiveKind("barrier"), kBarrier);
}

TEST(CollectiveKind, NamesDiffer) {
  std::set<absl::string_view> names;
  for (const CollectiveKindInfo& info : AllCollectiveKinds()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), absl::string_view::npos);
  }
}

TEST(CollectiveKind, AnUnknownNameSaysWhatIsWanted) {
  const absl::Status status = FindCollectiveKind("allreduce").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "collective 'allreduce' is unknown; wanted one of all-reduce, all-gather, "
            "reduce-scatter, all-to-all, broadcast, reduce, scatter, gather, send-receive, "
            "barrier; did you mean all-reduce?");
}

// Neither a part of a name nor one with other letters or blanks is taken for it.
TEST(CollectiveKind, ANameIsTakenWholeAndAsWritten) {
  for (const std::string name : {"", "all", "all-reduc", "all-reduces", "All-Reduce", "ALL-REDUCE",
                                 "all_reduce", " all-reduce", "all-reduce ", "reduce,gather"}) {
    const absl::Status status = FindCollectiveKind(name).status();
    ASSERT_FALSE(status.ok()) << name;
    const std::string message(status.message());
    EXPECT_THAT(message, StartsWith("collective '" + name + "' is unknown; wanted one of "));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(CollectiveKind, SaysWhatItsSizeIs) {
  const auto size = [](CollectiveKind kind) { return GetCollectiveKind(kind).size; };
  EXPECT_EQ(size(kAllReduce), "the tensor that each rank brings");
  EXPECT_EQ(size(kReduceScatter), size(kAllReduce));
  EXPECT_EQ(size(kReduce), size(kAllReduce));
  EXPECT_EQ(size(kAllGather), "the whole that each rank ends up with");
  EXPECT_EQ(size(kGather), "the whole that the root ends up with");
  EXPECT_EQ(size(kAllToAll), "what each rank brings");
  EXPECT_EQ(size(kBroadcast), "the tensor of the root");
  EXPECT_EQ(size(kScatter), size(kBroadcast));
  EXPECT_EQ(size(kSendReceive), "the message that each rank sends to the next");
  EXPECT_EQ(size(kBarrier), "of no meaning: no data moves");
}

// The factors of nccl-tests (doc/PERFORMANCE.md).
TEST(BusShare, IsThatOfNcclTests) {
  for (const int64_t n : kRanks) {
    EXPECT_TRUE(Same(ShareOf(kAllReduce, n), {2 * (n - 1), n})) << n;
    for (const CollectiveKind kind : {kAllGather, kReduceScatter, kAllToAll, kScatter, kGather}) {
      EXPECT_TRUE(Same(ShareOf(kind, n), {n - 1, n})) << GetCollectiveKind(kind).name << " " << n;
    }
    for (const CollectiveKind kind : {kBroadcast, kReduce, kSendReceive}) {
      EXPECT_TRUE(Same(ShareOf(kind, n), {1, 1})) << GetCollectiveKind(kind).name << " " << n;
    }
    EXPECT_EQ(ShareOf(kBarrier, n).numerator, 0);
  }
}

// An all-reduce is a reduce-scatter and an all-gather.
TEST(BusShare, OfAnAllReduceIsThatOfItsHalves) {
  for (const int64_t n : kRanks) {
    const Share scatter = ShareOf(kReduceScatter, n), gather = ShareOf(kAllGather, n);
    ASSERT_EQ(scatter.denominator, gather.denominator);
    EXPECT_TRUE(
        Same(ShareOf(kAllReduce, n), {scatter.numerator + gather.numerator, gather.denominator}));
  }
}

// What is carried out symbolically: no algorithm's busiest rank moves less, and one moves just
// that.
TEST(BusShare, IsTheLeastThatTheBusiestRankMoves) {
  for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
    if (kind.kind == kBarrier) continue;  // its parts have no bytes
    for (const int32_t n : {2, 3, 4, 8}) {
      const Share share = kind.bus_share(n);
      bool met = false;
      for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
        const CollectiveCall call{.kind = kind.kind, .size = Bytes(8), .ranks = n};
        if (!algorithm->Supports(call)) continue;
        const Rounds rounds = algorithm->rounds(call);
        const int64_t moved = MostParts(Execution(rounds)) * share.denominator;
        EXPECT_GE(moved, share.numerator * rounds.parts_a_size) << algorithm->name;
        met = met || moved == share.numerator * rounds.parts_a_size;
      }
      EXPECT_TRUE(met) << kind.name << " of " << n;
    }
  }
}

TEST(CollectiveKind, HasARootWhereOneRankIsUnlikeTheOthers) {
  for (const CollectiveKind kind : {kBroadcast, kReduce, kScatter, kGather, kSendReceive}) {
    EXPECT_TRUE(GetCollectiveKind(kind).has_root) << GetCollectiveKind(kind).name;
  }
  for (const CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBarrier}) {
    EXPECT_FALSE(GetCollectiveKind(kind).has_root) << GetCollectiveKind(kind).name;
  }
}

}  // namespace
}  // namespace collective_kind_test_cc
}  // namespace orrery::cost_models
