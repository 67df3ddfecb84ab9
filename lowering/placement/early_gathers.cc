#include "lowering/placement/early_gathers.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace orrery::lowering {
namespace early_gathers_cc {
namespace {

// Parts a template into what is taken and what stays.
class Taking {
 public:
  explicit Taking(PricedTemplate& update) : update_(update), template_(update.task_template) {}

  PricedTemplate Run() {
    FindTaken();
    if (!any_) return {};
    PricedTemplate gathers;
    gathers.other_durations.resize(update_.other_durations.size());
    PricedTemplate rest;
    rest.other_durations.resize(update_.other_durations.size());
    for (size_t t = 0; t < taken_.size(); ++t) Move(t, taken_[t] != 0 ? gathers : rest);
    KeepMemory();
    for (const TemplateValue& output : template_.outputs) {
      if (output.task < 0 || !IsTaken(output.task)) rest.task_template.outputs.push_back(output);
    }
    for (TemplateValue& output : rest.task_template.outputs) {
      if (output.task >= 0) output.task = NewIndex(output.task);
    }
    rest.task_template.memory = std::move(template_.memory);
    rest.task_template.inputs = std::move(template_.inputs);
    rest.task_template.sends = std::move(template_.sends);
    for (TemplateSend& send : rest.task_template.sends) {
      if (send.has_maker && !send.made_by.external)
        send.made_by.index = NewIndex(send.made_by.index);
    }
    update_ = std::move(rest);
    return gathers;
  }

 private:
  bool IsTaken(int32_t task) const { return taken_[static_cast<size_t>(task)] != 0; }
  int32_t NewIndex(int32_t task) const { return new_index_[static_cast<size_t>(task)]; }
  std::span<const TemplateDependency> DependenciesOf(const TemplateTask& task) const {
    return std::span(template_.dependencies)
        .subspan(task.dependency_begin, task.dependency_end - task.dependency_begin);
  }

  // Gathers after a kernel of the update, and what waits for them; nothing where a stage sends any
  // of it, or where no kernel comes before, with which memory could stay.
  void FindTaken() {
    taken_.assign(template_.tasks.size(), 0);
    bool kernel = false;
    for (size_t t = 0; t < taken_.size(); ++t) {
      const TemplateTask& task = template_.tasks[t];
      const bool gathers = kernel && !task.group.empty() &&
                           task.stream == simulator::StreamKind::kData &&
                           task.collective == cost_models::CollectiveKind::kAllGather;
      const bool reads = std::ranges::any_of(
          DependenciesOf(task), [&](const auto& on) { return !on.external && IsTaken(on.index); });
      taken_[t] = gathers || reads;
      any_ |= taken_[t] != 0;
      kernel |= IsKernel(task);
    }
    const bool sent = std::ranges::any_of(template_.sends, [&](const TemplateSend& send) {
      return send.has_maker && !send.made_by.external && IsTaken(send.made_by.index);
    });
    if (sent) any_ = false;
  }

  void Move(size_t t, PricedTemplate& to) {
    TemplateTask task = template_.tasks[t];
    std::vector<TemplateDependency>& dependencies = to.task_template.dependencies;
    const auto begin = static_cast<uint32_t>(dependencies.size());
    for (TemplateDependency on : DependenciesOf(task)) {
      // What is taken waits for nothing that stays; what stays waits for nothing that is taken.
      if (taken_[t] != 0 && (on.external || !IsTaken(on.index))) continue;
      if (!on.external) on.index = NewIndex(on.index);
      dependencies.push_back(on);
    }
    task.dependency_begin = begin;
    task.dependency_end = static_cast<uint32_t>(dependencies.size());
    new_index_.push_back(static_cast<int32_t>(to.task_template.tasks.size()));
    to.task_template.tasks.push_back(std::move(task));
    for (size_t kind = 0; kind < to.other_durations.size(); ++kind) {
      to.other_durations[kind].push_back(update_.other_durations[kind][t]);
    }
  }

  // What happens with a task that is taken happens with the last one before it that stays.
  void KeepMemory() {
    std::vector<int32_t> stays(taken_.size(), 0);
    int32_t last = 0;
    for (size_t t = 0; t < taken_.size(); ++t) {
      if (taken_[t] == 0) last = new_index_[t];
      stays[t] = last;
    }
    for (TemplateMemory& memory : template_.memory) {
      if (IsTaken(memory.task)) memory.moment = simulator::MemoryMoment::kFinish;
      memory.task = stays[static_cast<size_t>(memory.task)];
    }
  }

  PricedTemplate& update_;
  TaskTemplate& template_;
  std::vector<char> taken_;         // by task
  std::vector<int32_t> new_index_;  // by task, where it goes
  bool any_ = false;
};

}  // namespace
}  // namespace early_gathers_cc

PricedTemplate TakeGathers(PricedTemplate& update) {
  return early_gathers_cc::Taking(update).Run();
}

}  // namespace orrery::lowering
