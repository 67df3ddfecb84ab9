#include "transforms/step_work.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/model_facts.h"
#include "support/status.h"
#include "transforms/memory/offload.h"
#include "transforms/memory/recompute.h"
#include "transforms/memory/zero.h"
#include "transforms/plan/mesh.h"
#include "transforms/sharding/shard.h"
#include "transforms/slices/add_slices.h"
#include "transforms/slices/slice_sequence.h"
#include "transforms/slices/slices.h"
#include "transforms/training/fp8_mixed.h"
#include "transforms/training/microbatch.h"

namespace orrery::transforms {
namespace step_work_cc {
namespace {

absl::Status Unsupported(std::string detail) {
  return InfeasibleStatus({.reason = InfeasibleReason::kUnsupported, .detail = std::move(detail)});
}

// A function that fits one device and one microbatch, and cannot be cut or sharded like this, makes
// the plan infeasible; it is no error of the model.
absl::StatusOr<ir::Function> AsFeasible(absl::StatusOr<ir::Function> function) {
  if (function.ok() || AsInfeasible(function.status()).has_value()) return function;
  return Unsupported(std::string(function.status().message()));
}

// --- slice, microbatch

absl::Status CheckSlice(const StepWork& work) {
  if (!work.sliced()) return absl::OkStatus();
  const PlanContext& context = work.context;
  if (std::ssize(context.slices) != work.plan.microbatches) {
    return absl::InvalidArgumentError(absl::StrCat("got ", context.slices.size(), " slices for ",
                                                   work.plan.microbatches,
                                                   " microbatches; wanted one each"));
  }
  if (context.decided_on.rows == 0) {
    ORRERY_RETURN_IF_ERROR(CheckSlices(context.slices, ir::SequenceLength(work.whole)));
  }
  const char* const what = work.plan.cp > 1                ? "context parallelism, which splits it"
                           : work.plan.offload.activations ? "activations on the host"
                                                           : nullptr;
  if (what == nullptr) return absl::OkStatus();
  return Unsupported(absl::StrCat("slices of the sequence with ", what,
                                  "; try a schedule of parts of the batch, such as 1f1b"));
}

// Which outputs have the rows of the slice.
absl::Status Slice(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(
      work.one, AsFeasible(SliceSequence(work.whole, DecidedOn(work.whole, work.context))));
  // Before all that is done to as many.
  ORRERY_RETURN_IF_ERROR(
      CheckSliceCount(std::ssize(work.context.slices), std::ssize(work.one->order())));
  for (size_t i = 0; i < work.whole.outputs().size(); ++i) {
    work.batched.push_back(work.whole.type(work.whole.outputs()[i].value).dims !=
                           work.one->type(work.one->outputs()[i].value).dims);
  }
  return absl::OkStatus();
}

// Which outputs have the batch as their first dimension: those that are smaller in a microbatch.
absl::Status Microbatches(StepWork& work) {
  const int64_t microbatches = work.plan.microbatches;
  const ir::Function& whole = work.whole;
  if (microbatches > 1) {
    ORRERY_ASSIGN_OR_RETURN(work.one, AsFeasible(Microbatch(whole, microbatches)));
  }
  const ir::Function& part = work.part();
  for (size_t i = 0; i < whole.outputs().size(); ++i) {
    const ir::ValueId output = whole.outputs()[i].value;
    const ir::Dims& wanted = whole.type(output).dims;
    ir::Dims dims = part.type(part.outputs()[i].value).dims;
    work.batched.push_back(!(wanted == dims));
    if (!work.batched.back()) continue;
    if (!dims.empty()) dims[0] *= microbatches;
    if (wanted == dims) continue;
    return Unsupported(absl::StrCat("output ", ir::PrintValue(whole, output),
                                    " has the batch in another dimension than its first; wanted "
                                    "one microbatch"));
  }
  return absl::OkStatus();
}

// --- shard

ZeroOptions ZeroOf(const ParallelPlan& plan) {
  if (plan.zero == 0) return {};
  return {.stage = plan.zero, .group = plan.zero_group, .prefetch = plan.prefetch};
}

AutoShardOptions ShardingOf(const StepWork& work) {
  const ParallelPlan& plan = work.plan;
  const ZeroOptions zero = ZeroOf(plan);
  // The first stage keeps the most: a part of the model, and that of several microbatches.
  const int64_t in_flight = work.context.in_flight > 0 ? work.context.in_flight : plan.pp;
  const int64_t group = zero.group > 0 ? zero.group : plan.dp;
  const int64_t most = std::numeric_limits<int64_t>::max() / plan.pp;
  return {.pins = plan.pins,
          .sequence_parallel = plan.sequence_parallel,
          .context_attention = plan.context_attention,
          .microbatches = work.context.updates_each_microbatch ? 1 : plan.microbatches,
          .memory_limit = Bytes(std::min(work.context.memory_limit.count(), most) * plan.pp),
          .in_flight = std::min(in_flight, plan.microbatches),
          .held = PartsHeld(zero, std::min(group, plan.dp))};
}

bool NeedsSharding(const StepWork& work) {
  return work.plan.ranks() > work.plan.pp || !work.plan.pins.empty();
}

absl::Status CheckPattern(const StepWork& work) {
  if (!NeedsSharding(work) || work.context.prices != nullptr) return absl::OkStatus();
  if (work.plan.cp * work.plan.ep == 1 && work.plan.pins.empty()) return absl::OkStatus();
  return Unsupported(absl::StrCat(DegreesText(work.plan),
                                  " by Megatron's pattern; wanted sharding by cost for cp, ep and "
                                  "pins (`sharding` auto)"));
}

absl::Status ShardStep(StepWork& work) {
  const std::vector<bool> batched = BatchedInputs(work.whole);
  if (work.context.prices != nullptr) {
    // What is wrong with pins is an error, and none of this plan alone.
    ORRERY_ASSIGN_OR_RETURN(work.sharded, AutoShard(work.part(), work.mesh, batched,
                                                    *work.context.prices, ShardingOf(work)));
  } else {
    ORRERY_ASSIGN_OR_RETURN(work.sharded, AsFeasible(Shard(work.part(), work.mesh, batched)));
  }
  return absl::OkStatus();
}

// Costs of shardings, which are chosen by now, are those of 16 bits.
absl::Status MixFp8(StepWork& work) {
  if (!work.sharded.has_value()) work.sharded = work.part();
  ORRERY_RETURN_IF_ERROR(Fp8Mixed(*work.sharded).status());
  work.batched.resize(work.sharded->outputs().size(), false);  // copies of weights are no results
  return absl::OkStatus();
}

// --- ZeRO's groups

absl::Status CheckGroups(const StepWork& work) {
  const ZeroOptions zero = ZeroOf(work.plan);
  ORRERY_RETURN_IF_ERROR(CheckZero(zero));
  if (zero.stage > 0 && work.context.updates_each_microbatch) {
    return Unsupported(absl::StrCat("ZeRO's stage ", zero.stage,
                                    " with a schedule that keeps several versions of the weights; "
                                    "wanted a synchronous one, such as 1f1b"));
  }
  if (zero.group == 0 || work.plan.dp % zero.group == 0) return absl::OkStatus();
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kDivisibility,
       .detail = absl::StrCat("dp=", work.plan.dp, " does not divide into groups of ", zero.group,
                              " ranks that share parameters")});
}

bool HasGroups(const StepWork& work) {
  const int64_t group = ZeroOf(work.plan).group;
  return work.sharded.has_value() && group > 0 && group < work.plan.dp;
}

absl::Status SplitGroups(StepWork& work) {
  work.sharded =
      SplitAxis(*work.sharded, {.axis = "dp", .inner = kZeroAxis, .size = ZeroOf(work.plan).group});
  work.mesh = work.sharded->mesh();
  if (work.context.stages.prices != nullptr) {
    work.prices.emplace(*work.context.stages.prices, work.mesh.Find(kZeroAxis).value());
  }
  return absl::OkStatus();
}

// --- cut

PartitionOptions PartitionOf(const StepWork& work) {
  const ParallelPlan& plan = work.plan;
  const StageContext& context = work.context.stages;
  const bool distir = plan.stages_by == StagesBy::kDistir;
  return {.equal_stages = distir,
          .split_backward = work.context.split_backward,
          .chunks = work.context.chunks,
          .placement = work.context.placement,
          .choice = {.by = distir ? StagesBy::kFlops : plan.stages_by,
                     .split_at = plan.split_at,
                     .layers_per_stage = plan.layers_per_stage,
                     .prices = work.prices.has_value() ? &*work.prices : context.prices,
                     .send_seconds = context.send_seconds,
                     .schedule = context.schedule,
                     .memory_limit = context.memory_limit,
                     .in_flight = context.in_flight,
                     .weight_versions = context.weight_versions},
          .collect_dim = work.sliced() ? 1 : 0};
}

// Stages that update after each microbatch do not wait for each other.
absl::Status CheckUpdatesAlone(const PipelinedStep& step) {
  absl::flat_hash_map<std::string, size_t> stage_of;
  for (size_t s = 0; s < step.stages.size(); ++s) {
    for (const StageFunction* part : step.stages[s].parts()) {
      for (const ir::Input& input : part->function.inputs()) {
        if (input.role != ir::InputRole::kParameter) continue;
        const std::string name(part->function.value_name(input.value));
        const auto [found, is_new] = stage_of.emplace(name, s);
        if (is_new || found->second == s) continue;
        return Unsupported(
            absl::StrCat("parameter %", name, " is of stages ", found->second, " and ", s,
                         ", and each updates by itself; try a synchronous schedule, or "
                         "embeddings that are not tied, tied_embeddings=0 of built-in models"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Cut(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(work.step, PartitionStages(work.last(), work.mesh, work.plan.microbatches,
                                                     work.batched, PartitionOf(work)));
  return work.context.updates_each_microbatch ? CheckUpdatesAlone(*work.step) : absl::OkStatus();
}

// --- memory

KeepRule KeepRuleOf(const StepWork& work) {
  return {.policy = work.plan.recompute,
          .gathers = work.context.prices != nullptr && work.plan.sequence_parallel};
}

absl::Status OffloadTheActivations(StepWork& work) {
  return OffloadActivations({.policy = work.plan.offload, .prefetch = work.plan.offload_prefetch},
                            *work.step);
}

absl::Status CheckOffload(const StepWork& work) {
  if (!work.plan.offload.optimizer || !work.context.updates_each_microbatch) {
    return absl::OkStatus();
  }
  return Unsupported(
      "the optimizer on the host, with a schedule that keeps several versions of the weights; "
      "wanted a synchronous one, such as 1f1b");
}

absl::Status UnfoldSlices(StepWork& work) {
  ORRERY_RETURN_IF_ERROR(AddSlices(work.whole, work.context.slices, *work.step));
  work.step->slice = DecidedOn(work.whole, work.context);
  return absl::OkStatus();
}

bool IsSliced(const StepWork& work) { return work.sliced(); }

// The order of the checks is that of the list; of several that fail the first one is told.
constexpr StepStage kStages[] = {
    {.name = "slice",
     .summary = "the step of one slice of the sequence, where microbatches are slices",
     .applies = IsSliced,
     .check = CheckSlice,
     .run = Slice},
    {.name = "microbatch",
     .summary = "the step of one microbatch, a part of the batch",
     .applies = [](const StepWork& work) { return !work.sliced(); },
     .run = Microbatches},
    {.name = "shard",
     .summary = "shardings along dp, hp, cp and ep, by cost or by Megatron's pattern",
     .applies = NeedsSharding,
     .check = CheckPattern,
     .run = ShardStep},
    {.name = "fp8",
     .summary = "products of linear layers read 8-bit copies",
     .applies = [](const StepWork& work) { return work.plan.mixes_fp8(); },
     .run = MixFp8},
    {.name = "zero-groups",
     .summary = "dp becomes two axes, where only neighbouring ranks shard together",
     .applies = HasGroups,
     .check = CheckGroups,
     .run = SplitGroups},
    {.name = "cut",
     .summary = "forward, backward and update of each pipeline stage, with sends between them",
     .run = Cut},
    {.name = "recompute",
     .summary = "backward rematerializes what forward does not keep",
     .applies = [](const StepWork& work) { return Rematerializes(KeepRuleOf(work)); },
     .run = [](StepWork& work) { return Recompute(*work.step, KeepRuleOf(work)); }},
    {.name = "offload-activations",
     .summary = "copies of activations to the host, and back",
     .applies = [](const StepWork& work) { return work.plan.offload.activations; },
     .check = CheckOffload,
     .run = OffloadTheActivations},
    {.name = "zero",
     .summary = "shards of state, gradients and parameters, with their gathers and scatters",
     .applies = [](const StepWork& work) { return work.plan.zero > 0; },
     .run = [](StepWork& work) { return ApplyZero(ZeroOf(work.plan), *work.step); }},
    {.name = "offload-optimizer",
     .summary = "the update runs on the host",
     .applies = [](const StepWork& work) { return work.plan.offload.optimizer; },
     .run = [](StepWork& work) { return OffloadOptimizer(work.plan.offload, *work.step); }},
    {.name = "unfold-slices",
     .summary = "the functions of each slice, from those of the one that all was decided on",
     .applies = IsSliced,
     .run = UnfoldSlices},
};

}  // namespace
}  // namespace step_work_cc

std::vector<ir::Function> StepWork::Functions() const {
  if (step.has_value()) return step->Functions();
  return {last()};
}

std::span<const StepStage> AllStepStages() { return step_work_cc::kStages; }

// A slice of average length in the middle: what it takes is what slices take on average, whatever
// length they have.
SliceRange DecidedOn(const ir::Function& whole, const PlanContext& context) {
  if (context.decided_on.rows > 0) return context.decided_on;
  const int64_t count = std::ssize(context.slices);
  const int64_t rows = ir::SequenceLength(whole) / count;
  return {.begin = count / 2 * rows, .rows = rows};
}

}  // namespace orrery::transforms
