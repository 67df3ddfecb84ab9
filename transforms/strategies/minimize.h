#ifndef ORRERY_TRANSFORMS_STRATEGIES_MINIMIZE_H_
#define ORRERY_TRANSFORMS_STRATEGIES_MINIMIZE_H_

#include <cstddef>
#include <vector>

namespace orrery::transforms::strategies {

/// Tables whose sum is minimized over a node that varies fastest in each of them.
struct MinimizeTask {
  struct Input {
    const double* values = nullptr;
    std::vector<size_t> strides;  // of each node in the scope; 0 where it is not in the table
  };
  std::vector<size_t> sizes;  // strategies of the nodes in the scope, without the minimized one
  std::vector<Input> inputs;
  std::vector<double> own;  // the cost of each strategy of the minimized node
};

/// The least sum for each choice of the nodes in the scope, the last of them varying fastest.
void MinimizeOut(const MinimizeTask& task, std::vector<double>& least);

/// The least sum for each strategy of the node, over all choices in the scope.
std::vector<double> LeastForEach(const MinimizeTask& task);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_MINIMIZE_H_
