#ifndef ORRERY_IMPORTER_ONNX_ONNX_OPS_PRODUCTS_H_
#define ORRERY_IMPORTER_ONNX_ONNX_OPS_PRODUCTS_H_

#include "absl/status/statusor.h"
#include "importer/onnx/onnx_op.h"

// Products that other op types do something more to.

namespace orrery::importer {

/// alpha·A'·B' + beta·C of the node, as Gemm has it.
absl::StatusOr<ir::ValueId> GemmOf(NodeContext& c);

/// The convolution of the node, as Conv has it.
absl::StatusOr<ir::ValueId> ConvOf(NodeContext& c);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_ONNX_OPS_PRODUCTS_H_
