#ifndef ORRERY_IMPORTER_IMPORT_OPTIONS_H_
#define ORRERY_IMPORTER_IMPORT_OPTIONS_H_

#include <cstdint>
#include <map>
#include <string>

#include "importer/import_notes.h"
#include "importer/role_patterns.h"
#include "ir/tensor.h"

namespace orrery::importer {

/// What a model file leaves open, and which of its parameters are trained.
struct ImportOptions {
  /// Values of dynamic dimensions, each at least 1, by the name that the file gives them ("batch");
  /// a dimension that the file leaves without a name is called "INPUT.DIMENSION" ("x.0").
  std::map<std::string, int64_t> symbols = {};
  /// The value of the dynamic batch, in samples, of the one symbol that is dimension 0 of every
  /// graph input; where `symbols` has another for it, that is an error. 0: none. A batch that the
  /// file fixes stays here; LoadModel changes it.
  int64_t batch_size = 0;
  /// Values of graph inputs, by name: such an input becomes a constant, so that what depends on it
  /// may even decide about shapes.
  std::map<std::string, ir::Tensor> values = {};
  /// What is said of inputs and weights.
  RolePatterns roles = {};
  /// Gets what is worth to be known of the file; null: nobody asks.
  ImportNotes* notes = nullptr;
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_IMPORT_OPTIONS_H_
