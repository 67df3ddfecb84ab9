#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"

// Rolling: what is pushed out at the end of a dimension comes in at its start, as windows that are
// shifted do (Liu et al. 2021).

namespace orrery::ir {
namespace roll_cc {
namespace {

absl::Status InferRoll(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckAxes(op.attributes.Ints("axes"), op.operands[0]->dims.size()));
  ORRERY_RETURN_IF_ERROR(
      CheckLists(op.attributes, {"shifts"}, std::numeric_limits<int64_t>::min()));
  return AddResult(op, op.operands[0]->dims, results);
}

absl::Status EvaluateRoll(Evaluation& e) {
  const std::vector<int64_t> axes = e.attributes.Ints("axes"), shifts = e.attributes.Ints("shifts");
  const Dims& dims = e.operand(0).dims();
  const Dims strides = StridesOf(dims);
  for (Odometer at(dims, {}); !at.done(); at.Next()) {
    int64_t to = at.index();
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto d = static_cast<size_t>(axes[i]);
      const int64_t position = at.at()[d], shift = (shifts[i] % dims[d] + dims[d]) % dims[d];
      to += ((position + shift) % dims[d] - position) * strides[d];
    }
    e.results[0].CopyElement(to, e.operand(0), at.index());
  }
  return absl::OkStatus();
}

absl::Status RollGradient(GradientContext& c) {
  std::vector<int64_t> back;
  const std::vector<int64_t> axes = c.attributes().Ints("axes");
  const std::vector<int64_t> shifts = c.attributes().Ints("shifts");
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t size = c.operand_type(0).dims[static_cast<size_t>(axes[i])];
    back.push_back(size == 0 ? 0 : -(shifts[i] % size));
  }
  c.SetOperandGradient(0, c.builder().Op(OpKind::kRoll, {c.result_gradient()}, c.GradientName(0),
                                         {{"axes", axes}, {"shifts", back}}));
  return c.builder().status();
}

}  // namespace
}  // namespace roll_cc

extern const OpInfo kRollOp = {
    .name = "Roll",
    .summary =
        "x moved by `shifts` positions along `axes`; what leaves at one end enters at the other",
    .operands = 1,
    .infer = roll_cc::InferRoll,
    .sharding = SplitUntouchedDims,
    .evaluate = roll_cc::EvaluateRoll,
    .gradient = roll_cc::RollGradient,
    .linear = true,
};

}  // namespace orrery::ir
