#ifndef ORRERY_IMPORTER_ONNX_ONNX_OPS_WINDOWS_H_
#define ORRERY_IMPORTER_ONNX_ONNX_OPS_WINDOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "importer/onnx/onnx_op.h"
#include "ir/attributes.h"
#include "ir/type.h"

// Windows of ONNX's convolutions and pools: attributes that may be absent, and padding by name.

namespace orrery::importer {

/// The spatial dims of input i, [batch, channels, ..]; an error for one that has none.
absl::StatusOr<ir::Dims> SpatialInput(NodeContext& c, int i);

/// The attributes `strides`, `pads` and `dilations` of the IR for the window of size `kernel` over
/// `input`; `auto_pad` becomes numbers.
absl::StatusOr<ir::AttributeSet> WindowAttributes(NodeContext& c,
                                                  const std::vector<int64_t>& kernel,
                                                  const ir::Dims& input);

/// An error where the attribute `kernel_shape` is there but is not `kernel`, the size of the
/// weights.
absl::Status CheckKernel(NodeContext& c, const ir::Dims& kernel);

/// How `auto_pad` names the padding: NOTSET, SAME_UPPER, SAME_LOWER or VALID.
absl::StatusOr<std::string> AutoPad(NodeContext& c);

/// The list `name`, one number for each of `rank` dimensions; `fallback` for each when it is
/// absent.
absl::StatusOr<std::vector<int64_t>> SpatialList(NodeContext& c, absl::string_view name,
                                                 size_t rank, int64_t fallback);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_ONNX_OPS_WINDOWS_H_
