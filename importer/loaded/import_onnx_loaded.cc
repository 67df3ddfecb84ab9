#include "importer/onnx.h"
#include "support/module.h"
#include "support/printable.h"
#include "support/status.h"

// For programs: ONNX files are read by a module, so that libonnx and Protobuf are loaded when one
// is named.

namespace orrery::importer {

absl::StatusOr<ir::Function> ImportOnnx(const std::string& path, const ImportOptions& options) {
  static const auto function = LoadModule<decltype(ImportOnnx)>("onnx");
  if (!function.ok()) return Annotate(function.status(), Printable(path));
  return (*function)(path, options);
}

}  // namespace orrery::importer
