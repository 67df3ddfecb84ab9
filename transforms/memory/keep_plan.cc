#include "transforms/memory/keep_plan.h"

#include <re2/re2.h>

#include <algorithm>
#include <vector>

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
  KeepPlanner(const Function& forward, const RecomputePolicy& policy,
              std::span<const LayerRange> layers, const IdTable<ValueId, char>& saved)
      : forward_(forward),
        policy_(policy),
        layers_(layers),
        saved_(saved),
        from_data_(forward.value_limit(), 0),
        plan_{.again = IdTable<ValueId, char>(forward.value_limit(), 0)} {
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
    switch (policy_.kind) {
      case RecomputePolicy::Kind::kNone:
        break;
      case RecomputePolicy::Kind::kSelective:
        DropScores();
        break;
      case RecomputePolicy::Kind::kLayers:
        DropLayers();
        break;
      case RecomputePolicy::Kind::kMatching:
        DropMatching();
        break;
    }
    const IdTable<ValueId, char> for_later = FindForLaterSlices();
    for (const OpId op : forward_.order()) {
      const bool once = IsOnce(op), gathers = Gathers(op);
      ForResults(op, [&](ValueId result) {
        if (once || gathers) plan_.again[result] = gathers ? 1 : 0;
        if (for_later[result] != 0) plan_.again[result] = 0;
        if (plan_.again[result] != 0 && saved_[result] != 0) ++plan_.dropped;
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
    return policy_.gathers && forward_.kind(op) == OpKind::kAllGather &&
           from_data_[forward_.operands(op)[0]] != 0;
  }

  // A part is read in the place of what is gathered from it.
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

  // Values that an attention makes from its scores, by the product that the scores come from: they
  // grow with the square of the sequence. From the product of two activations, by way of a softmax,
  // up to the next product that takes them.
  IdTable<ValueId, OpId> FindScores() const {
    IdTable<ValueId, OpId> scores(forward_.value_limit());
    IdTable<OpId, char> normalized(forward_.op_limit(), 0);
    for (const OpId op : forward_.order()) {
      const auto operands = forward_.operands(op);
      const auto found = std::find_if(operands.begin(), operands.end(),
                                      [&](ValueId operand) { return scores[operand].valid(); });
      OpId of = found == operands.end() ? OpId() : scores[*found];
      if (forward_.info(op).matrix_product) {
        const bool begins = !of.valid() && operands.size() > 1 && from_data_[operands[0]] != 0 &&
                            from_data_[operands[1]] != 0;
        of = begins ? op : OpId();
      }
      ForResults(op, [&](ValueId result) { scores[result] = of; });
      if (of.valid() && IsSoftmax(op)) normalized[of] = 1;
      if (!IsAttentionOfScores(op)) continue;
      normalized[op] = 1;
      scores[forward_.result(op)] = OpId();  // its output
    }
    for (int32_t v = 0; v < forward_.value_limit(); ++v) {
      OpId& of = scores[ValueId(v)];
      if (of.valid() && normalized[of] == 0) of = OpId();
    }
    return scores;
  }

  bool IsSoftmax(OpId op) const {
    const OpKind kind = forward_.kind(op);
    return kind == OpKind::kSoftmax || kind == OpKind::kMaskedSoftmax || kind == OpKind::kExp;
  }

  // Whether all of it is one op, which keeps something as large as the scores.
  bool IsAttentionOfScores(OpId op) const {
    return forward_.kind(op) == OpKind::kAttention && forward_.attributes(op).Int("flash", 0) == 0;
  }

  void DropScores() {
    const IdTable<ValueId, OpId> scores = FindScores();
    for (const OpId op : forward_.order()) {
      ForResults(op, [&](ValueId result) {
        plan_.again[result] = scores[result].valid() || saved_[result] == 0 ? 1 : 0;
      });
    }
  }

  void DropMatching() {
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 pattern(policy_.pattern, options);
    const auto matches = [&](ValueId value) {
      const absl::string_view name = forward_.value_name(value);
      return !name.empty() && RE2::PartialMatch({name.data(), name.size()}, pattern);
    };
    for (const OpId op : forward_.order()) {
      if (forward_.result_count(op) == 0) continue;
      const bool all = matches(forward_.result(op));
      ForResults(op, [&](ValueId result) {
        plan_.again[result] = all || saved_[result] == 0 || matches(result) ? 1 : 0;
      });
    }
  }

  // The end of the group of layers that each place is in; -1 outside of them.
  std::vector<int32_t> GroupEnds() const {
    std::vector<int32_t> ends(forward_.order().size(), -1);
    const size_t count = layers_.size(),
                 every = std::min(static_cast<size_t>(policy_.every), count);
    for (size_t i = 0; i < count; ++i) {
      const size_t last = std::min(i - i % every + every, count) - 1;
      for (int32_t place = layers_[i].begin; place < layers_[i].end; ++place) {
        ends[static_cast<size_t>(place)] = layers_[last].end;
      }
    }
    return ends;
  }

  void DropLayers() {
    const std::vector<int32_t> ends = GroupEnds();
    IdTable<ValueId, ValueId> base(forward_.value_limit());
    IdTable<ValueId, int32_t> last(forward_.value_limit(), -1);  // where it is used
    const auto base_of = [&](ValueId value) { return base[value].valid() ? base[value] : value; };
    for (size_t place = 0; place < ends.size(); ++place) {
      const OpId op = forward_.order()[place];
      for (const ValueId operand : forward_.operands(op)) {
        last[base_of(operand)] = static_cast<int32_t>(place);
      }
      if (!IsView(op)) continue;
      ForResults(op, [&](ValueId result) { base[result] = base_of(forward_.operands(op)[0]); });
    }
    for (size_t place = 0; place < ends.size(); ++place) {
      const OpId op = forward_.order()[place];
      ForResults(op, [&](ValueId result) {
        const bool inside = ends[place] >= 0 && last[base_of(result)] < ends[place];
        const bool free = saved_[result] == 0 && (from_data_[result] == 0 || IsView(op));
        plan_.again[result] = inside || free ? 1 : 0;
      });
    }
  }

  bool IsView(OpId op) const {
    return forward_.info(op).strided_view && !forward_.operands(op).empty();
  }

  const Function& forward_;
  const RecomputePolicy& policy_;
  const std::span<const LayerRange> layers_;
  IdTable<ValueId, char> saved_;
  IdTable<ValueId, char> from_data_;
  KeepPlan plan_;
};

}  // namespace
}  // namespace keep_plan_cc

KeepPlan PlanToKeep(const ir::Function& forward, const RecomputePolicy& policy,
                    std::span<const LayerRange> layers, const IdTable<ir::ValueId, char>& saved) {
  return keep_plan_cc::KeepPlanner(forward, policy, layers, saved).Run();
}

}  // namespace orrery::transforms
