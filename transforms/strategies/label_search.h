#ifndef ORRERY_TRANSFORMS_STRATEGIES_LABEL_SEARCH_H_
#define ORRERY_TRANSFORMS_STRATEGIES_LABEL_SEARCH_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/bucket_tree.h"
#include "transforms/strategies/model.h"

// Partial choices, called labels, grow by one node at a time, all in step. One is dropped when what
// it costs at least is no less than a choice that is known, when its memory cannot fit, or when
// another with the same choices for the nodes that still matter costs and needs no more. Where more
// than `width` are left, those with the greatest bounds are cut (a beam), and remembered as not
// proven.

namespace orrery::transforms::strategies {

struct LabelSearchResult {
  std::vector<int32_t> choice;  // the best found that is better than the known one; may be empty
  double cost = kImpossible;
  double bound = 0;  // none of what the search went through or cut costs less
  int64_t labels = 0;
};

struct BeamLimits {
  size_t width = 1;        // labels kept at each node
  int64_t labels = 1'000;  // once so many were made, few are kept
};

/// What memory costs in the bounds: a price for each unit of each of the model's limits.
struct Prices {
  std::vector<double> of_limit;
  /// The model's costs with the prices of memory on top.
  Costs Add(const Model& model) const;
  /// The prices of all budgets.
  double OfBudgets(const Model& model) const;
};

/// Searches with the messages of `tree`, filled with `prices.Add(model)`, for a choice that fits
/// the memory and costs less than `known`.
LabelSearchResult SearchLabels(const Model& model, const BucketTree& tree, const Prices& prices,
                               double known, BeamLimits limits);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_LABEL_SEARCH_H_
