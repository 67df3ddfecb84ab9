#include "tools/searches/space_flags.h"

#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "tools/presets.h"
#include "tools/validation/software_stack.h"

namespace orrery::tools {
namespace space_flags_cc {
namespace {

// Nothing: any.
absl::StatusOr<std::optional<int32_t>> ParseStaleness(absl::string_view text) {
  if (text.empty()) return std::nullopt;
  int32_t updates = 0;
  if (absl::SimpleAtoi(text, &updates) && updates >= 0) return updates;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted a number of updates, 0 or more"));
}

}  // namespace
}  // namespace space_flags_cc

void AddSpaceFlags(boost::program_options::options_description& options, SpaceFlags& flags) {
  namespace po = boost::program_options;
  options.add_options()(
      "space", po::value(&flags.space),
      "what a search tries that leaves degrees open: default, what people train with, or full, all "
      "that applies to the model [default]")("stack", po::value(&flags.stack), StackHelp().c_str())(
      "cuda-graphs", po::bool_switch(&flags.cuda_graphs),
      "forward and backward are captured graphs: the host launches none of their kernels")(
      "no-skip", po::bool_switch(&flags.no_skip),
      "play all microbatches, also where their steady state says what they come to")(
      "max-staleness", po::value(&flags.max_staleness),
      "leave out plans of asynchronous schedules whose gradients are late by more updates than "
      "that "
      "[any]");
}

absl::StatusOr<search::Space> SpaceOf(const SpaceFlags& flags) {
  ORRERY_ASSIGN_OR_RETURN(const search::ParallelPlan preset, PresetPlan(flags.model.preset));
  ORRERY_ASSIGN_OR_RETURN(search::Space space, ReadSpace(flags.axes, preset));
  if (flags.space == "full") {
    space.TakeAll();
  } else if (flags.space != "default") {
    return absl::InvalidArgumentError(
        absl::StrCat("--space '", flags.space, "': wanted default or full"));
  } else if (flags.model.preset.empty()) {
    space.SaveMemory();
  }
  return space;
}

absl::StatusOr<search::Setting> SettingOf(const SpaceFlags& flags, const ModelFlags& model,
                                          const search::ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(model, plan));
  ORRERY_RETURN_IF_ERROR(
      Annotate(SetStack(flags.stack, StackUseOf(setting.step), setting.lowering), "--stack"));
  if (flags.cuda_graphs) CaptureGraphs(setting.lowering);
  setting.plays_all = flags.no_skip;
  ORRERY_ASSIGN_OR_RETURN(
      setting.most_staleness,
      Annotated(space_flags_cc::ParseStaleness(flags.max_staleness), "--max-staleness"));
  return setting;
}

}  // namespace orrery::tools
