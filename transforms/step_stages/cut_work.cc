#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/status.h"
#include "transforms/stages/pipeline.h"
#include "transforms/step_work.h"
#include "transforms/training/microbatch.h"

// Pipeline stages.

namespace orrery::transforms {
namespace cut_work_cc {
namespace {

// ZeRO shards optimizer state, from its stage 2 on gradients, from 3 on weights.
StateShares StateOf(const ParallelPlan& plan) {
  const double part = 1 / static_cast<double>(ZeroGroupOf(plan));
  return {.weights = plan.zero >= 3 ? part : 1,
          .gradients = plan.zero >= 2 ? part : 1,
          .optimizer = plan.offload.optimizer ? 0 : part};
}

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
                     .placement = plan.placement,
                     .positions = work.positions,
                     .prices = work.prices.has_value() ? &*work.prices : context.prices,
                     .send_seconds = context.send_seconds,
                     .schedule = context.schedule,
                     .timer = context.timer,
                     .memory_share = context.memory_share,
                     .state = StateOf(plan),
                     .in_flight = context.in_flight,
                     .weight_versions = context.weight_versions},
          .scatters_sends = work.context.scatters_sends && !work.sliced(),
          .collect_dim = work.sliced() ? 1 : 0,
          .late_updates = work.context.updates_each_microbatch};
}

absl::Status CheckDevices(const StepWork& work) {
  const int64_t devices = std::ssize(work.context.devices);
  if (devices == 0 || devices == work.plan.ranks()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got ", devices, " devices for ", work.plan.ranks(), " ranks; wanted one each"));
}

absl::Status CheckStages(const StepWork& work) {
  return CheckPartition(work.whole, work.mesh, PartitionOf(work));
}

// Of two stages that have a copy of a parameter the later one updates its own when the part of the
// gradient has come that the earlier one makes. With three of them the first would wait for the
// last, which waits for it.
absl::Status CheckLateUpdates(const PipelinedStep& step) {
  absl::flat_hash_map<std::string, std::vector<size_t>> stages_of;
  for (size_t s = 0; s < step.stages.size(); ++s) {
    for (const StageFunction* part : step.stages[s].parts()) {
      for (const ir::Input& input : part->function.inputs()) {
        if (input.role != ir::InputRole::kParameter) continue;
        const std::string name(part->function.value_name(input.value));
        std::vector<size_t>& stages = stages_of[name];
        if (!stages.empty() && stages.back() == s) continue;
        stages.push_back(s);
        if (stages.size() < 3) continue;
        return Unsupported(absl::StrCat(
            "parameter %", name, " is of stages ", absl::StrJoin(stages, ", "),
            ", and each updates by itself; wanted two at most; try a synchronous schedule"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<size_t>>> Ways(const StepWork& work) {
  return PartitionsToTry(work.last(), work.mesh, work.plan.microbatches, PartitionOf(work));
}

absl::Status Cut(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(work.step, PartitionStages(work.last(), work.mesh, work.plan.microbatches,
                                                     work.batched, PartitionOf(work)));
  work.step->devices = work.context.devices;
  work.step->padded = work.padded;
  if (work.plan.dp > 1) work.step->gathered = ActivationsGathered(work.last(), "dp");
  work.step->microbatch_size = BatchSize(work.part()).value_or(0);
  return work.context.updates_each_microbatch ? CheckLateUpdates(*work.step) : absl::OkStatus();
}

// All of PartitionOptions but where stages begin.
std::string StagesText(const StepWork& work) {
  const PartitionOptions options = PartitionOf(work);
  return absl::StrCat(Places(work.mesh), " chunks ", options.chunks, " placement ",
                      static_cast<int>(options.placement), options.equal_stages ? " equal" : "",
                      options.split_backward ? " split" : "",
                      options.scatters_sends ? " scattered" : "",
                      work.context.updates_each_microbatch ? " alone" : "", " microbatches ",
                      work.plan.microbatches, " placed ", KeyOf(ToString(work.plan.placement)));
}

// Where stages begin is all that is left of the choice.
std::string CutReads(const StepWork& work) {
  return absl::StrCat(StagesText(work), " at ", absl::StrJoin(work.positions.value(), ","));
}

// To the bit: %a.
std::string ListText(const std::vector<double>& list) {
  return absl::StrJoin(
      list, ",", [](std::string* text, double each) { absl::StrAppendFormat(text, "%a", each); });
}

// Prices, sends and orders follow from the plan and the root of the key (SharedParts).
std::string WaysRead(const StepWork& work) {
  const StageChoice choice = PartitionOf(work).choice;
  const ParallelPlan& plan = work.plan;
  return absl::StrCat(
      StagesText(work), " by ", static_cast<int>(choice.by), " ", KeyOf(choice.split_at), " ",
      absl::StrJoin(choice.layers_per_stage, ","),
      choice.prices != nullptr ? absl::StrCat(" prices ", KeyOf(plan.algorithm.ToString())) : "",
      choice.send_seconds ? " sends" : "",
      choice.schedule != nullptr
          ? absl::StrCat(" orders ", plan.schedule.name(), " ", KeyOf(plan.schedule_file))
          : "",
      " within ",
      ListText({choice.memory_share.value_or(-1), choice.state.weights, choice.state.gradients,
                choice.state.optimizer}),
      " in flight ", ListText(choice.in_flight), " versions ", ListText(choice.weight_versions));
}

}  // namespace
}  // namespace cut_work_cc

extern const StepStage kCutStepStage = {
    .name = "cut",
    .summary = "forward, backward and update of each pipeline stage, with sends between them",
    .check = cut_work_cc::CheckDevices,
    .divides = cut_work_cc::CheckStages,
    .ways = cut_work_cc::Ways,
    .run = cut_work_cc::Cut,
    .reads = cut_work_cc::CutReads,
    .ways_read = cut_work_cc::WaysRead,
};

}  // namespace orrery::transforms
