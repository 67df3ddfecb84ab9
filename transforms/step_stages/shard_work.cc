#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/plan/mesh.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/shard.h"
#include "transforms/sharding/sharding_memo.h"
#include "transforms/step_work.h"
#include "transforms/training/microbatch.h"

// Shardings along dp, hp, cp and ep.

namespace orrery::transforms {
namespace shard_work_cc {
namespace {

// Along the sequence only where each slice divides.
std::optional<SequenceParallel> PatternOf(const StepWork& work) {
  const ParallelPlan& plan = work.plan;
  if (!work.context.by_pattern && !plan.by_pattern()) return std::nullopt;
  const auto divides = [&](const SliceRange& slice) {
    return slice.rows % (plan.hp * plan.cp) == 0;
  };
  const bool all = std::ranges::all_of(work.context.slices, divides);
  if (plan.sequence_parallel == SequenceParallel::kAuto && !all) return SequenceParallel::kOff;
  return plan.sequence_parallel;
}

AutoShardOptions ShardingOf(const StepWork& work) {
  const ParallelPlan& plan = work.plan;
  const ZeroOptions zero = ZeroOf(plan);
  // The first stage keeps the most: a part of the model, and that of several microbatches.
  const int64_t in_flight = work.context.in_flight > 0 ? work.context.in_flight : plan.pp;
  const int64_t group = zero.group > 0 ? zero.group : plan.dp;
  const int64_t most = std::numeric_limits<int64_t>::max() / plan.pp;
  return {.pins = plan.pins,
          .pattern = PatternOf(work),
          .whole_results = work.sliced(),
          .context_attention = plan.context_attention,
          .microbatches = work.context.updates_each_microbatch ? 1 : plan.microbatches,
          .memory_limit = Bytes(std::min(work.context.memory_limit.count(), most) * plan.pp),
          .in_flight = std::min(in_flight, plan.microbatches),
          .gathers = GathersAgain(work),
          .held = PartsHeld(zero, std::min(group, plan.dp)),
          .memory_price = work.context.alternative.memory_price,
          .link_price = work.context.alternative.link_price};
}

bool NeedsSharding(const StepWork& work) {
  return work.plan.ranks() > work.plan.pp || !work.plan.pins.empty();
}

absl::Status Check(const StepWork& work) {
  if (!work.whole.mesh().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(work.whole.name(), " is sharded over ",
                                                   ir::ToString(work.whole.mesh()),
                                                   " already; wanted a function of one device"));
  }
  if (!NeedsSharding(work) || work.context.prices != nullptr) return absl::OkStatus();
  if (work.plan.cp * work.plan.ep == 1 && work.plan.pins.empty()) return absl::OkStatus();
  return Unsupported(absl::StrCat(DegreesText(work.plan),
                                  " by column and row products alone; wanted prices of a cluster "
                                  "for cp, ep and pins (`sharding` auto or megatron)"));
}

// Pins have a meaning by cost only.
absl::Status CheckPinned(const StepWork& work) {
  if (work.context.prices == nullptr) return absl::OkStatus();
  return CheckPins(work.whole, work.mesh, work.plan.pins);
}

// Each microbatch has samples of every data-parallel rank; slices are of the whole batch.
absl::Status CheckDivides(const StepWork& work) {
  ORRERY_RETURN_IF_ERROR(CheckPinned(work));
  const int64_t microbatches = work.sliced() ? 1 : work.plan.microbatches;
  const std::vector<bool> batched = BatchedInputs(work.whole);
  for (size_t i = 0; i < batched.size(); ++i) {
    if (!batched[i]) continue;
    const ir::ValueId input = work.whole.inputs()[i].value;
    const int64_t samples = work.whole.type(input).dims[0] / microbatches;
    if (samples % work.plan.dp != 0) {
      return UnevenSplitStatus({.axis = "dp",
                                .ranks = work.plan.dp,
                                .dim = 0,
                                .value = ir::PrintValue(work.whole, input),
                                .size = samples});
    }
  }
  return absl::OkStatus();
}

absl::Status ShardStep(StepWork& work) {
  const std::vector<bool> batched = BatchedInputs(work.whole);
  if (work.context.prices == nullptr) {
    ORRERY_ASSIGN_OR_RETURN(work.sharded, AsFeasible(Shard(work.part(), work.mesh, batched)));
    return absl::OkStatus();
  }
  const AutoShardOptions options = ShardingOf(work);
  const ShardingAlternative& wanted = work.context.alternative;
  const ShardingMemo::Answer* known = wanted.memo != nullptr ? wanted.memo->Find(options) : nullptr;
  AutoShardReport report;
  if (known != nullptr) {
    work.sharded = known->sharded;
    report = known->report;
  } else {
    // What is wrong with pins is an error, and none of this plan alone.
    ORRERY_ASSIGN_OR_RETURN(work.sharded, AutoShard(work.part(), work.mesh, batched,
                                                    *work.context.prices, options, &report));
    if (wanted.memo != nullptr) wanted.memo->Add(options, *work.sharded, report);
  }
  if (wanted.wants && !wanted.wants(report)) {
    return absl::CancelledError("this sharding is not wanted");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace shard_work_cc

extern const StepStage kShardStepStage = {
    .name = "shard",
    .summary = "shardings along dp, hp, cp and ep, by cost or by Megatron's pattern",
    .applies = shard_work_cc::NeedsSharding,
    .check = shard_work_cc::Check,
    .divides = shard_work_cc::CheckDivides,
    .run = shard_work_cc::ShardStep,
};

}  // namespace orrery::transforms
