#include "transforms/stages/dealt_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_join.h"
#include "support/status.h"
#include "transforms/stages/dealt_chain_test_util.h"

namespace orrery::transforms {
namespace dealt_rounds_test_cc {
namespace {

using ::testing::ElementsAre;

const PipelineSchedule& Schedule(absl::string_view name) { return **FindSchedule(name); }

// Of a full pipeline, what `each` microbatches take, each a multiple of all replicas.
int64_t SteadyTime(const DealtChain& chain, int64_t each, int64_t filling) {
  const int64_t few = (filling + each - 1) / each * each;
  return DealtChainPlayer(chain, few + each).Makespan() - DealtChainPlayer(chain, few).Makespan();
}

// Replicas of each stage but the first that divide those behind it evenly: nothing of their
// ⌈Σ R_t / R_s⌉ is rounded.
std::vector<int64_t> EvenReplicas(std::mt19937& random) {
  const size_t stages = 1 + random() % 4;
  std::vector<int64_t> replicas(stages);
  int64_t behind = 0;
  for (size_t s = stages; s-- > 0;) {
    do {
      replicas[s] = 1 + random() % 6;
    } while (s > 0 && behind % replicas[s] != 0);
    behind += replicas[s];
  }
  return replicas;
}

DealtChain RandomChain(std::vector<int64_t> replicas, std::mt19937& random) {
  DealtChain chain{
      .replicas = std::move(replicas), .forward = {}, .backward = {}, .all_reduce = {}};
  for (size_t s = 0; s < chain.replicas.size(); ++s) {
    chain.forward.push_back(1 + random() % 20);
    chain.backward.push_back(1 + random() % 40);
    chain.all_reduce.push_back(0);
  }
  return chain;
}

// PipeDream's objective, of `each` microbatches: max_s max(T_s, all-reduce_s) / R_s.
int64_t Objective(const DealtChain& chain, int64_t each) {
  int64_t most = 0;
  for (size_t s = 0; s < chain.replicas.size(); ++s) {
    const int64_t sums = chain.replicas[s] > 1 ? chain.all_reduce[s] : 0;
    most = std::max(
        most, std::max((chain.forward[s] + chain.backward[s]), sums) * (each / chain.replicas[s]));
  }
  return most;
}

// Whatever stages take: each circle of steps that wait for each other has, of F and B of stage s,
// equally many, n_s, and goes on by Σ n_s R_s microbatches where nothing is rounded; sums only wait
// for those before.
TEST(DealtRounds, TakeWhatPipeDreamsPlannerSays) {
  std::mt19937 random(19);
  for (int i = 0; i < 300; ++i) {
    const DealtChain chain = RandomChain(EvenReplicas(random), random);
    const int64_t each = MicrobatchesInRounds(chain.replicas);
    EXPECT_EQ(SteadyTime(chain, each, 3000), Objective(chain, each))
        << absl::StrJoin(chain.replicas, ",") << " F " << absl::StrJoin(chain.forward, ",") << " B "
        << absl::StrJoin(chain.backward, ",");
  }
}

// Sums as long as a microbatch of the plan at most are beside what replicas compute.
TEST(DealtRounds, HideSumsOfGradients) {
  std::mt19937 random(20);
  for (int i = 0; i < 200; ++i) {
    DealtChain chain = RandomChain(EvenReplicas(random), random);
    const int64_t each = MicrobatchesInRounds(chain.replicas);
    const int64_t pace = Objective(chain, each) / each;
    for (int64_t& sum : chain.all_reduce)
      sum = pace == 0 ? 0 : static_cast<int64_t>(random()) % (pace + 1);
    EXPECT_EQ(SteadyTime(chain, each, 3000), Objective(chain, each))
        << absl::StrJoin(chain.replicas, ",") << " sums " << absl::StrJoin(chain.all_reduce, ",");
  }
}

// Data parallelism alone, of any length of sums.
TEST(DealtRounds, OfOneStageTakeComputeOrSumsWhicheverIsMore) {
  for (const int64_t sums : {0, 3, 9, 10, 11, 25, 100}) {
    const DealtChain chain{.replicas = {4}, .forward = {4}, .backward = {6}, .all_reduce = {sums}};
    EXPECT_EQ(SteadyTime(chain, 4, 100), std::max<int64_t>(10, sums)) << sums;
  }
}

// Where something is rounded up a middle stage runs more forwards before its backwards than the
// stages before it can feed: 1F1B-RR is then slower than the objective, never faster.
TEST(DealtRounds, OfRoundedStagesMayBeSlowerThanTheObjective) {
  const DealtChain chain{
      .replicas = {1, 2, 1}, .forward = {1, 2, 1}, .backward = {1, 2, 1}, .all_reduce = {0, 0, 0}};
  EXPECT_EQ(Objective(chain, 2), 4);
  EXPECT_EQ(SteadyTime(chain, 2, 200), 6);  // F and B of stages 0 and 1, by two microbatches
  std::mt19937 random(21);
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> replicas;
    for (size_t s = 0; s < 1 + random() % 4; ++s) replicas.push_back(1 + random() % 4);
    const DealtChain any = RandomChain(replicas, random);
    const int64_t each = 12;
    EXPECT_GE(SteadyTime(any, each, 1500), Objective(any, each)) << absl::StrJoin(replicas, ",");
  }
}

TEST(DealtRounds, KeepAVersionForEachMicrobatchUnderWay) {
  const PipelineSchedule& pipedream = Schedule("pipedream");
  const auto versions = [&](const std::vector<int64_t>& replicas) {
    std::vector<int32_t> all;
    for (int32_t s = 0; s < std::ssize(replicas); ++s) {
      all.push_back(DealtWeightVersions(pipedream, replicas, s));
    }
    return all;
  };
  EXPECT_THAT(versions({1, 1, 1, 1}), ElementsAre(4, 3, 2, 1));  // p - s
  EXPECT_THAT(versions({15, 1}), ElementsAre(2, 1));             // of VGG-16
  EXPECT_THAT(versions({2, 3, 1}), ElementsAre(3, 2, 1));
  EXPECT_THAT(versions({8}), ElementsAre(1));
  EXPECT_EQ(DealtWeightVersions(Schedule("1f1b"), {3, 1}, 0), 1);
  EXPECT_EQ(DealtWeightVersions(Schedule("pipedream-2bw"), {3, 1}, 0), 2);
  EXPECT_EQ(DealtWeightVersions(Schedule("pipedream-2bw"), {3, 1}, 1), 2);
  EXPECT_EQ(DealtWeightVersions(Schedule("pipedream-2bw"), {3}, 0), 1);
}

// Weights that microbatches under way have read, and the newest, told by walking through the order
// of each replica.
TEST(DealtRounds, NoReplicaHasMoreVersionsAtOnce) {
  std::mt19937 random(22);
  for (int i = 0; i < 300; ++i) {
    std::vector<int64_t> replicas;
    for (size_t s = 0; s < 1 + random() % 4; ++s) replicas.push_back(1 + random() % 4);
    const RankOrders orders = DealtOrders(Schedule("pipedream"), DealInTurn(replicas, 48)).value();
    for (const auto& order : orders) {
      const int32_t stage = order.front().stage;
      const int64_t behind = BackwardsBehind(replicas[static_cast<size_t>(stage)]);
      std::vector<int64_t> read;  // versions, of the microbatches under way
      int64_t backwards = 0;
      size_t most = 1;
      for (const ScheduleStep& step : order) {
        const int64_t newest = std::max<int64_t>(0, backwards - behind);
        if (step.kind == StepKind::kForward) {
          read.push_back(newest);
        } else {
          read.erase(read.begin());
          ++backwards;
        }
        std::vector<int64_t> kept = read;
        const int64_t now = std::max<int64_t>(0, backwards - behind);
        if (std::ranges::find(kept, now) == kept.end()) kept.push_back(now);
        kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
        most = std::max(most, kept.size());
      }
      EXPECT_EQ(static_cast<int32_t>(most),
                DealtWeightVersions(Schedule("pipedream"), replicas, stage))
          << absl::StrJoin(replicas, ",") << " stage " << stage;
    }
  }
}

// As PipeDream's p - 1 - s; a replica that does not wait for others is one update later.
TEST(DealtRounds, StalenessIsThatOfTheOrders) {
  const auto staleness = [&](absl::string_view name, const std::vector<int64_t>& replicas) {
    const int64_t every = DealtUpdateEvery(Schedule(name), replicas, 4);
    return DealtStaleness(DealtOrders(Schedule(name), DealInTurn(replicas, 60)).value(), replicas,
                          every);
  };
  EXPECT_THAT(staleness("pipedream", {1, 1, 1}), ElementsAre(2, 1, 0));
  EXPECT_THAT(staleness("pipedream", {3, 1}), ElementsAre(2, 0));
  EXPECT_THAT(staleness("pipedream", {2, 3, 1}), ElementsAre(3, 2, 0));
  EXPECT_THAT(staleness("pipedream", {4}), ElementsAre(1));
  EXPECT_THAT(staleness("pipedream-2bw", {1, 1, 1}), ElementsAre(1, 1, 0));
  // One at most, of any replicas: a batch is as many as are under way.
  std::mt19937 random(24);
  for (int i = 0; i < 100; ++i) {
    std::vector<int64_t> replicas;
    for (size_t s = 0; s < 1 + random() % 4; ++s) {
      replicas.push_back(static_cast<int64_t>(1 + random() % 4));
    }
    EXPECT_LE(std::ranges::max(staleness("pipedream-2bw", replicas)), 1)
        << absl::StrJoin(replicas, ",");
  }
}

TEST(DealtRounds, AreBatchesOfWholeTurnsWherePipeDream2bwUpdates) {
  const PipelineSchedule& of_batches = Schedule("pipedream-2bw");
  EXPECT_EQ(DealtUpdateEvery(Schedule("pipedream"), {3, 1}, 8), 1);
  EXPECT_EQ(DealtUpdateEvery(of_batches, {3, 1}, 8), 9);
  EXPECT_EQ(DealtUpdateEvery(of_batches, {3, 1}, 12), 12);
  EXPECT_EQ(DealtUpdateEvery(of_batches, {4, 3, 2}, 5), 12);  // 9 are under way
  EXPECT_EQ(UpdateEveryOfReplica(1, 3), 1);
  EXPECT_EQ(UpdateEveryOfReplica(12, 3), 4);
}

TEST(DealtRounds, CountMicrobatchesUntilAllStagesAreInStep) {
  EXPECT_EQ(MicrobatchesInRounds({}), 1);
  EXPECT_EQ(MicrobatchesInRounds({4, 6}), 12);
  EXPECT_EQ(MicrobatchesInRounds({65521, 65519, 65497, 65479, 65449}), int64_t{1} << 30);
  EXPECT_THAT(DealInTurn({1, 3}, 4), ElementsAre(ElementsAre(0, 0, 0, 0), ElementsAre(0, 1, 2, 0)));
}

TEST(DealtRounds, AreNotOfOtherAsynchronousSchedules) {
  for (const char* name : {"pipedream", "pipedream-2bw", "zb-h1"}) {
    EXPECT_TRUE(CheckDealtOnAndOn(Schedule(name)).ok()) << name;
  }
  EXPECT_EQ(AsInfeasible(CheckDealtOnAndOn(Schedule("ampnet")))->reason,
            InfeasibleReason::kUnsupported);
  EXPECT_FALSE(DealtOrders(Schedule("ampnet"), {{0, 1}, {0, 0}}).ok());
}

TEST(DealtRounds, ReplicasAreThoseOfThePlaces) {
  UnequalStages unequal;
  for (const int64_t dp : {3, 1}) {
    unequal.places.push_back(
        {.mesh = ir::Mesh({{.name = "dp", .size = dp}, {.name = "hp", .size = 2}}), .devices = {}});
  }
  EXPECT_TRUE(ReplicasOf(unequal).empty());
  unequal.replica_of = DealInTurn({3, 1}, 6);
  EXPECT_THAT(ReplicasOf(unequal), ElementsAre(3, 1));
}

}  // namespace
}  // namespace dealt_rounds_test_cc
}  // namespace orrery::transforms
