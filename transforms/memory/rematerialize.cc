#include "transforms/memory/rematerialize.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/copy.h"
#include "ir/dead_code.h"
#include "ir/op_kind.h"
#include "support/check.h"

namespace orrery::transforms {
namespace rematerialize_cc {
namespace {

using ir::Function;
using ir::InputRole;
using ir::OpId;
using ir::OpKind;
using ir::OutputRole;
using ir::ValueId;

// The values of a forward function by what they stand for.
class ByOrigin {
 public:
  explicit ByOrigin(const StageFunction& forward) {
    for (int32_t v = 0; v < forward.function.value_limit(); ++v) {
      const ValueId origin = OriginOf(forward, ValueId(v));
      if (origin.valid()) values_[origin] = ValueId(v);
    }
  }
  /// Invalid where forward has none.
  ValueId Find(ValueId origin) const {
    const auto found = values_.find(origin);
    return found == values_.end() ? ValueId() : found->second;
  }

 private:
  absl::flat_hash_map<ValueId, ValueId> values_;
};

// Forward as later phases see it.
struct Source {
  Source(const KeepPlan& plan, StageFunction& forward)
      : part(forward),
        by_origin(forward),
        position(forward.function.op_limit(), -1),
        relu(forward.function.value_limit()),
        wanted(forward.function.value_limit(), 0) {
    const Function& function = forward.function;
    for (size_t i = 0; i < function.order().size(); ++i) {
      const OpId op = function.order()[i];
      position[op] = static_cast<int32_t>(i);
      if (function.kind(op) == OpKind::kRelu) {
        relu[function.operands(op)[0]] = function.result(op);
      }
      if (const int32_t group = GroupOf(plan, op); group >= 0) groups[group].push_back(op);
    }
  }
  // -1: it is run alone.
  int32_t GroupOf(const KeepPlan& plan, OpId op) const {
    return plan.groups.empty() ? -1 : plan.groups[static_cast<size_t>(position[op])];
  }
  const Function& function() const { return part.function; }

  StageFunction& part;
  ByOrigin by_origin;
  IdTable<OpId, int32_t> position;                         // in the order; -1: not there
  IdTable<ValueId, ValueId> relu;                          // of the value, its Relu
  IdTable<ValueId, char> wanted;                           // to be left for later phases
  absl::flat_hash_map<int32_t, std::vector<OpId>> groups;  // of layers that are run as a whole
};

// A later phase, written anew.
class Phase {
 public:
  Phase(StageFunction& part, const KeepPlan& plan, std::vector<Phase>& earlier, Source& source)
      : part_(part),
        plan_(plan),
        earlier_(earlier),
        source_(source),
        to_(part.function.name(), part.function.mesh()),
        values_(part.function.value_limit()),
        local_(source.function().value_limit()),
        made_(source.function().value_limit(), 0) {}

  void Write() {
    const Function& from = part_.function;
    for (const ir::Input& input : from.inputs()) {
      const ValueId made = InForward(input.value);
      const bool saved = input.role == InputRole::kSaved && made.valid();
      if (saved && plan_.rematerialized[made] != 0) continue;
      if (saved) source_.wanted[made] = 1;
      const ValueId here = AddInput(from, input.value, input.role, OriginOf(part_, input.value));
      values_[input.value] = here;
      if (made.valid()) local_[made] = here;
    }
    for (const OpId op : from.order()) Copy(op);
    for (const ir::Output& output : from.outputs()) {
      to_.AddOutput({.value = Get(output.value),
                     .role = output.role,
                     .of = output.of.valid() ? Get(output.of) : ValueId()});
    }
  }

  StageFunction Finish() && {
    if (!plan_.groups.empty()) DropUnused();
    return {.function = std::move(to_), .origins = std::move(origins_)};
  }

 private:
  ValueId InForward(ValueId value) const {
    const ValueId origin = OriginOf(part_, value);
    return origin.valid() ? source_.by_origin.Find(origin) : ValueId();
  }

  void SetOrigin(ValueId here, ValueId origin) {
    origins_.resize(static_cast<size_t>(to_.value_limit()));
    origins_[static_cast<size_t>(here.index())] = origin;
  }

  ValueId AddInput(const Function& from, ValueId value, InputRole role, ValueId origin) {
    const ValueId here = to_.AddInput(from.value_name(value), from.type(value), role);
    SetOrigin(here, origin);
    return here;
  }

  // What stands here for a value of the phase as it was.
  ValueId Get(ValueId value) {
    if (values_[value].valid()) return values_[value];
    const ValueId made = InForward(value);
    ORRERY_CHECK(made.valid()) << ir::PrintValue(part_.function, value);
    values_[value] = GetFromForward(made);
    return values_[value];
  }

