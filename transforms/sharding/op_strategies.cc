#include "transforms/sharding/op_strategies.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/redistribution/emit.h"
#include "transforms/sharding/ring_strategy.h"

namespace orrery::transforms {
namespace op_strategies_cc {
namespace {

using ir::AxisList;
using ir::OpId;
using ir::OpKind;
using ir::TensorType;
using redistribution::MoveKind;

// The factors of the rule that an axis may split without changing what is computed.
class FactorChoice {
 public:
  FactorChoice(const ir::ShardingRule& rule, const ir::OpInfo& info, const ir::TypeList& results)
      : rule_(rule), random_(info.random) {
    counts_ = std::ranges::any_of(results, [](const TensorType& t) { return !IsFloat(t.dtype); });
  }

  std::vector<int8_t> All() const {
    std::vector<int8_t> factors;
    for (const auto& row : rule_.operands) {
      for (const int8_t factor : row) {
        const bool fresh = std::ranges::find(factors, factor) == factors.end();
        if (factor != ir::kNoFactor && fresh && Allowed(factor)) factors.push_back(factor);
      }
    }
    return factors;
  }

  bool MakesPart() const { return rule_.made != ir::kNoFactor && (rule_.exact || random_); }

 private:
  static bool Has(const ir::ShardingRule::Factors& row, int8_t factor) {
    return std::ranges::find(row, factor) != row.end();
  }

  bool Allowed(int8_t factor) const {
    const auto once = [&](const auto& row) { return std::ranges::count(row, factor) <= 1; };
    if (!std::ranges::all_of(rule_.operands, once)) return false;
    if (!std::ranges::all_of(rule_.results, once)) return false;
    for (size_t j = 0; j < rule_.results.size(); ++j) {
      // Statistics that each rank would have of its own.
      const bool own = j < 32 && (rule_.own_results >> j & 1) != 0;
      if (own && !Has(rule_.results[j], factor)) return false;
    }
    if (rule_.exact || random_) return true;
    // An op that looks at all of its share: only what is done alike for each part of all that it
    // has, such as channels. Never where it counts positions in its share.
    const auto has = [&](const auto& row) { return Has(row, factor); };
    return !counts_ && std::ranges::all_of(rule_.operands, has) &&
           std::ranges::all_of(rule_.results, has);
  }

  const ir::ShardingRule& rule_;
  const bool random_;
  bool counts_ = false;
};

}  // namespace
}  // namespace op_strategies_cc

ir::AttributeSet SplitFurther(ir::AttributeSet attributes, const ir::Mesh& mesh,
                              ir::AxisIndex axis) {
  const std::string outer = attributes.String("split", "");
  attributes.Set("split",
                 absl::StrCat(outer, outer.empty() ? "" : ".", mesh.Names(ir::AxisList(axis))));
  return attributes;
}

double SecondsOf(const ShardedOp& op, const ir::Mesh& mesh, const ShardingPrices& prices) {
  const ir::OpInfo& info = ir::GetOpInfo(op.kind);
  if (info.op_class == ir::OpClass::kView) return 0;
  if (const auto step = redistribution::StepOf(op.kind); step.has_value()) {
    ir::AxisList axes;
    if (!ir::ParseAxes(op.attributes, mesh, axes).ok()) return strategies::kImpossible;
    const ir::TensorType& larger =
        *step == redistribution::MoveKind::kAllGather ? *op.results[0] : *op.operands[0];
    return prices.StepSeconds(*step, axes.Sorted(), SizeOf(ir::LocalType(larger, mesh)));
  }
  if (info.op_class == ir::OpClass::kSend || info.op_class == ir::OpClass::kReceive) return 0;
  std::vector<ir::TensorType> local;
  local.reserve(op.operands.size() + op.results.size());
  std::vector<const ir::TensorType*> positions;
  for (const auto types : {op.operands, op.results}) {
    for (const ir::TensorType* type : types) {
      local.push_back(ir::LocalType(*type, mesh));
      positions.push_back(&local.back());
    }
  }
  const std::span<const ir::TensorType* const> all = positions;
  return prices.OpSeconds({.kind = op.kind,
                           .attributes = op.attributes,
                           .operands = all.first(op.operands.size()),
                           .results = all.subspan(op.operands.size())});
}

const std::vector<OpStrategy>& OpStrategies::Of(ir::OpId op) {
  std::vector<int32_t> key = {static_cast<int32_t>(problem_.function.kind(op)),
                              problem_.function.attributes_id(op).index()};
  for (const ir::ValueId operand : problem_.function.operands(op)) {
    key.push_back(problem_.function.type_id(operand).index());
  }
  key.push_back(-1);
  for (int32_t i = 0; i < problem_.function.result_count(op); ++i) {
    key.push_back(problem_.function.type_id(problem_.function.result(op, i)).index());
  }
  const auto [found, is_new] = made_.try_emplace(std::move(key));
  if (is_new) found->second = Make(op);
  return found->second;
}

std::vector<OpStrategy> OpStrategies::Make(ir::OpId op) {
  const ir::OpInfo& info = problem_.function.info(op);
  const size_t count = problem_.function.operands(op).size();
  std::vector<OpStrategy> strategies;
  Add(op, Layouts(count, kWholeLayout), strategies);
  if (count == 0) return strategies;
  if (info.sharding != nullptr) {
    AddFactors(op, strategies);
  } else if (info.infer_sharding != nullptr && count == 1) {
    AddDims(op, strategies);
  }
  const ir::OpKind kind = problem_.function.kind(op);
  if (kind == ir::OpKind::kAttention || kind == ir::OpKind::kAttentionGrad) AddRing(op, strategies);
  const bool passes = info.linear || info.op_class == ir::OpClass::kCollective;
  if (passes) Add(op, Layouts(count, kPartialLayout), strategies);
  return strategies;
}

void OpStrategies::AddFactors(ir::OpId op, std::vector<OpStrategy>& strategies) const {
  const auto operands = problem_.function.operands(op);
  std::vector<const ir::TensorType*> types;
  ir::TypeList results;
  for (const ir::ValueId operand : operands) types.push_back(&problem_.function.type(operand));
  for (int32_t i = 0; i < problem_.function.result_count(op); ++i) {
    results.push_back(problem_.function.type(problem_.function.result(op, i)));
  }
  const ir::OpInfo& info = problem_.function.info(op);
  const ir::ShardingRule rule =
      info.sharding({problem_.function.attributes(op), types, problem_.mesh}, results);
  const Layouts whole(operands.size(), kWholeLayout);
  const op_strategies_cc::FactorChoice choice(rule, info, results);
  for (const int8_t factor : choice.All()) {
    Layouts layouts = whole, others = whole;
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto& row = rule.operands[i];
      const auto found = std::ranges::find(row, factor);
      if (found == row.end()) continue;
      layouts[i] = static_cast<AxisLayout>(found - row.begin());
      if (i >= 32 || (rule.whole_too >> i & 1) == 0) others[i] = layouts[i];
    }
    Add(op, layouts, strategies);
    if (others != layouts && others != whole) Add(op, others, strategies);
  }
  if (choice.MakesPart()) Add(op, whole, strategies, OpStrategy::How::kMakes);
}

