#include "transforms/strategies/minimize.h"

#include <algorithm>
#include <limits>

namespace orrery::transforms::strategies {
namespace minimize_cc {
namespace {

// Calls visit(sums) for each choice in the scope, in order.
template <typename Visit>
void ForEach(const MinimizeTask& task, const Visit& visit) {
  const size_t strategies = task.own.size();
  const size_t dims = task.sizes.size();
  std::vector<const double*> at;
  for (const MinimizeTask::Input& input : task.inputs) at.push_back(input.values);
  std::vector<size_t> digits(dims);
  std::vector<double> sums(strategies);
  while (true) {
    std::copy(task.own.begin(), task.own.end(), sums.begin());
    for (const double* values : at) {
      for (size_t a = 0; a < strategies; ++a) sums[a] += values[a];
    }
    visit(sums);
    size_t dim = dims;
    for (; dim > 0; --dim) {
      const size_t d = dim - 1;
      if (++digits[d] < task.sizes[d]) {
        for (size_t i = 0; i < at.size(); ++i) at[i] += task.inputs[i].strides[d];
        break;
      }
      digits[d] = 0;
      for (size_t i = 0; i < at.size(); ++i) {
        at[i] -= task.inputs[i].strides[d] * (task.sizes[d] - 1);
      }
    }
    if (dim == 0) return;
  }
}

// Four at once, so that each comparison need not wait for the one before.
double Least(const std::vector<double>& sums) {
  double least[4];
  std::fill(least, least + 4, std::numeric_limits<double>::infinity());
  size_t a = 0;
  for (; a + 4 <= sums.size(); a += 4) {
    for (size_t k = 0; k < 4; ++k) least[k] = sums[a + k] < least[k] ? sums[a + k] : least[k];
  }
  for (; a < sums.size(); ++a) least[0] = std::min(least[0], sums[a]);
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

}  // namespace
}  // namespace minimize_cc

void MinimizeOut(const MinimizeTask& task, std::vector<double>& least) {
  least.clear();
  minimize_cc::ForEach(
      task, [&](const std::vector<double>& sums) { least.push_back(minimize_cc::Least(sums)); });
}

std::vector<double> LeastForEach(const MinimizeTask& task) {
  std::vector<double> least(task.own.size(), std::numeric_limits<double>::infinity());
  minimize_cc::ForEach(task, [&](const std::vector<double>& sums) {
    for (size_t a = 0; a < sums.size(); ++a) least[a] = sums[a] < least[a] ? sums[a] : least[a];
  });
  return least;
}

}  // namespace orrery::transforms::strategies