  // The op of the phase as it was, unless it repeats what has been rematerialized.
  void Copy(OpId op) {
    const Function& from = part_.function;
    if (Stands(op)) return;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < from.operands(op).size(); ++i) operands.push_back(OperandOf(op, i));
    const OpId copy = Append(from, op, operands);
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      const ValueId result = from.result(op, i), made = InForward(result);
      values_[result] = to_.result(copy, i);
      to_.SetName(values_[result], from.value_name(result));
      SetOrigin(values_[result], OriginOf(part_, result));
      if (made.valid()) local_[made] = values_[result];
    }
  }

  bool Stands(OpId op) {
    const Function& from = part_.function;
    if (from.result_count(op) == 0) return false;
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      const ValueId made = InForward(from.result(op, i));
      if (!made.valid() || !local_[made].valid()) return false;
    }
    for (int32_t i = 0; i < from.result_count(op); ++i) Get(from.result(op, i));
    return true;
  }

  // A Relu's gradient is as well off with its result, which the next layer wants anyhow.
  ValueId OperandOf(OpId op, size_t i) {
    const ValueId operand = part_.function.operands(op)[i];
    if (part_.function.kind(op) != OpKind::kReluGrad || i != 0 || values_[operand].valid()) {
      return Get(operand);
    }
    const ValueId relu = source_.relu[InForward(operand)];
    return relu.valid() ? GetFromForward(relu) : Get(operand);
  }

  OpId Append(const Function& from, OpId op, std::span<const ValueId> operands) {
    types_.clear();
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      types_.push_back(to_.InternType(from.type(from.result(op, i))));
    }
    return to_.AddOpOfTypes(from.kind(op), operands, to_.InternAttributes(from.attributes(op)),
                            types_);
  }

  // The value of forward: it is here, or an earlier phase has it, or it is kept, or rematerialized
  // with all that it needs.
  ValueId GetFromForward(ValueId value) {
    if (Find(value)) return local_[value];
    std::vector<OpId> ops = RunTogether(source_.function().producer(value));
    std::vector<char> chosen(static_cast<size_t>(source_.function().op_limit()), 0);
    for (const OpId op : ops) chosen[static_cast<size_t>(op.index())] = 1;
    for (size_t next = 0; next < ops.size(); ++next) {
      for (const ValueId operand : source_.function().operands(ops[next])) {
        if (Find(operand)) continue;
        const OpId producer = source_.function().producer(operand);
        if (std::exchange(chosen[static_cast<size_t>(producer.index())], 1) == 0) {
          ops.push_back(producer);
        }
      }
    }
    std::sort(ops.begin(), ops.end(),
              [&](OpId a, OpId b) { return source_.position[a] < source_.position[b]; });
    for (const OpId op : ops) Run(op);
    return local_[value];
  }

  // The op, and where its group of layers is run as a whole, what is made in it and not here yet.
  std::vector<OpId> RunTogether(OpId op) const {
    const Function& forward = source_.function();
    std::vector<OpId> ops = {op};
    const auto group = source_.groups.find(source_.GroupOf(plan_, op));
    if (group == source_.groups.end()) return ops;
    for (const OpId other : group->second) {
      if (other == op) continue;
      bool missing = false;
      for (int32_t i = 0; i < forward.result_count(other); ++i) {
        const ValueId result = forward.result(other, i);
        missing |= plan_.rematerialized[result] != 0 && !local_[result].valid();
      }
      if (missing) ops.push_back(other);
    }
    return ops;
  }

  // What was run for nobody, and what that leads to.
  void DropUnused() {
    const IdTable<ValueId, int32_t> uses = ir::CountUses(to_);
    std::vector<OpId> order;
    for (const OpId op : std::vector<OpId>(to_.order())) {
      order.push_back(op);
      if (ir::IsUsed(to_, op, uses)) continue;
      const ValueId result = to_.result(op);
      order.push_back(
          to_.AddOpOfTypes(OpKind::kDrop, std::span(&result, 1), to_.InternAttributes({}), {}));
    }
    to_.SetOrder(std::move(order));
  }

  // Whether the value is here without running anything; then `local_` has it.
  bool Find(ValueId value) {
    if (local_[value].valid()) return true;
    const Function& forward = source_.function();
    const ValueId origin = OriginOf(source_.part, value);
    if (!forward.producer(value).valid()) {
      local_[value] = AddInput(forward, value, forward.input_role(value), origin);
      return true;
    }
    bool left = false;
    for (Phase& phase : earlier_) left = left || phase.Leave(value);
    if (!left && plan_.rematerialized[value] != 0) return false;
    ORRERY_CHECK(origin.valid()) << ir::PrintValue(forward, value);
    if (!left) source_.wanted[value] = 1;
    if (forward.value_name(value).empty()) {
      source_.part.function.SetName(value, absl::StrCat("v", origin.index()));
    }
    local_[value] = AddInput(forward, value, InputRole::kSaved, origin);
    return true;
  }

  // Returns what was rematerialized here to a later phase.
  bool Leave(ValueId value) {
    if (made_[value] == 0) return false;
    const ValueId here = local_[value];
    const auto& outputs = to_.outputs();
    const bool there = std::any_of(outputs.begin(), outputs.end(),
                                   [&](const auto& output) { return output.value == here; });
    if (!there) to_.AddOutput({.value = here, .role = OutputRole::kSaved, .of = ValueId()});
    return true;
  }

  void Run(OpId op) {
    const Function& forward = source_.function();
    std::vector<ValueId> operands;
    for (const ValueId operand : forward.operands(op)) operands.push_back(local_[operand]);
    const OpId copy = Append(forward, op, operands);
    for (int32_t i = 0; i < forward.result_count(op); ++i) {
      const ValueId result = forward.result(op, i), here = to_.result(copy, i);
      if (local_[result].valid()) continue;  // kept: nobody reads it a second time
      local_[result] = here;
      made_[result] = 1;
      to_.SetName(here, forward.value_name(result));
      SetOrigin(here, OriginOf(source_.part, result));
    }
    origins_.resize(static_cast<size_t>(to_.value_limit()));
  }

  StageFunction& part_;
  const KeepPlan& plan_;
  std::vector<Phase>& earlier_;
  Source& source_;
  Function to_;
  std::vector<ValueId> origins_;
  IdTable<ValueId, ValueId> values_;  // of the phase as it was
  IdTable<ValueId, ValueId> local_;   // of forward
  IdTable<ValueId, char> made_;       // of forward: rematerialized here
  std::vector<ir::TypeId> types_;
};

