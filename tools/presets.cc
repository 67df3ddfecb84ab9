#include "tools/presets.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/names/near_names.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace presets_cc {
namespace {

// DistIR: every op as it is written, one stream a rank, one loss,
// its own order of ranks and numbers of microbatches.
constexpr PresetFlag kDistir[] = {{"cost-model", "distir"},
                                  {"optimizer", "sgd"},
                                  {"loss", "mse"},
                                  {"no-simplify", ""},
                                  {"memory-limit", "none"},
                                  {"schedule", "distir"},
                                  {"sharding", "distir"},
                                  {"stages-by", "distir"},
                                  {"order", "pp,hp,dp"},
                                  {"blocking", ""},
                                  {"micro-batches", "distir", true}};

constexpr Preset kPresets[] = {
    {"distir",
     "cost model distir, blocking, schedule distir, sgd, mean squared error, ops as written, no "
     "memory limit, order pp,hp,dp, column and row products along hp",
     kDistir}};

std::string Names() {
  return absl::StrJoin(kPresets, ", ", [](std::string* out, const Preset& preset) {
    absl::StrAppend(out, preset.name);
  });
}

}  // namespace
}  // namespace presets_cc

std::span<const Preset> AllPresets() { return presets_cc::kPresets; }

absl::StatusOr<const Preset*> FindPreset(absl::string_view name) {
  for (const Preset& preset : presets_cc::kPresets) {
    if (preset.name == name) return &preset;
  }
  std::vector<absl::string_view> names;
  for (const Preset& preset : presets_cc::kPresets) names.push_back(preset.name);
  const std::string all = absl::StrCat("wanted ", presets_cc::Names());
  return absl::InvalidArgumentError(
      absl::StrCat("--preset '", name, "': ", WantedNames(name, names, /*lister=*/"", all)));
}

std::string PresetsHelp() {
  return absl::StrJoin(presets_cc::kPresets, "; ", [](std::string* out, const Preset& preset) {
    absl::StrAppend(out, preset.name, ": ", preset.summary);
  });
}

std::vector<std::string> PresetWords(const Preset& preset,
                                     const std::function<bool(const PresetFlag&)>& wants) {
  std::vector<std::string> words;
  for (const PresetFlag& flag : preset.flags) {
    if (!wants(flag)) continue;
    words.push_back(absl::StrCat("--", flag.flag));
    if (!flag.value.empty()) words.emplace_back(flag.value);
  }
  return words;
}

absl::StatusOr<transforms::ParallelPlan> PresetPlan(absl::string_view name) {
  transforms::ParallelPlan plan;
  if (name.empty()) return plan;
  ORRERY_ASSIGN_OR_RETURN(const Preset* preset, FindPreset(name));
  for (const PresetFlag& flag : preset->flags) {
    const transforms::AxisInfo* const axis = transforms::FindAxis(flag.flag);
    if (axis == nullptr || flag.of_searches) continue;
    ORRERY_RETURN_IF_ERROR(SetAxis(*axis, flag.value.empty() ? "1" : flag.value, plan));
  }
  return plan;
}

}  // namespace orrery::tools
