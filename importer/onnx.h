#ifndef ORRERY_IMPORTER_ONNX_H_
#define ORRERY_IMPORTER_ONNX_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "ir/tensor.h"

// ONNX to IR. The graph is read, the weights are not: their files may be absent, and a file that
// holds them costs no more memory than one that does not.

namespace orrery::importer {

struct ImportOptions {
  /// Values of dynamic dimensions, each at least 1, by the name that the file gives them ("batch");
  /// a dimension that the file leaves without a name is called "INPUT.DIMENSION" ("x.0").
  std::map<std::string, int64_t> symbols = {};
  /// The value of the dynamic batch, in samples, when `symbols` has none: of the one symbol that is
  /// dimension 0 of every graph input. 0: none. A batch that the file fixes stays here; LoadModel
  /// changes it.
  int64_t batch_size = 0;
  /// Values of graph inputs, by name: such an input becomes a constant, so that what depends on it
  /// may even decide about shapes.
  std::map<std::string, ir::Tensor> values = {};
  /// Parameters whose names this regular expression matches somewhere are not trained.
  std::string freeze = {};
};

/// Reads the ONNX file `path` as a function that verifies and is named after the file. Graph inputs
/// become data inputs (dimension 0 is the batch), floating-point initializers parameters or buffers
/// (roles.h says which), integer ones and scalars constants, and graph outputs results; all keep
/// their names. What no output needs is left out, save for graph inputs. Functions of the model and
/// branches of an If whose condition is known stand where they are called. Errors are one line: not
/// found (no such file), or an invalid argument that says where, what was found, and what was
/// wanted: "mlp.onnx: node '/l.0/MatMul': inner dimensions differ; got 64 and 96".
absl::StatusOr<ir::Function> ImportOnnx(const std::string& path, const ImportOptions& options = {});

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_H_
