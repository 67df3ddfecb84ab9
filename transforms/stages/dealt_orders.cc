#include "transforms/stages/dealt_orders.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/schedules/registry.h"
#include "transforms/stages/dealt_rounds.h"

namespace orrery::transforms {
namespace dealt_orders_cc {
namespace {

using Order = std::vector<ScheduleStep>;

size_t At(int32_t number) { return static_cast<size_t>(number); }

int32_t ReplicasIn(const std::vector<int32_t>& replica_of) {
  return 1 + *std::ranges::max_element(replica_of);
}

std::vector<int32_t> MicrobatchesOf(const std::vector<int32_t>& replica_of, int32_t replica) {
  std::vector<int32_t> microbatches;
  for (size_t m = 0; m < replica_of.size(); ++m) {
    if (replica_of[m] == replica) microbatches.push_back(static_cast<int32_t>(m));
  }
  return microbatches;
}

// Replicas of one number, of stages that deal alike.
absl::StatusOr<RankOrders> OrdersOfColumn(const PipelineSchedule& schedule, size_t stages,
                                          const std::vector<int32_t>& microbatches) {
  const PipelineShape shape =
      schedule.ShapeOf(static_cast<int32_t>(stages), static_cast<int32_t>(microbatches.size()), 1);
  ORRERY_RETURN_IF_ERROR(schedule.CheckShape(shape));
  RankOrders orders = schedule.OrdersOf(shape);
  for (Order& order : orders) {
    for (ScheduleStep& step : order) {
      ORRERY_CHECK(At(step.microbatch) < microbatches.size()) << "orders of other microbatches";
      step.microbatch = microbatches[At(step.microbatch)];
    }
  }
  return orders;
}

Order OrderOfReplica(int32_t stage, const std::vector<int32_t>& microbatches, int64_t under_way) {
  const auto count = std::ssize(microbatches);
  const int64_t warm_up = std::min<int64_t>(under_way - 1, count);
  Order order;
  for (int64_t forward = 0; forward < count + warm_up; ++forward) {
    const auto add = [&](StepKind kind, int64_t number) {
      order.push_back(
          {.kind = kind, .stage = stage, .microbatch = microbatches[static_cast<size_t>(number)]});
    };
    if (forward < count) add(StepKind::kForward, forward);
    if (forward >= warm_up) add(StepKind::kBackward, forward - warm_up);
  }
  return order;
}

// Runs orders in unit times. Where all replicas wait for each other, those that have a step further
// on that need not wait run that first. With `rounds` no replica begins a backward before all of
// its stage have run as many: so sums of gradients are there before what comes behind them.
class SlotAssigner {
 public:
  SlotAssigner(RankOrders& orders, size_t stages, size_t microbatches, bool rounds)
      : orders_(orders),
        stages_(stages),
        microbatches_(microbatches),
        rounds_(rounds),
        next_(orders.size(), 0),
        backwards_(orders.size(), 0),
        forward_(stages * microbatches, kNotYet),
        backward_(stages * microbatches, kNotYet) {}

  void Run() && {
    for (int32_t slot = 0; !Done(); ++slot) {
      if (RunSlot(slot)) continue;
      ORRERY_CHECK(!rounds_ && Repair(slot)) << "no order of replicas goes on";
      RunSlot(slot);
    }
  }

 private:
  static constexpr int32_t kNotYet = -1;

  bool Done() const {
    for (size_t r = 0; r < orders_.size(); ++r) {
      if (next_[r] < orders_[r].size()) return false;
    }
    return true;
  }

  static bool Before(int32_t done, int32_t slot) { return done != kNotYet && done < slot; }

  bool IsReady(const ScheduleStep& step, int32_t slot) const {
    const size_t here = Place(step);
    if (step.kind == StepKind::kForward) {
      return step.stage == 0 || Before(forward_[here - microbatches_], slot);
    }
    if (!Before(forward_[here], slot)) return false;
    return At(step.stage) + 1 == stages_ || Before(backward_[here + microbatches_], slot);
  }

  size_t Place(const ScheduleStep& step) const {
    return At(step.stage) * microbatches_ + At(step.microbatch);
  }

  // Whether those beside replica r are done with the rounds before its next.
  bool InRound(size_t r, const std::vector<int64_t>& before) const {
    const int32_t stage = orders_[r].front().stage;
    for (size_t other = 0; other < orders_.size(); ++other) {
      if (orders_[other].empty() || orders_[other].front().stage != stage) continue;
      const auto all = static_cast<int64_t>(orders_[other].size() / 2);
      if (before[other] < std::min(backwards_[r], all)) return false;
    }
    return true;
  }

  bool RunSlot(int32_t slot) {
    bool any = false;
    const std::vector<int64_t> before = backwards_;
    for (size_t r = 0; r < orders_.size(); ++r) {
      if (next_[r] == orders_[r].size()) continue;
      ScheduleStep& step = orders_[r][next_[r]];
      if (!IsReady(step, slot)) continue;
      if (rounds_ && step.kind == StepKind::kBackward && !InRound(r, before)) continue;
      backwards_[r] += step.kind == StepKind::kBackward ? 1 : 0;
      step.slot = slot;
      (step.kind == StepKind::kForward ? forward_ : backward_)[Place(step)] = slot;
      ++next_[r];
      any = true;
    }
    return any;
  }

