#ifndef ORRERY_IMPORTER_BUILTIN_MODELS_H_
#define ORRERY_IMPORTER_BUILTIN_MODELS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// Models that a name and a few numbers describe: "mlp:layers=64,dim=8192". A new one is a row of
// the table in builtin_models.cc.

namespace orrery::importer {

/// Whether `model` starts with the name of a built-in model.
bool IsBuiltinModel(absl::string_view model);

/// The built-in model, of that batch (samples, 1 to 2^32) and element type. Errors start with
/// `model`: an unknown key, a key twice, a value that is missing, no number or out of range.
absl::StatusOr<ir::Function> BuildBuiltinModel(absl::string_view model, int64_t batch,
                                               ir::DType dtype);

/// "mlp:layers=64,dim=8192": how each is called, with its default values.
std::string BuiltinModels();

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BUILTIN_MODELS_H_
