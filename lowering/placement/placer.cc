#include "lowering/placement/placer.h"

#include <algorithm>
#include <utility>

namespace orrery::lowering {

using simulator::StreamKind;
using simulator::TaskId;

namespace placer_cc {
namespace {

constexpr TaskId kNobody;

// Who made a value: in this microbatch, or, for the update at the end of the step, in the update or
// in the last microbatch that ran.
const Makers::Tasks* FindMade(const Stage& stage, ir::ValueId origin, int32_t microbatch) {
  const Makers::Tasks* made = stage.makers.Find(origin, microbatch);
  if (made != nullptr || microbatch != Placer::kUpdate) return made;
  made = stage.makers.Find(origin, stage.last_microbatch);
  return made != nullptr ? made : stage.makers.Find(origin, stage.last_gradient);
}

}  // namespace
}  // namespace placer_cc

void Placer::Place(const Item& item) {
  Placing& placing = placing_[0];
  Begin(item, placing);
  while (placing.next < item.placed->block.tasks.size()) PlaceNext(placing);
  End(placing);
}

void Placer::PlaceTogether(const Item& a, const Item& b) {
  Begin(a, placing_[0]);
  Begin(b, placing_[1]);
  const auto left = [](const Placing& placing) {
    return placing.next < placing.item.placed->block.tasks.size();
  };
  const auto share = [](const Placing& placing) {
    return placing.total == Duration() ? 1.0 : placing.done.seconds() / placing.total.seconds();
  };
  while (left(placing_[0]) || left(placing_[1])) {
    const bool second =
        !left(placing_[0]) || (left(placing_[1]) && share(placing_[1]) < share(placing_[0]));
    PlaceRun(placing_[second ? 1 : 0]);
  }
  for (Placing& placing : placing_) End(placing);
}

void Placer::Begin(const Item& item, Placing& placing) {
  placing.item = item;
  placing.next = 0;
  placing.done = placing.total = Duration();
  const std::vector<BlockTask>& tasks = item.placed->block.tasks;
  placing.task_of.assign(tasks.size() * ActorCount(item), placer_cc::kNobody);
  for (const BlockTask& task : tasks) {
    if (IsKernel(task)) placing.total += task.duration;
  }
  FindInputs(placing);
  if (item.microbatch != kUpdate) StageOf(item).last_microbatch = item.microbatch;
}

void Placer::PlaceRun(Placing& placing) {
  const std::vector<BlockTask>& tasks = placing.item.placed->block.tasks;
  do {
    PlaceNext(placing);
  } while (placing.next < tasks.size() && tasks[placing.next].joins);
}

void Placer::PlaceNext(Placing& placing) {
  const size_t t = placing.next++;
  const BlockTask& task = placing.item.placed->block.tasks[t];
  const size_t actors = ActorCount(placing.item);
  if (IsKernel(task)) placing.done += task.duration;
  if (task.group.empty() || actors == 1) {
    for (size_t a = 0; a < actors; ++a) PlaceKernel(placing, t, a);
  } else {
    PlaceCollective(placing, t);
  }
}

void Placer::End(Placing& placing) {
  AddMemory(placing);
  if (remembers_) RememberMakers(placing);
  const std::vector<int32_t>& releases = placing.item.placed->block.releases;
  const std::vector<Actor>& actors = StageOf(placing.item).actors;
  for (size_t a = 0; a < actors.size() && !releases.empty(); ++a) {
    std::vector<TaskId>& dropped = releases_[actors[a].rank];
    dropped.clear();
    for (const int32_t task : releases) {
      dropped.push_back(placing.task_of[static_cast<size_t>(task) * actors.size() + a]);
    }
  }
}

// What other blocks will wait for: outputs, and what is sent from here.
void Placer::RememberMakers(Placing& placing) {
  const Block& block = placing.item.placed->block;
  Stage& stage = StageOf(placing.item);
  const size_t actors = stage.actors.size();
  const auto remember = [&](ir::ValueId origin, const std::vector<TaskId>& tasks, int32_t index) {
    Makers::Tasks made(actors);
    for (size_t a = 0; a < actors; ++a) made[a] = tasks[static_cast<size_t>(index) * actors + a];
    stage.makers.Remember(origin, placing.item.microbatch, std::move(made));
  };
  for (const BlockValue& output : block.outputs) {
    if (output.task >= 0) remember(output.origin, placing.task_of, output.task);
  }
  for (const BlockSend& send : block.sends) {
    if (!send.has_maker) continue;
    remember(send.origin, send.made_by.external ? placing.inputs : placing.task_of,
             send.made_by.index);
  }
}

void Placer::FindInputs(Placing& placing) {
  const Stage& stage = StageOf(placing.item);
  const Block& block = placing.item.placed->block;
  const size_t actors = stage.actors.size();
  placing.inputs.assign(block.inputs.size() * actors, placer_cc::kNobody);
  if (!remembers_) return;
  for (size_t i = 0; i < block.inputs.size(); ++i) {
    const Makers::Tasks* made =
        placer_cc::FindMade(stage, block.inputs[i].origin, placing.item.microbatch);
    if (made == nullptr) continue;
    for (size_t a = 0; a < actors; ++a) placing.inputs[i * actors + a] = (*made)[a];
  }
}

void Placer::FindAfter(Placing& placing, const BlockTask& task, size_t actor) {
  const Block& block = placing.item.placed->block;
  const size_t actors = ActorCount(placing.item);
  for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
    const BlockDependency& dependency = block.dependencies[d];
    const size_t place = static_cast<size_t>(dependency.index) * actors + actor;
    const TaskId on = dependency.external ? placing.inputs[place] : placing.task_of[place];
    if (on.valid()) after_.push_back(on);
  }
  if (task.gate == 0) return;
  const std::vector<TaskId>& dropped = releases_[StageOf(placing.item).actors[actor].rank];
  const auto gate = static_cast<size_t>(task.gate);
  if (gate <= dropped.size()) after_.push_back(dropped[dropped.size() - gate]);
}

