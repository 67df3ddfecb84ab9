#include "transforms/schedules/step_player.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "transforms/schedules/text.h"

namespace orrery::transforms {
namespace step_player_cc {
namespace {

constexpr int64_t kNotYet = -1;

ScheduleStep Forward(int32_t stage, int32_t microbatch) {
  return {.kind = StepKind::kForward, .stage = stage, .microbatch = microbatch};
}

ScheduleStep InputGradient(int32_t stage, int32_t microbatch) {
  return {.kind = StepKind::kInputGradient, .stage = stage, .microbatch = microbatch};
}

}  // namespace
}  // namespace step_player_cc

StepNeeds::StepNeeds(StagePlacement placement, const PipelineShape& shape)
    : depth_(shape.stages() / Pipelines(placement)) {}

StepNeeds::Needs StepNeeds::Of(const ScheduleStep& step) const {
  const int32_t position = step.stage % depth_;
  Needs needs;
  const auto add = [&](const ScheduleStep& need) {
    needs.steps[static_cast<size_t>(needs.count++)] = need;
  };
  if (step.kind == StepKind::kWeightGradient) {
    add(step_player_cc::InputGradient(step.stage, step.microbatch));
  } else if (step.kind == StepKind::kForward) {
    if (position > 0) add(step_player_cc::Forward(step.stage - 1, step.microbatch));
  } else {
    if (position + 1 < depth_) add(step_player_cc::InputGradient(step.stage + 1, step.microbatch));
    add(step_player_cc::Forward(step.stage, step.microbatch));
  }
  return needs;
}

ScheduleStep AsOrdered(const RankOrders& orders, const ScheduleStep& need) {
  if (need.kind != StepKind::kInputGradient) return need;
  for (const auto& order : orders) {
    for (const ScheduleStep& step : order) {
      const bool is_need = step.kind == need.kind && step.stage == need.stage;
      if (is_need && step.microbatch == need.microbatch) return need;
    }
  }
  return {.kind = StepKind::kBackward, .stage = need.stage, .microbatch = need.microbatch};
}

StepPlayer::StepPlayer(const RankOrders& orders, StagePlacement placement,
                       const PipelineShape& shape, const StepLengths& lengths)
    : orders_(orders),
      placement_(placement),
      shape_(shape),
      lengths_(lengths),
      needs_(placement, shape),
      finish_(shape, step_player_cc::kNotYet),
      next_(orders.size(), 0),
      free_(orders.size(), 0) {
  for (const auto& order : orders) times_.emplace_back(order.size());
  std::vector<size_t> awake(orders.size());
  std::iota(awake.rbegin(), awake.rend(), 0);
  // Every placement has neighbouring stages on neighbouring ranks. A rank wakes those of its own
  // only when it got on, so there are at most two visits a step.
  while (!awake.empty()) {
    const size_t rank = awake.back();
    awake.pop_back();
    if (!Run(rank) || orders.size() == 1) continue;
    awake.push_back((rank + orders.size() - 1) % orders.size());
    awake.push_back((rank + 1) % orders.size());
  }
}

std::optional<int64_t> StepPlayer::ReadyAt(size_t rank, const ScheduleStep& step) const {
  int64_t ready = 0;
  for (const ScheduleStep& need : needs_.Of(step)) {
    const int64_t finish = finish_[need];
    if (finish == step_player_cc::kNotYet) return std::nullopt;
    const bool here = RankOf(placement_, shape_, need.stage) == static_cast<int32_t>(rank);
    ready = std::max(ready, finish + (here ? 0 : lengths_.send));
  }
  return ready;
}

const ScheduleStep* StepPlayer::PartnerOf(size_t rank, size_t position) const {
  const auto& order = orders_[rank];
  const bool has = lengths_.pairs_wait && order[position].with_next && position + 1 < order.size();
  return has ? &order[position + 1] : nullptr;
}

std::optional<int64_t> StepPlayer::StartOfNext(size_t rank) const {
  const size_t next = next_[rank];
  std::optional<int64_t> ready = ReadyAt(rank, orders_[rank][next]);
  if (const ScheduleStep* partner = PartnerOf(rank, next);
      ready.has_value() && partner != nullptr) {
    const std::optional<int64_t> both = ReadyAt(rank, *partner);
    ready = both.has_value() ? std::optional(std::max(*ready, *both)) : both;
  }
  if (ready.has_value()) ready = std::max(*ready, free_[rank]);
  return ready;
}

bool StepPlayer::Run(size_t rank) {
  const size_t first = next_[rank];
  const auto& order = orders_[rank];
  for (size_t& next = next_[rank]; next < order.size(); ++next) {
    const std::optional<int64_t> start = StartOfNext(rank);
    if (!start.has_value()) break;
    const int64_t length = lengths_.of_kind[static_cast<size_t>(order[next].kind)];
    times_[rank][next] = {.start = *start, .finish = *start + length};
    free_[rank] = finish_[order[next]] = *start + length;
  }
  return next_[rank] > first;
}

std::optional<StepPlayer::Blocked> StepPlayer::BlockedOn(size_t rank) const {
  if (next_[rank] == orders_[rank].size()) return std::nullopt;
  const ScheduleStep& next = orders_[rank][next_[rank]];
  for (const ScheduleStep* step : {&next, PartnerOf(rank, next_[rank])}) {
    if (step == nullptr) continue;
    for (const ScheduleStep& need : needs_.Of(*step)) {
      if (finish_[need] == step_player_cc::kNotYet) return Blocked{.step = *step, .need = need};
    }
  }
  return std::nullopt;
}

std::string StepPlayer::Deadlock() const {
  size_t rank = 0;
  while (rank < orders_.size() && !BlockedOn(rank).has_value()) ++rank;
  if (rank == orders_.size()) return "";
  // From who waits to whom it waits for, until one comes again: that is the cycle.
  std::vector<size_t> path;
  while (std::find(path.begin(), path.end(), rank) == path.end()) {
    path.push_back(rank);
    const ScheduleStep need = BlockedOn(rank)->need;
    rank = static_cast<size_t>(RankOf(placement_, shape_, need.stage));
    if (BlockedOn(rank).has_value()) continue;
    return absl::StrCat(StepName(AsOrdered(orders_, need)),
                        " never runs");  // what orders lack, others wait for
  }
  std::string text;
  for (auto at = std::find(path.begin(), path.end(), rank); at != path.end(); ++at) {
    const Blocked blocked = *BlockedOn(*at);
    absl::StrAppend(&text, text.empty() ? "" : "; ", "rank ", *at, " waits in ",
                    StepName(blocked.step), " for ", StepName(AsOrdered(orders_, blocked.need)));
  }
  return text;
}

}  // namespace orrery::transforms
