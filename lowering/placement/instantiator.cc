#include "lowering/placement/instantiator.h"

#include <algorithm>
#include <span>
#include <utility>

namespace orrery::lowering {

using simulator::StreamKind;
using simulator::TaskId;

namespace instantiator_cc {
namespace {

constexpr TaskId kNobody;

}  // namespace
}  // namespace instantiator_cc

size_t Instantiator::RunnersBegin(const Geometry& geometry, size_t stages,
                                  std::vector<size_t>& begin) {
  size_t runners = 0;
  for (size_t s = 0; s < stages; ++s) {
    begin.push_back(runners);
    runners += static_cast<size_t>(geometry.RunnersOf(static_cast<int32_t>(s)));
  }
  return runners;
}

// Who made a value: in this microbatch, or, for the update at the end of the step, in the update or
// in the last microbatch that ran.
const Makers::Tasks* Instantiator::FindMade(int32_t stage, ir::ValueId origin, int32_t microbatch) {
  const StageProgress& of_stage = progress(stage, microbatch);
  const Makers::Tasks* made = of_stage.makers.Find(origin, microbatch);
  if (made != nullptr || microbatch != kUpdate) return made;
  if (geometry_.dealt()) return FindLastMade(stage, origin);
  made = of_stage.makers.Find(origin, of_stage.last_microbatch);
  return made != nullptr ? made : of_stage.makers.Find(origin, of_stage.last_gradient);
}

// Each replica has a last microbatch of its own.
const Makers::Tasks* Instantiator::FindLastMade(int32_t stage, ir::ValueId origin) {
  const std::vector<int32_t>& replicas = geometry_.replicas_at(geometry_.position_of(stage));
  last_made_.assign(replicas.size(), instantiator_cc::kNobody);
  bool found = false;
  for (size_t a = 0; a < replicas.size(); ++a) {
    const size_t runner =
        first_runner_[static_cast<size_t>(stage)] + static_cast<size_t>(replicas[a]);
    const StageProgress& of_replica = progress_[runner];
    const Makers::Tasks* made = of_replica.makers.Find(origin, of_replica.last_microbatch);
    if (made == nullptr) made = of_replica.makers.Find(origin, of_replica.last_gradient);
    if (made == nullptr) continue;
    found = true;
    last_made_[a] = (*made)[a];
  }
  return found ? &last_made_ : nullptr;
}

void Instantiator::BeginUpdate(const Item& item) {
  Instance& instance = begun_[static_cast<size_t>(item.stage)];
  Begin(item, instance);
  const TaskTemplate& update = item.priced->task_template;
  const auto waits_for_backward_alone = [&](const TemplateTask& task) {
    return task.stream == StreamKind::kData &&
           std::ranges::all_of(update.DependenciesOf(task), &TemplateDependency::external);
  };
  while (instance.next < update.tasks.size() &&
         waits_for_backward_alone(update.tasks[instance.next])) {
    InstantiateNext(instance);
  }
}

void Instantiator::Instantiate(const Item& item) {
  Instance& begun = begun_[static_cast<size_t>(item.stage)];
  const bool continues = begun.next > 0 && begun.item.priced == item.priced;
  Instance& instance = continues ? begun : instances_[0];
  if (!continues) Begin(item, instance);
  while (instance.next < item.priced->task_template.tasks.size()) InstantiateNext(instance);
  End(instance);
  if (continues) begun = {};
}

void Instantiator::InstantiateTogether(const Item& a, const Item& b) {
  Begin(a, instances_[0]);
  Begin(b, instances_[1]);
  const auto left = [](const Instance& instance) {
    return instance.next < instance.item.priced->task_template.tasks.size();
  };
  const auto share = [](const Instance& instance) {
    return instance.total == Duration() ? 1.0 : instance.done.seconds() / instance.total.seconds();
  };
  while (left(instances_[0]) || left(instances_[1])) {
    const bool second = !left(instances_[0]) ||
                        (left(instances_[1]) && share(instances_[1]) < share(instances_[0]));
    InstantiateRun(instances_[second ? 1 : 0]);
  }
  for (Instance& instance : instances_) End(instance);
}

void Instantiator::Begin(const Item& item, Instance& instance) {
  instance.item = item;
  instance.next = 0;
  instance.done = instance.total = Duration();
  const std::vector<TemplateTask>& tasks = item.priced->task_template.tasks;
  instance.task_of.assign(tasks.size() * ActorCount(item), instantiator_cc::kNobody);
  for (const TemplateTask& task : tasks) {
    if (IsKernel(task)) instance.total += task.duration;
  }
  FindInputs(instance);
  if (item.microbatch != kUpdate) {
    progress(item.stage, item.microbatch).last_microbatch = item.microbatch;
  }
}

void Instantiator::InstantiateRun(Instance& instance) {
  const std::vector<TemplateTask>& tasks = instance.item.priced->task_template.tasks;
  do {
    InstantiateNext(instance);
  } while (instance.next < tasks.size() && tasks[instance.next].joins);
}

void Instantiator::InstantiateNext(Instance& instance) {
  const size_t t = instance.next++;
  const TemplateTask& task = instance.item.priced->task_template.tasks[t];
  const size_t actors = ActorCount(instance.item);
  if (IsKernel(task)) instance.done += task.duration;
  if (task.group.empty() || actors == 1) {
    for (size_t a = 0; a < actors; ++a) {
      if (Runs(instance.item, a)) InstantiateKernel(instance, t, a);
    }
  } else {
    InstantiateCollective(instance, t);
  }
}

void Instantiator::End(Instance& instance) {
  AddMemory(instance);
  if (remembers_) RememberMakers(instance);
  const std::vector<int32_t>& releases = instance.item.priced->task_template.releases;
  const std::vector<Actor>& actors = StageOf(instance.item).actors;
  for (size_t a = 0; a < actors.size() && !releases.empty(); ++a) {
    if (!Runs(instance.item, a)) continue;
    std::vector<TaskId>& dropped = releases_[actors[a].rank];
    dropped.clear();
    for (const int32_t task : releases) {
      dropped.push_back(instance.task_of[static_cast<size_t>(task) * actors.size() + a]);
    }
  }
}

// What other templates will wait for: outputs, and what is sent from here.
void Instantiator::RememberMakers(Instance& instance) {
  const TaskTemplate& task_template = instance.item.priced->task_template;
  const size_t actors = ActorCount(instance.item);
  Makers& makers = progress(instance.item.stage, instance.item.microbatch).makers;
  const auto remember = [&](ir::ValueId origin, const std::vector<TaskId>& tasks, int32_t index) {
    Makers::Tasks made(actors);
    for (size_t a = 0; a < actors; ++a) made[a] = tasks[static_cast<size_t>(index) * actors + a];
    makers.Remember(origin, instance.item.microbatch, std::move(made));
  };
  for (const TemplateValue& output : task_template.outputs) {
    if (output.task >= 0) remember(output.origin, instance.task_of, output.task);
  }
  for (const TemplateSend& send : task_template.sends) {
    if (!send.has_maker) continue;
    remember(send.origin, send.made_by.external ? instance.inputs : instance.task_of,
             send.made_by.index);
  }
}

void Instantiator::FindInputs(Instance& instance) {
  const Stage& stage = StageOf(instance.item);
  const TaskTemplate& task_template = instance.item.priced->task_template;
  const size_t actors = stage.actors.size();
  const bool after_gathers =
      instance.item.priced == &stage.forward.first && !stage.gathers.task_template.tasks.empty();
  instance.inputs.assign(task_template.inputs.size() * actors, instantiator_cc::kNobody);
  if (!remembers_) return;
  for (size_t i = 0; i < task_template.inputs.size(); ++i) {
    const Makers::Tasks* made =
        FindMade(instance.item.stage, task_template.inputs[i].origin, instance.item.microbatch);
    if (made == nullptr && after_gathers) {
      made = progress(instance.item.stage, kUpdate)
                 .makers.Find(task_template.inputs[i].origin, kUpdate);
    }
    if (made == nullptr) continue;
    for (size_t a = 0; a < actors; ++a) instance.inputs[i * actors + a] = (*made)[a];
  }
}

void Instantiator::FindAfter(Instance& instance, const TemplateTask& task, size_t actor) {
  const TaskTemplate& task_template = instance.item.priced->task_template;
  const size_t actors = ActorCount(instance.item);
  for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
    const TemplateDependency& dependency = task_template.dependencies[d];
    const size_t position = static_cast<size_t>(dependency.index) * actors + actor;
    const TaskId on = dependency.external ? instance.inputs[position] : instance.task_of[position];
    if (on.valid()) after_.push_back(on);
  }
  if (task.follows) {
    const TaskId last_kernel = last_kernels_[StageOf(instance.item).actors[actor].rank];
    const bool known = std::ranges::find(after_, last_kernel) != after_.end();
    if (last_kernel.valid() && !known) after_.push_back(last_kernel);
  }
  if (task.gate == 0) return;
  const std::vector<TaskId>& dropped = releases_[StageOf(instance.item).actors[actor].rank];
  const auto gate = static_cast<size_t>(task.gate);
  if (gate <= dropped.size()) after_.push_back(dropped[dropped.size() - gate]);
}

