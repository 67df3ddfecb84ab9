#include "transforms/memory/keep_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace keep_plan_cc {
namespace {

using ir::Function;
using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

class KeepPlanner {
 public:
  KeepPlanner(const Function& forward, const KeepRule& rule, std::span<const LayerRange> layers,
              const IdTable<ValueId, char>& saved)
      : forward_(forward),
        rule_(rule),
        layers_(layers),
        saved_(saved),
        from_data_(forward.value_limit(), 0),
        plan_{.rematerialized = IdTable<ValueId, char>(forward.value_limit(), 0)} {
    for (const ir::Input& input : forward.inputs()) {
      from_data_[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
    }
    for (const OpId op : forward.order()) {
      bool from_data = forward.kind(op) == OpKind::kReceive;
      for (const ValueId operand : forward.operands(op)) {
        from_data = from_data || from_data_[operand] != 0;
      }
      ForResults(op, [&](ValueId result) { from_data_[result] = from_data ? 1 : 0; });
    }
  }

  KeepPlan Run() {
    SaveParts();
    const RecomputeRecord& record = *rule_.policy.record;
    const ForwardValues values = {
        .function = forward_, .layers = layers_, .saved = saved_, .from_data = from_data_};
    if (record.mark != nullptr) record.mark(values, rule_.policy, plan_.rematerialized);
    if (rule_.whole && record.groups != nullptr) FindGroups(record.groups(values, rule_.policy));
    const IdTable<ValueId, char> for_later = FindForLaterSlices();
    for (const OpId op : forward_.order()) {
      const bool once = IsOnce(op), gathers = Gathers(op);
      ForResults(op, [&](ValueId result) {
        if (once || gathers) plan_.rematerialized[result] = gathers ? 1 : 0;
        if (for_later[result] != 0) plan_.rematerialized[result] = 0;
        if (plan_.rematerialized[result] != 0 && saved_[result] != 0) ++plan_.dropped;
      });
    }
    return std::move(plan_);
  }

 private:
  template <typename F>
  void ForResults(OpId op, F f) const {
    for (int32_t i = 0; i < forward_.result_count(op); ++i) f(forward_.result(op, i));
  }

  bool Gathers(OpId op) const {
    return rule_.gathers && forward_.kind(op) == OpKind::kAllGather &&
           from_data_[forward_.operands(op)[0]] != 0;
  }

  // A part is read instead of what is gathered from it.
  void SaveParts() {
    const auto& order = forward_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      const bool part = Gathers(*op) && saved_[forward_.result(*op)] != 0;
      if (part) saved_[forward_.operands(*op)[0]] = 1;
    }
  }

  // What must not happen twice, or cannot.
  bool IsOnce(OpId op) const {
    const OpKind kind = forward_.kind(op);
    return forward_.info(op).op_class == OpClass::kReceive ||
           forward_.info(op).op_class == OpClass::kOptimizer || kind == OpKind::kAccumulate ||
           kind == OpKind::kCollect;
  }

  // Without what must not happen twice.
  void FindGroups(std::vector<int32_t> groups) {
    for (size_t i = 0; i < groups.size(); ++i) {
      const OpId op = forward_.order()[i];
      if (IsOnce(op) || forward_.result_count(op) == 0) groups[i] = -1;
    }
    plan_.groups = std::move(groups);
  }

  // Keys and values that later slices of the sequence read, or what they are views of: they stay.
  IdTable<ValueId, char> FindForLaterSlices() const {
    IdTable<ValueId, char> found(forward_.value_limit(), 0);
    for (const OpId op : forward_.order()) {
      if (forward_.kind(op) != OpKind::kExtendRows) continue;
      ValueId value = forward_.operands(op)[0];
      for (OpId made = forward_.producer(value); made.valid() && IsView(made);) {
        value = forward_.operands(made)[0];
        made = forward_.producer(value);
      }
      found[value] = 1;
    }
    return found;
  }

  bool IsView(OpId op) const {
    return forward_.info(op).strided_view && !forward_.operands(op).empty();
  }

  const Function& forward_;
  const KeepRule& rule_;
  const std::span<const LayerRange> layers_;
  IdTable<ValueId, char> saved_;
  IdTable<ValueId, char> from_data_;
  KeepPlan plan_;
};

}  // namespace
}  // namespace keep_plan_cc

KeepPlan PlanToKeep(const ir::Function& forward, const KeepRule& rule,
                    std::span<const LayerRange> layers, const IdTable<ir::ValueId, char>& saved) {
  return keep_plan_cc::KeepPlanner(forward, rule, layers, saved).Run();
}

}  // namespace orrery::transforms
