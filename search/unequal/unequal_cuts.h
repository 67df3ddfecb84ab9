#ifndef ORRERY_SEARCH_UNEQUAL_UNEQUAL_CUTS_H_
#define ORRERY_SEARCH_UNEQUAL_UNEQUAL_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// Layers dealt to stages that are not equally fast and have not equally much memory; microbatches
// to replicas that are not equally fast.

namespace orrery::search {

/// What each layer would cost a stage.
struct PacedStage {
  std::vector<std::vector<double>> replica_seconds;  // by replica and layer: of one microbatch
  /// By layer: between microbatches, all replicas at work, in seconds.
  std::vector<double> pace;
  std::vector<double> state_bytes;  // by layer, a rank: parameters, gradients, optimizer state
  std::vector<double> kept_bytes;   // by layer, a rank: that a microbatch leaves for its backward
  double in_flight = 1;             // microbatches on it at once
  double limit = 0;                 // bytes of a rank; 0: none
};

/// How many layers each stage gets, each at least one, so that a step of so many microbatches takes
/// least: T = Σ t_s + (microbatches - 1) max t_s with t_s the pace of stage s (Zheng et al., Alpa,
/// OSDI 2022, equation 2); of those whose stages keep to their limits, if there are any and
/// `limits`. Of equals the one whose first stages have fewest. Nothing for fewer layers than
/// stages, or where none keeps to the limits. In O(candidates · stages · layers²), of at most 512
/// candidates for the slowest stage.
std::optional<std::vector<int64_t>> CutByPace(const std::vector<PacedStage>& stages,
                                              int64_t microbatches, bool limits);

/// The T that this minimizes.
double StepSecondsOf(const std::vector<PacedStage>& stages, const std::vector<int64_t>& layers,
                     int64_t microbatches);

/// Of the cuts with one layer less on a stage, and one more on the next or the one before, those
/// that may as well be the fastest, since T knows no sends and no overlap: within a tenth of that
/// of `layers`, at most `most`, the fastest by T first.
std::vector<std::vector<int64_t>> CutsBeside(const std::vector<PacedStage>& stages,
                                             const std::vector<int64_t>& layers,
                                             int64_t microbatches, size_t most);

/// All cuts of so many layers into stages of at least one, if there are at most `most`; else none.
std::vector<std::vector<int64_t>> AllCuts(int64_t layers, size_t stages, size_t most);

/// Equally many layers on each stage, give or take one, the first ones more. Requires at least one
/// for each.
std::vector<int64_t> CutEqually(int64_t layers, int64_t stages);

/// How many of `count` microbatches each of some replicas gets, at least one, so that the last is
/// done as early as can be: of replicas that take so many seconds for one. Requires count >= the
/// number of replicas, and seconds above 0.
std::vector<int64_t> SharesBySpeed(const std::vector<double>& seconds, int64_t count);

/// Seconds that each replica takes for a microbatch, on the stage that holds it up longest, with so
/// many layers in each stage. Requires as many replicas in each.
std::vector<double> PathSeconds(const std::vector<PacedStage>& stages,
                                const std::vector<int64_t>& layers);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_UNEQUAL_UNEQUAL_CUTS_H_
