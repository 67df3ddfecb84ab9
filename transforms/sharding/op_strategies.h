#ifndef ORRERY_TRANSFORMS_SHARDING_OP_STRATEGIES_H_
#define ORRERY_TRANSFORMS_SHARDING_OP_STRATEGIES_H_

#include <map>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/function.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/axis_layout.h"

namespace orrery::transforms {

/// One way for the ranks of an axis to carry out an op.
struct OpStrategy {
  absl::InlinedVector<AxisLayout, 4> operands;  // wanted of them
  absl::InlinedVector<AxisLayout, 2> results;   // left of them
  double seconds = 0;
  enum class How : uint8_t {
    kPlain,
    kMakes,  // each rank makes its part of the results: see SplitFurther
    kRing,   // keys and values of an attention go round: see ring_attention.h
  };
  How how = How::kPlain;
};

/// The strategies of ops, from their sharding rules: "whole"; one for each factor that divides, and
/// another one where some operands may stay whole; one for the factor that is made; and of a linear
/// op that operands and results are partial. Along "cp" attention may also go round in a ring.
/// Equal ops share them.
class OpStrategies {
 public:
  explicit OpStrategies(const AxisProblem& problem,
                        ContextAttention attention = ContextAttention::kAuto)
      : problem_(problem), attention_(attention) {}

  const std::vector<OpStrategy>& Of(ir::OpId op);

  /// Whether some attention, of those that were asked for, can get by as the user wants; or there
  /// was none.
  bool attends_as_wanted() const { return attentions_ == 0 || fitting_attentions_ > 0; }

 private:
  using Layouts = absl::InlinedVector<AxisLayout, 4>;

  std::vector<OpStrategy> Make(ir::OpId op);
  void AddFactors(ir::OpId op, std::vector<OpStrategy>& strategies) const;
  void AddDims(ir::OpId op, std::vector<OpStrategy>& strategies) const;
  void Add(ir::OpId op, const Layouts& operands, std::vector<OpStrategy>& strategies,
           OpStrategy::How how = OpStrategy::How::kPlain) const;
  void AddRing(ir::OpId op, std::vector<OpStrategy>& strategies);

  const AxisProblem problem_;
  const ContextAttention attention_;
  int attentions_ = 0, fitting_attentions_ = 0;
  std::map<std::vector<int32_t>, std::vector<OpStrategy>> made_;  // by kind, attributes and types
};

/// The attributes of an op whose made factor is split by `axis` as well.
ir::AttributeSet SplitFurther(ir::AttributeSet attributes, const ir::Mesh& mesh,
                              ir::AxisIndex axis);

/// An op by the types of its operands and results as they are sharded; LocalOp is a rank's part.
struct ShardedOp {
  ir::OpKind kind;
  const ir::AttributeSet& attributes;
  std::span<const ir::TensorType* const> operands;
  std::span<const ir::TensorType* const> results;
};

/// Seconds of any op over `mesh`.
double SecondsOf(const ShardedOp& op, const ir::Mesh& mesh, const ShardingPrices& prices);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_OP_STRATEGIES_H_
