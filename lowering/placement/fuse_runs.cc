#include "lowering/placement/fuse_runs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lowering/blocks/task_name.h"
#include "lowering/placement/memory_profile.h"
#include "support/check.h"

namespace orrery::lowering {
namespace fuse_runs_cc {
namespace {

using Origins = absl::flat_hash_set<ir::ValueId>;

ir::ValueId InputOf(const TaskTemplate& task_template, const TemplateDependency& on) {
  return task_template.inputs[static_cast<size_t>(on.index)].origin;
}

// Adds what collectives and sends of `task_template` wait for that an earlier template makes. Of
// what `backward` makes, the last that each waits for: its kernels run in their order.
void FindWanted(const TaskTemplate& task_template, const TaskTemplate* backward, Origins& wanted) {
  absl::flat_hash_map<ir::ValueId, int32_t> made;
  for (const TemplateValue& output :
       backward != nullptr ? backward->outputs : task_template.outputs) {
    const bool kernel = backward != nullptr && output.task >= 0 &&
                        IsKernel(backward->tasks[static_cast<size_t>(output.task)]);
    if (kernel) made[output.origin] = output.task;
  }
  for (const TemplateTask& task : task_template.tasks) {
    if (IsKernel(task)) continue;
    std::pair<int32_t, ir::ValueId> last = {-1, {}};
    for (const TemplateDependency& on : task_template.DependenciesOf(task)) {
      if (!on.external) continue;
      const ir::ValueId origin = InputOf(task_template, on);
      const auto found = made.find(origin);
      if (found == made.end()) {
        wanted.insert(origin);
      } else {
        last = std::max(last, std::pair(found->second, origin));
      }
    }
    if (last.first >= 0) wanted.insert(last.second);
  }
  for (const TemplateSend& send : task_template.sends) {
    if (send.has_maker && send.made_by.external) wanted.insert(send.origin);
  }
}

// The kinds and sources of a run's kernels, by the time that each takes, and how it spreads.
class Shares {
 public:
  void Add(Duration duration, const simulator::TaskLabel& of) {
    const double one = duration.seconds();
    for (size_t k = 0; k < of.kernels.size(); ++k) kernels_[k] += one * of.kernels[k];
    for (size_t k = 0; k < of.sources.size(); ++k) sources_[k] += one * of.sources[k];
    all_ += one;
    squares_ += one * one * of.spread_left * of.spread_left;
  }
  // Where they take no time, those of the first are left.
  void Give(simulator::TaskLabel& label) const {
    if (all_ <= 0) return;
    for (size_t k = 0; k < kernels_.size(); ++k) label.kernels[k] = kernels_[k] / all_;
    for (size_t k = 0; k < sources_.size(); ++k) label.sources[k] = sources_[k] / all_;
    label.spread_left = std::sqrt(squares_) / all_;
  }

 private:
  simulator::KernelShares kernels_ = {};
  SourceShares sources_ = {};
  double all_ = 0, squares_ = 0;
};

class RunFusing {
 public:
  // `open`: what was made before, and not by a kernel that any other one of the stage follows.
  RunFusing(PricedTemplate& priced, const Origins& wanted, Origins& open,
            simulator::Program& program)
      : priced_(priced),
        template_(priced.task_template),
        wanted_(wanted),
        open_(open),
        program_(program) {}

  void Run(bool fuse) {
    const size_t count = template_.tasks.size();
    begins_.assign(count, 0);
    ends_.assign(count, 0);
    needed_.assign(template_.dependencies.size(), 1);
    for (const TemplateValue& input : template_.inputs) {
      if (input.received) open_.insert(input.origin);
    }
    for (size_t t = 0; t < count; ++t) LookAt(template_.tasks[t], t);
    for (const TemplateMemory& memory : template_.memory) {
      if (memory.growth == MemoryGrowth::kNone) continue;
      begins_[static_cast<size_t>(memory.task)] = 1;
      End(memory.task);
    }
    for (const TemplateSend& send : template_.sends) {
      if (send.has_maker && !send.made_by.external) End(send.made_by.index);
    }
    for (const int32_t task : template_.releases) End(task);
    for (const TemplateValue& output : template_.outputs) {
      if (output.task < 0) continue;
      if (wanted_.contains(output.origin)) End(output.task);
      if (!IsKernel(template_.tasks[static_cast<size_t>(output.task)])) open_.insert(output.origin);
    }
    for (size_t t = 0; t < count; ++t) {
      if (!IsKernel(template_.tasks[t])) begins_[t] = ends_[t] = 1;
    }
    for (size_t t = 1; t < count; ++t) {
      template_.tasks[t].joins = begins_[t] == 0 && ends_[t - 1] == 0;
    }
    if (fuse) Rebuild();
  }

 private:
  void End(int32_t task) { ends_[static_cast<size_t>(task)] = 1; }