template <typename F>
void ForSaved(const StageFunction& part, const ByOrigin& by_origin, F f) {
  for (const ir::Input& input : part.function.inputs()) {
    const ValueId origin = OriginOf(part, input.value);
    if (input.role != InputRole::kSaved || !origin.valid()) continue;
    const ValueId made = by_origin.Find(origin);
    if (made.valid()) f(made);
  }
}

// What nobody wants any more goes, what somebody wants newly comes last.
void SetSaved(const IdTable<ValueId, char>& wanted, Function& forward) {
  IdTable<ValueId, char> left = wanted;
  std::vector<ir::Output> outputs;
  for (const ir::Output& output : forward.outputs()) {
    if (output.role != OutputRole::kSaved || std::exchange(left[output.value], 0) != 0) {
      outputs.push_back(output);
    }
  }
  for (int32_t v = 0; v < forward.value_limit(); ++v) {
    if (left[ValueId(v)] == 0) continue;
    outputs.push_back({.value = ValueId(v), .role = OutputRole::kSaved, .of = ValueId()});
  }
  forward.SetOutputs(std::move(outputs));
  ir::RemoveDeadOps(forward);
}

}  // namespace
}  // namespace rematerialize_cc

IdTable<ir::ValueId, char> FindSaved(const StageFunction& forward,
                                     std::span<StageFunction* const> later) {
  IdTable<ir::ValueId, char> saved(forward.function.value_limit(), 0);
  const rematerialize_cc::ByOrigin by_origin(forward);
  for (const StageFunction* part : later) {
    rematerialize_cc::ForSaved(*part, by_origin, [&](ir::ValueId made) { saved[made] = 1; });
  }
  return saved;
}

void Rematerialize(const KeepPlan& plan, std::span<StageFunction* const> later,
                   std::span<const StageFunction* const> others, StageFunction& forward) {
  rematerialize_cc::Source source(plan, forward);
  std::vector<rematerialize_cc::Phase> phases;
  phases.reserve(later.size());
  for (StageFunction* part : later) {
    rematerialize_cc::Phase phase(*part, plan, phases, source);
    phase.Write();
    phases.push_back(std::move(phase));
  }
  for (size_t i = 0; i < later.size(); ++i) *later[i] = std::move(phases[i]).Finish();
  for (const StageFunction* part : others) {
    rematerialize_cc::ForSaved(*part, source.by_origin,
                               [&](ir::ValueId made) { source.wanted[made] = 1; });
  }
  rematerialize_cc::SetSaved(source.wanted, forward.function);
}

}  // namespace orrery::transforms
