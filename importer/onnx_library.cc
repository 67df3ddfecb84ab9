#include "importer/onnx_library.h"

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "importer/printable.h"

namespace orrery::importer {
namespace {

// The library's messages run over several lines.
std::string OneLine(absl::string_view text) {
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

// The model as the checker accepts it: it wants data in each initializer, and the files of external
// data; and it refuses files that are newer than itself, though the ops of these may be old.
onnx::ModelProto ForChecker(const onnx::ModelProto& model) {
  onnx::ModelProto copy = model;
  copy.set_ir_version(std::min<int64_t>(copy.ir_version(), onnx::Version::IR_VERSION));
  for (onnx::TensorProto& tensor : *copy.mutable_graph()->mutable_initializer()) {
    onnx::TensorProto placeholder;
    placeholder.set_name(tensor.name());
    placeholder.set_data_type(tensor.data_type());
    *placeholder.mutable_dims() = tensor.dims();
    placeholder.set_raw_data("?");
    tensor.Swap(&placeholder);
  }
  return copy;
}

}  // namespace

absl::Status CheckWithOnnx(const onnx::ModelProto& model) {
  const onnx::ModelProto copy = ForChecker(model);
  return Guarded("ONNX's checker", [&] { onnx::checker::check_model(copy); });
}

absl::StatusOr<onnx::GraphProto> InferWithOnnx(const onnx::ModelProto& model) {
  onnx::ModelProto copy = model;
  const onnx::ShapeInferenceOptions options(/*check_type_val=*/true, /*strict_mode_val=*/1);
  absl::Status status = Guarded("ONNX's shape inference", [&] {
    onnx::shape_inference::InferShapes(copy, onnx::OpSchemaRegistry::Instance(), options);
  });
  if (!status.ok()) return status;
  return std::move(*copy.mutable_graph());
}

}  // namespace orrery::importer
