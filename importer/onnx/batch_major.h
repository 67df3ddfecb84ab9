#ifndef ORRERY_IMPORTER_ONNX_BATCH_MAJOR_H_
#define ORRERY_IMPORTER_ONNX_BATCH_MAJOR_H_

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "ir/function.h"

namespace orrery::importer {

/// Gives each graph input the batch as dimension 0 that has it, by the name of that dynamic
/// dimension, in another one: as recurrent nets and nn.Transformer have it behind time. The graph
/// then begins by moving it back.
void PutBatchFirst(onnx::GraphProto& graph);

/// The dimension that has the batch, of those inputs that do not have it first, by name.
using BatchDimOfInput = std::map<std::string, int>;

/// The same of a graph whose dimensions are fixed, where `dims` says.
void PutBatchFirst(const BatchDimOfInput& dims, onnx::GraphProto& graph);

/// Where else the data inputs of `function` may have a fixed batch: in dimension 0 or 1 of the
/// first one, and of the others in the one that is as large.
std::vector<BatchDimOfInput> OtherBatchDims(const ir::Function& function);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_BATCH_MAJOR_H_
