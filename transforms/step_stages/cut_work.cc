#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/stages/pipeline.h"
#include "transforms/step_work.h"
#include "transforms/training/microbatch.h"

// Pipeline stages.

namespace orrery::transforms {
namespace cut_work_cc {
namespace {

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
                     .positions = work.positions,
                     .prices = work.prices.has_value() ? &*work.prices : context.prices,
                     .send_seconds = context.send_seconds,
                     .schedule = context.schedule,
                     .memory_limit = context.memory_limit,
                     .in_flight = context.in_flight,
                     .weight_versions = context.weight_versions},
          .scatters_sends = work.context.scatters_sends && !work.sliced(),
          .collect_dim = work.sliced() ? 1 : 0};
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

absl::StatusOr<std::vector<std::vector<size_t>>> Ways(const StepWork& work) {
  return PartitionsToTry(work.last(), work.mesh, work.plan.microbatches, PartitionOf(work));
}

absl::Status Cut(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(work.step, PartitionStages(work.last(), work.mesh, work.plan.microbatches,
                                                     work.batched, PartitionOf(work)));
  work.step->devices = work.context.devices;
  if (work.plan.dp > 1) work.step->gathered = ActivationsGathered(work.last(), "dp");
  work.step->microbatch_size = BatchSize(work.part()).value_or(0);
  return work.context.updates_each_microbatch ? CheckUpdatesAlone(*work.step) : absl::OkStatus();
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
};

}  // namespace orrery::transforms
