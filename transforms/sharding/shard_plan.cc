#include "transforms/sharding/shard_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "ir/sharding_rule.h"
#include "support/status.h"
#include "transforms/sharding/adapters.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace shard_plan_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

constexpr int8_t kWhole = -1;
constexpr int8_t kUndecided = -2;  // an input that no op of several operands has used yet

// So many fields: what is known of values and ops, of one walk and of all.
class Planner {
 public:
  Planner(const Function& function, int64_t parts, PatternScope scope)
      : function_(function),
        parts_(parts),
        layers_(scope == PatternScope::kLayers),
        looked_up_(function.value_limit(), 0),
        adapted_(function.value_limit(), 0),
        opened_(function.value_limit(), 0) {
    if (!layers_) return;
    phase_ = FindPhases(function);
    adapters_ = FindAdapters(function);
    for (const ir::Input& input : function.inputs()) {
      opened_[input.value] = adapters_.weights[input.value];
    }
    FindTables();
  }

  absl::StatusOr<TensorSplits> Run() {
    // Each walk may find further columns that nobody takes.
    constexpr int kWalks = 4;
    for (int walk = 0; walk < kWalks; ++walk) {
      found_ = false;
      Walk();
      if (!found_) break;
    }
    if (!any_ && !refusal_.empty()) {
      return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility, .detail = refusal_});
    }
    return TensorSplits{.dims = std::move(dims_),
                        .partial = std::move(partial_),
                        .open = std::move(open_),
                        .adapted = std::move(adapted_)};
  }

 private:
  using Factors = absl::InlinedVector<int8_t, 4>;

  void Walk() {
    dims_ = IdTable<ValueId, int8_t>(function_.value_limit(), kWhole);
    partial_ = IdTable<ValueId, char>(function_.value_limit(), 0);
    open_ = IdTable<ValueId, char>(function_.value_limit(), 0);
    any_ = false;
    for (const ir::Input& input : function_.inputs()) dims_[input.value] = kUndecided;
    for (const OpId op : function_.order()) {
      const ir::OpInfo& info = function_.info(op);
      if (info.op_class == ir::OpClass::kOptimizer) {
        FollowParameters(op);
      } else if (info.sharding != nullptr) {
        Visit(op);
      } else if (layers_ && info.infer_sharding != nullptr && function_.operands(op).size() == 1) {
        Pass(op);
      }
    }
    for (const ir::Input& input : function_.inputs()) {
      if (dims_[input.value] == kUndecided) dims_[input.value] = kWhole;
    }
  }

  // Parameters whose rows are looked up by what comes from data.
  void FindTables() {
    IdTable<ValueId, char> is_parameter(function_.value_limit(), 0);
    IdTable<ValueId, char> from_data(function_.value_limit(), 0);
    for (const ir::Input& input : function_.inputs()) {
      is_parameter[input.value] = ir::IsWeight(input.role) ? 1 : 0;
      from_data[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
    }
    for (const OpId op : function_.order()) {
      const auto operands = function_.operands(op);
      const bool any =
          std::ranges::any_of(operands, [&](ValueId operand) { return from_data[operand] != 0; });
      for (int32_t i = 0; any && i < function_.result_count(op); ++i) {
        from_data[function_.result(op, i)] = 1;
      }
      const bool looks_up = function_.kind(op) == ir::OpKind::kGather &&
                            function_.attributes(op).Int("axis", 0) == 0 &&
                            is_parameter[operands[0]] != 0 && from_data[operands[1]] != 0;
      if (looks_up && Fits(operands[0], 0)) looked_up_[operands[0]] = 1;
    }
  }

  // An op along other axes leaves a dimension alone, or touches it.
  void Pass(OpId op) {
    const ValueId from = function_.operands(op)[0];
    const ir::AttributeSet& attributes = function_.attributes(op);
    bool touched = function_.kind(op) == ir::OpKind::kPermute;
    for (const absl::string_view name : {"dim", "from", "to"}) {
      const bool there = attributes.Find(name) != nullptr;
      touched = touched || (there && attributes.Int(name, -1) == dims_[from]);
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      dims_[result] = touched && dims_[from] >= 0 ? kWhole : dims_[from];
      open_[result] = open_[from];
    }
  }

  static bool Has(const Factors& factors, int8_t factor) {
    return std::find(factors.begin(), factors.end(), factor) != factors.end();
  }

  // The factors that are split, as the operands that are decided have it; or those that may be, as
  // the open ones have it.
  Factors SplitFactors(OpId op, const ir::ShardingRule& rule, bool open) const {
    Factors factors;
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      if ((open_[operands[i]] != 0) != open) continue;
      const int8_t dim = dims_[operands[i]];
      const int8_t factor = dim < 0 ? ir::kNoFactor : rule.operands[i][static_cast<size_t>(dim)];
      if (factor != ir::kNoFactor && !Has(factors, factor)) factors.push_back(factor);
    }
    return factors;
  }

  // Of a product of whole data and weights that nobody has split yet, the columns of each weight: a
  // factor that the weight and a result have and the data has not. What does not divide is left to
  // others.
  Factors ColumnFactors(OpId op, const ir::ShardingRule& rule) {
    Factors factors;
    const auto operands = function_.operands(op);
    for (size_t i = 1; i < operands.size(); ++i) {
      if (dims_[operands[i]] != kUndecided) continue;
      for (const int8_t factor : rule.operands[i]) {
        if (factor == ir::kNoFactor || Has(factors, factor)) continue;
        if (Find(rule.operands[0], factor) != kWhole || !IsInResults(rule, factor)) continue;
        const bool divides = DividesAll(op, rule, factor);
        if (!divides && !layers_) return {};
        if (divides && opened_[operands[i]] == 0) {
          factors.push_back(factor);
          continue;
        }
        Decide(operands[i], divides ? Find(rule.operands[i], factor) : kWhole, true);
        break;
      }
    }
    return factors;
  }

  // Whether all weights that share these columns divide.
  bool DividesAll(OpId op, const ir::ShardingRule& rule, int8_t factor) {
    const auto operands = function_.operands(op);
    for (size_t i = 1; i < operands.size(); ++i) {
      const int8_t dim = Find(rule.operands[i], factor);
      if (dim >= 0 && !Divides(operands[i], static_cast<size_t>(dim))) return false;
    }
    return true;
  }

  static bool IsInResults(const ir::ShardingRule& rule, int8_t factor) {
    return std::any_of(rule.results.begin(), rule.results.end(),
                       [&](const auto& row) { return Find(row, factor) != kWhole; });
  }

  // Beside what splits it already.
  bool Fits(ValueId value, size_t dim) const {
    const ir::TensorType& type = function_.type(value);
    return type.dims[dim] % (parts_ * function_.mesh().size(type.sharding.at(dim))) == 0;
  }

  bool Divides(ValueId value, size_t dim) {
    if (Fits(value, dim)) return true;
    if (refusal_.empty()) {
      refusal_ =
          absl::StrCat("hp=", parts_, ": dimension ", dim, " of ", ir::PrintValue(function_, value),
                       " (", function_.type(value).dims[dim], ") does not divide");
    }
    return false;
  }

  static int8_t Find(const ir::ShardingRule::Factors& factors, int8_t factor) {
    for (size_t d = 0; d < factors.size(); ++d) {
      if (factors[d] == factor) return static_cast<int8_t>(d);
    }
    return kWhole;
  }

  // The first dimension that runs over one of `split`.
  static int8_t FindAny(const ir::ShardingRule::Factors& factors, const Factors& split) {
    for (size_t d = 0; d < factors.size(); ++d) {
      if (factors[d] != ir::kNoFactor && Has(split, factors[d])) return static_cast<int8_t>(d);
    }
    return kWhole;
  }

  void Visit(OpId op) {
    const auto operands = function_.operands(op);
    if (operands.size() == 1 && dims_[operands[0]] == kUndecided) {
      // A weight on its way to its product.
      if (function_.result_count(op) == 1) dims_[function_.result(op)] = kUndecided;
      return;
    }
    const bool looks_up = function_.kind(op) == ir::OpKind::kGather;
    if (looks_up && looked_up_[operands[0]] != 0 && dims_[operands[0]] == kUndecided) {
      Decide(operands[0], 0);
    }
    const ir::ShardingRule rule = ir::RuleOf(function_, op);
    Factors split = SplitFactors(op, rule, false);
    if (split.empty() && function_.info(op).matrix_product && !HasOpen(op)) {
      split = ColumnFactors(op, rule);
    }
    const Factors may_split = SplitFactors(op, rule, true);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (dims_[operands[i]] != kUndecided) continue;
      const int8_t dim = FindAny(rule.operands[i], split);
      const bool fits = dim >= 0 && Divides(operands[i], static_cast<size_t>(dim));
      const int8_t other = fits ? kWhole : FindAny(rule.operands[i], may_split);
      Decide(operands[i], fits ? dim : other, other >= 0);
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ir::ShardingRule::Factors& row = rule.results[static_cast<size_t>(i)];
      const ValueId result = function_.result(op, i);
      dims_[result] = FindAny(row, split);
      const auto lacks = [&](int8_t factor) { return Find(row, factor) == kWhole; };
      partial_[result] = std::ranges::any_of(split, lacks) ? 1 : 0;
      OpenResult(op, i, rule, may_split);
    }
    any_ = any_ || !split.empty();
    if (layers_ && adapters_.base[op] >= 0) FollowBase(op);
    const bool loss = function_.info(op).is_loss || function_.info(op).seeds_backward;
    if (layers_ && phase_[op] == StepPhase::kForward && !loss) OpenWhatIsNotTaken(op, rule);
  }

  // What an adapter is added to says how the sum is split. Of all products that lead to it, that
  // alone is what the pattern leaves a sum.
  void FollowBase(OpId op) {
    const auto operands = function_.operands(op);
    const auto at = static_cast<size_t>(adapters_.base[op]);
    const ValueId result = function_.result(op), base = operands[at];
    dims_[result] = dims_[base];
    open_[result] = open_[base];
    partial_[result] = std::exchange(partial_[base], 0);
    adapted_[result] = 1;
    ValueId of_adapter = operands[1 - at];
    while (adapters_.made[of_adapter] != 0) {
      partial_[of_adapter] = 0;
      of_adapter = function_.operands(function_.producer(of_adapter))[0];
    }
  }

  bool HasOpen(OpId op) const {
    return std::ranges::any_of(function_.operands(op),
                               [&](ValueId operand) { return open_[operand] != 0; });
  }

  // Of what is open comes what is open.
  void OpenResult(OpId op, int32_t i, const ir::ShardingRule& rule, const Factors& may_split) {
    const ValueId result = function_.result(op, i);
    const ir::ShardingRule::Factors& row = rule.results[static_cast<size_t>(i)];
    const bool keys = function_.kind(op) == ir::OpKind::kAttentionGrad && i > 0 &&
                      open_[function_.operands(op)[1]] != 0;
    const bool made = layers_ && Find(row, rule.made) != kWhole && rule.made != ir::kNoFactor;
    if (keys || made) {
      open_[result] = 1;
    } else if (dims_[result] == kWhole && HasOpen(op)) {
      dims_[result] = FindAny(row, may_split);
      const auto lacks = [&](int8_t factor) { return Find(row, factor) == kWhole; };
      if (std::ranges::any_of(may_split, lacks)) partial_[result] = 1;
      open_[result] = dims_[result] >= 0 || open_[function_.operands(op)[0]] != 0 ? 1 : 0;
    }
  }

  // Columns that this op would have to gather.
  void OpenWhatIsNotTaken(OpId op, const ir::ShardingRule& rule) {
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const int8_t dim = dims_[operands[i]];
      if (dim < 0 || open_[operands[i]] != 0) continue;
      const bool has = rule.operands[i][static_cast<size_t>(dim)] != ir::kNoFactor;
      if (!has || !HasHeads(op, i)) Open(operands[i]);
    }
  }

  // Whether each rank gets whole heads of operand `i`, where that is of an attention.
  bool HasHeads(OpId op, size_t i) const {
    if (function_.kind(op) != ir::OpKind::kAttention || i > 2) return true;
    const ValueId value = function_.operands(op)[i];
    const ir::AttributeSet& attributes = function_.attributes(op);
    const int64_t heads = attributes.Int("heads", 0);
    const int64_t own = i == 0 ? heads : attributes.Int("kv_heads", heads);
    const ir::AxisList& axes = function_.type(value).sharding.at(static_cast<size_t>(dims_[value]));
    return own % (parts_ * function_.mesh().size(axes)) == 0;
  }

  // Leaves open the weights whose columns `value` has.
  void Open(ValueId value) {
    if (opened_[value] != 0 || dims_[value] < 0) return;
    opened_[value] = 1;
    found_ = true;
    const OpId op = function_.producer(value);
    if (!op.valid()) return;
    const auto operands = function_.operands(op);
    if (!function_.info(op).matrix_product || function_.kind(op) == ir::OpKind::kAttention) {
      for (const ValueId operand : operands) Open(operand);
      return;
    }
    size_t weight = 1;  // of several results each has its own
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      if (function_.result(op, i) == value) weight = static_cast<size_t>(i) + 1;
    }
    if (weight < operands.size()) Open(operands[weight]);
  }

  // Sets what is split of a value that was undecided, and so of the input that it is made from.
  void Decide(ValueId value, int8_t dim, bool open = false) {
    dims_[value] = dim;
    open_[value] = open ? 1 : 0;
    const OpId op = function_.producer(value);
    if (!op.valid()) return;
    const ValueId from = function_.operands(op)[0];
    if (dims_[from] != kUndecided) return;
    if (function_.info(op).sharding == nullptr) return Decide(from, dim, open);
    const ir::ShardingRule rule = ir::RuleOf(function_, op);
    const int8_t factor = dim < 0 ? ir::kNoFactor : rule.results[0][static_cast<size_t>(dim)];
    Decide(from, factor == ir::kNoFactor ? kWhole : Find(rule.operands[0], factor), open);
  }

  // State is split as its parameter is, where it has that dimension.
  void FollowParameters(OpId op) {
    const ir::OptimizerOperands operands(function_, op);
    for (size_t i = 0; i < operands.all().size(); ++i) {
      const ValueId operand = operands.all()[i];
      const ValueId parameter = operands.parameters()[operands.ParameterOf(i)];
      if (dims_[operand] != kUndecided) continue;
      const int8_t dim = dims_[parameter];
      const bool lacks =
          dim >= 0 && !ir::HasDimension(function_.type(parameter).dims,
                                        function_.type(operand).dims, static_cast<size_t>(dim));
      dims_[operand] = lacks ? kWhole : dim;
      open_[operand] = open_[parameter];
    }
  }

  const Function& function_;
  const int64_t parts_;
  const bool layers_;
  IdTable<OpId, StepPhase> phase_;
  IdTable<ValueId, char> looked_up_;  // tables
  IdTable<ValueId, char> adapted_;
  IdTable<ValueId, char> opened_;  // by this walk or those before, and adapters
  Adapters adapters_;              // of layers
  bool found_ = false;             // whether this walk opened something
  IdTable<ValueId, int8_t> dims_;
  IdTable<ValueId, char> partial_, open_;
  bool any_ = false;     // whether something is split at all
  std::string refusal_;  // the first dimension that does not divide
};

}  // namespace
}  // namespace shard_plan_cc

absl::StatusOr<TensorSplits> PlanTensorSplits(const ir::Function& function, int64_t parts,
                                              PatternScope scope) {
  return shard_plan_cc::Planner(function, parts, scope).Run();
}

}  // namespace orrery::transforms
