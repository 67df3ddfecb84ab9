#ifndef ORRERY_TRANSFORMS_SCHEDULES_SCHEDULE_H_
#define ORRERY_TRANSFORMS_SCHEDULES_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A pipeline schedule is a pure function: from the shape of a pipeline to the order in which each
// rank of it runs the forward and backward of each microbatch on each of its stages.
//
// A model is cut into stages, counted from 0 in the order of its layers. A rank holds one, or
// several ("chunks"). A backward may be split: into what makes the gradient of the stage's input
// (I), for which other ranks wait, and what makes those of its weights (W), for which nobody does.
//
// Steps carry a time slot: when all steps last one unit and sends take no time, a step runs in its
// slot. Slots put the steps of all ranks in one order that cannot deadlock, which is what a rank
// with one stream for everything needs.

namespace orrery::transforms {

/// As torch writes them: F, B, I, W. A backward (B) is I and W at once.
enum class StepKind : uint8_t { kForward, kBackward, kInputGradient, kWeightGradient };

/// A phase of one stage for one microbatch: what a rank runs at a time.
struct ScheduleStep {
  StepKind kind = StepKind::kForward;
  int32_t stage = 0;
  int32_t microbatch = 0;
  int32_t slot = 0;  // unit times from the start of the step
  /// Runs at once with the next step of its rank: "(0F3;7B1)OVERLAP_F_B".
  bool with_next = false;

  friend bool operator==(const ScheduleStep&, const ScheduleStep&) = default;
};

/// The steps of each rank, in the order in which the rank runs them; slots ascend strictly. Kinds
/// and texts: text.h; time, memory and whether they are orders at all: orders.h.
using RankOrders = std::vector<std::vector<ScheduleStep>>;

/// How long a step of one stage and microbatch lasts, in any unit. A backward: I and W.
struct StepDurations {
  int64_t forward = 1;
  int64_t input_gradient = 1;
  int64_t weight_gradient = 1;
  int64_t send = 0;  // from one rank to another, beside what both compute

  /// How long a step of that kind lasts.
  int64_t Of(StepKind kind) const {
    switch (kind) {
      case StepKind::kForward:
        return forward;
      case StepKind::kBackward:
        return input_gradient + weight_gradient;
      case StepKind::kInputGradient:
        return input_gradient;
      case StepKind::kWeightGradient:
        return weight_gradient;
    }
    return 0;
  }
};

/// Which rank holds which stage, of p ranks.
enum class StagePlacement : uint8_t {
  kLoop,  // stage s on rank s mod p
  kV,     // two a rank: r and 2p-1-r
  /// Two pipelines of p stages in opposite directions over the same ranks. Stages p … 2p-1 are a
  /// second copy of the model's: stage p+k holds what stage k holds, on rank p-1-k. So a rank has
  /// stages r and 2p-1-r, as with kV. The first ceil(m/2) microbatches take the first pipeline.
  kTwoWay,
};

/// The size of a pipeline, and what schedules weigh beside it.
struct PipelineShape {
  int32_t ranks = 1;             // >= 1
  int32_t microbatches = 1;      // >= 1
  int32_t chunks = 1;            // stages that a rank holds
  StepDurations durations = {};  // of the average stage, for schedules that weigh them
  /// Most activations live on a rank, each of one stage and one microbatch, from its forward until
  /// the last of its backward; for schedules that obey a limit. 0: what the schedule stands for.
  int64_t live_limit = 0;

  int32_t stages() const { return ranks * chunks; }
};

/// The one record of a schedule. All that a new one needs, besides its line in schedules.def.
/// A schedule fills in what it needs of so many fields.
struct PipelineSchedule {
  absl::string_view name;     // "1f1b"
  absl::string_view summary;  // one sentence
  absl::string_view source;   // the paper or program that it comes from
  StagePlacement placement = StagePlacement::kLoop;
  int32_t chunks = 1;  // that a rank holds; 0: as many as one wants, 2 where nobody says
  /// The order of each rank. Requires a shape that `CheckShape` accepts.
  RankOrders (*orders)(const PipelineShape& shape) = nullptr;
  /// Which shapes there are orders for, beyond at least one of everything and the number of chunks.
  /// None: all. The error is an Infeasible for the reason kSchedule and says what is wanted.
  absl::Status (*check)(const PipelineShape& shape) = nullptr;
  /// Whether `orders` reads the durations.
  bool weighs_durations = false;
  /// Whether a rank runs two steps at once, which gains where one rank is all there is, too.
  bool runs_pairs = false;
  /// True when weights are updated while the pipeline is running and it is never drained; a step
  /// is then measured in the steady state.
  bool asynchronous = false;
  /// Microbatches are slices of the sequence of each sample, not parts of the batch.
  bool slices_sequence = false;
  /// Microbatches between two updates of an asynchronous schedule. None: an update after each.
  int32_t (*microbatches_an_update)(const PipelineShape& shape) = nullptr;
  /// Whether all stages work on weights as old as those of the first, so that a microbatch meets
  /// one version of the model.
  bool one_age = false;
  /// Versions of its weights that a stage must keep; 1 for synchronous schedules.
  int32_t (*weight_versions)(const PipelineShape& shape, int32_t stage) = nullptr;
  /// Orders that somebody has written down, of one shape; then `orders` is not asked.
  const RankOrders* given = nullptr;

  /// The order of each rank: the given one, or that which `orders` makes. On one rank nobody waits
  /// for a part of a backward: there it is whole, but in an order that is given. Requires a shape
  /// that `CheckShape` accepts.
  RankOrders OrdersOf(const PipelineShape& shape) const;
  /// The shape with as many chunks as this schedule has where `chunks` is 0 or not a choice. One
  /// rank has one chunk unless another number is wanted: there is no pipeline to fill.
  PipelineShape ShapeOf(int32_t ranks, int32_t microbatches, int32_t chunks_wanted = 0) const;
  /// Whether there are orders for the shape; if not, an Infeasible for the reason kSchedule that
  /// names what is wanted.
  absl::Status CheckShape(const PipelineShape& shape) const;

 private:
  /// Whether the model may be one stage on one rank, whatever chunks the schedule has.
  bool MayBeOneStage(int32_t ranks) const;
};

/// All schedules, in the order of schedules.def.
std::span<const PipelineSchedule* const> AllSchedules();

/// The schedule of that name; the error lists the names that there are.
absl::StatusOr<const PipelineSchedule*> FindSchedule(absl::string_view name);

/// The rank that holds a stage.
int32_t RankOf(StagePlacement placement, const PipelineShape& shape, int32_t stage);

/// How many pipelines there are, each of stages()/Pipelines stages in a row: 2 for kTwoWay, else 1.
int32_t Pipelines(StagePlacement placement);

/// The pipeline that a microbatch takes: 0, or for kTwoWay 1 for those after the first ceil(m/2).
int32_t PipelineOf(StagePlacement placement, const PipelineShape& shape, int32_t microbatch);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_SCHEDULE_H_
