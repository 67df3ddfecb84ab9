#ifndef ORRERY_TRANSFORMS_STRATEGIES_PIPEDREAM_PLAN_H_
#define ORRERY_TRANSFORMS_STRATEGIES_PIPEDREAM_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

// PipeDream's planner (Narayanan et al., SOSP 2019, section 3.1): which layers each stage has and
// on how many workers it is replicated, so that the slowest stage is as fast as it can be.
//
// Workers stand in levels: m_1 devices share a node, m_2 nodes a rack, and so on, with a bandwidth
// B_k among the m_k members of level k. With t_l, w_l and a_l the time, weights and output of a
// layer, A^k(i,j,m) the slowest stage of layers i..j on m members of level k, and T^k that of one
// stage replicated on them:
//   A^0(i,j,1) = Σ t_l
//   T^k(i,j,m) = max(A^(k-1)(i,j,m_(k-1)), 2 (m-1) Σ w_l / B_k) / m
//   A^k(i,j,m) = min(T^k(i,j,m),
//                    min over s and n of max(A^k(i,s,m-n), 2 a_s / B_k, T^k(s+1,j,n)))

namespace orrery::transforms::strategies {

/// A level of the machine: how many of the level below it joins, and how fast.
struct PipeDreamLevel {
  int32_t members = 1;
  double bytes_per_second = 0;  // of a member
};

/// What the planner reads: figures of each layer, and the machine.
struct PipeDreamProblem {
  std::vector<double> seconds;       // of each layer, forward and backward of one minibatch
  std::vector<double> weight_bytes;  // likewise
  std::vector<double> output_bytes;  // likewise; of the last not read
  /// That a worker with the layer holds, with one minibatch under way; empty: not known.
  std::vector<double> held_bytes = {};
  double memory_limit = 0;             // bytes of a worker; 0: none
  std::vector<PipeDreamLevel> levels;  // the innermost first
};

/// A stage of a plan: neighbouring layers, and workers that each have all of them.
struct PipeDreamStage {
  int32_t begin = 0;  // layers begin..end-1
  int32_t end = 0;
  int32_t replicas = 1;

  friend bool operator==(const PipeDreamStage&, const PipeDreamStage&) = default;
};

/// Stages in the order of their layers, and the pace that they keep.
struct PipeDreamPlan {
  std::vector<PipeDreamStage> stages;
  double seconds = 0;  // between minibatches in steady state: of the slowest stage, or send
};

/// The plan that uses all workers; of those that are as fast one with few stages. A plan within a
/// level repeats for each replica on the levels above, whose stages then have as many replicas
/// more. No stage holds more than the memory limit; infeasible (memory) where that cannot be. In
/// O(layers³ · members²) a level, of which there may be 10^10. Error: no layers or levels, tables
/// of other sizes, figures below 0, a level without members or bandwidth.
absl::StatusOr<PipeDreamPlan> PlanPipeDream(const PipeDreamProblem& problem);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_PIPEDREAM_PLAN_H_
