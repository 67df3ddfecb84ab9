#ifndef ORRERY_IR_MODELS_MODEL_TEST_UTIL_H_
#define ORRERY_IR_MODELS_MODEL_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "ir/models/model.h"

// For tests only.

namespace orrery::ir {

/// The built-in model of that family, with keys such as "layers=2,hidden=8", or what is wrong with
/// them.
inline absl::StatusOr<Function> TryBuildModel(absl::string_view family, absl::string_view keys,
                                              int64_t batch, DType dtype = DType::kF32) {
  for (const ModelInfo* info : AllModels()) {
    if (info->name != family) continue;
    ModelValues values(batch, dtype);
    for (const ModelKey& key : info->keys) {
      if (!key.fallback.empty()) values.Set(key.name, key.fallback);
    }
    for (const absl::string_view pair : absl::StrSplit(keys, ',')) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(pair, '=');
      values.Set(parts.first, parts.second);
    }
    return info->build(values);
  }
  ADD_FAILURE() << "no family " << family;
  return Function();
}

/// The same where nothing is wrong.
inline Function BuildModel(absl::string_view family, absl::string_view keys, int64_t batch,
                           DType dtype = DType::kF32) {
  return TryBuildModel(family, keys, batch, dtype).value();
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODELS_MODEL_TEST_UTIL_H_
