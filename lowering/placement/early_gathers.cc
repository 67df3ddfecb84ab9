#include "lowering/placement/early_gathers.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace orrery::lowering {
namespace early_gathers_cc {
namespace {

constexpr int32_t kNone = -1;

// Of each input of `forward` the first task that waits for it.
absl::flat_hash_map<ir::ValueId, int32_t> FirstReaders(const TaskTemplate& forward) {
  absl::flat_hash_map<ir::ValueId, int32_t> readers;
  for (size_t t = 0; t < forward.tasks.size(); ++t) {
    for (const TemplateDependency& on : forward.DependenciesOf(forward.tasks[t])) {
      if (!on.external) continue;
      readers.try_emplace(forward.inputs[static_cast<size_t>(on.index)].origin,
                          static_cast<int32_t>(t));
    }
  }
  return readers;
}

// Parts an update into gathers and the rest.
class Taking {
 public:
  Taking(const transforms::StageFunction& part, const TaskTemplate& forward, PricedTemplate& update)
      : part_(part),
        update_(update),
        template_(update.task_template),
        readers_(FirstReaders(forward)) {}

  PricedTemplate Run() {
    FindGathers();
    if (gathers_.empty()) return {};
    FindParameters();
    SortByNeed();
    PricedTemplate taken = Take();
    Leave();
    return taken;
  }

 private:
  // A gather, and the parameters that are made of what it gathers.
  struct Gather {
    int32_t task = 0;
    std::vector<ir::ValueId> parameters = {};
    int32_t needed = std::numeric_limits<int32_t>::max();  // by a task of forward
  };

  bool IsGather(int32_t task) const { return gathers_of_[static_cast<size_t>(task)] == task; }

  // Of each task the last gather that it is or waits for. None where a stage sends what it makes of
  // them, which is the next stage's to wait for.
  void FindGathers() {
    gathers_of_.assign(template_.tasks.size(), kNone);
    bool kernel = false;
    for (size_t t = 0; t < template_.tasks.size(); ++t) {
      const TemplateTask& task = template_.tasks[t];
      kernel |= IsKernel(task);
      if (kernel && !task.group.empty() && task.stream == simulator::StreamKind::kData &&
          task.collective == cost_models::CollectiveKind::kAllGather) {
        gathers_of_[t] = static_cast<int32_t>(t);
        gathers_.push_back({.task = static_cast<int32_t>(t)});
        continue;
      }
      for (const TemplateDependency& on : template_.DependenciesOf(task)) {
        if (on.external) continue;
        gathers_of_[t] = std::max(gathers_of_[t], gathers_of_[static_cast<size_t>(on.index)]);
      }
    }
    const bool sent = std::ranges::any_of(template_.sends, [&](const TemplateSend& send) {
      return send.has_maker && !send.made_by.external &&
             gathers_of_[static_cast<size_t>(send.made_by.index)] != kNone;
    });
    if (sent) gathers_.clear();
  }

  void FindParameters() {
    const std::vector<ir::Output>& outputs = part_.function.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int32_t task = template_.outputs[i].task;
      if (task < 0 || !outputs[i].of.valid()) continue;
      const int32_t gather = gathers_of_[static_cast<size_t>(task)];
      if (gather == kNone) continue;
      const auto found = std::ranges::find(gathers_, gather, &Gather::task);
      const ir::ValueId parameter = transforms::OriginOf(part_, outputs[i].of);
      found->parameters.push_back(parameter);
      const auto reader = readers_.find(parameter);
      if (reader != readers_.end()) found->needed = std::min(found->needed, reader->second);
    }
  }

  void SortByNeed() { std::ranges::stable_sort(gathers_, {}, &Gather::needed); }

  PricedTemplate Take() {
    PricedTemplate taken;
    taken.other_durations.resize(update_.other_durations.size());
    for (const Gather& gather : gathers_) {
      const auto index = static_cast<int32_t>(taken.task_template.tasks.size());
      TemplateTask task = template_.tasks[static_cast<size_t>(gather.task)];
      task.dependency_begin = task.dependency_end = 0;
      taken.task_template.tasks.push_back(task);
      for (const ir::ValueId parameter : gather.parameters) {
        taken.task_template.outputs.push_back({.origin = parameter, .task = index});
      }
      for (size_t kind = 0; kind < taken.other_durations.size(); ++kind) {
        taken.other_durations[kind].push_back(
            update_.other_durations[kind][static_cast<size_t>(gather.task)]);
      }
    }
    return taken;
  }

  // What stays waits for no gather.
  void Leave() {
    std::vector<TemplateTask> tasks;
    std::vector<TemplateDependency> dependencies;
    std::vector<std::vector<Duration>> durations(update_.other_durations.size());
    std::vector<int32_t> stays;  // by task: itself, or the last one before it that stays
    for (size_t t = 0; t < template_.tasks.size(); ++t) {
      TemplateTask task = template_.tasks[t];
      if (!IsGather(static_cast<int32_t>(t))) {
        const auto begin = static_cast<uint32_t>(dependencies.size());
        for (TemplateDependency on : template_.DependenciesOf(task)) {
          if (!on.external && IsGather(on.index)) continue;
          if (!on.external) on.index = stays[static_cast<size_t>(on.index)];
          dependencies.push_back(on);
        }
        task.dependency_begin = begin;
        task.dependency_end = static_cast<uint32_t>(dependencies.size());
        tasks.push_back(task);
        for (size_t kind = 0; kind < durations.size(); ++kind) {
          durations[kind].push_back(update_.other_durations[kind][t]);
        }
      }
      stays.push_back(static_cast<int32_t>(tasks.size()) - 1);
    }
    for (TemplateMemory& memory : template_.memory) {
      if (IsGather(memory.task)) memory.moment = simulator::MemoryMoment::kFinish;
      memory.task = stays[static_cast<size_t>(memory.task)];
    }
    std::erase_if(template_.outputs, [&](const TemplateValue& output) {
      return output.task >= 0 && IsGather(output.task);
    });
    template_.RenumberMakers(stays);
    for (int32_t& task : template_.releases) task = stays[static_cast<size_t>(task)];
    template_.tasks = std::move(tasks);
    template_.dependencies = std::move(dependencies);
    update_.other_durations = std::move(durations);
  }

  const transforms::StageFunction& part_;
  PricedTemplate& update_;
  TaskTemplate& template_;
  const absl::flat_hash_map<ir::ValueId, int32_t> readers_;
  std::vector<int32_t> gathers_of_;  // by task
  std::vector<Gather> gathers_;
};

}  // namespace
}  // namespace early_gathers_cc

PricedTemplate TakeGathers(const transforms::StageFunction& part, const TaskTemplate& forward,
                           PricedTemplate& update) {
  return early_gathers_cc::Taking(part, forward, update).Run();
}

}  // namespace orrery::lowering
