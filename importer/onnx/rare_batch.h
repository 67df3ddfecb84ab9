#ifndef ORRERY_IMPORTER_ONNX_RARE_BATCH_H_
#define ORRERY_IMPORTER_ONNX_RARE_BATCH_H_

#include <onnx/onnx_pb.h>

#include <cstdint>

#include "importer/onnx/symbols.h"
#include "ir/function.h"

// A batch that no other size of a model is a multiple of tells what is computed from it.

namespace orrery::importer {

/// A prime that divides no whole number of the graph: no size of an input or tensor, no attribute,
/// no element of a tensor and no value of a symbol. Where all of a few primes divide one: the
/// first.
int64_t RareBatch(const onnx::GraphProto& graph, const SymbolValues& symbols);

/// Whether some size in the function is a multiple of `batch`.
bool HasSizeOf(const ir::Function& function, int64_t batch);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_RARE_BATCH_H_
