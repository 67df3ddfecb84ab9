#ifndef ORRERY_IMPORTER_ONNX_FILE_H_
#define ORRERY_IMPORTER_ONNX_FILE_H_

#include <onnx/onnx_pb.h>

#include <string>

#include "absl/status/statusor.h"

namespace orrery::importer {

/// The model in the file `path`, without the data of its weights: what is longer than 32 KiB is
/// skipped on disk, so memory is that of the graph alone. Errors start with `path`: not found, no
/// regular file, empty, larger than 2 GiB (protobuf's limit), cut short, damaged, no graph.
absl::StatusOr<onnx::ModelProto> ReadOnnxFile(const std::string& path);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_FILE_H_
