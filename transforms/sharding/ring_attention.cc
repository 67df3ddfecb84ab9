#include "transforms/sharding/ring_attention.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace ring_attention_cc {
namespace {

using ir::AttributeSet;
using ir::Builder;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// One ring: how many ranks, and what its ops look like.
class Ring {
 public:
  Ring(const AttentionRing& ring, ValueId k, Builder& builder) : ring_(ring), builder_(builder) {
    ir::AxisList axes;
    const ir::Mesh& mesh = builder.function().mesh();
    builder.Fail(ir::ParseAxes({{"axes", ring.axes}}, mesh, axes));
    if (ring.attributes.Int("flash", 0) == 0) {
      builder.Fail(absl::InvalidArgumentError(absl::StrCat(
          builder.function().name(),
          ": attention in a ring has flash=0; wanted flash=1, as it keeps no probabilities")));
    }
    if (!builder.status().ok()) return;
    const ir::Dims dims = builder.type(k).dims;
    if (dims.size() != 3 && dims.size() != 4) return;  // the attention says it
    dim_ = dims.size() - 2;
    turns_ = mesh.size(axes);
    rows_ = dims[dim_];
    if (rows_ % turns_ == 0) return;
    builder.Fail(absl::InvalidArgumentError(
        absl::StrCat(builder.function().name(), ": attention has ", rows_, " rows for a ring of ",
                     turns_, " ranks along ", ring.axes, "; wanted rows that divide")));
  }

  int64_t turns() const { return turns_; }

  AttributeSet InTurn(int64_t turn) const {
    AttributeSet attributes = ring_.attributes;
    attributes.Set("ring_rows", rows_ / turns_);
    attributes.Set("turn", turn);
    return attributes;
  }

  ValueId Rotate(ValueId value, absl::string_view name = "") const {
    return builder_.Op(
        OpKind::kRotate, {value}, name,
        {{"axes", ring_.axes}, {"dim", static_cast<int64_t>(dim_)}, {"parts", turns_}});
  }

 private:
  const AttentionRing& ring_;
  Builder& builder_;
  size_t dim_ = 1;  // of the rows of k and v
  int64_t turns_ = 1, rows_ = 0;
};

// The results of an op; invalid ones after an error.
ValueId ResultOf(const Builder& builder, OpId op, int32_t i) {
  return op.valid() ? builder.function().result(op, i) : ValueId();
}

absl::string_view NameOf(std::span<const absl::string_view> names, size_t i) {
  return i < names.size() ? names[i] : absl::string_view();
}

}  // namespace
}  // namespace ring_attention_cc

AttentionResults EmitRing(const AttentionRing& ring, const AttentionOperands& operands,
                          std::span<const absl::string_view> names, ir::Builder& builder) {
  const ring_attention_cc::Ring emit(ring, operands.k, builder);
  const auto apply = [&](ir::OpKind kind, const std::vector<ir::ValueId>& values,
                         const ir::AttributeSet& attributes, bool last) {
    const ir::OpId op =
        builder.Ops(kind, values, last ? names : std::span<const absl::string_view>(), attributes);
    return AttentionResults{ring_attention_cc::ResultOf(builder, op, 0),
                            ring_attention_cc::ResultOf(builder, op, 1)};
  };
  AttentionOperands now = operands;
  AttentionResults sum;
  for (int64_t turn = 0; turn < emit.turns() && builder.status().ok(); ++turn) {
    const bool last = turn + 1 == emit.turns();
    // What travels is under way before the work that it travels behind.
    AttentionOperands next = now;
    if (!last) {
      next.k = emit.Rotate(now.k);
      next.v = emit.Rotate(now.v);
    }
    const AttentionResults part =
        apply(ir::OpKind::kAttention, {now.q, now.k, now.v}, emit.InTurn(turn), last && turn == 0);
    sum = turn == 0 ? part
                    : apply(ir::OpKind::kMergeAttention,
                            {sum.y, sum.logarithms, part.y, part.logarithms}, {}, last);
    now = next;
  }
  return sum;
}

// At turn i, rank j works on the keys of rank j - i, which were with rank j - 1 before it. So their
// gradients move on with them: after the turn they are one rank on, and after n turns at home.
AttentionOperands EmitRingGrad(const AttentionRing& ring, const AttentionGradOperands& operands,
                               std::span<const absl::string_view> names, ir::Builder& builder) {
  const ring_attention_cc::Ring emit(ring, operands.operands.k, builder);
  AttentionOperands now = operands.operands, sum;
  for (int64_t turn = 0; turn < emit.turns() && builder.status().ok(); ++turn) {
    const bool last = turn + 1 == emit.turns(), only = last && turn == 0;
    AttentionOperands next = now;
    if (!last) {
      next.k = emit.Rotate(now.k);
      next.v = emit.Rotate(now.v);
    }
    // The sums of the turn before travel behind this one, too.
    if (turn > 0) {
      sum.k = emit.Rotate(sum.k);
      sum.v = emit.Rotate(sum.v);
    }
    const std::vector<ir::ValueId> values = {
        now.q, now.k, now.v, operands.results.y, operands.results.logarithms, operands.dy};
    const ir::OpId op =
        builder.Ops(ir::OpKind::kAttentionGrad, values,
                    only ? names : std::span<const absl::string_view>(), emit.InTurn(turn));
    const AttentionOperands part = {ring_attention_cc::ResultOf(builder, op, 0),
                                    ring_attention_cc::ResultOf(builder, op, 1),
                                    ring_attention_cc::ResultOf(builder, op, 2)};
    if (turn == 0) {
      sum = part;
    } else {
      sum.q = builder.Add(sum.q, part.q, last ? ring_attention_cc::NameOf(names, 0) : "");
      sum.k = builder.Add(sum.k, part.k);
      sum.v = builder.Add(sum.v, part.v);
    }
    now = next;
  }
  if (emit.turns() == 1) return sum;
  return {sum.q, emit.Rotate(sum.k, ring_attention_cc::NameOf(names, 1)),
          emit.Rotate(sum.v, ring_attention_cc::NameOf(names, 2))};
}

}  // namespace orrery::transforms