// Other axes split no sequences.
void OpStrategies::AddRing(ir::OpId op, std::vector<OpStrategy>& strategies) {
  if (problem_.mesh.axes()[problem_.axis].name != "cp") return;
  auto ring = RingStrategy(problem_, op);
  if (ring.has_value()) strategies.push_back(*std::move(ring));
  const ir::Dims& q = problem_.function.type(problem_.function.operands(op)[0]).dims;
  ++attentions_;
  if (KeepContextAttention(attention_, q, strategies)) ++fitting_attentions_;
}

// Of an op that changes how its operand is sharded over other axes: dimensions that it leaves
// alone.
void OpStrategies::AddDims(ir::OpId op, std::vector<OpStrategy>& strategies) const {
  const ir::AttributeSet& attributes = problem_.function.attributes(op);
  const auto touched = [&](size_t dim) {
    for (const absl::string_view name : {"dim", "from", "to"}) {
      const bool there = attributes.Find(name) != nullptr;
      if (there && attributes.Int(name, -1) == static_cast<int64_t>(dim)) return true;
    }
    return false;
  };
  if (problem_.function.kind(op) == ir::OpKind::kPermute) return;
  const size_t rank = problem_.function.type(problem_.function.operands(op)[0]).dims.size();
  for (size_t dim = 0; dim < rank; ++dim) {
    if (!touched(dim)) Add(op, {static_cast<AxisLayout>(dim)}, strategies);
  }
}

// Adds the strategy that wants these operands, unless the op cannot be carried out so.
void OpStrategies::Add(ir::OpId op, const Layouts& layouts, std::vector<OpStrategy>& strategies,
                       OpStrategy::How how) const {
  const bool makes = how == OpStrategy::How::kMakes;
  const auto there = [&](const OpStrategy& s) { return s.operands == layouts && s.how == how; };
  if (std::ranges::any_of(strategies, there)) return;
  const auto operands = problem_.function.operands(op);
  std::vector<ir::TensorType> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ir::TensorType& type = problem_.function.type(operands[i]);
    const auto dim = static_cast<size_t>(layouts[i]);
    if (layouts[i] >= 0 && !CanSplit(type, dim, problem_)) return;
    types.push_back(InLayout(type, layouts[i], problem_.axis));
  }
  ir::AttributeSet split;
  if (makes) split = SplitFurther(problem_.function.attributes(op), problem_.mesh, problem_.axis);
  const ir::AttributeSet& attributes = makes ? split : problem_.function.attributes(op);
  std::vector<const ir::TensorType*> positions, result_positions;
  for (const ir::TensorType& type : types) positions.push_back(&type);
  ir::TypeList results;
  if (problem_.function.info(op).infer == nullptr) {
    results.push_back(problem_.function.type(problem_.function.result(op)));
  } else if (!ir::InferTypes(problem_.function.kind(op), {attributes, positions, problem_.mesh},
                             results)
                  .ok()) {
    return;
  }
  OpStrategy strategy{.operands = layouts, .results = {}, .how = how};
  for (size_t j = 0; j < results.size(); ++j) {
    const AxisLayout layout = LayoutOf(results[j].sharding, problem_.axis);
    const ir::TensorType& type =
        problem_.function.type(problem_.function.result(op, static_cast<int32_t>(j)));
    const bool fits = layout < 0 || CanSplit(type, static_cast<size_t>(layout), problem_);
    if (!fits || results[j] != InLayout(type, layout, problem_.axis)) return;
    strategy.results.push_back(layout);
    result_positions.push_back(&results[j]);
  }
  strategy.seconds = SecondsOf({.kind = problem_.function.kind(op),
                                .attributes = attributes,
                                .operands = positions,
                                .results = result_positions},
                               problem_.mesh, problem_.prices);
  strategies.push_back(std::move(strategy));
}

}  // namespace orrery::transforms
