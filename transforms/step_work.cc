#include "transforms/step_work.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "ir/model_facts.h"
#include "support/status.h"
#include "transforms/sharding/sharding_memo.h"

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

std::string KeyOf(absl::string_view text) { return absl::StrCat(text.size(), ":", text); }

namespace step_work_cc {
namespace {

std::string PlacesText(const ir::Mesh& mesh, bool all) {
  std::string text;
  for (ir::AxisIndex a = 0; a < mesh.axes().size(); ++a) {
    const ir::Axis& axis = mesh.axes()[a];
    absl::StrAppend(&text, text.empty() ? "" : " ", axis.name);
    if (all || axis.name != "pp") absl::StrAppend(&text, "=", axis.size, "*", mesh.stride(a));
  }
  return text;
}

}  // namespace
}  // namespace step_work_cc

std::string PlacesInStage(const ir::Mesh& mesh) {
  return step_work_cc::PlacesText(mesh, /*all=*/false);
}
std::string Places(const ir::Mesh& mesh) { return step_work_cc::PlacesText(mesh, /*all=*/true); }

uint64_t NumberOfAll(const ir::Function& function) {
  size_t number = absl::HashOf(NumberOf(function), function.name());
  for (const ir::Axis& axis : function.mesh().axes()) {
    number = absl::HashOf(number, axis.name, axis.name == "pp" ? 0 : axis.size);
  }
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    number = absl::HashOf(number, function.value_name(ir::ValueId(v)));
  }
  for (const ir::Input& input : function.inputs()) {
    number = absl::HashOf(number, input.value, input.role, function.type(input.value));
  }
  for (const ir::Output& output : function.outputs()) {
    number = absl::HashOf(number, output.value, output.role, output.of);
  }
  return number;
}

uint64_t NumberOf(const absl::Status& status) {
  return absl::HashOf(status.code(), status.ToString());
}

absl::StatusOr<std::shared_ptr<const ir::Function>> SharedFunction(
    const StepWork& work, absl::string_view kind,
    const std::function<absl::StatusOr<ir::Function>()>& make) {
  const auto made = [&]() -> FunctionPart {
    absl::StatusOr<ir::Function> function = make();
    if (!function.ok()) return {function.status()};
    return {std::make_shared<const ir::Function>(*std::move(function))};
  };
  if (work.key.empty()) return made().function;
  return work.context.parts.store->FindOrMake<FunctionPart>(kind, work.key, made)->function;
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

int64_t ZeroGroupOf(const ParallelPlan& plan) {
  if (plan.zero == 0) return 1;
  return plan.zero_group > 0 ? std::min(plan.zero_group, plan.dp) : plan.dp;
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
