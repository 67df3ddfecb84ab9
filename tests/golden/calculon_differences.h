#ifndef ORRERY_TESTS_GOLDEN_CALCULON_DIFFERENCES_H_
#define ORRERY_TESTS_GOLDEN_CALCULON_DIFFERENCES_H_

#include <string>
#include <vector>

#include "tests/golden/calculon.h"

// Where Orrery and Calculon count differently, each as a formula in the sizes of the case alone: no
// figure that was simulated is in it.

namespace orrery::golden {

/// What is counted here and not by Calculon, in bytes; less than 0 the other way about.
struct Difference {
  std::string why;
  double bytes = 0;
};
double Sum(const std::vector<Difference>& differences);

/// Of the first rank, by what it is about. `kept` of `saved` times layers and microbatches in
/// flight; `at_work` of what a backward has beside that, gradients of activations included.
struct Differences {
  std::vector<Difference> weights, gradients, optimizer, kept, at_work, host;

  double device() const {
    return Sum(weights) + Sum(gradients) + Sum(optimizer) + Sum(kept) + Sum(at_work);
  }
};
Differences DifferencesOf(const CalculonCase& c);

/// Calculon's figures that `kept` and `at_work` are about.
double KeptOf(const CalculonCase& c);
double AtWorkOf(const CalculonCase& c);

}  // namespace orrery::golden

#endif  // ORRERY_TESTS_GOLDEN_CALCULON_DIFFERENCES_H_
