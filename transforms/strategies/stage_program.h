#ifndef ORRERY_TRANSFORMS_STRATEGIES_STAGE_PROGRAM_H_
#define ORRERY_TRANSFORMS_STRATEGIES_STAGE_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

// Where pipeline stages begin: a row of units is cut so that the slowest rank is as fast as it can
// be. With a stage a rank this is a dynamic program over units × stages; with several, which add up
// on their rank, its answer is improved by moving units from stage to stage.

namespace orrery::transforms::strategies {

/// A row of units, each of which is part of one stage. Seconds and bytes are of a rank.
struct StageProblem {
  std::vector<double> seconds;           // of each unit, for one microbatch
  std::vector<double> boundary_seconds;  // of a send, where a stage begins at that unit
  std::vector<double> boundary_bytes;    // likewise; what a stage receives it keeps
  std::vector<double> state_bytes;       // of each unit, whatever is in flight
  std::vector<double> kept_bytes;        // for each microbatch in flight
  int32_t stages = 1;
  std::vector<int32_t> ranks = {};         // of each stage; empty: one each
  std::vector<double> in_flight = {};      // microbatches, of each stage; empty: one
  double memory_limit = 0;                 // of a rank; 0: none
  std::vector<double> weight_bytes = {};   // of each unit, in the state; empty: 0
  std::vector<double> more_versions = {};  // of its weights, that each stage keeps; empty: 0
};

/// Stages from the first on: a stage begins at `begins[s]` and ends where the next begins.
struct StageDivision {
  std::vector<int32_t> begins;
  double slowest_rank =
      0;  // seconds for one microbatch: of its stages, and a send at each boundary
  double slowest_stage = 0;   // likewise
  double most_memory = 0;     // bytes of the fullest rank
  double boundary_bytes = 0;  // of all boundaries, for one microbatch
  double squares = 0;         // of the seconds of all ranks: less is more even
};

/// What a division costs. Requires ascending begins of `stages` stages, the first 0.
StageDivision Weigh(const StageProblem& problem, std::vector<int32_t> begins);

/// Units dealt to the stages with equally many each, give or take one: unit u is of stage
/// ⌊u · stages / units⌋. Requires no fewer units than stages.
std::vector<int32_t> EqualBegins(int32_t units, int32_t stages);

/// The division that keeps to the memory limit with the fastest slowest rank; of those that are as
/// fast the one with the least bytes over boundaries, then the most even one. Where none keeps to
/// the limit, the one whose fullest rank needs least. With one stage a rank no division is better,
/// in O(units² · stages); with several none that differs in where one unit is. Error: fewer units
/// than stages, tables of other sizes.
absl::StatusOr<StageDivision> DivideByCost(const StageProblem& problem);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_STAGE_PROGRAM_H_
