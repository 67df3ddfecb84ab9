#include "transforms/training/padding_rule.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace padding_rule_cc {
namespace {

using ir::OpKind;
using ir::ShardingRule;

// Factors of their own, above all that rules number.
constexpr int8_t kParts = 96;    // of a Split, of a Concat
constexpr int8_t kClasses = 97;  // of a cross entropy
constexpr int8_t kColumns = 98;  // of the first of several products; those of others follow

void Replace(ShardingRule::Factors& factors, int8_t from, int8_t to) {
  std::ranges::replace(factors, from, to);
}

// x, weights and then biases to results; or x, weights and gradients to those of x and of weights.
void ColumnsApart(ShardingRule& rule, bool backward) {
  const size_t count = rule.results.size() - (backward ? 1 : 0);
  const int8_t columns = backward ? rule.operands.back().back() : rule.results.front().back();
  for (size_t i = 0; i < count && i < 24; ++i) {
    const auto own = static_cast<int8_t>(kColumns + static_cast<int>(i));
    Replace(rule.operands[1 + i], columns, own);
    if (1 + count + i < rule.operands.size()) Replace(rule.operands[1 + count + i], columns, own);
    Replace(rule.results[backward ? 1 + i : i], columns, own);
  }
}

// k and v are operands 1 and 2, and results 1 and 2 of the gradient.
void KeysApart(ShardingRule& rule, bool backward) {
  for (size_t i = 1; i <= 2; ++i) {
    const size_t heads = rule.operands[i].size() == 3 ? 2 : 1;
    rule.operands[i][heads] = ir::kNoFactor;
    if (backward) rule.results[i][heads] = ir::kNoFactor;
  }
}

void TieAxis(const ir::AttributeSet& attributes, ShardingRule& rule) {
  const auto axis = static_cast<size_t>(attributes.Int("axis", 0));
  for (ShardingRule::Factors& factors : rule.operands) factors[axis] = kParts;
  for (ShardingRule::Factors& factors : rule.results) factors[axis] = kParts;
}

// The rule of the record, without the activation that keeps inner dimensions whole.
ShardingRule RecordsRule(const ir::Function& function, ir::OpId op) {
  const ir::OpInfo& info = function.info(op);
  absl::InlinedVector<const ir::TensorType*, 8> operands;
  for (const ir::ValueId operand : function.operands(op)) {
    operands.push_back(&function.type(operand));
  }
  ir::TypeList results;
  for (int32_t j = 0; j < function.result_count(op); ++j) {
    results.push_back(function.type(function.result(op, j)));
  }
  ir::AttributeSet attributes = function.attributes(op);
  if (attributes.Find("activation") != nullptr) attributes.Set("activation", std::string());
  return info.sharding({.attributes = attributes, .operands = operands, .mesh = function.mesh()},
                       results);
}

// Where the record's rule is not all.
void Change(OpKind kind, const ir::AttributeSet& attributes, ShardingRule& rule) {
  switch (kind) {
    case OpKind::kCrossEntropyGrad:
      rule.results[0].back() = kClasses;
      [[fallthrough]];
    case OpKind::kCrossEntropy:
      rule.operands[0].back() = kClasses;
      break;
    case OpKind::kSplit:
    case OpKind::kConcat:
      TieAxis(attributes, rule);
      break;
    case OpKind::kLinearGroup:
    case OpKind::kLinearGroupGrad:
      ColumnsApart(rule, kind == OpKind::kLinearGroupGrad);
      break;
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
      if (attributes.Int("kv_heads", 0) == 1) KeysApart(rule, kind == OpKind::kAttentionGrad);
      break;
    default:
      break;
  }
}

}  // namespace
}  // namespace padding_rule_cc

ir::ShardingRule PaddingRule(const ir::Function& function, ir::OpId op) {
  if (function.info(op).sharding == nullptr) return {};
  ir::ShardingRule rule = padding_rule_cc::RecordsRule(function, op);
  padding_rule_cc::Change(function.kind(op), function.attributes(op), rule);
  return rule;
}

bool NeedsNoZeros(ir::OpKind kind) {
  using ir::OpKind;
  switch (kind) {
    case OpKind::kGather:
    case OpKind::kCrossEntropy:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
      return true;
    default:
      return false;
  }
}

}  // namespace orrery::transforms
