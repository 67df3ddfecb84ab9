#include "lowering/placement/fuse_stretches.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lowering/blocks/task_name.h"
#include "lowering/placement/find_stretches.h"
#include "lowering/placement/fuse_runs.h"
#include "lowering/placement/least_span.h"
#include "lowering/placement/memory_profile.h"

namespace orrery::lowering {
namespace fuse_stretches_cc {
namespace {

class StretchFusing {
 public:
  StretchFusing(PricedTemplate& priced, std::vector<TaskSpan> spans, simulator::Program& program)
      : priced_(priced),
        template_(priced.task_template),
        program_(program),
        spans_(std::move(spans)) {}

  void Run() && {
    if (spans_.size() < tasks().size()) Rebuild();
  }

 private:
  const std::vector<TemplateTask>& tasks() const { return template_.tasks; }
  static size_t StreamOf(const TemplateTask& task) { return static_cast<size_t>(task.stream); }

  void Rebuild() {
    new_index_.resize(tasks().size());
    for (size_t s = 0; s < spans_.size(); ++s) {
      for (size_t t = spans_[s].begin; t < spans_[s].end; ++t) {
        new_index_[t] = static_cast<int32_t>(s);
      }
    }
    starts_.assign(tasks().size(), Duration());
    std::vector<TemplateTask> fused;
    std::vector<TemplateDependency> dependencies;
    std::vector<simulator::FlowId> flows;
    FindDurations();
    for (const TaskSpan& span : spans_) {
      TemplateTask task = tasks()[span.begin];
      const auto first = static_cast<uint32_t>(dependencies.size());
      for (TemplateDependency on : template_.DependenciesOf(task)) {
        if (!on.external) on.index = new_index_[static_cast<size_t>(on.index)];
        dependencies.push_back(on);
      }
      flows.push_back(span.end - span.begin > 1 ? Fuse(span, task) : priced_.flows[span.begin]);
      task.dependency_begin = first;
      task.dependency_end = static_cast<uint32_t>(dependencies.size());
      fused.push_back(task);
    }
    FuseMemory();
    template_.tasks = std::move(fused);
    template_.dependencies = std::move(dependencies);
    template_.RenumberMakers(new_index_);
    for (int32_t& task : template_.releases) task = new_index_[static_cast<size_t>(task)];
    priced_.flows = std::move(flows);
    priced_.other_durations.clear();  // folded: TakeSlowest has taken what there is to take
  }

  // Of what the network times, alone.
  void FindDurations() {
    durations_.clear();
    for (size_t t = 0; t < tasks().size(); ++t) {
      durations_.push_back(TimeAlone(priced_, t, program_));
    }
  }

  // Plays it from the start of its first kernel, as if nothing shared its links. The chain of its
  // flows, where it has any, plays it as it is.
  simulator::FlowId Fuse(const TaskSpan& span, TemplateTask& task) {
    std::array<Duration, simulator::kStreamKindCount> free = {};
    std::vector<simulator::StretchPart> parts;
    Duration sum;
    std::vector<size_t> collectives;
    for (size_t t = span.begin; t < span.end; ++t) {
      const TemplateTask& of = tasks()[t];
      Duration start = free[StreamOf(of)];
      for (const TemplateDependency& on : template_.DependenciesOf(of)) {
        const auto index = static_cast<size_t>(on.index);
        if (on.external || index < span.begin) continue;
        start = std::max(start, FinishOf(index));
      }
      starts_[t] = start;
      free[StreamOf(of)] = FinishOf(t);
      sum = SaturatedSum(sum, durations_[t]);
      if (!IsKernel(of)) collectives.push_back(t);
    }
    task.parts = sum;
    task.duration = free[static_cast<size_t>(simulator::StreamKind::kCompute)];
    std::ranges::stable_sort(collectives, {}, [&](size_t t) { return starts_[t]; });
    const std::vector<simulator::Leg> legs = AddParts(span, collectives, parts);
    task.label = program_.AddStretch(LabelOf(span, task.duration).label, parts);
    task.last_op = tasks()[span.end - 1].last_op;
    if (legs.empty()) return {};
    task.duration = Duration();
    return program_.AddChain(legs);
  }

