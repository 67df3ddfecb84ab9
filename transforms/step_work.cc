#include "transforms/step_work.h"

#include <string>
#include <utility>

#include "ir/model_facts.h"
#include "support/status.h"

namespace orrery::transforms {

#define ORRERY_STEP_STAGE(Name, file) extern const StepStage k##Name##StepStage;
#include "transforms/step_stages.def"
#undef ORRERY_STEP_STAGE

namespace step_work_cc {
namespace {

// The order of the checks is that of the list; of several that fail the first one is told.
constexpr const StepStage* kStages[] = {
#define ORRERY_STEP_STAGE(Name, file) &k##Name##StepStage,
#include "transforms/step_stages.def"
#undef ORRERY_STEP_STAGE
};

}  // namespace
}  // namespace step_work_cc

std::vector<ir::Function> StepWork::Functions() const {
  if (step.has_value()) return step->Functions();
  return {last()};
}

std::span<const StepStage* const> AllStepStages() { return step_work_cc::kStages; }

absl::Status CheckStep(const StepWork& work) {
  for (const auto asks : {&StepStage::check, &StepStage::divides}) {
    for (const StepStage* stage : AllStepStages()) {
      if (stage->*asks != nullptr) ORRERY_RETURN_IF_ERROR((stage->*asks)(work));
    }
  }
  return absl::OkStatus();
}

// A slice of average length in the middle: what it takes is what slices take on average, whatever
// length they have.
SliceRange DecidedOn(const ir::Function& whole, const PlanContext& context) {
  if (context.decided_on.rows > 0) return context.decided_on;
  const int64_t count = std::ssize(context.slices);
  const int64_t rows = ir::SequenceLength(whole) / count;
  return {.begin = count / 2 * rows, .rows = rows};
}

ZeroOptions ZeroOf(const ParallelPlan& plan) {
  if (plan.zero == 0) return {};
  return {.stage = plan.zero, .group = plan.zero_group, .prefetch = plan.prefetch};
}

bool GathersAgain(const StepWork& work) {
  const bool split = work.plan.sequence_parallel == SequenceParallel::kOn;
  return work.context.prices != nullptr && work.context.alternative.gathers.value_or(split);
}

absl::Status Unsupported(std::string detail) {
  return InfeasibleStatus({.reason = InfeasibleReason::kUnsupported, .detail = std::move(detail)});
}

absl::Status AsFeasible(const absl::Status& status) {
  if (status.ok() || AsInfeasible(status).has_value()) return status;
  return Unsupported(std::string(status.message()));
}

absl::StatusOr<ir::Function> AsFeasible(absl::StatusOr<ir::Function> function) {
  if (function.ok()) return function;
  return AsFeasible(function.status());
}

}  // namespace orrery::transforms