  // A kernel begins a run where it waits for more than its stream, and ends one where something
  // other than a kernel waits for it.
  void LookAt(const TemplateTask& task, size_t t) {
    for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
      const TemplateDependency& on = template_.dependencies[d];
      if (!on.external) {
        if (IsKernel(task)) begins_[t] = 1;
        if (IsKernel(template_.tasks[static_cast<size_t>(on.index)])) End(on.index);
      } else if (IsKernel(task)) {
        needed_[d] = open_.erase(InputOf(template_, on)) > 0 ? 1 : 0;
        if (needed_[d] != 0) begins_[t] = 1;
      }
    }
  }

  void Rebuild() {
    std::vector<std::pair<size_t, size_t>> runs;
    for (size_t t = 0; t < template_.tasks.size(); ++t) {
      if (!template_.tasks[t].joins) runs.emplace_back(t, t);
      runs.back().second = t + 1;
    }
    new_index_.resize(template_.tasks.size());
    for (size_t r = 0; r < runs.size(); ++r) {
      for (size_t t = runs[r].first; t < runs[r].second; ++t) {
        new_index_[t] = static_cast<int32_t>(r);
      }
    }
    for (std::vector<Duration>& durations : priced_.other_durations) Sum(runs, durations);
    FuseMemory(runs);
    for (const auto& [begin, end] : runs) Fuse(begin, end);
    template_.tasks = std::move(tasks_);
    template_.dependencies = std::move(dependencies_);
    template_.RenumberMakers(new_index_);
    for (int32_t& task : template_.releases) task = new_index_[static_cast<size_t>(task)];
  }

  static void Sum(const std::vector<std::pair<size_t, size_t>>& runs,
                  std::vector<Duration>& durations) {
    for (size_t r = 0; r < runs.size(); ++r) {
      Duration sum;
      for (size_t t = runs[r].first; t < runs[r].second; ++t) sum = SaturatedSum(sum, durations[t]);
      durations[r] = sum;
    }
    durations.resize(runs.size());
  }

  // What the first kernel waits for is what the run waits for.
  void Fuse(size_t begin, size_t end) {
    TemplateTask run = template_.tasks[begin];
    const uint32_t first =
        std::exchange(run.dependency_begin, static_cast<uint32_t>(dependencies_.size()));
    for (uint32_t d = first; d < run.dependency_end; ++d) {
      if (needed_[d] == 0) continue;
      TemplateDependency on = template_.dependencies[d];
      if (!on.external) on.index = new_index_[static_cast<size_t>(on.index)];
      dependencies_.push_back(on);
    }
    run.dependency_end = static_cast<uint32_t>(dependencies_.size());
    if (end - begin > 1) {
      simulator::TaskLabel label = program_.label(run.label);
      const simulator::TaskLabel last = program_.label(template_.tasks[end - 1].label);
      const std::string name = NameOfRow(label.name, last.name);
      label.name = name;
      Shares shares;
      shares.Add(template_.tasks[begin].duration, label);
      for (size_t t = begin + 1; t < end; ++t) {
        const TemplateTask& task = template_.tasks[t];
        run.duration = SaturatedSum(run.duration, task.duration);
        const simulator::TaskLabel part = program_.label(task.label);
        label.flops += part.flops;
        label.bytes += part.bytes;
        shares.Add(task.duration, part);
      }
      shares.Give(label);
      run.label = program_.AddLabel(label);
      run.last_op = template_.tasks[end - 1].last_op;
    }
    tasks_.push_back(run);
  }

  // A run has from its start what it needs at its own peak, and at its finish what it leaves.
  void FuseMemory(const std::vector<std::pair<size_t, size_t>>& runs) {
    std::vector<TemplateMemory> memory;
    size_t next = 0;
    for (size_t r = 0; r < runs.size(); ++r) {
      const auto run = static_cast<int32_t>(r);
      const size_t begin = next;
      while (next < template_.memory.size() &&
             new_index_[static_cast<size_t>(template_.memory[next].task)] == run) {
        ++next;
      }
      const std::span<const TemplateMemory> events =
          std::span(template_.memory).subspan(begin, next - begin);
      if (runs[r].second - runs[r].first == 1) {
        for (TemplateMemory event : events) {
          event.task = run;
          memory.push_back(event);
        }
      } else {
        AddMemoryProfile(events, run, memory);
      }
    }
    ORRERY_CHECK(next == template_.memory.size()) << "memory events are not in the order of tasks";
    template_.memory = std::move(memory);
  }

