#ifndef ORRERY_TOOLS_VALIDATION_EXPERT_LAYER_H_
#define ORRERY_TOOLS_VALIDATION_EXPERT_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/validation/kernel_points.h"

// A measured layer of experts: one rank's part of TensorRT-LLM's fused, gated mixture, without
// communication. Rows are sorted by expert, two grouped products (up and gate together, down) have
// the activation between them, and what experts made is summed up.

namespace orrery::tools {

/// Where a router sends tokens.
struct Routing {
  int64_t tokens = 0, topk = 0, experts = 0;
  int64_t ranks = 1;  // that share out the experts
  double power = 0;   // of the power law that loads of experts follow; 0: they are alike
};

/// The exponent of "power_law_1.2", 0 of "balanced". A failed precondition for another name.
absl::StatusOr<double> PowerOfName(absl::string_view distribution);

/// Rows of each expert of the rank that has most of them, as aiconfigurator's collector draws them
/// (collector/helper.py, _generate_power_law_distribution): loads between 1 and 0.8 of the tokens,
/// or 0.01 and 2 where there are fewer rows than experts, scaled to all rows, none over the tokens;
/// each rank has experts that are next to each other. The same seed draws the same.
std::vector<int64_t> DrawRows(const Routing& routing, uint32_t seed);

/// Seconds of the layer of tokens, hidden, inter, topk, experts, tp, ep, and "distribution", an
/// index of kernels.distributions; of a power law the mean of five routings, as was measured. A
/// failed precondition where sizes are none.
absl::StatusOr<double> PredictExpertLayer(const KernelPoints& kernels, const PointFigures& figures);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_EXPERT_LAYER_H_
