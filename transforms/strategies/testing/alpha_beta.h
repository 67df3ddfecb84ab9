#ifndef ORRERY_TRANSFORMS_STRATEGIES_TESTING_ALPHA_BETA_H_
#define ORRERY_TRANSFORMS_STRATEGIES_TESTING_ALPHA_BETA_H_

#include <cstdint>

// What Alpa and XLA take for the time of a collective when they choose strategies: α + β × bytes
// over a ring, of which both count on one mesh axis of `ranks` devices, n. The small constants only
// break ties. Units are those of α and β; Alpa's defaults are α = 1, and β = 1 on the first mesh
// axis, 0.1 on the second.

namespace orrery::transforms::strategies {

/// Whose formulas: XLA rounds all but the tie-breaks to whole numbers, halves to the even one.
enum class AlphaBetaStyle { kAlpa, kXla };

/// A mesh axis as these formulas see it.
struct AlphaBeta {
  AlphaBetaStyle style = AlphaBetaStyle::kAlpa;
  int64_t ranks = 1;  // n, at least 1
  double alpha = 1;
  double beta = 1;

  /// The time of an all-gather over n ranks, in units of α: α + β (n-1)/n bytes + 0.1; `bytes` is
  /// the whole tensor, here and below.
  double AllGather(double bytes) const;
  /// α + 2β (n-1)/n bytes + 0.01.
  double AllReduce(double bytes) const;
  /// α + β (n-1)/n bytes + 0.001.
  double ReduceScatter(double bytes) const;
  /// α + β (n-1)/n² bytes × n/2 + 0.001: the factor n/2 was fitted to V100 nodes.
  double AllToAll(double bytes) const;
};

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_TESTING_ALPHA_BETA_H_
