#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/redistribution/move_set.h"
#include "transforms/redistribution/search.h"
#include "transforms/redistribution/tensorcraft_layout.h"
#include "transforms/redistribution/tensorcraft_operation.h"

// Redistribution as tensorcraft (Helmholtz-AI-Energy/tensorcraft, commit 80a0cd4) sees it: its
// operations and its IdealLowerBoundsCM, after Chan et al. 2007. All mesh axes cost the same, and
// the data of a collective is counted in elements.

namespace orrery::transforms::redistribution {

/// The weights of the cost model.
struct TensorcraftOptions {
  double alpha = 1;    // a hop
  double beta = 1;     // an element over a link
  double gamma = 1;    // an element added up: none of the operations adds
  double epsilon = 0;  // an element by which the fullest rank's memory grows
  /// Whether an all-to-all is charged what a rank sends, (p-1)/p of what it has. The library
  /// charges all-gather's volume, p times as much.
  bool physical = false;

  friend bool operator==(const TensorcraftOptions&, const TensorcraftOptions&) = default;
};

/// Reads "alpha=0.01,beta=0.00032,physical"; what is not named keeps its default. Errors of one
/// line.
absl::StatusOr<TensorcraftOptions> ParseTensorcraftOptions(absl::string_view text);

/// What the library reports of an operation.
using TensorcraftVolume = StepVolume;

/// tensorcraft's operations on the layouts of one tensor, with its costs; see the top of this file.
class TensorcraftMoveSet final : public MoveSet {
 public:
  /// An error of one line where the tensor or one of its layouts is none of tensorcraft's: partial,
  /// or with ranks that own nothing.
  static absl::StatusOr<std::unique_ptr<TensorcraftMoveSet>> Create(
      const Problem& problem, const TensorcraftOptions& options);

  void Expand(const PackedLayout& layout, std::vector<Move>& moves) const override;
  /// One general all-to-all to the target. tensorcraft has none, so that under a memory limit
  /// some blocks cannot be had otherwise. Charged as if each rank sent to each other all that the
  /// fuller of the two layouts has, axis by axis, and held all of it: no less than to gather
  /// everything and to split it, which is what it saves the memory of.
  void LastResort(const PackedLayout& layout, std::vector<Move>& moves) const override;
  /// Unless splits alone lead to the target, one collective at least is due, a hop and half of what
  /// a rank has at the end; and each axis that has to leave its dimension pays for that.
  double LowerBound(const PackedLayout& layout) const override;
  StepCost CostOf(const PackedLayout& before, const Step& step) const override;
  int64_t Elements(const PackedLayout& layout) const override;
  /// The library's name: "alltoall_mf_0_1_-1". The steps of the naive plan are "allgather_*" and
  /// "split_*", the last resort is "alltoall_*".
  std::string NameOf(const PackedLayout& before, const Step& step) const override;
  PackedLayout Normal(const PackedLayout& layout) const override { return tensor_.Normal(layout); }

  /// What the library says that the step moves, from a rank that holds what the fullest one does
  /// before it.
  StepVolume VolumeOf(const PackedLayout& before, const Step& step) const override;
  /// All-gather everything, then split as the target does; of those, what is needed.
  RedistributionPlan Naive() const;

 private:
  TensorcraftMoveSet(const Problem& problem, const TensorcraftOptions& options);

  StepCost Cost(const Step& step, int64_t before, int64_t after) const;
  StepCost CostOfLastResort(const Step& step, int64_t before, int64_t after) const;
  TensorcraftVolume Volume(const Step& step, int64_t before) const;
  bool SplitsLeadToTarget(const PackedLayout& layout) const;

  const TensorcraftTensor tensor_;
  const TensorcraftOptions options_;
  const PackedLayout from_, to_;  // normal
  TensorcraftLayout target_;
  std::vector<int64_t> blocks_;     // that operations ask for: 1 and the target's
  double least_collective_ = 0;     // lower bound of what the last collective costs
  double least_part_elements_ = 0;  // were the tensor split over all ranks
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TENSORCRAFT_H_
