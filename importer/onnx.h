#ifndef ORRERY_IMPORTER_ONNX_H_
#define ORRERY_IMPORTER_ONNX_H_

#include <string>

#include "absl/status/statusor.h"
#include "importer/import_options.h"
#include "ir/function.h"

// ONNX to IR. The graph is read, the weights are not: their files may be absent, and a file that
// holds them costs no more memory than one that does not.

namespace orrery::importer {

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
