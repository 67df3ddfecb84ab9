#ifndef ORRERY_IMPORTER_ONNX_IMPORT_WARNINGS_H_
#define ORRERY_IMPORTER_ONNX_IMPORT_WARNINGS_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "importer/import_options.h"
#include "importer/onnx/batch_major.h"
#include "ir/function.h"

// What a file says by itself that makes a training step of it another than its owner may think.
// Only what is certain: a model that never had a batch norm looks like one that has lost them.

namespace orrery::importer {

/// That the graph of `model` is in evaluation form, and how that is seen: batch norms that
/// normalize with stored statistics, convolutions into which the exporter of PyTorch has folded
/// one, dropouts that drop nothing. Nothing where none of these is there.
std::optional<std::string> EvaluationForm(const onnx::ModelProto& model, int64_t opset);

/// That inputs of floating point, beside weights among the inputs, have the size of a batch of one
/// sample, so that nobody can tell data from a weight that all samples share: they were taken as
/// data. Nothing where there is none, the batch is another, or `roles` say of inputs what they are.
std::optional<std::string> InputsThatMayBeWeights(const onnx::GraphProto& graph,
                                                  const ir::Function& function,
                                                  const RolePatterns& roles);

/// That the batch that the file fixes was found in `dims` of the inputs of `function`, and `why`.
std::string BatchFoundElsewhere(const BatchDimOfInput& dims, const ir::Function& function,
                                absl::string_view why);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_IMPORT_WARNINGS_H_
