#include "transforms/stages/dealt_rounds.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/schedules/registry.h"

namespace orrery::transforms {

std::vector<int64_t> ReplicasOf(const UnequalStages& unequal) {
  std::vector<int64_t> replicas;
  if (!unequal.dealt()) return replicas;
  for (const StagePlace& place : unequal.places) {
    const auto dp = place.mesh.Find("dp");
    replicas.push_back(dp.has_value() ? place.mesh.size(*dp) : 1);
  }
  return replicas;
}

absl::Status CheckDealtOnAndOn(const PipelineSchedule& schedule) {
  const bool updates_together = schedule.microbatches_an_update == nullptr || schedule.one_age;
  if (!schedule.asynchronous ||
      (schedule.orders == OneForwardOneBackwardOrders && updates_together)) {
    return absl::OkStatus();
  }
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kUnsupported,
       .detail = absl::StrCat("`schedule` ", schedule.name,
                              " for microbatches that are dealt to replicas; wanted pipedream, "
                              "pipedream-2bw, or a synchronous one, such as 1f1b")});
}

DealtMicrobatches DealInTurn(const std::vector<int64_t>& replicas, int64_t microbatches) {
  DealtMicrobatches replica_of;
  for (const int64_t of_stage : replicas) {
    std::vector<int32_t>& row = replica_of.emplace_back();
    for (int64_t m = 0; m < microbatches; ++m) row.push_back(static_cast<int32_t>(m % of_stage));
  }
  return replica_of;
}

int64_t MicrobatchesInRounds(const std::vector<int64_t>& replicas) {
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t all = 1;
  for (const int64_t of_stage : replicas) all = std::min(kMost, std::lcm(all, of_stage));
  return all;
}

int64_t DealtUpdateEvery(const PipelineSchedule& schedule, const std::vector<int64_t>& replicas,
                         int64_t microbatches) {
  if (schedule.microbatches_an_update == nullptr) return 1;
  const int64_t under_way = std::accumulate(replicas.begin(), replicas.end(), int64_t{0});
  const int64_t every =
      schedule.microbatches_an_update({.ranks = static_cast<int32_t>(under_way),
                                       .microbatches = static_cast<int32_t>(microbatches)});
  const int64_t rounds = MicrobatchesInRounds(replicas);
  return (every + rounds - 1) / rounds * rounds;
}

int64_t UpdateEveryOfReplica(int64_t every, int64_t replicas) {
  return every == 1 ? 1 : every / replicas;
}

int64_t BackwardsBehind(int64_t replicas) { return replicas > 1 ? 1 : 0; }

int32_t DealtWeightVersions(const PipelineSchedule& schedule, const std::vector<int64_t>& replicas,
                            int32_t stage) {
  if (!schedule.asynchronous) return 1;
  if (schedule.microbatches_an_update != nullptr) {
    return schedule.weight_versions({.ranks = static_cast<int32_t>(replicas.size())}, stage);
  }
  return static_cast<int32_t>(UnderWay(replicas)[static_cast<size_t>(stage)]);
}

std::vector<int32_t> DealtStaleness(const RankOrders& orders, const std::vector<int64_t>& replicas,
                                    int64_t every) {
  std::vector<int32_t> stalest(replicas.size(), 0);
  for (const auto& order : orders) {
    std::map<int32_t, int64_t> updates_before;  // the forward of each microbatch
    int64_t backwards = 0;
    for (const ScheduleStep& step : order) {
      const auto stage = static_cast<size_t>(step.stage);
      const int64_t own = UpdateEveryOfReplica(every, replicas[stage]);
      if (step.kind == StepKind::kForward) {
        const int64_t behind = backwards - BackwardsBehind(replicas[stage]);
        updates_before[step.microbatch] = std::max<int64_t>(0, behind) / own;
        continue;
      }
      const int64_t late = backwards++ / own - updates_before[step.microbatch];
      stalest[stage] = std::max(stalest[stage], static_cast<int32_t>(late));
    }
  }
  return stalest;
}

}  // namespace orrery::transforms
