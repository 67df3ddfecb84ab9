#include "lowering/blocks/units.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lowering/blocks/task_name.h"

namespace orrery::lowering {
namespace units_cc {
namespace {

using cost_models::CollectiveKind;

// So many fields: what it knows of each task, and the tasks as they will be.
class UnitForming {
 public:
  UnitForming(bool blocking, Bytes most, TaskTemplate& task_template, simulator::Program& program)
      : blocking_(blocking), most_(most), template_(task_template), program_(program) {}

  void Run() {
    new_index_.reserve(template_.tasks.size());
    for (size_t begin = 0, end = 0; begin < template_.tasks.size(); begin = end) {
      end = begin + 1;
      Bytes together = template_.tasks[begin].bytes;
      while (end < template_.tasks.size() &&
             Joins(template_.tasks[end - 1], template_.tasks[end]) &&
             (most_ == Bytes(0) || together + template_.tasks[end].bytes <= most_)) {
        together += template_.tasks[end++].bytes;
      }
      new_index_.resize(end, static_cast<int32_t>(tasks_.size()));
      Append(begin, end);
    }
    SetGates();
    template_.tasks = std::move(tasks_);
    template_.dependencies = std::move(dependencies_);
    for (TemplateMemory& memory : template_.memory) memory.task = NewIndex(memory.task);
    template_.RenumberMakers(new_index_);
  }

 private:
  static bool Joins(const TemplateTask& a, const TemplateTask& b) {
    const auto key = [](const TemplateTask& task) {
      return std::tuple(task.unit, task.collective, task.stream, task.dtype, task.group);
    };
    return a.unit != TemplateTask::kNoUnit && key(a) == key(b);
  }

  static bool Is(cost_models::CollectiveKind kind, const TemplateTask& task) {
    return task.unit != TemplateTask::kNoUnit && task.collective == kind;
  }

  int32_t NewIndex(int32_t task) const { return new_index_[static_cast<size_t>(task)]; }

  void Append(size_t begin, size_t end) {
    TemplateTask task = template_.tasks[begin];
    const auto first = static_cast<uint32_t>(dependencies_.size());
    for (size_t t = begin; t < end; ++t) {
      if (t > begin) task.bytes += template_.tasks[t].bytes;
      AddDependencies(template_.tasks[t], first);
    }
    if (end - begin > 1) task.label = AddLabel(task, end - begin);
    const bool waits = std::any_of(dependencies_.begin() + first, dependencies_.end(),
                                   [](const TemplateDependency& on) { return !on.external; });
    if (Is(CollectiveKind::kAllGather, task) && !waits) {
      members_.push_back(end - begin);
      if (last_kernel_ < 0) ++early_;
      if (last_kernel_ >= 0 && !blocking_) {
        dependencies_.push_back({.external = false, .index = last_kernel_});
      }
    }
    task.dependency_begin = first;
    if (!blocking_) WaitForScatter(task);
    task.dependency_end = static_cast<uint32_t>(dependencies_.size());
    if (IsKernel(task)) last_kernel_ = static_cast<int32_t>(tasks_.size());
    tasks_.push_back(task);
  }

  void WaitForScatter(const TemplateTask& task) {
    if (Is(CollectiveKind::kReduceScatter, task)) {
      awaited_ = scatter_;
      scatter_ = static_cast<int32_t>(tasks_.size());
    } else if (IsKernel(task) && awaited_ >= 0) {
      dependencies_.push_back({.external = false, .index = std::exchange(awaited_, -1)});
    }
  }

  // The releases of the members of a unit become one, that of the last; and the first gathers take
  // the positions of the last units of the template before, one by one.
  void SetGates() {
    std::vector<int32_t> releases;
    size_t next = 0;
    for (const size_t members : members_) {
      next = std::min(next + members, template_.releases.size());
      if (next > 0) releases.push_back(NewIndex(template_.releases[next - 1]));
    }
    template_.releases = std::move(releases);
    for (TemplateTask& task : tasks_) {
      if (early_ == 0 || blocking_) break;
      if (Is(CollectiveKind::kAllGather, task)) task.gate = early_--;
    }
  }

  // Each once: `first` is where those of the task begin.
  void AddDependencies(const TemplateTask& task, uint32_t first) {
    for (TemplateDependency on : template_.DependenciesOf(task)) {
      if (!on.external) on.index = NewIndex(on.index);
      std::vector<uint32_t>& last = on.external ? last_on_input_ : last_on_task_;
      const auto index = static_cast<size_t>(on.index);
      if (last.size() <= index) last.resize(std::max(index + 1, 2 * last.size()), 0);
      if (last[index] > first) continue;
      dependencies_.push_back(on);
      last[index] = static_cast<uint32_t>(dependencies_.size());
    }
  }

  simulator::LabelId AddLabel(const TemplateTask& task, size_t members) {
    simulator::TaskLabel label = program_.label(task.label);
    const std::string name = NameOfSeveral(label.name, members);
    label.name = name;
    label.bytes = task.bytes;
    return program_.AddLabel(label);
  }

  const bool blocking_;
  const Bytes most_;
  TaskTemplate& template_;
  simulator::Program& program_;
  std::vector<int32_t> new_index_;  // by task
  std::vector<size_t> members_;     // of each gather
  int32_t early_ = 0;               // gathers before the first kernel
  int32_t last_kernel_ = -1;        // in tasks_, as the two below
  int32_t scatter_ = -1;            // the last one
  int32_t awaited_ = -1;            // the one before it, for which no kernel waits yet
  // By what is waited for, the position behind its last dependency; 0: none yet.
  std::vector<uint32_t> last_on_input_, last_on_task_;
  std::vector<TemplateTask> tasks_;  // as they will be
  std::vector<TemplateDependency> dependencies_;
};

}  // namespace
}  // namespace units_cc

void FormUnits(bool blocking, Bytes most, TaskTemplate& task_template,
               simulator::Program& program) {
  const bool any = std::ranges::any_of(task_template.tasks, [](const TemplateTask& task) {
    return task.unit != TemplateTask::kNoUnit;
  });
  if (any) units_cc::UnitForming(blocking, most, task_template, program).Run();
}

}  // namespace orrery::lowering