void Placer::PlaceKernel(Placing& placing, size_t t, size_t actor) {
  const PlacedBlock& placed = *placing.item.placed;
  const Stage& stage = StageOf(placing.item);
  const BlockTask& task = placed.block.tasks[t];
  after_.clear();
  FindAfter(placing, task, actor);
  TaskId& last_kernel = last_kernels_[stage.actors[actor].rank];
  const bool known = std::ranges::find(after_, last_kernel) != after_.end();
  if (task.follows && last_kernel.valid() && !known) after_.push_back(last_kernel);
  const TaskId placed_task =
      program_.AddTask(stage.actors[actor].streams[static_cast<size_t>(task.stream)],
                       {.duration = placed.DurationOf(t, stage.actors[actor].kind),
                        .flow = fold_ ? placed.flows[t] : simulator::FlowId(),
                        .label = task.label,
                        .microbatch = placing.item.microbatch},
                       after_);
  placing.task_of[t * stage.actors.size() + actor] = placed_task;
  if (IsKernel(task)) last_kernel = placed_task;
}

void Placer::PlaceCollective(Placing& placing, size_t t) {
  const Stage& stage = StageOf(placing.item);
  const BlockTask& task = placing.item.placed->block.tasks[t];
  const auto& groups = pricing_.GroupsOf(task.group);
  for (size_t g = 0; g < groups.size(); ++g) {
    after_.clear();
    streams_.clear();
    for (const int32_t place : groups[g]) {
      const auto actor = static_cast<size_t>(place);
      FindAfter(placing, task, actor);
      streams_.push_back(stage.actors[actor].streams[static_cast<size_t>(task.stream)]);
    }
    const TaskTime time = pricing_.Collective(placing.item.stage, RequestOf(task), g);
    const TaskId id = program_.AddRendezvous(streams_,
                                             {.duration = time.duration,
                                              .flow = time.flow,
                                              .label = task.label,
                                              .microbatch = placing.item.microbatch},
                                             after_);
    for (const int32_t place : groups[g]) {
      placing.task_of[t * stage.actors.size() + static_cast<size_t>(place)] = id;
    }
  }
}

