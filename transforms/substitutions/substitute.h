#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_SUBSTITUTE_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_SUBSTITUTE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device.h"
#include "cost_models/cost_model.h"
#include "ir/function.h"
#include "support/units.h"
#include "transforms/substitutions/rule.h"
#include "transforms/substitutions/search_rewrites.h"

// A function replaced by the cheapest one that rules make of it, by the prices of a device.

namespace orrery::transforms::substitutions {

/// What `Substitute` goes by.
struct SubstituteOptions {
  const cost_models::CostModel* cost_model = nullptr;
  cluster::Device device;
  /// What is computed from weights and buffers alone is computed once, before, and costs
  /// nothing: for inference. Without it, and wherever the function has gradients, it costs what it
  /// does.
  bool fixed_weights = true;
  RewriteLimits limits;
};

/// What it did.
struct Substitution {
  ir::Function function;
  Duration before, after;  // all kernels, one after another; `before` as the function was given
  int32_t kernels_before = 0, kernels_after = 0;
  int32_t merged = 0;              // ops that computed what another one does
  std::vector<std::string> rules;  // in the order in which they were applied; "name, backward"
  std::vector<Duration> prices;    // after each
  int64_t expanded = 0, graphs = 0;
  bool all = false;  // as in Rewriting
};

/// The cheapest function that the search finds: never dearer than `function`. An error for one
/// that is spread over ranks.
absl::StatusOr<Substitution> Substitute(const ir::Function& function, std::span<const Rule> rules,
                                        const SubstituteOptions& options);

/// Lines for people: prices, kernels, and how often which rule was applied.
std::string Tell(const Substitution& substitution);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_SUBSTITUTE_H_
