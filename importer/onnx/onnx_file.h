#ifndef ORRERY_IMPORTER_ONNX_ONNX_FILE_H_
#define ORRERY_IMPORTER_ONNX_ONNX_FILE_H_

#include <onnx/onnx_pb.h>

#include <string>

#include "absl/status/statusor.h"

namespace orrery::importer {

/// The model in the file `path`, without the data of its weights: what is longer than 32 KiB is
/// skipped on disk, so memory is that of the graph alone, and the file may be as large as it wants.
/// Errors start with `path`: not found, no regular file, empty, cut short, damaged, no graph, more
/// than 1 GiB besides weights.
absl::StatusOr<onnx::ModelProto> ReadOnnxFile(const std::string& path);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_ONNX_FILE_H_