  // What of each collective no kernel hides, each moment counted once. Returns the chain of the
  // flows, and what is between them: of a stretch without, nothing.
  std::vector<simulator::Leg> AddParts(const TaskSpan& span, const std::vector<size_t>& collectives,
                                       std::vector<simulator::StretchPart>& parts) const {
    std::vector<simulator::Leg> legs;
    Duration joined;  // where the last leg ends
    Duration until;
    size_t kernel = span.begin;
    for (const size_t t : collectives) {
      const Duration finish = FinishOf(t);
      Duration at = std::max(until, starts_[t]);
      until = std::max(until, finish);
      Duration exposed;
      while (at < finish) {
        while (kernel < span.end && (!IsKernel(tasks()[kernel]) || FinishOf(kernel) <= at))
          ++kernel;
        const Duration next = kernel < span.end ? starts_[kernel] : finish;
        if (next > at) exposed += std::min(next, finish) - at;
        at = kernel < span.end ? std::max(at, FinishOf(kernel)) : finish;
        if (next >= finish) break;
      }
      const simulator::LabelId label = tasks()[t].label;
      const simulator::TaskLabel facts = program_.label(label);
      const auto same = std::ranges::find_if(parts, [&](const simulator::StretchPart& part) {
        const simulator::TaskLabel other = program_.label(part.label);
        return other.communication == facts.communication && other.level == facts.level;
      });
      simulator::StretchPart& part =
          same != parts.end() ? *same : parts.emplace_back(simulator::StretchPart{.label = label});
      part.bytes += facts.bytes;
      part.reduced += Bytes(facts.bytes.count() * facts.collectives);
      part.total += durations_[t];
      part.exposed += exposed;
      if (!priced_.flows[t].valid()) continue;
      const Duration kernels = FinishOf(KernelBefore(WaitsFor(t)));
      legs.push_back({.before = starts_[t] - joined,
                      .flow = priced_.flows[t],
                      .beside = std::max(kernels - starts_[t], Duration()),
                      .part = static_cast<int32_t>(&part - parts.data())});
      joined = std::max(finish, kernels);
    }
    if (!legs.empty()) legs.push_back({.before = FinishOf(span.end - 1) - joined});
    return legs;
  }
  // The first kernel that waits for a collective or for one behind it, and the one that runs before
  // a kernel: in a stretch.
  size_t WaitsFor(size_t collective) const {
    const auto waits = [&](const TemplateDependency& on) {
      const auto index = static_cast<size_t>(on.index);
      return !on.external && index >= collective && !IsKernel(tasks()[index]);
    };
    size_t t = collective + 1;
    while (!IsKernel(tasks()[t]) ||
           std::ranges::none_of(template_.DependenciesOf(tasks()[t]), waits)) {
      ++t;
    }
    return t;
  }
  size_t KernelBefore(size_t t) const {
    do --t;
    while (!IsKernel(tasks()[t]));
    return t;
  }
  Duration FinishOf(size_t t) const { return SaturatedSum(starts_[t], durations_[t]); }

  struct NamedLabel {
    std::string name;
    simulator::TaskLabel label;
  };

  // Shares are of the whole: what is left of it is communication that nothing hides.
  const NamedLabel& LabelOf(const TaskSpan& span, Duration whole) {
    simulator::TaskLabel& label = named_.label = program_.label(tasks()[span.begin].label);
    named_.name = NameOfRow(label.name, program_.label(tasks()[span.end - 1].label).name);
    label.kernels = {};
    label.sources = {};
    label.flops = Flops();
    label.bytes = Bytes();
    for (size_t t = span.begin; t < span.end; ++t) {
      if (!IsKernel(tasks()[t])) continue;
      const simulator::TaskLabel part = program_.label(tasks()[t].label);
      label.flops += part.flops;
      label.bytes += part.bytes;
      const double share = whole > Duration(0) ? durations_[t].seconds() / whole.seconds() : 0;
      for (size_t k = 0; k < part.kernels.size(); ++k) label.kernels[k] += share * part.kernels[k];
      for (size_t k = 0; k < part.sources.size(); ++k) label.sources[k] += share * part.sources[k];
    }
    label.name = named_.name;
    return named_;
  }

  static bool StartsAt(const TemplateMemory& event) {
    return event.moment == simulator::MemoryMoment::kBySign
               ? event.bytes > 0
               : event.moment == simulator::MemoryMoment::kStart;
  }

  void FuseMemory() {
    std::vector<TemplateMemory> memory;
    size_t next = 0;
    for (size_t s = 0; s < spans_.size(); ++s) {
      const size_t begin = next;
      while (next < template_.memory.size() &&
             new_index_[static_cast<size_t>(template_.memory[next].task)] ==
                 static_cast<int32_t>(s)) {
        ++next;
      }
      std::span<TemplateMemory> events = std::span(template_.memory).subspan(begin, next - begin);
      const bool alone = spans_[s].end - spans_[s].begin == 1;
      if (!alone) {
        const auto moment = [&](const TemplateMemory& event) {
          const auto t = static_cast<size_t>(event.task);
          return StartsAt(event) ? starts_[t] : FinishOf(t);
        };
        if (!std::ranges::is_sorted(events, {}, moment)) {
          std::ranges::stable_sort(events, {}, moment);
        }
      }
      for (TemplateMemory& event : events) event.task = static_cast<int32_t>(s);
      if (alone) {
        memory.insert(memory.end(), events.begin(), events.end());
      } else {
        AddMemoryProfile(events, static_cast<int32_t>(s), memory);
      }
    }
    template_.memory = std::move(memory);
  }

  PricedTemplate& priced_;
  TaskTemplate& template_;
  simulator::Program& program_;
  const std::vector<TaskSpan> spans_;  // all tasks, as they are to be
  std::vector<int32_t> new_index_;
  std::vector<Duration> durations_;  // by task
  std::vector<Duration> starts_;     // by task, after the first kernel of its stretch
  NamedLabel named_;
};

void FuseStage(const TemplateEnds& ends, Stage& stage, simulator::Program& program) {
  const HandedValues handed = FindHandedValues(stage);
  const bool apart = !stage.backward.last.task_template.tasks.empty();
  const auto fuse = [&](PricedTemplate& priced, bool by_update) {
    StretchFusing(priced, FindStretches(priced, handed, ends, by_update), program).Run();
  };
  for (PhaseTemplates* phase : {&stage.forward, &stage.backward, &stage.weights}) {
    fuse(phase->first, !apart);
    fuse(phase->later, !apart);
    fuse(phase->last, true);
    for (PricedTemplate& slice : phase->slices) fuse(slice, true);
  }
}

}  // namespace
}  // namespace fuse_stretches_cc

void FuseStretches(const transforms::PipelineSchedule& schedule, std::vector<Stage>& stages,
                   simulator::Program& program) {
  if (RunsPairs(schedule)) return;
  const TemplateEnds ends = FindTemplateEnds(stages);
  for (Stage& stage : stages) fuse_stretches_cc::FuseStage(ends, stage, program);
}

}  // namespace orrery::lowering