  PricedTemplate& priced_;
  TaskTemplate& template_;
  const Origins& wanted_;
  Origins& open_;
  simulator::Program& program_;
  std::vector<char> begins_, ends_;  // of runs, by task
  std::vector<char> needed_;         // by dependency: the compute stream does not see to it
  std::vector<int32_t> new_index_;
  std::vector<TemplateTask> tasks_;
  std::vector<TemplateDependency> dependencies_;
};

// Leaves the inputs that a task or a send waits for, and the outputs that are such an input: of
// what only the update asks for, those of the first and the last microbatch.
void DropUnasked(Stage& stage) {
  Origins asked, by_update;
  for (PricedTemplate* priced : stage.templates()) {
    TaskTemplate& task_template = priced->task_template;
    std::vector<int32_t> number(task_template.inputs.size(), -1);
    const auto keep = [&](TemplateDependency& on) {
      if (on.external) number[static_cast<size_t>(on.index)] = 0;
    };
    std::for_each(task_template.dependencies.begin(), task_template.dependencies.end(), keep);
    for (TemplateSend& send : task_template.sends) {
      if (send.has_maker) keep(send.made_by);
    }
    std::vector<TemplateValue> inputs;
    for (size_t i = 0; i < number.size(); ++i) {
      if (number[i] < 0) continue;
      number[i] = static_cast<int32_t>(inputs.size());
      inputs.push_back(task_template.inputs[i]);
      (stage.IsUpdate(priced) ? by_update : asked).insert(task_template.inputs[i].origin);
    }
    task_template.inputs = std::move(inputs);
    const auto renumber = [&](TemplateDependency& on) {
      if (on.external) on.index = number[static_cast<size_t>(on.index)];
    };
    std::for_each(task_template.dependencies.begin(), task_template.dependencies.end(), renumber);
    for (TemplateSend& send : task_template.sends) {
      if (send.has_maker) renumber(send.made_by);
    }
  }
  const bool apart = !stage.backward.last.task_template.tasks.empty();
  for (PricedTemplate* priced : stage.templates()) {
    const std::vector<PricedTemplate>& slices = stage.backward.slices;
    const bool slice = std::ranges::any_of(slices, [&](const PricedTemplate& each) {
      return &each == priced && priced != &slices[0];
    });
    const bool early =
        slice || (apart && (priced == &stage.backward.later || priced == &stage.weights.later));
    std::erase_if(priced->task_template.outputs, [&](const TemplateValue& output) {
      return !asked.contains(output.origin) && (early || !by_update.contains(output.origin));
    });
  }
}

// What somebody other than a kernel waits for, and what the update does besides.
struct Wanted {
  const Origins& always;
  const Origins& by_update;
};

// A slice's backward finds what its own forward leaves. The first slice is the last before the
// update.
void FuseSlices(Stage& stage, const Wanted& wanted, bool fuse, simulator::Program& program) {
  for (size_t i = stage.forward.slices.size(); i-- > 0;) {
    const Origins& of_slice = i == 0 ? wanted.by_update : wanted.always;
    Origins open;
    RunFusing(stage.forward.slices[i], of_slice, open, program).Run(fuse);
    RunFusing(stage.backward.slices[i], of_slice, open, program).Run(fuse);
    if (i == 0) RunFusing(stage.update, wanted.by_update, open, program).Run(fuse);
  }
  if (fuse) DropUnasked(stage);
}

}  // namespace
}  // namespace fuse_runs_cc

bool RunsPairs(const transforms::PipelineSchedule& schedule) {
  const auto pairs = [](const std::vector<transforms::ScheduleStep>& order) {
    return std::ranges::any_of(order, &transforms::ScheduleStep::with_next);
  };
  return schedule.given != nullptr ? std::ranges::any_of(*schedule.given, pairs)
                                   : schedule.runs_pairs;
}

void FuseRuns(Stage& stage, bool fuse, simulator::Program& program) {
  fuse_runs_cc::Origins wanted;
  for (const PricedTemplate* priced : stage.templates()) {
    if (!stage.IsUpdate(priced)) fuse_runs_cc::FindWanted(priced->task_template, nullptr, wanted);
  }
  fuse_runs_cc::Origins by_update = wanted;
  for (const PricedTemplate* update : {&stage.update, &stage.late_update}) {
    fuse_runs_cc::FindWanted(update->task_template, &stage.LastBackward(), by_update);
  }
  // Only the last microbatch before an update makes what the update waits for.
  const bool apart =
      by_update.size() > wanted.size() && !stage.backward.later.task_template.tasks.empty();
  if (!stage.forward.slices.empty())
    return fuse_runs_cc::FuseSlices(stage, {wanted, by_update}, fuse, program);
  const fuse_runs_cc::Origins& of_first = apart ? wanted : by_update;
  // First and later microbatches have the same templates but for what adds up.
  fuse_runs_cc::Origins open_first, open_later;
  for (const TemplateValue& gathered : stage.gathers.task_template.outputs) {
    open_first.insert(gathered.origin);
  }
  for (PhaseTemplates* phase : {&stage.forward, &stage.backward, &stage.weights}) {
    if (apart && phase != &stage.forward) {
      phase->last = phase->later;
      fuse_runs_cc::Origins open = open_later;
      fuse_runs_cc::RunFusing(phase->last, by_update, open, program).Run(fuse);
    }
    fuse_runs_cc::RunFusing(phase->first, of_first, open_first, program).Run(fuse);
    fuse_runs_cc::RunFusing(phase->later, of_first, open_later, program).Run(fuse);
  }
  for (const ir::ValueId origin : open_later) open_first.insert(origin);
  for (PricedTemplate* update : {&stage.update, &stage.late_update}) {
    fuse_runs_cc::RunFusing(*update, by_update, open_first, program).Run(fuse);
  }
  if (fuse) fuse_runs_cc::DropUnasked(stage);
}

}  // namespace orrery::lowering
