#include "importer/builtin_models.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/models/model.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace builtin_models_cc {
namespace {

// Together with the bounds of the keys, this keeps tensors that one operation makes countable.
constexpr int64_t kMaxBatch = int64_t{1} << 32;
constexpr size_t kMaxLetters = 10'000;

const ir::ModelInfo* FindFamily(absl::string_view name) {
  for (const ir::ModelInfo* family : ir::AllModels()) {
    if (family->name == name) return family;
  }
  return nullptr;
}

// A family, and the keys that a preset sets before the user does.
struct Builtin {
  const ir::ModelInfo* family = nullptr;
  absl::string_view preset_keys = "";
};

// The part of `model` before the keys names it.
Builtin Find(absl::string_view model) {
  const absl::string_view name = model.substr(0, model.find(':'));
  for (const ir::ModelPreset& preset : ir::AllPresets()) {
    if (preset.name == name) return {FindFamily(preset.model), preset.keys};
  }
  return {FindFamily(name)};
}

// "a whole number from 1 to 64".
std::string Wanted(const ir::ModelKey& key) {
  if (!key.choices.empty()) {
    return absl::StrJoin(absl::StrSplit(key.choices, '|'), " or ");
  }
  if (!key.letters.empty()) {
    return absl::StrCat("1 to ", kMaxLetters, " letters out of ", key.letters);
  }
  const auto show = [&](double bound) {
    return key.real ? absl::StrCat(bound) : absl::StrCat(static_cast<int64_t>(bound));
  };
  return absl::StrCat(key.real ? "a number from " : "a whole number from ", show(key.min), " to ",
                      show(key.max));
}

bool IsInRange(const ir::ModelKey& key, absl::string_view text) {
  if (!key.choices.empty()) {
    const std::vector<absl::string_view> choices = absl::StrSplit(key.choices, '|');
    return std::find(choices.begin(), choices.end(), text) != choices.end();
  }
  if (!key.letters.empty()) {
    const bool known = std::ranges::all_of(
        text, [&](char letter) { return absl::StrContains(key.letters, letter); });
    return known && !text.empty() && text.size() <= kMaxLetters;
  }
  double number = 0;
  int64_t whole = 0;
  if (key.real) return absl::SimpleAtod(text, &number) && number >= key.min && number <= key.max;
  if (!absl::SimpleAtoi(text, &whole)) return false;
  return static_cast<double>(whole) >= key.min && static_cast<double>(whole) <= key.max;
}

// Reads "key=value" into `values`; `seen` are the keys so far.
absl::Status ReadKey(const ir::ModelInfo& family, absl::string_view text, ir::ModelValues& values,
                     std::set<absl::string_view>& seen) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  for (const ir::ModelKey& key : family.keys) {
    if (key.name != parts.first) continue;
    if (!IsInRange(key, parts.second)) {
      return absl::InvalidArgumentError(
          absl::StrCat(key.name, " is ", Show(parts.second), "; wanted ", Wanted(key)));
    }
    if (!seen.insert(key.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(key.name, " stands twice; wanted it once"));
    }
    values.Set(key.name, parts.second);
    return absl::OkStatus();
  }
  const std::string known = absl::StrJoin(
      family.keys, ", ",
      [](std::string* out, const ir::ModelKey& key) { absl::StrAppend(out, key.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown key ", Show(parts.first), "; wanted ", known));
}

absl::Status ReadKeys(const ir::ModelInfo& family, absl::string_view keys,
                      ir::ModelValues& values) {
  std::set<absl::string_view> seen;
  for (const absl::string_view text : absl::StrSplit(keys, ',')) {
    ORRERY_RETURN_IF_ERROR(ReadKey(family, text, values, seen));
  }
  return absl::OkStatus();
}

// What the preset says, then what stands behind the colon of `model`.
absl::Status ReadNamed(const Builtin& builtin, absl::string_view model, ir::ModelValues& values) {
  if (!builtin.preset_keys.empty()) {
    ORRERY_RETURN_IF_ERROR(ReadKeys(*builtin.family, builtin.preset_keys, values));
  }
  const size_t colon = model.find(':');
  if (colon == absl::string_view::npos) return absl::OkStatus();
  return ReadKeys(*builtin.family, model.substr(colon + 1), values);
}

// Defaults, then what is named.
absl::Status ReadValues(const Builtin& builtin, absl::string_view model, ir::ModelValues& values) {
  const ir::ModelInfo& family = *builtin.family;
  for (const ir::ModelKey& key : family.keys) {
    if (!key.fallback.empty()) values.Set(key.name, key.fallback);
  }
  return ReadNamed(builtin, model, values);
}

absl::StatusOr<ir::Function> Build(const Builtin& builtin, absl::string_view model,
                                   ir::ModelValues values) {
  ORRERY_RETURN_IF_ERROR(ReadValues(builtin, model, values));
  return builtin.family->build(values);
}

}  // namespace
}  // namespace builtin_models_cc

std::optional<BuiltinValues> FindBuiltinValues(absl::string_view model) {
  const builtin_models_cc::Builtin builtin = builtin_models_cc::Find(model);
  if (builtin.family == nullptr) return std::nullopt;
  BuiltinValues found = {builtin.family->name, ir::ModelValues(1, ir::DType::kF32)};
  if (!builtin_models_cc::ReadValues(builtin, model, found.values).ok()) return std::nullopt;
  return found;
}

bool IsBuiltinModel(absl::string_view model) {
  return builtin_models_cc::Find(model).family != nullptr;
}

absl::StatusOr<ir::Function> BuildBuiltinModel(absl::string_view model, int64_t batch,
                                               ir::DType dtype) {
  const std::string where = Printable(model);
  const builtin_models_cc::Builtin builtin = builtin_models_cc::Find(model);
  if (builtin.family == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": is no built-in model; wanted one of ", BuiltinModels()));
  }
  if (batch == 0) batch = builtin.family->default_batch;
  if (batch < 1 || batch > builtin_models_cc::kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": batch is ", batch, "; wanted 1 to ", builtin_models_cc::kMaxBatch));
  }
  absl::StatusOr<ir::Function> function =
      builtin_models_cc::Build(builtin, model, ir::ModelValues(batch, dtype));
  // A message of the builder starts with the family, which may be what the user wrote already.
  const bool says_where = absl::StartsWith(function.status().message(), absl::StrCat(where, ": "));
  if (function.ok() || says_where) return function;
  return Annotate(function.status(), where);
}

