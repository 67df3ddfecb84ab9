#include "transforms/shard_plan.h"

#include <vector>

namespace orrery::transforms {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

constexpr int8_t kWhole = -1;
constexpr int8_t kUndecided = -2;  // an input that no op of several operands has used yet

class Planner {
 public:
  explicit Planner(const Function& function)
      : function_(function), dims_(function.value_limit(), kWhole) {
    for (const ir::Input& input : function.inputs()) dims_[input.value] = kUndecided;
  }

  IdTable<ValueId, int8_t> Run() {
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
    return std::move(dims_);
  }

 private:
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

  // The factor that is split, as the operands that are decided have it; kNoFactor when none is.
  int8_t SplitFactor(OpId op, const ir::ShardingRule& rule) const {
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const int8_t dim = dims_[operands[i]];
      if (dim >= 0) return rule.operands[i][static_cast<size_t>(dim)];
    }
    return ir::kNoFactor;
  }

  static int8_t Find(const ir::ShardingRule::Factors& factors, int8_t factor) {
    for (size_t d = 0; d < factors.size(); ++d) {
      if (factors[d] == factor) return static_cast<int8_t>(d);
    }
    return kWhole;
  }

  void Visit(OpId op) {
    const auto operands = function_.operands(op);
    if (operands.size() == 1 && dims_[operands[0]] == kUndecided) {
      dims_[function_.result(op)] = kUndecided;  // a weight on its way to its product
      return;
    }
    const ir::ShardingRule rule = Rule(op);
    int8_t factor = SplitFactor(op, rule);
    // A product of whole data and a weight that nobody has split yet: by columns.
    const bool product = function_.kind(op) == ir::OpKind::kMatMul;
    if (product && factor == ir::kNoFactor && dims_[operands[1]] == kUndecided) {
      factor = rule.results[0].back();
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      if (dims_[operands[i]] != kUndecided) continue;
      Decide(operands[i], factor == ir::kNoFactor ? kWhole : Find(rule.operands[i], factor));
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      if (factor == ir::kNoFactor) continue;
      dims_[function_.result(op, i)] = Find(rule.results[static_cast<size_t>(i)], factor);
    }
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
    const auto operands = function_.operands(op);
    const auto n = static_cast<size_t>(function_.attributes(op).Int("parameters", 1));
    for (size_t i = 0; i < operands.size(); ++i) {
      if (dims_[operands[i]] == kUndecided) dims_[operands[i]] = dims_[operands[i % n]];
    }
  }

  const Function& function_;
  IdTable<ValueId, int8_t> dims_;
  std::vector<const ir::TensorType*> operands_;
};

}  // namespace

IdTable<ir::ValueId, int8_t> PlanTensorSplits(const Function& function) {
  return Planner(function).Run();
}

}  // namespace orrery::transforms
