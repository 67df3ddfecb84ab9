#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/memory/recompute_policy.h"

// All but the core of attention: what is made from the scores, and is no output (Korthikanti et al.
// 2022, section 5).

namespace orrery::transforms {
namespace recompute_selective_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool IsSoftmax(const Function& forward, OpId op) {
  const OpKind kind = forward.kind(op);
  return kind == OpKind::kSoftmax || kind == OpKind::kMaskedSoftmax || kind == OpKind::kExp;
}

// Whether all of it is one op, which keeps something as large as the scores.
bool IsAttentionOfScores(const Function& forward, OpId op) {
  return forward.kind(op) == OpKind::kAttention && forward.attributes(op).Int("flash", 0) == 0;
}

// Values that an attention makes from its scores, by the product that the scores come from: they
// grow with the square of the sequence. From the product of two activations, by way of a softmax,
// up to the next product that takes them.
IdTable<ValueId, OpId> FindScores(const ForwardValues& f) {
  const Function& forward = f.function;
  IdTable<ValueId, OpId> scores(forward.value_limit());
  IdTable<OpId, char> normalized(forward.op_limit(), 0);
  for (const OpId op : forward.order()) {
    const auto operands = forward.operands(op);
    const auto found = std::find_if(operands.begin(), operands.end(),
                                    [&](ValueId operand) { return scores[operand].valid(); });
    OpId of = found == operands.end() ? OpId() : scores[*found];
    if (forward.info(op).matrix_product) {
      const bool begins = !of.valid() && operands.size() > 1 && f.from_data[operands[0]] != 0 &&
                          f.from_data[operands[1]] != 0;
      of = begins ? op : OpId();
    }
    for (int32_t i = 0; i < forward.result_count(op); ++i) scores[forward.result(op, i)] = of;
    if (of.valid() && IsSoftmax(forward, op)) normalized[of] = 1;
    if (!IsAttentionOfScores(forward, op)) continue;
    normalized[op] = 1;
    scores[forward.result(op)] = OpId();  // its output
  }
  for (int32_t v = 0; v < forward.value_limit(); ++v) {
    OpId& of = scores[ValueId(v)];
    if (of.valid() && normalized[of] == 0) of = OpId();
  }
  return scores;
}

void Mark(const ForwardValues& f, const RecomputePolicy&, IdTable<ValueId, char>& rematerialized) {
  const IdTable<ValueId, OpId> scores = FindScores(f);
  for (const OpId op : f.function.order()) {
    for (int32_t i = 0; i < f.function.result_count(op); ++i) {
      const ValueId result = f.function.result(op, i);
      rematerialized[result] = scores[result].valid() || f.saved[result] == 0 ? 1 : 0;
    }
  }
}

}  // namespace
}  // namespace recompute_selective_cc

extern constinit const RecomputeRecord kSelectiveRecompute = {
    .name = "selective",
    .values = "selective (attention's scores)",
    .wanted = "selective",
    .example = "selective",
    .mark = recompute_selective_cc::Mark,
    .suggested = {.text = "selective", .share = 0.6, .rank = 100},
};

}  // namespace orrery::transforms