void Instantiator::InstantiateKernel(Instance& instance, size_t t, size_t actor) {
  const PricedTemplate& priced = *instance.item.priced;
  const Stage& stage = StageOf(instance.item);
  const TemplateTask& task = priced.task_template.tasks[t];
  after_.clear();
  FindAfter(instance, task, actor);
  const TaskId task_of_template =
      program_.AddTask(stage.actors[actor].streams[static_cast<size_t>(task.stream)],
                       {.duration = priced.DurationOf(t, stage.actors[actor].kind),
                        .flow = fold_ ? priced.flows[t] : simulator::FlowId(),
                        .label = task.label,
                        .microbatch = instance.item.microbatch},
                       after_);
  instance.task_of[t * stage.actors.size() + actor] = task_of_template;
  if (IsKernel(task)) last_kernels_[stage.actors[actor].rank] = task_of_template;
}

void Instantiator::InstantiateCollective(Instance& instance, size_t t) {
  const Stage& stage = StageOf(instance.item);
  const TemplateTask& task = instance.item.priced->task_template.tasks[t];
  const auto& groups = pricing_.GroupsOf(instance.item.stage, task.group);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!Runs(instance.item, static_cast<size_t>(groups[g].front()))) continue;
    after_.clear();
    streams_.clear();
    for (const int32_t position : groups[g]) {
      const auto actor = static_cast<size_t>(position);
      FindAfter(instance, task, actor);
      streams_.push_back(stage.actors[actor].streams[static_cast<size_t>(task.stream)]);
    }
    const TaskTime time = pricing_.TimeOf(task.movement, g);
    const TaskId id = program_.AddRendezvous(streams_,
                                             {.duration = time.duration,
                                              .flow = time.flow,
                                              .label = task.label,
                                              .microbatch = instance.item.microbatch},
                                             after_);
    for (const int32_t position : groups[g]) {
      instance.task_of[t * stage.actors.size() + static_cast<size_t>(position)] = id;
    }
  }
}

