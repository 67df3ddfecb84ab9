#include "lowering/twin_stage.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "support/check.h"

namespace orrery::lowering {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;
using transforms::StageFunction;

// Origins of one pipeline are those of the other one, so much further on.
class OriginShift {
 public:
  // Whether `other` may stand for `origin` beside all pairs before.
  bool Fits(ValueId origin, ValueId other) {
    if (shift_ == 0 && origin.valid()) shift_ = other.index() - origin.index();
    return shift_ >= 0 && other == Of(origin);
  }

  ValueId Of(ValueId origin) const {
    if (!origin.valid()) return origin;
    return ValueId(origin.index() + (origin.index() < shift_ ? shift_ : -shift_));
  }

 private:
  int32_t shift_ = 0;
};

bool MovesBetweenStages(OpKind kind) { return kind == OpKind::kSend || kind == OpKind::kReceive; }

// Compares two parts op by op. What they have in tables of their own is compared once a pair.
class Matcher {
 public:
  Matcher(const StageFunction& a, const StageFunction& b, OriginShift& origins)
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
    return type == b_.type_id(b) && a_.value_name(a) == b_.value_name(b) &&
           origins_.Fits(OriginOf(part_a_, a), OriginOf(part_b_, b));
  }

  static ValueId OriginOf(const StageFunction& part, ValueId value) {
    return part.origins[static_cast<size_t>(value.index())];
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

  // Stages send to others in each pipeline.
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
  OriginShift& origins_;
  IdTable<ValueId, ValueId> there_;        // in b
  IdTable<ir::TypeId, ir::TypeId> types_;  // likewise
  absl::flat_hash_map<ir::AttributesId, ir::AttributesId> sets_;
};

class TwinCopy {
 public:
  TwinCopy(const Twins& twins, const OriginShift& origins, simulator::Program& program)
      : twins_(twins), origins_(origins), program_(program), stage_(twins.made) {}

  Stage Run() && {
    const auto& parts = twins_.other_parts;
    for (PhaseBlocks* blocks : {&stage_.forward, &stage_.backward, &stage_.weights}) {
      const StageFunction& part = blocks == &stage_.forward    ? parts.forward
                                  : blocks == &stage_.backward ? parts.backward
                                                               : parts.weights;
      for (PlacedBlock* placed : {&blocks->first, &blocks->later, &blocks->last}) {
        Change(part, placed->block);
      }
    }
    Change(parts.update, stage_.update.block);
    return std::move(stage_);
  }

 private:
  void Change(const StageFunction& part, Block& block) {
    for (BlockTask& task : block.tasks) task.label = LabelOf(task.label);
    for (BlockValue& input : block.inputs) input.origin = origins_.Of(input.origin);
    for (BlockValue& output : block.outputs) output.origin = origins_.Of(output.origin);
    auto send = block.sends.begin();
    for (const OpId op : part.function.order()) {
      if (part.function.kind(op) != OpKind::kSend || send == block.sends.end()) continue;
      send->to = static_cast<int32_t>(part.function.attributes(op).Int("to", 0));
      send->origin = origins_.Of(send->origin);
      send->label = LabelOf(send->label);
      ++send;
    }
    ORRERY_CHECK(send == block.sends.end()) << part.function.name();
  }

  simulator::LabelId LabelOf(simulator::LabelId label) {
    const auto [known, is_new] = labels_.emplace(label, simulator::LabelId());
    if (is_new) {
      simulator::TaskLabel text = program_.label(label);
      text.stage = twins_.other;
      known->second = program_.AddLabel(text);
    }
    return known->second;
  }

  const Twins& twins_;
  const OriginShift& origins_;
  simulator::Program& program_;
  Stage stage_;
  absl::flat_hash_map<simulator::LabelId, simulator::LabelId> labels_;
};

}  // namespace

std::optional<Stage> CopyOfTwin(const Twins& twins, simulator::Program& program) {
  OriginShift origins;
  const auto parts = twins.parts.parts(), others = twins.other_parts.parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!Matcher(*parts[i], *others[i], origins).Match()) return std::nullopt;
  }
  return TwinCopy(twins, origins, program).Run();
}

}  // namespace orrery::lowering