void Placer::AddMemory(Placing& placing) {
  const Stage& stage = StageOf(placing.item);
  const size_t actors = stage.actors.size();
  for (size_t a = 0; a < actors; ++a) {
    for (const BlockMemory& memory : placing.item.placed->block.memory) {
      program_.AddMemoryEvent(
          {.task = placing.task_of[static_cast<size_t>(memory.task) * actors + a],
           .rank = stage.actors[a].rank,
           .kind = memory.kind,
           .moment = memory.moment,
           .bytes = memory.BytesIn(placing.item.collected)});
    }
  }
}

void Placer::PlaceSend(const Item& item, size_t send) {
  const BlockSend& row = item.placed->block.sends[send];
  const Makers::Tasks* made = placer_cc::FindMade(StageOf(item), row.origin, item.microbatch);
  if (geometry_.place_of(item.stage) == geometry_.place_of(row.to)) {
    return HandOver(item, row, made);
  }
  Makers::Tasks tasks = Transfer(item, send, made);
  if (!remembers_) return;
  stages_[static_cast<size_t>(row.to)].makers.Remember(row.origin, item.microbatch,
                                                       std::move(tasks));
}

// Both stages are on one rank. What the first one keeps is there twice: as far as memory goes, the
// other has its own.
void Placer::HandOver(const Item& item, const BlockSend& send, const Makers::Tasks* made) {
  const Stage& from = StageOf(item);
  for (size_t a = 0; a < from.actors.size() && made != nullptr && !send.freed; ++a) {
    if (!(*made)[a].valid()) continue;
    program_.AddMemoryEvent({.task = (*made)[a],
                             .rank = from.actors[a].rank,
                             .kind = item.microbatch == kUpdate
                                         ? simulator::MemoryKind::kGradients
                                         : simulator::MemoryKind::kActivations,
                             .bytes = send.bytes.count()});
  }
  if (made == nullptr) return;
  stages_[static_cast<size_t>(send.to)].makers.Remember(send.origin, item.microbatch, *made);
}

Makers::Tasks Placer::Transfer(const Item& item, size_t send, const Makers::Tasks* made) {
  const BlockSend& row = item.placed->block.sends[send];
  const Stage& from = StageOf(item);
  const Stage& to = stages_[static_cast<size_t>(row.to)];
  const bool next = geometry_.place_of(row.to) > geometry_.place_of(item.stage);
  const auto kind = item.microbatch == kUpdate ? simulator::MemoryKind::kGradients
                                               : simulator::MemoryKind::kActivations;
  Makers::Tasks tasks(from.actors.size());
  for (size_t a = 0; a < from.actors.size(); ++a) {
    after_.clear();
    if (made != nullptr && (*made)[a].valid()) after_.push_back((*made)[a]);
    const TaskTime time =
        fold_ ? item.placed->sends[send] : pricing_.Send(item.stage, RequestOf(row), a);
    const StreamKind sending = next ? StreamKind::kSendNext : StreamKind::kSendPrevious;
    const StreamKind receiving = next ? StreamKind::kReceivePrevious : StreamKind::kReceiveNext;
    tasks[a] = program_.AddRendezvous(
        std::array{StreamOf(from.actors[a], sending), StreamOf(to.actors[a], receiving)},
        {.duration = time.duration,
         .flow = time.flow,
         .label = row.label,
         .microbatch = item.microbatch},
        after_);
    const auto take = [&](simulator::RankClassId rank, int64_t bytes) {
      program_.AddMemoryEvent({.task = tasks[a], .rank = rank, .kind = kind, .bytes = bytes});
    };
    take(to.actors[a].rank, row.bytes.count());
    if (row.freed) take(from.actors[a].rank, -row.bytes.count());
  }
  return tasks;
}

}  // namespace orrery::lowering
