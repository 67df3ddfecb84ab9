#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/memory/zero.h"
#include "transforms/step_work.h"

// ZeRO: its groups are axes before the step is cut, its shards come after.

namespace orrery::transforms {
namespace zero_work_cc {
namespace {

absl::Status CheckGroups(const StepWork& work) {
  const ZeroOptions zero = ZeroOf(work.plan);
  ORRERY_RETURN_IF_ERROR(CheckZero(zero));
  if (zero.stage > 0 && work.context.updates_each_microbatch) {
    return Unsupported(absl::StrCat("ZeRO's stage ", zero.stage,
                                    " with a schedule that keeps several versions of the weights; "
                                    "wanted a synchronous one, such as 1f1b"));
  }
  if (zero.group == 0 || work.plan.dp % zero.group == 0) return absl::OkStatus();
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kDivisibility,
       .detail = absl::StrCat("dp=", work.plan.dp, " does not divide into groups of ", zero.group,
                              " ranks that share parameters")});
}

bool HasGroups(const StepWork& work) {
  const int64_t group = ZeroOf(work.plan).group;
  return work.sharded != nullptr && group > 0 && group < work.plan.dp;
}

absl::Status SplitGroups(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(
      work.sharded, SharedFunction(work, "zero-groups", [&]() -> absl::StatusOr<ir::Function> {
        return SplitAxis(*work.sharded,
                         {.axis = "dp", .inner = kZeroAxis, .size = ZeroOf(work.plan).group});
      }));
  work.mesh = work.sharded->mesh();
  if (work.context.stages.prices != nullptr) {
    work.prices.emplace(*work.context.stages.prices, work.mesh.Find(kZeroAxis).value());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace zero_work_cc

extern const StepStage kZeroGroupsStepStage = {
    .name = "zero-groups",
    .summary = "dp becomes two axes, where only neighbouring ranks shard together",
    .applies = zero_work_cc::HasGroups,
    .check = zero_work_cc::CheckGroups,
    .run = zero_work_cc::SplitGroups,
    .reads =
        [](const StepWork& work) {
          return absl::StrCat(ZeroOf(work.plan).group, " on ", Places(work.mesh));
        },
};

extern const StepStage kZeroStepStage = {
    .name = "zero",
    .summary = "shards of state, gradients and parameters, with their gathers and scatters",
    .applies = [](const StepWork& work) { return work.plan.zero > 0; },
    .run = [](StepWork& work) { return ApplyZero(ZeroOf(work.plan), *work.step); },
    .reads =
        [](const StepWork& work) {
          const ZeroOptions zero = ZeroOf(work.plan);
          return absl::StrCat(zero.stage, " ", zero.group, " ", zero.prefetch);
        },
};

}  // namespace orrery::transforms
