#include "lowering/placement/stage_copy.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ir/op_kind.h"
#include "lowering/blocks/task_name.h"
#include "support/check.h"

namespace orrery::lowering {

bool OriginPairs::Fits(ir::ValueId origin, ir::ValueId other) {
  if (!origin.valid() || !other.valid()) return origin == other;
  const int32_t limit = std::max(origin.index(), other.index()) + 1;
  if (limit > there_.size()) {
    there_.resize(2 * limit);
    back_.resize(2 * limit);
  }
  if (!there_[origin].valid() && !back_[other].valid()) {
    there_[origin] = other;
    back_[other] = origin;
    pairs_.emplace_back(origin, other);
  }
  return there_[origin] == other;
}

void OriginPairs::Clear() {
  for (const auto& [origin, other] : pairs_) there_[origin] = back_[other] = ir::ValueId();
  pairs_.clear();
}

namespace stage_copy_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;
using transforms::StageFunction;

bool MovesBetweenStages(OpKind kind) { return kind == OpKind::kSend || kind == OpKind::kReceive; }

// Compares two parts op by op. What they have in tables of their own is compared once a pair.
class Matcher {
 public:
  Matcher(const StageFunction& a, const StageFunction& b, OriginPairs& origins)
      : part_a_(a),
        part_b_(b),
        a_(a.function),
        b_(b.function),
        origins_(origins),
        there_(a_.value_limit()),
        types_(a_.types().size()) {}

  bool Match() {
    return a_.mesh() == b_.mesh() &&
           std::ranges::equal(a_.inputs(), b_.inputs(),
                              [this](const ir::Input& a, const ir::Input& b) {
                                return a.role == b.role && MatchNew(a.value, b.value);
                              }) &&
           std::ranges::equal(a_.order(), b_.order(),
                              [this](OpId a, OpId b) { return MatchOps(a, b); }) &&
           std::ranges::equal(
               a_.outputs(), b_.outputs(), [this](const ir::Output& a, const ir::Output& b) {
                 return a.role == b.role && There(a.value) == b.value && There(a.of) == b.of;
               });
  }

 private:
  ValueId There(ValueId value) const { return value.valid() ? there_[value] : value; }

  bool MatchNew(ValueId a, ValueId b) {
    there_[a] = b;
    ir::TypeId& type = types_[a_.type_id(a)];
    if (!type.valid() && a_.type(a) == b_.type(b)) type = b_.type_id(b);
    return type == b_.type_id(b) && origins_.Fits(OriginOf(part_a_, a), OriginOf(part_b_, b));
  }

  bool MatchOps(OpId a, OpId b) {
    const bool alike = a_.kind(a) == b_.kind(b) && a_.result_count(a) == b_.result_count(b) &&
                       MatchAttributes(a, b) &&
                       std::ranges::equal(a_.operands(a), b_.operands(b), {},
                                          [this](ValueId value) { return There(value); });
    if (!alike) return false;
    for (int32_t i = 0; i < a_.result_count(a); ++i) {
      if (!MatchNew(a_.result(a, i), b_.result(b, i))) return false;
    }
    return true;
  }

  // Each stage has neighbours of its own.
  bool MatchAttributes(OpId a, OpId b) {
    if (MovesBetweenStages(a_.kind(a))) return true;
    const auto [known, is_new] = sets_.emplace(a_.attributes_id(a), b_.attributes_id(b));
    return known->second == b_.attributes_id(b) &&
           (!is_new || a_.attributes(a) == b_.attributes(b));
  }

  const StageFunction& part_a_;
  const StageFunction& part_b_;
  const Function& a_;
  const Function& b_;
  OriginPairs& origins_;
  IdTable<ValueId, ValueId> there_;        // in b
  IdTable<ir::TypeId, ir::TypeId> types_;  // likewise
  absl::flat_hash_map<ir::AttributesId, ir::AttributesId> sets_;
};

class StageRenamer {
 public:
  StageRenamer(const StagePair& pair, const OriginPairs& origins, simulator::Program& program)
      : pair_(pair), origins_(origins), program_(program), stage_(pair.made) {}

