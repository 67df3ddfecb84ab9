#include "ir/models/model.h"

#include <array>

#include "absl/strings/numbers.h"
#include "support/check.h"

namespace orrery::ir {

#define ORRERY_MODEL(Name, file) extern const ModelInfo k##Name##Model;
#include "ir/models/models.def"
#undef ORRERY_MODEL

namespace model_cc {
namespace {

constexpr std::array kModels = {
#define ORRERY_MODEL(Name, file) &k##Name##Model,
#include "ir/models/models.def"
#undef ORRERY_MODEL
};

constexpr ModelPreset kPresets[] = {
#define ORRERY_PRESET(name, model, keys, source) {name, model, keys, source},
#include "ir/models/presets.def"
#undef ORRERY_PRESET
};

}  // namespace
}  // namespace model_cc

std::span<const ModelInfo* const> AllModels() { return model_cc::kModels; }

std::span<const ModelPreset> AllPresets() { return model_cc::kPresets; }

int64_t ModelValues::Int(absl::string_view key) const {
  ORRERY_CHECK(Has(key)) << key;
  return Int(key, 0);
}

int64_t ModelValues::Int(absl::string_view key, int64_t fallback) const {
  const auto found = texts_.find(key);
  if (found == texts_.end()) return fallback;
  int64_t value = 0;
  ORRERY_CHECK(absl::SimpleAtoi(found->second, &value)) << key << " is " << found->second;
  return value;
}

double ModelValues::Number(absl::string_view key) const {
  const auto found = texts_.find(key);
  double value = 0;
  ORRERY_CHECK(found != texts_.end() && absl::SimpleAtod(found->second, &value)) << key;
  return value;
}

std::string ModelValues::Text(absl::string_view key, absl::string_view fallback) const {
  const auto found = texts_.find(key);
  return found == texts_.end() ? std::string(fallback) : found->second;
}

}  // namespace orrery::ir
