#include <algorithm>

#include "lowering/placement/instantiator.h"
#include "support/check.h"

// Updates of stages whose replicas run microbatches in turn.

namespace orrery::lowering {

using simulator::TaskId;

void Instantiator::BeginRound(int32_t stage, int32_t first) {
  Instance& instance = begun_[static_cast<size_t>(stage)];
  const PricedTemplate& update = stages_[static_cast<size_t>(stage)].update;
  instance.item = {.stage = stage, .priced = &update};
  instance.next = 0;
  instance.done = Duration();
  instance.task_of.assign(update.task_template.tasks.size() * ActorCount(instance.item), TaskId());
  FindInputsOfRound(first, instance);
  const size_t together = TogetherIn(instance.item);
  while (instance.next < together) InstantiateNext(instance);
}

void Instantiator::EndRound(int32_t stage, int32_t microbatch) {
  Instance& instance = begun_[static_cast<size_t>(stage)];
  ORRERY_CHECK(instance.item.priced != nullptr) << "no round of stage " << stage << " has begun";
  const size_t together = instance.next;
  instance.item.microbatch = microbatch;  // its replica alone
  while (instance.next < instance.item.priced->task_template.tasks.size()) {
    InstantiateNext(instance);
  }
  AddMemory(instance);
  instance.next = together;
}

// Each replica has made its own gradients, of its own microbatch.
void Instantiator::FindInputsOfRound(int32_t first, Instance& instance) {
  const int32_t stage = instance.item.stage;
  const std::vector<TemplateValue>& values = instance.item.priced->task_template.inputs;
  const std::vector<int32_t>& replicas = geometry_.replicas_at(geometry_.position_of(stage));
  instance.inputs.assign(values.size() * replicas.size(), TaskId());
  for (size_t i = 0; i < values.size() && remembers_; ++i) {
    for (size_t a = 0; a < replicas.size(); ++a) {
      const int32_t microbatch = first + replicas[a];
      const Makers::Tasks* made =
          progress(stage, microbatch).makers.Find(values[i].origin, microbatch);
      if (made != nullptr) instance.inputs[i * replicas.size() + a] = (*made)[a];
    }
  }
}

// How many tasks of an update there are up to the last one in which replicas meet.
size_t Instantiator::TogetherIn(const Item& item) const {
  const auto dp = geometry_.mesh_at(geometry_.position_of(item.stage)).Find("dp");
  const std::vector<TemplateTask>& tasks = item.priced->task_template.tasks;
  if (!dp.has_value() || geometry_.RunnersOf(item.stage) == 1) return 0;
  const auto meet = [&](const TemplateTask& task) { return task.group.contains(*dp); };
  const auto last = std::find_if(tasks.rbegin(), tasks.rend(), meet);
  return static_cast<size_t>(tasks.rend() - last);
}

}  // namespace orrery::lowering
