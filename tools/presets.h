#ifndef ORRERY_TOOLS_PRESETS_H_
#define ORRERY_TOOLS_PRESETS_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/plan/parallel_plan.h"

// Presets: flags that hold where nothing else is said.

namespace orrery::tools {

struct PresetFlag {
  absl::string_view flag;   // "cost-model"
  absl::string_view value;  // empty: a switch
  bool of_searches = false;
};

struct Preset {
  absl::string_view name;
  absl::string_view summary;
  std::span<const PresetFlag> flags;
};

/// All presets.
std::span<const Preset> AllPresets();

/// The preset of that name; InvalidArgument where there is none.
absl::StatusOr<const Preset*> FindPreset(absl::string_view name);

/// What --help says of --preset.
std::string PresetsHelp();

/// The flags of the preset as words of a command line: those that `wants` says yes to.
std::vector<std::string> PresetWords(const Preset& preset,
                                     const std::function<bool(const PresetFlag&)>& wants);

/// The plan that a preset stands for; of no preset, the default.
absl::StatusOr<transforms::ParallelPlan> PresetPlan(absl::string_view name);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PRESETS_H_
