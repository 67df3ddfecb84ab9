#ifndef ORRERY_TRANSFORMS_STAGES_DEALT_CHAIN_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_STAGES_DEALT_CHAIN_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "transforms/schedules/schedule.h"
#include "transforms/stages/dealt_orders.h"
#include "transforms/stages/dealt_rounds.h"

// For tests only.

namespace orrery::transforms {

/// A chain of layers in stages, sends of no length. By stage, in any unit.
struct DealtChain {
  std::vector<int64_t> replicas, forward, backward;
  std::vector<int64_t> all_reduce;   // of the gradients of a round
  std::vector<int64_t> update = {};  // of a replica; empty: none takes any time

  int64_t UpdateOf(size_t s) const { return update.empty() ? 0 : update[s]; }
};

/// Plays PipeDream's orders of a chain by hand: steps by slots, each when its replica is free and
/// what it needs is there, each update behind the backward that BackwardsBehind says.
class DealtChainPlayer {
 public:
  /// `chain` lives longer. A multiple of the replicas of each stage.
  DealtChainPlayer(const DealtChain& chain, int64_t microbatches)
      : chain_(chain), microbatches_(static_cast<size_t>(microbatches)) {
    const DealtMicrobatches replica_of = DealInTurn(chain.replicas, microbatches);
    const RankOrders orders = DealtOrders(**FindSchedule("pipedream"), replica_of).value();
    for (const auto& order : orders) steps_.insert(steps_.end(), order.begin(), order.end());
    std::ranges::stable_sort(steps_, {}, &ScheduleStep::slot);
    forward_.assign(chain.replicas.size() * microbatches_, 0);
    backward_ = forward_;
    for (const int64_t replicas : chain.replicas) {
      replicas_.emplace_back(static_cast<size_t>(replicas));
      sums_.emplace_back();
      done_.emplace_back();
    }
  }

  /// When the last update is over.
  int64_t Makespan() && {
    for (const ScheduleStep& step : steps_) Run(step);
    int64_t makespan = 0;
    for (size_t s = 0; s < replicas_.size(); ++s) {
      for (Replica& replica : replicas_[s]) {
        while (replica.updates < sums_[s].size()) Update(s, replica);
        makespan = std::max(makespan, replica.free);
      }
    }
    return makespan;
  }

 private:
  struct Replica {
    int64_t free = 0;
    size_t backwards = 0, updates = 0;
  };

  void Run(const ScheduleStep& step) {
    const auto s = static_cast<size_t>(step.stage), m = static_cast<size_t>(step.microbatch);
    Replica& replica = replicas_[s][m % replicas_[s].size()];
    const size_t here = s * microbatches_ + m;
    if (step.kind == StepKind::kForward) {
      const int64_t there = s == 0 ? 0 : forward_[here - microbatches_];
      forward_[here] = replica.free = std::max(replica.free, there) + chain_.forward[s];
      return;
    }
    const bool last = s + 1 == replicas_.size();
    const int64_t there = last ? forward_[here] : backward_[here + microbatches_];
    backward_[here] = replica.free = std::max(replica.free, there) + chain_.backward[s];
    EndRound(s, m / replicas_[s].size());
    const auto behind = static_cast<size_t>(BackwardsBehind(chain_.replicas[s]));
    if (++replica.backwards > behind) Update(s, replica);
  }

  void Update(size_t s, Replica& replica) {
    ASSERT_LT(replica.updates, sums_[s].size()) << "a sum that nobody has begun";
    replica.free = std::max(replica.free, sums_[s][replica.updates++]) + chain_.UpdateOf(s);
  }

  // One round after the other on a stage's links.
  void EndRound(size_t s, size_t round) {
    const size_t replicas = replicas_[s].size();
    done_[s].resize(std::max(done_[s].size(), round + 1), 0);
    if (++done_[s][round] < replicas) return;
    int64_t begin = sums_[s].empty() ? 0 : sums_[s].back();
    for (size_t r = 0; r < replicas; ++r) {
      begin = std::max(begin, backward_[s * microbatches_ + round * replicas + r]);
    }
    EXPECT_EQ(sums_[s].size(), round);
    sums_[s].push_back(begin + (replicas > 1 ? chain_.all_reduce[s] : 0));
  }

  const DealtChain& chain_;
  const size_t microbatches_;
  std::vector<ScheduleStep> steps_;
  std::vector<int64_t> forward_, backward_;     // ends, by stage, then microbatch
  std::vector<std::vector<Replica>> replicas_;  // by stage
  std::vector<std::vector<int64_t>> sums_;      // ends, by stage and round
  std::vector<std::vector<size_t>> done_;       // replicas, by stage and round
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_DEALT_CHAIN_TEST_UTIL_H_
