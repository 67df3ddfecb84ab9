#include "transforms/schedules/schedule.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "support/names/near_names.h"
#include "support/status.h"
#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace schedule_cc {
namespace {

constexpr std::array kSchedules = {
#define ORRERY_SCHEDULE(Name, file) &k##Name##Schedule,
#include "transforms/schedules/schedules.def"
#undef ORRERY_SCHEDULE
};

constexpr int32_t kChunksUnlessSaid = 2;
constexpr int32_t kMostStages = 1 << 20;

}  // namespace
}  // namespace schedule_cc

std::span<const PipelineSchedule* const> AllSchedules() { return schedule_cc::kSchedules; }

absl::StatusOr<const PipelineSchedule*> FindSchedule(absl::string_view name) {
  for (const PipelineSchedule* schedule : schedule_cc::kSchedules) {
    if (schedule->name == name) return schedule;
  }
  std::vector<absl::string_view> names;
  for (const PipelineSchedule* schedule : schedule_cc::kSchedules) names.push_back(schedule->name);
  return absl::InvalidArgumentError(absl::StrCat("schedule '", name, "' is unknown; ",
                                                 WantedNames(name, names, "list-schedules")));
}

bool PipelineSchedule::MayBeOneStage(int32_t ranks) const {
  return ranks == 1 && given == nullptr && !runs_pairs && placement != StagePlacement::kTwoWay;
}

RankOrders PipelineSchedule::OrdersOf(const PipelineShape& shape) const {
  if (given != nullptr) return *given;
  if (shape.ranks > 1 || runs_pairs) return orders(shape);
  if (shape.chunks == 1 && chunks > 1) return OneForwardOneBackwardOrders(shape);
  RankOrders whole = orders(shape);
  JoinParts(whole, placement, shape);
  return whole;
}

PipelineShape PipelineSchedule::ShapeOf(int32_t ranks, int32_t microbatches,
                                        int32_t chunks_wanted) const {
  int32_t chosen = chunks;
  if (MayBeOneStage(ranks) && chunks_wanted <= 1) {
    chosen = 1;
  } else if (chosen == 0) {
    chosen = chunks_wanted > 0 ? chunks_wanted : schedule_cc::kChunksUnlessSaid;
  }
  return {.ranks = ranks, .microbatches = microbatches, .chunks = chosen};
}

absl::Status PipelineSchedule::CheckShape(const PipelineShape& shape) const {
  absl::Status status;
  if (shape.ranks < 1 || shape.microbatches < 1 || shape.chunks < 1) {
    status = NoSuchOrders(shape, "at least one of each");
  } else if (int64_t{shape.ranks} * shape.chunks > schedule_cc::kMostStages) {
    status = NoSuchOrders(shape, absl::StrCat("at most ", schedule_cc::kMostStages, " stages"));
  } else if (chunks != 0 && shape.chunks != chunks &&
             !(shape.chunks == 1 && MayBeOneStage(shape.ranks))) {
    status =
        NoSuchOrders(shape, absl::StrCat(chunks, chunks == 1 ? " chunk a rank" : " chunks a rank"));
  } else if (check != nullptr) {
    status = check(shape);
  }
  return Annotate(status, absl::StrCat("schedule ", name));
}

absl::Status NoSuchOrders(const PipelineShape& shape, absl::string_view wanted) {
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kSchedule,
       .detail = absl::StrCat(shape.ranks, " ranks, ", shape.microbatches, " microbatches, ",
                              shape.chunks, shape.chunks == 1 ? " chunk" : " chunks", "; wanted ",
                              wanted)});
}

int32_t OneWeightVersion(const PipelineShape&, int32_t) { return 1; }

int32_t RankOf(StagePlacement placement, const PipelineShape& shape, int32_t stage) {
  if (placement == StagePlacement::kLoop) return stage % shape.ranks;
  return stage < shape.ranks ? stage : 2 * shape.ranks - 1 - stage;
}

int32_t Pipelines(StagePlacement placement) { return placement == StagePlacement::kTwoWay ? 2 : 1; }

int32_t PipelineOf(StagePlacement placement, const PipelineShape& shape, int32_t microbatch) {
  if (placement != StagePlacement::kTwoWay) return 0;
  return microbatch < (shape.microbatches + 1) / 2 ? 0 : 1;
}

}  // namespace orrery::transforms
