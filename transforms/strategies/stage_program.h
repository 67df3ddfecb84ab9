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

/// What stages of one problem cost: what units add up to is found once.
class StageWeights {
 public:
  /// The problem lives longer.
  explicit StageWeights(const StageProblem& problem);

  /// What a division costs, in O(stages). Requires ascending begins of `stages` stages, the first
  /// 0.
  StageDivision Weigh(std::vector<int32_t> begins) const;

  /// Seconds of a stage of the units begin..end-1, with the sends at both ends.
  double Seconds(int32_t begin, int32_t end) const;
  /// The same without sends: of part of these units no more.
  double Work(int32_t begin, int32_t end) const;
  /// Bytes of a stage of these units.
  double Memory(int32_t stage, int32_t begin, int32_t end) const;
  /// The same without what it receives: of part of these units no more.
  double Held(int32_t stage, int32_t begin, int32_t end) const;
  int32_t units() const { return units_; }

 private:
  double Boundary(int32_t unit) const;
  double InFlight(int32_t stage) const;

  const StageProblem& problem_;
  int32_t units_;
  std::vector<double> seconds_, state_, kept_, weights_;  // of all units before each
};

/// What a division costs, of which no other is asked (StageWeights::Weigh).
StageDivision Weigh(const StageProblem& problem, std::vector<int32_t> begins);

/// Units by which stages are moved when a division of many is improved, to begin with: then by half
/// as many, down to 1.
int32_t FirstStride(int32_t units, int32_t stages);

/// Units dealt to the stages with equally many each, give or take one: unit u is of stage
/// ⌊u · stages / units⌋. Requires no fewer units than stages.
std::vector<int32_t> EqualBegins(int32_t units, int32_t stages);

/// The division that keeps to the memory limit with the fastest slowest rank; of those that are as
/// fast the one with the least bytes over boundaries, then the most even one. Where none keeps to
/// the limit, the one whose fullest rank needs least. With one stage a rank and up to kMostExact
/// units no division is better; of more units runs of equally many are divided first, and then what
/// is near where stages begin: in O(kMostExact² + units). With several stages a rank no division is
/// better that differs in where one unit is. Error: fewer units than stages, tables of other sizes.
absl::StatusOr<StageDivision> DivideByCost(const StageProblem& problem);

/// Units of the largest problem that is solved as a whole; never fewer than the stages.
inline constexpr int32_t kMostExact = 2000;

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_STAGE_PROGRAM_H_