  bool Repair(int32_t slot) {
    bool any = false;
    for (size_t r = 0; r < orders_.size(); ++r) {
      const auto begin = orders_[r].begin() + static_cast<std::ptrdiff_t>(next_[r]);
      const auto ready = std::find_if(
          begin, orders_[r].end(), [&](const ScheduleStep& step) { return IsReady(step, slot); });
      if (ready == orders_[r].end()) continue;
      std::rotate(begin, ready, ready + 1);
      any = true;
    }
    return any;
  }

  RankOrders& orders_;
  const size_t stages_, microbatches_;
  const bool rounds_;
  std::vector<size_t> next_;
  std::vector<int64_t> backwards_;           // that have run, by replica
  std::vector<int32_t> forward_, backward_;  // slots, by stage, then microbatch
};

absl::StatusOr<RankOrders> UnequalOrders(const PipelineSchedule& schedule,
                                         const DealtMicrobatches& replica_of) {
  const bool forwards_first = schedule.name == "gpipe";
  if (schedule.orders != OneForwardOneBackwardOrders && !forwards_first) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kSchedule,
         .detail = absl::StrCat("schedule ", schedule.name,
                                " has no orders for stages with their own numbers of replicas; "
                                "wanted 1f1b, gpipe or pipedream")});
  }
  std::vector<int64_t> replicas;
  for (const auto& row : replica_of) replicas.push_back(ReplicasIn(row));
  const std::vector<int64_t> under_way = UnderWay(replicas);
  const auto microbatches = static_cast<int64_t>(replica_of.front().size());
  RankOrders orders;
  for (size_t s = 0; s < replica_of.size(); ++s) {
    for (int32_t r = 0; r < replicas[s]; ++r) {
      orders.push_back(OrderOfReplica(static_cast<int32_t>(s), MicrobatchesOf(replica_of[s], r),
                                      forwards_first ? microbatches + 1 : under_way[s]));
    }
  }
  SlotAssigner(orders, replica_of.size(), replica_of.front().size(), schedule.asynchronous).Run();
  return orders;
}

}  // namespace
}  // namespace dealt_orders_cc

std::vector<int32_t> DealInShares(const std::vector<int64_t>& shares) {
  const int64_t count = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  ORRERY_CHECK(count > 0 && std::ranges::min(shares) >= 0) << "shares of " << count;
  std::vector<int32_t> replica_of;
  std::vector<int64_t> dealt(shares.size(), 0);
  for (int64_t m = 0; m < count; ++m) {
    size_t next = 0;
    bool found = false;
    // Whose next one is due first: (dealt + 1) / share.
    for (size_t r = 0; r < shares.size(); ++r) {
      if (dealt[r] == shares[r]) continue;
      if (found && (dealt[r] + 1) * shares[next] >= (dealt[next] + 1) * shares[r]) continue;
      next = r;
      found = true;
    }
    ++dealt[next];
    replica_of.push_back(static_cast<int32_t>(next));
  }
  return replica_of;
}

int64_t MostDealt(const std::vector<int32_t>& replica_of) {
  std::vector<int64_t> dealt;
  for (const int32_t replica : replica_of) {
    dealt.resize(std::max(dealt.size(), dealt_orders_cc::At(replica) + 1));
    ++dealt[dealt_orders_cc::At(replica)];
  }
  return dealt.empty() ? 0 : std::ranges::max(dealt);
}

std::vector<int64_t> UnderWay(const std::vector<int64_t>& replicas) {
  std::vector<int64_t> under_way(replicas.size());
  int64_t sum = 0;
  for (size_t s = replicas.size(); s-- > 0;) {
    sum += replicas[s];
    under_way[s] = (sum + replicas[s] - 1) / replicas[s];
  }
  return under_way;
}

absl::StatusOr<RankOrders> DealtOrders(const PipelineSchedule& schedule,
                                       const DealtMicrobatches& replica_of) {
  ORRERY_RETURN_IF_ERROR(CheckDealtOnAndOn(schedule));
  const auto& first = replica_of.front();
  const auto same = [&](const auto& row) { return row == first; };
  if (!std::ranges::all_of(replica_of, same)) {
    return dealt_orders_cc::UnequalOrders(schedule, replica_of);
  }
  RankOrders orders;
  for (int32_t r = 0; r < dealt_orders_cc::ReplicasIn(first); ++r) {
    const std::vector<int32_t> microbatches = dealt_orders_cc::MicrobatchesOf(first, r);
    if (microbatches.empty()) continue;
    ORRERY_ASSIGN_OR_RETURN(RankOrders column, dealt_orders_cc::OrdersOfColumn(
                                                   schedule, replica_of.size(), microbatches));
    for (auto& order : column) orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace orrery::transforms
