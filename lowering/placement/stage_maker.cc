#include "lowering/placement/stage_maker.h"

#include <algorithm>
#include <utility>

#include "lowering/blocks/compressed_reductions.h"
#include "lowering/blocks/host_work.h"
#include "lowering/blocks/residents.h"
#include "lowering/placement/fuse_stretches.h"
#include "lowering/placement/used_labels.h"
#include "transforms/stages/dealt_orders.h"
#include "transforms/stages/dealt_rounds.h"
#include "transforms/stages/placed_orders.h"

namespace orrery::lowering {

std::vector<Stage> StageMaker::Make() {
  stages_ = TemplateMaker(of_, kinds_).Make();
  uses_host_ = transforms::FindHostWork(input_.step).copies;
  const bool folds = input_.options.fold && !geometry_.unequal();
  alike_ = folds && OneKindAStage() && pricing_.AllGroupsAlike();
  fold_ = folds && (alike_ || HasTooManyTasks());
  pricing_.Prepare(fold_, program_);
  MakeRanks();
  SetLevels();
  PriceTemplates();
  const bool fuses =
      input_.options.fuse_stretches && !input_.options.blocking && !MaySlowDown(input_);
  if (fold_ && fuses) FuseStretches(input_.schedule, stages_, program_);
  if (input_.options.fuse_runs) KeepUsedLabels(stages_, program_);
  return std::move(stages_);
}

// Whether ranks are folded depends on how many tasks there are only where they are not alike.
bool StageMaker::Serves(const Repetitions& repetitions) const {
  if (repetitions.microbatches == repetitions_.microbatches) return true;
  const StageMaterials other{of_.input, of_.geometry, repetitions, of_.pricing, of_.program};
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    if (SeesOne(other, s) != SeesOne(of_, s)) return false;
    if (VersionsOf(repetitions, s) != VersionsOf(repetitions_, s)) return false;
  }
  return !input_.options.fold || alike_ || geometry_.unequal();
}

const cluster::Device& StageMaker::DeviceOf(int32_t rank) const {
  return input_.cluster.device_of(geometry_.device(rank));
}

// Runs of kernels count once, whether they are one task or, for a trace, many: what is asked for
// beside an answer does not change it.
bool StageMaker::HasTooManyTasks() const {
  const auto tasks_of = [](const TaskTemplate& task_template) {
    const auto joins = std::ranges::count_if(task_template.tasks, &TemplateTask::joins);
    return task_template.task_count() - joins;
  };
  int64_t tasks = 0;
  for (int32_t stage = 0; stage < geometry_.stages(); ++stage) {
    tasks += repetitions_.CountOnARank(stages_[static_cast<size_t>(stage)], tasks_of) *
             std::ssize(geometry_.ranks_of_stage(stage));
  }
  return tasks > input_.options.most_unfolded_tasks;
}

bool StageMaker::OneKindAStage() const {
  return std::all_of(kinds_.begin(), kinds_.end(),
                     [](const auto& kinds) { return kinds.size() == 1; });
}

Bytes StageMaker::CapacityOf(int32_t rank) const {
  const Bytes limit = input_.options.memory_limit;
  if (!input_.options.device_memory) return limit;
  const Bytes memory = DeviceOf(rank).memory;
  return limit == Bytes(0) ? memory : std::min(limit, memory);
}

// As with durations, the slowest kind stands for all of a folded stage.
double StageMaker::SlowDownOf(int32_t position, int32_t rank) const {
  const double of_stack = input_.options.kernels.slowdown;
  if (!fold_) return std::max(of_stack, DeviceOf(rank).communication_slowdown);
  double slowdown = of_stack;
  for (const int32_t kind : kinds_[static_cast<size_t>(position)]) {
    slowdown = std::max(slowdown, input_.cluster.kind(kind).communication_slowdown);
  }
  return slowdown;
}

void StageMaker::MakeActors(int32_t position) {
  const std::vector<int32_t>& ranks = geometry_.ranks_at(position);
  const std::vector<int32_t>& kinds = kinds_[static_cast<size_t>(position)];
  std::vector<Actor>& actors = actors_.emplace_back();
  const size_t count = fold_ ? 1 : ranks.size();
  for (size_t a = 0; a < count; ++a) {
    Bytes capacity = CapacityOf(ranks[a]);
    for (const int32_t rank : ranks) {
      if (fold_) capacity = std::min(capacity, CapacityOf(rank));
    }
    const int32_t kind = input_.cluster.kind_of(geometry_.device(ranks[a]));
    Actor actor;
    actor.kind =
        fold_ ? 0
              : static_cast<size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
    actor.rank = program_.AddRank({.name = geometry_.Name(ranks[a]),
                                   .members = fold_ ? ranks : std::vector<int32_t>{ranks[a]},
                                   .stage = position,
                                   .capacity = capacity,
                                   .communication_slowdown = SlowDownOf(position, ranks[a]),
                                   .alike = alike_ || !fold_});
    for (int stream = 0; stream < (input_.options.blocking ? 1 : simulator::kStreamKindCount);
         ++stream) {
      const auto kind = static_cast<simulator::StreamKind>(stream);
      if (IsHostStream(kind) && kind != simulator::StreamKind::kHost && !uses_host_) continue;
      actor.streams[static_cast<size_t>(stream)] = program_.AddStream(actor.rank, kind);
    }
    actors.push_back(actor);
  }
}

// A communicator for stages is there where there are any.
ir::Mesh StageMaker::MeshOfAll(int32_t position) const {
  if (!geometry_.unequal()) return input_.step.mesh;
  std::vector<ir::Axis> axes = geometry_.mesh_at(position).axes();
  for (ir::Axis& axis : axes) {
    if (axis.name == "pp") axis.size = geometry_.positions();
  }
  return ir::Mesh(std::move(axes));
}

