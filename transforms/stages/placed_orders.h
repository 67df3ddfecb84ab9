#ifndef ORRERY_TRANSFORMS_STAGES_PLACED_ORDERS_H_
#define ORRERY_TRANSFORMS_STAGES_PLACED_ORDERS_H_

#include <cstdint>
#include <vector>

#include "transforms/schedules/orders.h"
#include "transforms/schedules/schedule.h"
#include "transforms/stages/pipeline.h"

// Orders of stages that are a graph: each set of devices that is free runs, of the steps whose
// inputs are there, the one that can begin first; of those a backward before a forward, then the
// one of the first microbatch, then the one from which the way to the end of the step is longest,
// the upward rank of HEFT (Topcuoglu et al., IEEE TPDS 13(3), 2002).

namespace orrery::transforms {

/// A stage of a graph: who runs it, how long, and what it waits for.
struct PlacedStage {
  int32_t set = 0;
  int64_t forward = 1, backward = 1;         // how long a microbatch takes, in any unit
  std::vector<int32_t> forward_needs = {};   // stages whose forward it waits for, of lower numbers
  std::vector<int32_t> backward_needs = {};  // whose backward, of higher ones
};

/// The stages of a step, with unit times, and what they receive of each other.
std::vector<PlacedStage> PlacedStagesOf(const PipelinedStep& step);

/// The order of each set, in slots of unit times: of two list schedules, one in unit times and one
/// by the times of the stages, the one that by these ends first, or else the former. With
/// `forwards_first` each set runs all its forwards before its backwards, as GPipe does. Else at
/// most so many microbatches are between their forward and backward on a stage as there are changes
/// of sets on the longest way from there to the end, and one more. In unit times these are GPipe
/// and 1F1B on a chain, slot by slot.
RankOrders PlacedOrders(const std::vector<PlacedStage>& stages, int32_t microbatches,
                        bool forwards_first);

/// When each step of such orders runs if each lasts as long as `durations` say of its kind and
/// starts as early as it can, as TimeOrders has it of a chain; sends take no time.
Timing TimePlacedOrders(const std::vector<PlacedStage>& stages, const RankOrders& orders,
                        const StepDurations& durations);

/// So many: how many microbatches each stage may have between their forward and backward.
std::vector<int64_t> MostUnderWay(const std::vector<PlacedStage>& stages, int64_t microbatches,
                                  bool forwards_first);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_PLACED_ORDERS_H_
