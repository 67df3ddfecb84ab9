#include "lowering/placement/late_update.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/op_info.h"
#include "support/check.h"

namespace orrery::lowering {
namespace late_update_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

bool ComesFromBefore(const Function& function, OpId op, int32_t stage) {
  return function.info(op).op_class == ir::OpClass::kReceive &&
         function.attributes(op).Int("from", stage) < stage;
}

// Whether each op waits for an earlier stage, by its position in the order.
std::vector<char> FindLate(const Function& function, int32_t stage) {
  std::vector<char> late;
  IdTable<ValueId, char> waits(function.value_limit(), 0);
  for (const OpId op : function.order()) {
    bool waits_here = ComesFromBefore(function, op, stage);
    for (const ValueId operand : function.operands(op)) {
      waits_here = waits_here || waits[operand] != 0;
    }
    late.push_back(waits_here ? 1 : 0);
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      waits[function.result(op, i)] = waits_here ? 1 : 0;
    }
  }
  return late;
}

// Parts a template in two, by task.
class Parting {
 public:
  Parting(const transforms::PipelineStage& parts, std::vector<char> late_ops,
          PricedTemplate& priced)
      : priced_(priced), template_(priced.task_template), late_ops_(std::move(late_ops)) {
    for (const transforms::StageFunction* part : parts.parts()) {
      for (const ValueId origin : part->origins) {
        if (origin.valid()) next_origin_ = std::max(next_origin_, origin.index() + 1);
      }
    }
  }

  PricedTemplate Run() {
    Number();
    for (PricedTemplate& part : parts_) {
      part.other_durations.resize(priced_.other_durations.size());
      part.task_template.inputs = template_.inputs;
    }
    for (size_t t = 0; t < template_.tasks.size(); ++t) Move(t);
    for (TemplateMemory memory : template_.memory) {
      TaskTemplate& to = PartOf(memory.task);
      memory.task = NewIndex(memory.task);
      to.memory.push_back(memory);
    }
    for (TemplateValue output : template_.outputs) {
      if (output.task < 0) continue;
      TaskTemplate& to = PartOf(output.task);
      output.task = NewIndex(output.task);
      to.outputs.push_back(output);
    }
    for (TemplateSend send : template_.sends) MoveSend(std::move(send));
    for (const int32_t task : template_.releases) {
      PartOf(task).releases.push_back(NewIndex(task));
    }
    priced_ = std::move(parts_[0]);
    return std::move(parts_[1]);
  }

 private:
  bool IsLate(int32_t task) const {
    const TemplateTask& of = template_.tasks[static_cast<size_t>(task)];
    const char late = late_ops_[static_cast<size_t>(of.first_op)];
    ORRERY_DCHECK(late == late_ops_[static_cast<size_t>(of.last_op)]) << "a task of both parts";
    return late != 0;
  }
  TaskTemplate& PartOf(int32_t task) { return parts_[IsLate(task) ? 1 : 0].task_template; }
  int32_t NewIndex(int32_t task) const { return new_index_[static_cast<size_t>(task)]; }

  void Number() {
    std::array<int32_t, 2> next = {};
    for (int32_t t = 0; t < std::ssize(template_.tasks); ++t) {
      new_index_.push_back(next[IsLate(t) ? 1 : 0]++);
    }
  }

  void Move(size_t t) {
    TemplateTask task = template_.tasks[t];
    const bool late = IsLate(static_cast<int32_t>(t));
    PricedTemplate& part = parts_[late ? 1 : 0];
    TaskTemplate& to = part.task_template;
    const auto begin = static_cast<uint32_t>(to.dependencies.size());
    for (TemplateDependency on : template_.DependenciesOf(task)) {
      if (!on.external && late && !IsLate(on.index)) {
        on = {.external = true, .index = InputFrom(on.index)};
      } else if (!on.external) {
        on.index = NewIndex(on.index);
      }
      to.dependencies.push_back(on);
    }
    task.dependency_begin = begin;
    task.dependency_end = static_cast<uint32_t>(to.dependencies.size());
    to.tasks.push_back(task);
    for (size_t kind = 0; kind < part.other_durations.size(); ++kind) {
      part.other_durations[kind].push_back(priced_.other_durations[kind][t]);
    }
  }

  // The input of the late part that stands for a task of the other one.
  int32_t InputFrom(int32_t task) {
    std::vector<TemplateValue>& inputs = parts_[1].task_template.inputs;
    const auto [found, is_new] = input_from_.try_emplace(task, static_cast<int32_t>(inputs.size()));
    if (!is_new) return found->second;
    const ValueId origin(next_origin_++);
    parts_[0].task_template.outputs.push_back({.origin = origin, .task = NewIndex(task)});
    inputs.push_back({.origin = origin});
    return found->second;
  }

  void MoveSend(TemplateSend send) {
    const bool made_here = send.has_maker && !send.made_by.external;
    TaskTemplate& to = made_here ? PartOf(send.made_by.index) : parts_[0].task_template;
    if (made_here) send.made_by.index = NewIndex(send.made_by.index);
    to.sends.push_back(std::move(send));
  }

  PricedTemplate& priced_;
  TaskTemplate& template_;
  const std::vector<char> late_ops_;
  std::array<PricedTemplate, 2> parts_;  // the second is late
  std::vector<int32_t> new_index_;       // by task, in its part
  absl::flat_hash_map<int32_t, int32_t> input_from_;
  int32_t next_origin_ = 0;
};

}  // namespace
}  // namespace late_update_cc

std::vector<int32_t> AwaitedStages(const transforms::StageFunction& update, int32_t stage) {
  std::vector<int32_t> stages;
  for (const ir::OpId op : update.function.order()) {
    if (!late_update_cc::ComesFromBefore(update.function, op, stage)) continue;
    const auto from = static_cast<int32_t>(update.function.attributes(op).Int("from", stage));
    const auto at = std::ranges::lower_bound(stages, from);
    if (at == stages.end() || *at != from) stages.insert(at, from);
  }
  return stages;
}

PricedTemplate TakeLate(const transforms::PipelineStage& parts, int32_t stage,
                        PricedTemplate& priced) {
  std::vector<char> late = late_update_cc::FindLate(parts.update.function, stage);
  if (std::ranges::find(late, 1) == late.end()) return {};
  return late_update_cc::Parting(parts, std::move(late), priced).Run();
}

}  // namespace orrery::lowering