  Stage Run() && {
    const auto parts = pair_.parts.parts(), others = pair_.other_parts.parts();
    const std::array<PhaseTemplates*, 3> phases = {&stage_.forward, &stage_.backward,
                                                   &stage_.weights};
    for (size_t i = 0; i < phases.size(); ++i) {
      for (PricedTemplate* priced : {&phases[i]->first, &phases[i]->later, &phases[i]->last}) {
        Change(parts[i]->function, others[i]->function, priced->task_template);
      }
    }
    for (PricedTemplate* priced : {&stage_.update, &stage_.gathers}) {
      Change(parts.back()->function, others.back()->function, priced->task_template);
    }
    return std::move(stage_);
  }

 private:
  void Change(const Function& from, const Function& to, TaskTemplate& task_template) {
    for (TemplateTask& task : task_template.tasks) {
      task.label = LabelOf(task.label, {from, to, task.first_op, task.last_op});
    }
    for (TemplateValue& input : task_template.inputs) input.origin = origins_.Of(input.origin);
    for (TemplateValue& output : task_template.outputs) output.origin = origins_.Of(output.origin);
    for (TemplateSend& send : task_template.sends) {
      const OpId op = to.order()[static_cast<size_t>(send.op)];
      send.to = static_cast<int32_t>(to.attributes(op).Int("to", 0));
      send.origin = origins_.Of(send.origin);
      send.label = LabelOf(send.label, {from, to, send.op, send.op});
    }
  }

  // The functions of both stages, and the ops there that a label begins and ends with.
  struct Named {
    const Function &from, &to;
    int32_t first, last;

    TaskName FirstOf(const Function& function) const { return NameAt(function, first); }
    TaskName LastOf(const Function& function) const { return NameAt(function, last); }
    static TaskName NameAt(const Function& function, int32_t position) {
      return NameOfTask(function, function.order()[static_cast<size_t>(position)]);
    }
  };

  simulator::LabelId LabelOf(simulator::LabelId label, const Named& named) {
    const auto [known, is_new] = labels_.emplace(label, simulator::LabelId());
    if (is_new) {
      simulator::TaskLabel text = program_.label(label);
      if (!text.name.empty()) text.name = NameOf(text.name, named);
      text.stage = pair_.other;
      known->second = program_.AddLabel(text);
    }
    return known->second;
  }

  // What stands between the names of ops, or behind them, stays.
  absl::string_view NameOf(absl::string_view name, const Named& named) {
    const TaskName first = named.FirstOf(named.from), last = named.LastOf(named.from);
    const TaskName new_first = named.FirstOf(named.to), new_last = named.LastOf(named.to);
    if (first == new_first && last == new_last) return name;
    bool named_so = absl::ConsumePrefix(&name, ToString(first));
    name_ = ToString(new_first);
    if (named.first == named.last) {
      absl::StrAppend(&name_, name);
    } else {
      named_so = named_so && absl::ConsumeSuffix(&name, ToString(last));
      absl::StrAppend(&name_, name, ToString(new_last));
    }
    ORRERY_CHECK(named_so) << "a label of '" << ToString(first) << "' leaves '" << name << "'";
    return name_;
  }

  const StagePair& pair_;
  const OriginPairs& origins_;
  simulator::Program& program_;
  Stage stage_;
  absl::flat_hash_map<simulator::LabelId, simulator::LabelId> labels_;
  std::string name_;  // of the last label
};

}  // namespace
}  // namespace stage_copy_cc

std::optional<Stage> StageCopier::Copy(const StagePair& pair) {
  ORRERY_CHECK(pair.made.forward.slices.empty()) << "of a slice of the sequence";
  origins_.Clear();
  const auto parts = pair.parts.parts(), others = pair.other_parts.parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!stage_copy_cc::Matcher(*parts[i], *others[i], origins_).Match()) return std::nullopt;
  }
  return stage_copy_cc::StageRenamer(pair, origins_, program_).Run();
}

}  // namespace orrery::lowering
