#ifndef ORRERY_TRANSFORMS_STRATEGIES_SOLVE_MODEL_H_
#define ORRERY_TRANSFORMS_STRATEGIES_SOLVE_MODEL_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/model.h"

namespace orrery::transforms::strategies {

struct ModelSolution {
  std::vector<int32_t> choice;  // of the model's strategies
  double cost = kImpossible;    // kImpossible: none was found
  double bound = -kImpossible;  // kImpossible: there is no choice
  int64_t labels = 0;
  int64_t composed = 0;  // blocks that were solved as one of them
  std::vector<std::vector<std::vector<int32_t>>> further = {};  // as in StrategyChoice

  bool found() const { return cost != kImpossible; }
};

/// The cheapest choice for `model`: by elimination where no limit can bind,
/// else by elimination with prices for memory, and label search over what they leave open.
ModelSolution SolveModel(Model model, const SolveOptions& options);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_SOLVE_MODEL_H_
