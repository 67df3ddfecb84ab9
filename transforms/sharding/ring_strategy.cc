#include "transforms/sharding/ring_strategy.h"

#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace ring_strategy_cc {
namespace {

using ir::OpKind;
using ir::TensorType;
using Types = std::vector<const TensorType*>;

// The dimension of the rows, and of the heads, of q, k, v and y; of the statistics, 2.
AxisLayout RowsOf(const ir::Dims& dims) { return dims.size() == 3 ? 1 : 2; }
AxisLayout HeadsOf(const ir::Dims& dims) { return dims.size() == 3 ? 2 : 1; }
constexpr AxisLayout kRowsOfStatistics = 2;

class Ring {
 public:
  Ring(const AxisProblem& problem, ir::OpId op)
      : function_(problem.function),
        op_(op),
        mesh_(problem.mesh),
        axis_(problem.axis),
        prices_(problem.prices) {}

  std::optional<OpStrategy> Run() {
    const bool forward = function_.kind(op_) == OpKind::kAttention;
    const size_t count = function_.operands(op_).size();
    if (forward ? count != 3 : function_.kind(op_) != OpKind::kAttentionGrad || count != 6) {
      return std::nullopt;
    }
    OpStrategy strategy{.operands = {}, .results = {}, .how = OpStrategy::How::kRing};
    for (size_t i = 0; i < count; ++i) {
      const TensorType& type = function_.type(function_.operands(op_)[i]);
      const AxisLayout rows = i == 4 ? kRowsOfStatistics : RowsOf(type.dims);
      const auto dim = static_cast<size_t>(rows);
      if (dim >= type.dims.size() || !type.sharding.at(dim).empty()) return std::nullopt;
      if (!CanSplit(type, dim, axis_, mesh_)) return std::nullopt;
      strategy.operands.push_back(rows);
      types_.push_back(InLayout(type, rows, axis_));
    }
    for (const TensorType& type : types_) operands_.push_back(&type);
    if (!FindResults(strategy)) return std::nullopt;
    strategy.seconds = forward ? ForwardSeconds() : BackwardSeconds();
    return strategy;
  }

 private:
  bool FindResults(OpStrategy& strategy) {
    const TensorType& k = types_[1];
    const int64_t rows = k.dims[static_cast<size_t>(RowsOf(k.dims))];
    attributes_ = function_.attributes(op_);
    attributes_.Set("ring_rows", rows / mesh_.size(axis_));
    attributes_.Set("turn", int64_t{0});
    const OpKind kind = function_.kind(op_);
    if (!ir::InferTypes(kind, {attributes_, operands_, mesh_}, made_).ok()) return false;
    for (size_t j = 0; j < made_.size(); ++j) {
      const bool statistics = kind == OpKind::kAttention && j == 1;
      const TensorType& type = function_.type(function_.result(op_, static_cast<int32_t>(j)));
      strategy.results.push_back(statistics ? kRowsOfStatistics : RowsOf(type.dims));
      if (made_[j] != InLayout(type, strategy.results.back(), axis_)) return false;
      results_.push_back(&made_[j]);
    }
    return true;
  }

  double Seconds(OpKind kind, const ir::AttributeSet& attributes, const Types& operands,
                 const Types& results) const {
    return SecondsOf({kind, attributes, operands, results}, mesh_, prices_);
  }

  double TurnSeconds() const {
    return Seconds(function_.kind(op_), attributes_, operands_, results_);
  }

  // Of k and v, or of their gradients.
  double RotateSeconds() const {
    double seconds = 0;
    for (const TensorType& type : {types_[1], types_[2]}) {
      seconds += prices_.StepSeconds(redistribution::MoveKind::kPermute, ir::AxisList(axis_),
                                     SizeOf(ir::LocalType(type, mesh_)));
    }
    return seconds;
  }

  double ForwardSeconds() const {
    const auto turns = static_cast<double>(mesh_.size(axis_));
    const double turn = TurnSeconds(), rotate = RotateSeconds();
    const double merge = Seconds(OpKind::kMergeAttention, {},
                                 {results_[0], results_[1], results_[0], results_[1]}, results_);
    return turn + (turns - 1) * (std::max(turn, rotate) + merge);
  }

  // Sums of gradients travel from the second turn on, keys until the last but one; and the sums go
  // home.
  double BackwardSeconds() const {
    const auto turns = static_cast<double>(mesh_.size(axis_));
    const double turn = TurnSeconds(), rotate = RotateSeconds();
    double add = 0;
    for (size_t i = 0; i < 3; ++i) {
      add += Seconds(OpKind::kAdd, {}, {operands_[i], operands_[i]}, {operands_[i]});
    }
    return 2 * std::max(turn, rotate) + (turns - 2) * std::max(turn, 2 * rotate) + rotate +
           (turns - 1) * add;
  }

  const ir::Function& function_;
  const ir::OpId op_;
  const ir::Mesh& mesh_;
  const ir::AxisIndex axis_;
  const ShardingPrices& prices_;
  std::vector<TensorType> types_;  // of the operands, in their layouts
  ir::TypeList made_;              // of the results
  Types operands_, results_;
  ir::AttributeSet attributes_;  // of a turn
};

}  // namespace
}  // namespace ring_strategy_cc

std::optional<OpStrategy> RingStrategy(const AxisProblem& problem, ir::OpId op) {
  return ring_strategy_cc::Ring(problem, op).Run();
}

bool KeepContextAttention(ContextAttention wanted, const ir::Dims& q,
                          std::vector<OpStrategy>& strategies) {
  const auto fits = [&](const OpStrategy& strategy) {
    const bool ring = strategy.how == OpStrategy::How::kRing;
    switch (wanted) {
      case ContextAttention::kAuto:
        return true;
      case ContextAttention::kRing:
        return ring;
      case ContextAttention::kAllToAll:
        return strategy.operands[0] == ring_strategy_cc::HeadsOf(q);
      case ContextAttention::kAllGather:
        return strategy.operands[0] == ring_strategy_cc::RowsOf(q) && !ring;
    }
    return true;
  };
  if (!std::ranges::any_of(strategies, fits)) return false;
  std::erase_if(strategies, [&](const OpStrategy& strategy) { return !fits(strategy); });
  return true;
}

}  // namespace orrery::transforms
