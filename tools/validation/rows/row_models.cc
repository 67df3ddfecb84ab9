#include "tools/validation/rows/row_models.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/models/model.h"
#include "support/check.h"

namespace orrery::tools {
namespace row_models_cc {
namespace {

// What names of rows begin with, in small letters with "-" between words.
constexpr std::pair<absl::string_view, absl::string_view> kPresets[] = {
    {"nemotron-h-8b", "nemotron-h-8b"},
    {"nemotron-h-47b", "nemotron-h-47b"},
    {"nemotron-h-56b", "nemotron-h-56b"},
    {"nemotron-3-nano", "nemotron-3-nano-30b-a3b"},
    {"nemotron-v3-nano", "nemotron-3-nano-30b-a3b"},
    {"nemotron-3-super", "nemotron-3-super-120b-a12b"},
    {"nemotron-v3-super", "nemotron-3-super-120b-a12b"},
    {"nemotron-3-ultra", "nemotron-3-ultra-550b-a55b"},
    {"nemotron-v3-ultra", "nemotron-3-ultra-550b-a55b"}};

absl::string_view PresetOf(absl::string_view name) {
  std::string text = absl::AsciiStrToLower(name);
  std::ranges::replace_if(
      text, [](char c) { return c == ' ' || c == '_'; }, '-');
  for (const auto& [begin, preset] : kPresets) {
    if (absl::StartsWith(text, begin)) return preset;
  }
  return "";
}

// Of "hidden=4096,heads=32"; "" for a key that is not there.
absl::string_view ValueOf(absl::string_view keys, absl::string_view name) {
  for (const absl::string_view text : absl::StrSplit(keys, ',')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (pair.first == name) return pair.second;
  }
  return "";
}

void SetUnlessSaid(absl::string_view keys, absl::string_view name, int64_t& value) {
  if (value == 0 && !absl::SimpleAtoi(ValueOf(keys, name), &value)) value = 0;
}

}  // namespace
}  // namespace row_models_cc

void SetPreset(MeasuredStep::Model& model) {
  using row_models_cc::SetUnlessSaid;
  model.preset = std::string(row_models_cc::PresetOf(model.name));
  if (model.preset.empty()) return;
  const auto presets = ir::AllPresets();
  const auto found = std::ranges::find(presets, model.preset, &ir::ModelPreset::name);
  ORRERY_CHECK(found != presets.end()) << model.preset;
  const absl::string_view keys = found->keys;
  model.layers = static_cast<int64_t>(row_models_cc::ValueOf(keys, "pattern").size());
  SetUnlessSaid(keys, "hidden", model.hidden);
  SetUnlessSaid(keys, "heads", model.heads);
  SetUnlessSaid(keys, "kv_heads", model.kv_heads);
  SetUnlessSaid(keys, "vocab", model.vocab);
  SetUnlessSaid(keys, "experts", model.experts);
  SetUnlessSaid(keys, "topk", model.topk);
}

// Megatron Bridge's recipes of Super and Ultra predict two further tokens (mtp_num_layers of
// recipes/nemotronh/nemotron_3_super.py); flops that AutoModel prints of them leave no room for
// any.
std::string PresetModelOf(const MeasuredStep& step) {
  const MeasuredStep::Model& m = step.model;
  ORRERY_CHECK(!m.preset.empty()) << m.name;
  const bool predicts =
      absl::StrContains(m.preset, "super") || absl::StrContains(m.preset, "ultra");
  const bool bridge = absl::StrContains(step.source, "megatron_bridge");
  return absl::StrCat(m.preset, ":seq=", m.seq, predicts && bridge ? ",predicted=2" : "");
}

}  // namespace orrery::tools