int64_t StageMaker::SamplesAt(int32_t position) const {
  return geometry_.unequal()
             ? input_.step.unequal.places[static_cast<size_t>(position)].microbatch_size
             : input_.step.microbatch_size;
}

// Of the replica that has most.
int64_t StageMaker::MicrobatchesOf(int32_t position) const {
  if (!geometry_.dealt()) return input_.step.microbatches;
  if (input_.schedule.asynchronous) {
    const int64_t replicas = geometry_.RunnersOf(position);
    return (input_.step.microbatches + replicas - 1) / replicas;
  }
  return transforms::MostDealt(input_.step.unequal.replica_of[static_cast<size_t>(position)]);
}

// Microbatches that a rank of a stage has between their forward and backward, at most.
int64_t StageMaker::UnderWayOn(int32_t s) const {
  if (input_.step.unequal.placed) {
    return transforms::MostUnderWay(transforms::PlacedStagesOf(input_.step),
                                    input_.step.microbatches,
                                    input_.schedule.name == "gpipe")[static_cast<size_t>(s)];
  }
  const int32_t position = geometry_.position_of(s);
  if (geometry_.dealt() && input_.schedule.asynchronous) {
    return transforms::UnderWay(
        transforms::ReplicasOf(input_.step.unequal))[static_cast<size_t>(position)];
  }
  return std::min<int64_t>(MicrobatchesOf(position), geometry_.positions() - position);
}

int32_t StageMaker::VersionsOf(const Repetitions& repetitions, int32_t s) const {
  if (!geometry_.dealt()) return input_.schedule.weight_versions(repetitions.shape, s);
  return transforms::DealtWeightVersions(input_.schedule,
                                         transforms::ReplicasOf(input_.step.unequal), s);
}

// Ranks of a position hold the same.
void StageMaker::AddResidentsOf(int32_t position) {
  const std::vector<Actor>& actors = actors_[static_cast<size_t>(position)];
  const simulator::RankClassId first = actors.front().rank;
  AddOverhead(input_.options.memory_overhead, MeshOfAll(position), first, program_);
  std::vector<char> seen;
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    if (geometry_.position_of(s) != position) continue;
    const int32_t versions = VersionsOf(repetitions_, s);
    const int64_t microbatches = MicrobatchesOf(position);
    AddResidents({.step = input_.step,
                  .stage = s,
                  .weight_versions = versions,
                  .microbatches_under_way = UnderWayOn(s),
                  .microbatches = microbatches,
                  .microbatch_size = SamplesAt(position),
                  .rank = first,
                  .stack_memory = input_.options.stack_memory},
                 seen, program_);
    program_.AddResident(
        first, simulator::MemoryKind::kBuffers,
        KeptByCompression(input_.options.compression,
                          input_.step.stages[static_cast<size_t>(s)].update.function));
  }
  for (size_t a = 1; a < actors.size(); ++a) {
    for (int kind = 0; kind < simulator::kAllMemoryKindCount; ++kind) {
      const auto of_kind = static_cast<simulator::MemoryKind>(kind);
      program_.AddResident(actors[a].rank, of_kind, program_.resident(first, of_kind));
    }
  }
}

void StageMaker::MakeRanks() {
  for (int32_t position = 0; position < geometry_.positions(); ++position) MakeActors(position);
  for (int32_t position = 0; position < geometry_.positions(); ++position) AddResidentsOf(position);
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    stages_[static_cast<size_t>(s)].actors = actors_[static_cast<size_t>(geometry_.position_of(s))];
  }
}

// The first kind's durations become those of the slowest of all.
void StageMaker::TakeSlowest(PricedTemplate& priced) const {
  for (const std::vector<Duration>& durations : priced.other_durations) {
    for (size_t t = 0; t < durations.size(); ++t) {
      Duration& duration = priced.task_template.tasks[t].duration;
      duration = std::max(duration, durations[t]);
    }
  }
}

void StageMaker::SetLevels() {
  for (const Stage& stage : stages_) {
    for (const PricedTemplate* priced : stage.templates()) {
      for (const TemplateTask& task : priced->task_template.tasks) {
        if (!task.group.empty()) program_.SetLevel(task.label, pricing_.LevelOf(task.movement));
      }
      for (const TemplateSend& send : priced->task_template.sends) {
        if (send.movement.valid()) program_.SetLevel(send.label, pricing_.LevelOf(send.movement));
        for (const SendMessage& message : send.across.messages) {
          program_.SetLevel(message.label, pricing_.LevelOf(message.movement));
        }
        if (send.across.gathering.valid()) {
          program_.SetLevel(send.across.label, pricing_.LevelOf(send.across.gathering));
        }
      }
    }
  }
}

void StageMaker::PriceTemplates() {
  if (!fold_) return;
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    for (PricedTemplate* priced : stages_[static_cast<size_t>(s)].templates()) {
      TakeSlowest(*priced);
      priced->flows.resize(priced->task_template.tasks.size());
      for (size_t t = 0; t < priced->task_template.tasks.size(); ++t) {
        TemplateTask& task = priced->task_template.tasks[t];
        if (task.group.empty()) continue;
        const TaskTime time = pricing_.TimeOf(task.movement, 0);
        task.duration = time.duration;
        priced->flows[t] = time.flow;
        program_.SetCollectives(task.label,
                                static_cast<int32_t>(pricing_.GroupsOf(s, task.group).size()));
      }
      for (const TemplateSend& send : priced->task_template.sends) {
        priced->sends.push_back(send.movement.valid() ? pricing_.TimeOf(send.movement, 0)
                                                      : TaskTime());
      }
    }
  }
}

}  // namespace orrery::lowering
