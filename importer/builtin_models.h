#ifndef ORRERY_IMPORTER_BUILTIN_MODELS_H_
#define ORRERY_IMPORTER_BUILTIN_MODELS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "ir/models/model.h"

// Models of the library in ir/models/ by the names that the command line has for them: a family
// with keys, "mlp:layers=64,dim=8192", or a preset, "gpt3-175b" or "gpt3-175b:seq=1024".

namespace orrery::importer {

/// Whether `model` starts with the name of a built-in model.
bool IsBuiltinModel(absl::string_view model);

/// The built-in model, of that batch (samples, 1 to 2^32; 0: as many as the family has by default)
/// and element type. Errors start with `model`: an unknown key, a key twice, a value that is
/// missing, no number or out of range, keys that do not go together.
absl::StatusOr<ir::Function> BuildBuiltinModel(absl::string_view model, int64_t batch,
                                               ir::DType dtype);

/// What a built-in model is made of.
struct BuiltinValues {
  absl::string_view family;  // "gpt"
  ir::ModelValues values;    // of all keys that have one
};
/// That of the model, of which the batch is 1 and the type fp32; nothing where it is none, or is
/// named wrongly.
std::optional<BuiltinValues> FindBuiltinValues(absl::string_view model);

/// A key of the family of a built-in model, and its value.
struct BuiltinKey {
  std::string name;
  std::string value;      // empty: it follows from others
  bool is_named = false;  // by the model, or by its preset; else the value is the family's
};

/// All keys of a built-in model, in the order of its family; of others, and of one that cannot be
/// read, none.
std::vector<BuiltinKey> BuiltinKeys(absl::string_view model);

/// The names of all families, and behind them of all presets.
std::vector<absl::string_view> BuiltinModelNames();

/// The same as a text: "mlp, gpt, gpt2-small".
std::string BuiltinModels();

/// All families with their keys, defaults in brackets, and all presets with their sources: some
/// lines of text.
std::string DescribeBuiltinModels();

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BUILTIN_MODELS_H_
