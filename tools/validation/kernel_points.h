#ifndef ORRERY_TOOLS_VALIDATION_KERNEL_POINTS_H_
#define ORRERY_TOOLS_VALIDATION_KERNEL_POINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/device.h"
#include "cost_models/kernels/kernel_choice.h"
#include "ir/type.h"

// A measured kernel, by the figures that its source prints, and what the cost model says of it.

namespace orrery::tools {

/// The kernels of a table.
struct KernelPoints {
  cluster::Device device;
  ir::DType dtype = ir::DType::kBF16;
  bool quantizes = false;  // the time of a product has that to make its input narrow
  bool training = false;   // timed back to back, with the clock of training; else a burst
  cost_models::AttentionClass attention = cost_models::AttentionClass::kCudnn;
  cost_models::ExpertProducts experts = {};     // how those of experts are carried out
  std::vector<std::string> distributions = {};  // of tokens over experts, that points have
};

/// What such a device is called here: "A100-SXM4-80GB", "NVIDIA H100 SXM". A failed precondition,
/// with the reason to skip its points, where it is none of ours.
absl::StatusOr<cluster::Device> DeviceOfName(absl::string_view name);

/// The type of "bfloat16", "fp8", "bf16", "fp8_block". A failed precondition where no kernel of
/// ours has it.
absl::StatusOr<ir::DType> TypeOfName(absl::string_view name);

/// The figures of a point, by the names that a table's "fields" have.
using PointFigures = absl::flat_hash_map<std::string, double>;

/// The figure of that name, as a size of which flops and bytes are numbers. A failed precondition
/// where it is none, or not there and `otherwise` is none.
absl::StatusOr<int64_t> SizeOfPoint(const PointFigures& figures, absl::string_view name,
                                    double otherwise = 0);

/// Seconds that TensorRT-LLM's kernels take to make elements of 16 bits narrow, without their
/// starts. Requires products of 8 or 4 bits.
double QuantizeSeconds(const KernelPoints& kernels, double elements);

/// Seconds of a product of m, n, k with its start; of its layout "layout" (2: of gradients of
/// weights), its sum "accumulate" and "fp32_out", if it has those. A failed precondition where
/// sizes are none.
absl::StatusOr<double> PredictProduct(const KernelPoints& kernels, const PointFigures& figures);

/// Seconds of products of "groups" experts of m rows each, in training: of "stage" 0 forward, 1 of
/// the gradient of the input, 2 of that of weights, which is added to a sum in fp32.
absl::StatusOr<double> PredictGroupedProduct(const KernelPoints& kernels,
                                             const PointFigures& figures);

/// Seconds of a fused attention of batch, seq, heads and head_dim, or qk_head_dim and v_head_dim;
/// causal unless "causal" is 0, its gradient where "backward" is 1; with its start.
absl::StatusOr<double> PredictAttention(const KernelPoints& kernels, const PointFigures& figures);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_KERNEL_POINTS_H_