std::vector<BuiltinKey> BuiltinKeys(absl::string_view model) {
  const builtin_models_cc::Builtin builtin = builtin_models_cc::Find(model);
  ir::ModelValues named(1, ir::DType::kF32);
  if (builtin.family == nullptr || !ReadNamed(builtin, model, named).ok()) return {};
  std::vector<BuiltinKey> keys;
  for (const ir::ModelKey& key : builtin.family->keys) {
    keys.push_back({.name = std::string(key.name),
                    .value = named.Text(key.name, key.fallback),
                    .is_named = named.Has(key.name)});
  }
  return keys;
}

std::vector<absl::string_view> BuiltinModelNames() {
  std::vector<absl::string_view> names;
  for (const ir::ModelInfo* family : ir::AllModels()) names.push_back(family->name);
  for (const ir::ModelPreset& preset : ir::AllPresets()) names.push_back(preset.name);
  return names;
}

std::string BuiltinModels() { return absl::StrJoin(BuiltinModelNames(), ", "); }

std::string DescribeBuiltinModels() {
  std::string text;
  for (const ir::ModelInfo* family : ir::AllModels()) {
    absl::StrAppend(&text, family->name, ": ", family->summary, "\n");
    for (const ir::ModelKey& key : family->keys) {
      const std::string values = key.choices.empty() ? "" : absl::StrCat("=", key.choices);
      const std::string fallback =
          key.fallback.empty() ? "" : absl::StrCat(" [", key.fallback, "]");
      absl::StrAppend(&text, "  ", key.name, values, ": ", key.summary, fallback, "\n");
    }
  }
  for (const ir::ModelPreset& preset : ir::AllPresets()) {
    absl::StrAppend(&text, preset.name, " = ", preset.model, ":", preset.keys, "  (", preset.source,
                    ")\n");
  }
  return text;
}

}  // namespace orrery::importer
