#include "transforms/sharding/shard_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"

namespace orrery::transforms {
namespace shard_plan_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

constexpr int8_t kWhole = -1;
constexpr int8_t kUndecided = -2;  // an input that no op of several operands has used yet

class Planner {
 public:
  Planner(const Function& function, int64_t parts)
      : function_(function),
        parts_(parts),
        dims_(function.value_limit(), kWhole),
        partial_(function.value_limit(), 0) {
    for (const ir::Input& input : function.inputs()) dims_[input.value] = kUndecided;
  }

  absl::StatusOr<TensorSplits> Run() {
    for (const OpId op : function_.order()) {
      if (function_.info(op).op_class == ir::OpClass::kOptimizer) {
        FollowParameters(op);
      } else if (function_.info(op).sharding != nullptr) {
        Visit(op);
      }
    }
    for (const ir::Input& input : function_.inputs()) {
      if (dims_[input.value] == kUndecided) dims_[input.value] = kWhole;
    }
    if (!any_ && !refusal_.empty()) {
      return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility, .detail = refusal_});
    }
    return TensorSplits{.dims = std::move(dims_), .partial = std::move(partial_)};
  }

 private:
  using Factors = absl::InlinedVector<int8_t, 4>;

  ir::ShardingRule Rule(OpId op) {
    operands_.clear();
    ir::TypeList results;
    for (const ValueId operand : function_.operands(op))
      operands_.push_back(&function_.type(operand));
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      results.push_back(function_.type(function_.result(op, i)));
    }
    return function_.info(op).sharding({function_.attributes(op), operands_, function_.mesh()},
                                       results);
  }

  static bool Has(const Factors& factors, int8_t factor) {
    return std::find(factors.begin(), factors.end(), factor) != factors.end();
  }

  // The factors that are split, as the operands that are decided have it.
  Factors SplitFactors(OpId op, const ir::ShardingRule& rule) const {
    Factors factors;
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const int8_t dim = dims_[operands[i]];
      const int8_t factor = dim < 0 ? ir::kNoFactor : rule.operands[i][static_cast<size_t>(dim)];
      if (factor != ir::kNoFactor && !Has(factors, factor)) factors.push_back(factor);
    }
    return factors;
  }

  // Of a product of whole data and weights that nobody has split yet, the columns of each weight: a
  // factor that the weight and a result have and the data has not.
  Factors ColumnFactors(OpId op, const ir::ShardingRule& rule) {
    Factors factors;
    const auto operands = function_.operands(op);
    for (size_t i = 1; i < operands.size(); ++i) {
      if (dims_[operands[i]] != kUndecided) continue;
      for (size_t d = 0; d < rule.operands[i].size(); ++d) {
        const int8_t factor = rule.operands[i][d];
        if (factor == ir::kNoFactor || Has(factors, factor)) continue;
        if (Find(rule.operands[0], factor) != kWhole || !IsInResults(rule, factor)) continue;
        if (!Divides(operands[i], d)) return {};
        factors.push_back(factor);
      }
    }
    return factors;
  }

  static bool IsInResults(const ir::ShardingRule& rule, int8_t factor) {
    return std::any_of(rule.results.begin(), rule.results.end(),
                       [&](const auto& row) { return Find(row, factor) != kWhole; });
  }

  bool Divides(ValueId value, size_t dim) {
    const int64_t size = function_.type(value).dims[dim];
    if (size % parts_ == 0) return true;
    if (refusal_.empty()) {
      refusal_ = absl::StrCat("hp=", parts_, ": dimension ", dim, " of ",
                              ir::PrintValue(function_, value), " (", size, ") does not divide");
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
    const ir::ShardingRule rule = Rule(op);
    Factors split = SplitFactors(op, rule);
    if (split.empty() && function_.info(op).matrix_product) split = ColumnFactors(op, rule);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (dims_[operands[i]] != kUndecided) continue;
      const int8_t dim = FindAny(rule.operands[i], split);
      const bool fits = dim >= 0 && Divides(operands[i], static_cast<size_t>(dim));
      Decide(operands[i], fits ? dim : kWhole);
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ir::ShardingRule::Factors& row = rule.results[static_cast<size_t>(i)];
      dims_[function_.result(op, i)] = FindAny(row, split);
      const auto lacks = [&](int8_t factor) { return Find(row, factor) == kWhole; };
      partial_[function_.result(op, i)] = std::any_of(split.begin(), split.end(), lacks) ? 1 : 0;
    }
    any_ = any_ || !split.empty();
  }

  // Sets what is split of a value that was undecided, and so of the input that it is made from.
  void Decide(ValueId value, int8_t dim) {
    dims_[value] = dim;
    const OpId op = function_.producer(value);
    if (!op.valid()) return;
    const ValueId from = function_.operands(op)[0];
    if (dims_[from] != kUndecided) return;
    const ir::ShardingRule rule = Rule(op);
    const int8_t factor = dim < 0 ? ir::kNoFactor : rule.results[0][static_cast<size_t>(dim)];
    Decide(from, factor == ir::kNoFactor ? kWhole : Find(rule.operands[0], factor));
  }

  // State is split as its parameter is.
  void FollowParameters(OpId op) {
    const ir::OptimizerOperands operands(function_, op);
    for (size_t i = 0; i < operands.all().size(); ++i) {
      int8_t& dim = dims_[operands.all()[i]];
      if (dim == kUndecided) dim = dims_[operands.parameters()[operands.ParameterOf(i)]];
    }
  }

  const Function& function_;
  const int64_t parts_;
  IdTable<ValueId, int8_t> dims_;
  IdTable<ValueId, char> partial_;
  bool any_ = false;     // whether something is split at all
  std::string refusal_;  // the first dimension that does not divide
  std::vector<const ir::TensorType*> operands_;
};

}  // namespace
}  // namespace shard_plan_cc

absl::StatusOr<TensorSplits> PlanTensorSplits(const ir::Function& function, int64_t parts) {
  return shard_plan_cc::Planner(function, parts).Run();
}

}  // namespace orrery::transforms
