#ifndef ORRERY_IMPORTER_LOAD_MODEL_H_
#define ORRERY_IMPORTER_LOAD_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "importer/import_notes.h"
#include "importer/role_patterns.h"
#include "ir/function.h"

namespace orrery::importer {

/// A model as the command line names it.
struct ModelSpec {
  /// `FILE.onnx`; `FILE.orr`, the text form of the IR with one function; or a built-in model:
  /// `mlp:layers=64,dim=8192`, whose keys may be left out, or `gpt3-175b`.
  std::string model;
  /// Samples in the batch. 0: what the file says, or the family of the built-in model.
  int64_t batch_size = 0;
  /// Element type of parameters, data and constants of floating point. Nothing: what the file says;
  /// f32 for a built-in model.
  std::optional<ir::DType> dtype = std::nullopt;
  /// Values of dynamic ONNX dimensions, by name.
  std::map<std::string, int64_t> symbols = {};
  /// What is said of the inputs and weights of an ONNX file.
  RolePatterns roles = {};
  /// Gets what is worth to be known of an ONNX file; null: nobody asks.
  ImportNotes* notes = nullptr;
};

/// The model as a function that verifies. A file that fixes another batch or element type is
/// changed by inferring all its types again. Errors are one line that starts with the model: a file
/// that does not exist is not found, all else an invalid argument: "mlp:layers=0: layers is '0';
/// wanted a whole number from 1 to 1000000", "step.orr:12:7: found ')'; wanted a type, such as
/// f32[8,16]".
absl::StatusOr<ir::Function> LoadModel(const ModelSpec& spec);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_LOAD_MODEL_H_
