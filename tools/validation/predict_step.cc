#include "tools/validation/predict_step.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/evaluate.h"
#include "support/flag_names.h"
#include "support/status.h"
#include "tools/validation/rows/step_setup.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/axis.h"

namespace orrery::tools {
namespace predict_step_cc {
namespace {

absl::StatusOr<StepSetup> SetupOf(const MeasuredStep& step, absl::string_view cost_model) {
  ORRERY_ASSIGN_OR_RETURN(StepSetup setup, tools::SetupOf(step));
  setup.flags.cost_model = std::string(cost_model);
  return setup;
}

absl::StatusOr<search::Setting> SettingOf(const StepSetup& setup, const FittedFigures& figures) {
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(setup.flags, setup.plan));
  ORRERY_ASSIGN_OR_RETURN(const SoftwareStack stack, FindStack(setup.stack, figures));
  Apply(figures, setting.cluster);
  SetStack(stack, StackUseOf(setting.step), setting.lowering);
  if (setup.graphs) CaptureGraphs(setting.lowering);
  if (setup.mixture.sends_tokens_once) SendTokensOnce(setting.lowering);
  setting.lowering.kernels.overlaps_experts |= setup.mixture.overlaps_experts;
  if (setup.attention_in_8_bits) {
    setting.lowering.kernels.choice.attention = cost_models::AttentionClass::kCudnn8;
  }
  return setting;
}

absl::Status Predict(const StepSetup& setup, const FittedFigures& figures, StepWay* way,
                     PredictedStep& predicted) {
  ORRERY_ASSIGN_OR_RETURN(const search::Setting setting, SettingOf(setup, figures));
  ORRERY_ASSIGN_OR_RETURN(search::Run run, search::Play(setting, setup.plan));
  predicted.features = FeaturesOf(setting, setup.plan, setup.stack);
  predicted.seconds = run.report.step_time.seconds();
  predicted.bytes = static_cast<double>(run.report.peak_memory.count());
  if (way != nullptr) {
    *way = std::make_unique<const transforms::PipelinedStep>(std::move(run.pipelined));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace predict_step_cc

PredictedStep Predict(const MeasuredStep& step, absl::string_view cost_model,
                      const FittedFigures* figures, StepWay* way) {
  PredictedStep predicted = {.step = step};
  const absl::StatusOr<StepSetup> setup = predict_step_cc::SetupOf(step, cost_model);
  const absl::Status status =
      setup.ok() ? predict_step_cc::Predict(*setup, figures == nullptr ? FittedFigures() : *figures,
                                            way, predicted)
                 : setup.status();
  if (status.ok()) return predicted;
  const auto infeasible = AsInfeasible(status);
  const std::string why = infeasible.has_value()
                              ? absl::StrCat(ToString(infeasible->reason), ": ", infeasible->detail)
                              : std::string(status.message());
  predicted.skipped =
      SpellFlags(why, [](absl::string_view name) { return transforms::FindAxis(name) != nullptr; });
  return predicted;
}

absl::StatusOr<double> PredictAgain(const MeasuredStep& step, absl::string_view cost_model,
                                    const FittedFigures& figures,
                                    const transforms::PipelinedStep& way) {
  ORRERY_ASSIGN_OR_RETURN(const StepSetup setup, predict_step_cc::SetupOf(step, cost_model));
  ORRERY_ASSIGN_OR_RETURN(const search::Setting setting,
                          predict_step_cc::SettingOf(setup, figures));
  ORRERY_ASSIGN_OR_RETURN(const Duration time, search::StepTimeOf(setting, setup.plan, way));
  return time.seconds();
}

}  // namespace orrery::tools
