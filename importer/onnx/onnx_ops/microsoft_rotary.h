#ifndef ORRERY_IMPORTER_ONNX_ONNX_OPS_MICROSOFT_ROTARY_H_
#define ORRERY_IMPORTER_ONNX_ONNX_OPS_MICROSOFT_ROTARY_H_

#include "absl/status/statusor.h"
#include "importer/onnx/onnx_op.h"

namespace orrery::importer {

/// The inputs of a node that hold tables [positions,d/2], and the positions of rows: [batch,rows],
/// or [1], that of the first. Without positions rows count from 0.
struct RotaryTables {
  int cos, sin, positions;
};

/// x [batch,heads,rows,width], or [batch,rows,heads d], with its first d features turned; where x
/// is packed d is its width. `interleaved`: neighbours turn together, not halves. Errors: tables
/// that are of no use for x.
absl::StatusOr<ir::ValueId> Rotate(NodeContext& c, ir::ValueId x, const RotaryTables& tables,
                                   bool interleaved);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_ONNX_OPS_MICROSOFT_ROTARY_H_
