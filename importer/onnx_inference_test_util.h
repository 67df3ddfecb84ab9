#ifndef ORRERY_IMPORTER_ONNX_INFERENCE_TEST_UTIL_H_
#define ORRERY_IMPORTER_ONNX_INFERENCE_TEST_UTIL_H_

#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <exception>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/printable.h"

// ONNX's own shape inference, which the importer's is compared with. It throws; here that becomes
// one line. Its first use builds the table of all op schemas, which takes 6 ms.

namespace orrery::importer {

// The library's messages run over several lines.
inline std::string OneLine(absl::string_view text) {
  return Printable(
      absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \n\r\t"), absl::SkipEmpty()), " "));
}

template <typename Call>
absl::Status Guarded(absl::string_view who, Call call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(who, ": ", OneLine(error.what())));
  } catch (...) {
    return absl::InvalidArgumentError(absl::StrCat(who, ": fails without saying why"));
  }
}

/// The graph with the types that ONNX's shape inference finds, in `value_info` and `output`. An
/// error when it finds a contradiction.
inline absl::StatusOr<onnx::GraphProto> InferWithOnnx(const onnx::ModelProto& model) {
  onnx::ModelProto copy = model;
  const onnx::ShapeInferenceOptions options(/*check_type_val=*/true, /*strict_mode_val=*/1);
  absl::Status status = Guarded("ONNX's shape inference", [&] {
    onnx::shape_inference::InferShapes(copy, onnx::OpSchemaRegistry::Instance(), options);
  });
  if (!status.ok()) return status;
  return std::move(*copy.mutable_graph());
}

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_INFERENCE_TEST_UTIL_H_
