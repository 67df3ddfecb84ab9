#ifndef ORRERY_IR_MODELS_MODEL_H_
#define ORRERY_IR_MODELS_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// The model library: families of models that a name and a few numbers describe, and presets, which
// are published models of such a family under a name of their own. docs/models.md lists them.

namespace orrery::ir {

/// One key of a family, as in "layers=96".
struct ModelKey {
  absl::string_view name;
  /// Its value when it is left out; "" when that follows from other keys, as `summary` says.
  absl::string_view fallback;
  absl::string_view summary;
  /// The least and the largest value; unless there are choices.
  double min = 1;
  double max = 0;
  /// "gelu|swiglu": one of these words instead of a number.
  absl::string_view choices = "";
  /// Any number, not only whole ones.
  bool real = false;
  /// "M*-": a word of these letters instead of a number.
  absl::string_view letters = "";
};

/// The values of all keys of a model that is to be built, in range each by itself.
class ModelValues {
 public:
  ModelValues(int64_t batch, DType dtype) : batch_(batch), dtype_(dtype) {}

  /// Samples in the batch, and the element type of parameters and activations.
  int64_t batch() const { return batch_; }
  DType dtype() const { return dtype_; }

  /// Gives a key a value, in place of the one that it may have.
  void Set(absl::string_view key, absl::string_view text) {
    texts_.insert_or_assign(std::string(key), std::string(text));
  }
  /// Whether the key has a value, given or by default.
  bool Has(absl::string_view key) const { return texts_.find(key) != texts_.end(); }
  /// The value of a key; `fallback` where it has none. Without a fallback it must have one.
  int64_t Int(absl::string_view key) const;
  int64_t Int(absl::string_view key, int64_t fallback) const;
  /// The value of a key that need not be a whole number; it must have one.
  double Number(absl::string_view key) const;
  /// The value of a key as it was written; `fallback` where it has none.
  std::string Text(absl::string_view key, absl::string_view fallback = "") const;

 private:
  int64_t batch_;
  DType dtype_;
  std::map<std::string, std::string, std::less<>> texts_;
};

/// The one record of a family of models. All that a new one needs, besides its line in models.def.
struct ModelInfo {
  absl::string_view name;     // as on the command line: "gpt"
  absl::string_view summary;  // one sentence
  std::span<const ModelKey> keys = {};
  int64_t default_batch = 1;  // samples, when nobody says how many
  /// Forward and loss; a family may add its backward. Errors say which keys do not go together.
  absl::StatusOr<Function> (*build)(const ModelValues& values) = nullptr;
};

/// All families, in the order of models.def.
std::span<const ModelInfo* const> AllModels();

/// A published model: a row of presets.def.
struct ModelPreset {
  absl::string_view name;    // "gpt3-175b"
  absl::string_view model;   // the family: "gpt"
  absl::string_view keys;    // "layers=96,hidden=12288"
  absl::string_view source;  // of the numbers
};

/// All presets, in the order of presets.def.
std::span<const ModelPreset> AllPresets();

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODELS_MODEL_H_