void Instantiator::AddMemory(Instance& instance) {
  const Stage& stage = StageOf(instance.item);
  const size_t actors = stage.actors.size();
  for (size_t a = 0; a < actors; ++a) {
    if (!Runs(instance.item, a)) continue;
    for (const TemplateMemory& memory : instance.item.priced->task_template.memory) {
      program_.AddMemoryEvent(
          {.task = instance.task_of[static_cast<size_t>(memory.task) * actors + a],
           .rank = stage.actors[a].rank,
           .kind = memory.kind,
           .moment = memory.moment,
           .bytes = memory.BytesIn(instance.item.collected)});
    }
  }
}

void Instantiator::InstantiateSend(const Item& item, size_t send) {
  const TemplateSend& row = item.priced->task_template.sends[send];
  const Makers::Tasks* made = FindMade(item.stage, row.origin, item.microbatch);
  if (!geometry_.Travels(item.stage, row.to)) {
    return HandOver(item, row, made);
  }
  Makers::Tasks tasks =
      row.across.messages.empty() ? Transfer(item, send, made) : TransferAcross(item, row, made);
  if (!remembers_) return;
  progress(row.to, item.microbatch).makers.Remember(row.origin, item.microbatch, std::move(tasks));
}

// Both stages are on one rank. What the first one keeps is there twice: as far as memory goes, the
// other has its own.
void Instantiator::HandOver(const Item& item, const TemplateSend& send, const Makers::Tasks* made) {
  const Stage& from = StageOf(item);
  for (size_t a = 0; a < from.actors.size() && made != nullptr && !send.freed; ++a) {
    if (!(*made)[a].valid()) continue;
    program_.AddMemoryEvent({.task = (*made)[a],
                             .rank = from.actors[a].rank,
                             .kind = SentKind(item),
                             .bytes = send.bytes.count()});
  }
  if (made == nullptr) return;
  progress(send.to, item.microbatch).makers.Remember(send.origin, item.microbatch, *made);
}

Instantiator::SendStreams Instantiator::StreamsOf(const Item& item,
                                                  const TemplateSend& send) const {
  // Beside updates of asynchronous schedules pipelines go on, whose messages must not be held up:
  // so those between the first and the last stage go the other way round a ring, on which nothing
  // is.
  const bool around = IsUpdate(item) && item.microbatch != kUpdate;
  const bool next = (geometry_.position_of(send.to) > geometry_.position_of(item.stage)) != around;
  const bool waits = options_.kernels.waits_for_sends && !IsUpdate(item);
  return {.sending = waits  ? StreamKind::kCompute
                     : next ? StreamKind::kSendNext
                            : StreamKind::kSendPrevious,
          .receiving = next ? StreamKind::kReceivePrevious : StreamKind::kReceiveNext};
}

Makers::Tasks Instantiator::Transfer(const Item& item, size_t send, const Makers::Tasks* made) {
  const TemplateSend& row = item.priced->task_template.sends[send];
  const Stage& from = StageOf(item);
  const Stage& to = stages_[static_cast<size_t>(row.to)];
  const SendStreams streams = StreamsOf(item, row);
  const simulator::MemoryKind kind = SentKind(item);
  Makers::Tasks tasks(from.actors.size());
  for (size_t a = 0; a < from.actors.size(); ++a) {
    after_.clear();
    if (made != nullptr && (*made)[a].valid()) after_.push_back((*made)[a]);
    const TaskTime time = fold_ ? item.priced->sends[send] : pricing_.TimeOf(row.movement, a);
    tasks[a] = program_.AddRendezvous(std::array{StreamOf(from.actors[a], streams.sending),
                                                 StreamOf(to.actors[a], streams.receiving)},
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
