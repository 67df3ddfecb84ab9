#ifndef ORRERY_TRANSFORMS_STRATEGIES_INTER_OP_H_
#define ORRERY_TRANSFORMS_STRATEGIES_INTER_OP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

// Which layers and how many devices each pipeline stage has: the inter-operator dynamic program of
// Alpa (Zheng et al., OSDI 2022, section 5). It minimizes T = Σ t_i + (B-1) · max t_i over the
// stages i, with B microbatches, all devices used.

namespace orrery::transforms::strategies {

/// What the dynamic program reads; see the top of this file.
struct InterOpProblem {
  int32_t layers = 1;
  int32_t devices = 1;
  int64_t microbatches = 1;
  std::vector<int32_t> submesh_sizes;  // devices of each shape that a stage can have
  /// [first layer][last layer][submesh]: time of one microbatch in a stage of these layers,
  /// infinite where it cannot be, as where the last layer comes before the first.
  std::vector<std::vector<std::vector<double>>> stage_cost;
  /// [first layer][last layer][submesh]: how many stages may follow this one for its memory to
  /// hold their microbatches in flight; empty: any number.
  std::vector<std::vector<std::vector<int32_t>>> most_successors;
  /// [submesh][first device]: whether the shape can be there, as where all of its devices are of
  /// one kind; stages take devices in their order. Empty: anywhere.
  std::vector<std::vector<char>> fits = {};
};

/// A stage of a plan: neighbouring layers on a submesh of one of the shapes.
struct InterOpStage {
  int32_t begin = 0;  // layers begin..end-1
  int32_t end = 0;
  int32_t submesh = 0;
  friend bool operator==(const InterOpStage&, const InterOpStage&) = default;
};

/// Stages in the order of their layers, and the T that they have, in the unit of `stage_cost`.
struct InterOpPlan {
  std::vector<InterOpStage> stages;
  double cost = 0;
};

/// The plan of the least T; nothing where no stages use all devices. Each candidate for the slowest
/// stage is one dynamic program of O(L² · stages · D · submeshes), from the least on, until B times
/// the candidate is no less than the best T. Error: counts below 1, tables of other sizes.
absl::StatusOr<std::optional<InterOpPlan>> PlanInterOp(const InterOpProblem& problem);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_INTER_OP_H_
