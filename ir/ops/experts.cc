#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"

// Mixture of experts (Shazeer et al. 2017; GShard, Lepikhin et al. 2020). Each sample is a group of
// its own: an expert e takes at most `capacity` of its S tokens, in slots (e, b, 0 … capacity-1),
// the first tokens first; those that find their expert full are dropped. So ranks that split the
// batch route as one rank would, and ranks that split the experts each serve slots of their own.
//
//   Route     what the tokens chose          → which token sits in each slot, and its gate
//   Dispatch  tokens [B,S,H]                 → slots [E,B,capacity,H], zero in empty ones
//   Combine   slots [E,B,capacity,H], gates  → tokens [B,S,H]: the gated sum over their slots

namespace orrery::ir {
namespace experts_cc {
namespace {

constexpr int8_t kFactorB = 0, kFactorH = 1, kFactorE = 2;

// Operand `whole` of whole numbers, all others of real ones; three dimensions each, or four of
// operand `rows`.
absl::Status CheckOperands(const OpTypes& op, size_t whole, size_t rows = SIZE_MAX) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const TensorType& type = *op.operands[i];
    const size_t rank = i == rows ? 4 : 3;
    if (type.dims.size() == rank && IsFloat(type.dtype) != (i == whole)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("operand ", i, " is ", ToString(type, op.mesh), "; wanted ", rank,
                     " dimensions of ", i == whole ? "whole" : "floating-point", " numbers"));
  }
  return absl::OkStatus();
}

absl::Status Differ(const char* what, const TensorType& x, const TensorType& y) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " differ; got ", Show(x.dims), " and ", Show(y.dims)));
}

// Slots of one expert for the tokens of one sample.
absl::StatusOr<int64_t> Capacity(const AttributeSet& attributes, const Dims& choices) {
  const int64_t experts = attributes.Int("experts", 0);
  const double factor = attributes.Number("capacity_factor", 1);
  if (experts < 1 || !(factor > 0) || factor > 1e6) {
    return absl::InvalidArgumentError(absl::StrCat(
        "experts=", experts, ", capacity_factor=", factor, "; wanted both to be positive"));
  }
  const double share = static_cast<double>(choices[1]) * static_cast<double>(choices[2]) * factor /
                       static_cast<double>(experts);
  // An expert sees a token once.
  const double most = static_cast<double>(std::max<int64_t>(choices[1], 1));
  return static_cast<int64_t>(std::clamp(std::ceil(share), 1.0, most));
}

absl::Status InferRoute(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckOperands(op, 1); !status.ok()) return status;
  const TensorType &weights = *op.operands[0], &choices = *op.operands[1];
  if (weights.dims != choices.dims) return Differ("weights and choices", weights, choices);
  const absl::StatusOr<int64_t> capacity = Capacity(op.attributes, choices.dims);
  if (!capacity.ok()) return capacity.status();
  const Dims slots = {op.attributes.Int("experts", 1), choices.dims[0], *capacity};
  results.push_back({.dtype = DType::kI32, .dims = slots, .sharding = {}});
  results.push_back({.dtype = weights.dtype, .dims = slots, .sharding = {}});
  return absl::OkStatus();
}

absl::Status InferRouteGrad(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckOperands(op, 0); !status.ok()) return status;
  const TensorType &choices = *op.operands[0], &gates = *op.operands[1];
  if (choices.dims[0] != gates.dims[1]) return Differ("batches", choices, gates);
  results.push_back({.dtype = gates.dtype, .dims = choices.dims, .sharding = {}});
  return absl::OkStatus();
}

ShardingRule RouteSharding(const OpTypes&, const TypeList&) {
  const ShardingRule::Factors tokens = {kFactorB, kNoFactor, kNoFactor};
  const ShardingRule::Factors slots = {kNoFactor, kFactorB, kNoFactor};
  return {.operands = {tokens, tokens}, .results = {slots, slots}};
}

ShardingRule RouteGradSharding(const OpTypes&, const TypeList&) {
  const ShardingRule::Factors tokens = {kFactorB, kNoFactor, kNoFactor};
  const ShardingRule::Factors slots = {kNoFactor, kFactorB, kNoFactor};
  return {.operands = {tokens, slots}, .results = {tokens}};
}

// Calls position(choice, slot, token) for each choice that found a slot, by their positions in the
// tensors of choices and of slots. A token that chooses an expert twice is there once.
void ForEachSlot(const Tensor& choices, const Dims& slots,
                 const std::function<void(size_t, size_t, int64_t)>& position) {
  const int64_t experts = slots[0], batch = slots[1], capacity = slots[2];
  const int64_t tokens = choices.dims()[1], picks = choices.dims()[2];
  std::vector<int64_t> taken(static_cast<size_t>(experts * batch), 0);
  std::vector<int64_t> last(taken.size(), -1);
  for (int64_t i = 0; i < choices.size(); ++i) {
    const int64_t b = i / (tokens * picks), token = i / picks % tokens;
    const int64_t expert = choices.ints()[static_cast<size_t>(i)];
    if (expert < 0 || expert >= experts) continue;
    const auto at = static_cast<size_t>(expert * batch + b);
    if (taken[at] == capacity || last[at] == token) continue;
    last[at] = token;
    const int64_t slot = static_cast<int64_t>(at) * capacity + taken[at]++;
    position(static_cast<size_t>(i), static_cast<size_t>(slot), token);
  }
}

absl::Status EvaluateRoute(Evaluation& e) {
  std::vector<int64_t>& slots = e.results[0].ints();
  std::fill(slots.begin(), slots.end(), -1);
  ForEachSlot(e.operand(1), e.results[0].dims(), [&](size_t choice, size_t slot, int64_t token) {
    slots[slot] = token;
    e.results[1].floats()[slot] = e.operand(0).floats()[choice];
  });
  return absl::OkStatus();
}

absl::Status EvaluateRouteGrad(Evaluation& e) {
  ForEachSlot(e.operand(0), e.operand(1).dims(), [&](size_t choice, size_t slot, int64_t) {
    e.results[0].floats()[choice] = e.operand(1).floats()[slot];
  });
  return absl::OkStatus();
}

absl::Status RouteGradient(GradientContext& c) {
  const ValueId dgates = c.result_gradient(1);
  if (!c.needs(0) || !dgates.valid()) return absl::OkStatus();
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kRouteGrad, {c.operand(1), dgates}, c.GradientName(0)));
  return c.builder().status();
}

absl::Status InferDispatch(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckOperands(op, 1); !status.ok()) return status;
  const TensorType &x = *op.operands[0], &slots = *op.operands[1];
  if (x.dims[0] != slots.dims[1]) return Differ("batches", x, slots);
  const Dims dims = {slots.dims[0], slots.dims[1], slots.dims[2], x.dims[2]};
  results.push_back({.dtype = x.dtype, .dims = dims, .sharding = {}});
  return absl::OkStatus();
}

absl::Status CheckCombine(const OpTypes& op) {
  if (absl::Status status = CheckOperands(op, 1, 0); !status.ok()) return status;
  const TensorType &y = *op.operands[0], &slots = *op.operands[1];
  if (!std::equal(slots.dims.begin(), slots.dims.end(), y.dims.begin())) {
    return Differ("slots", y, slots);
  }
  const bool gated = op.operands.size() > 2;
  if (gated && op.operands[2]->dims != slots.dims) return Differ("gates", *op.operands[2], slots);
  return absl::OkStatus();
}

absl::Status InferCombine(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckCombine(op); !status.ok()) return status;
  const int64_t size = op.attributes.Int("size", 0);
  if (size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("size=", size, "; wanted the number of tokens of a sample"));
  }
  const TensorType& y = *op.operands[0];
  const Dims dims = {op.operands[1]->dims[1], size, y.dims[3]};
  results.push_back({.dtype = y.dtype, .dims = dims, .sharding = {}});
  return absl::OkStatus();
}

absl::Status InferCombineGrad(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckCombine(op); !status.ok()) return status;
  const TensorType &y = *op.operands[0], &slots = *op.operands[1], &dout = *op.operands[3];
  if (dout.dims[0] != slots.dims[1] || dout.dims[2] != y.dims[3]) {
    return Differ("the gradient and what was combined", dout, y);
  }
  results.push_back({.dtype = y.dtype, .dims = y.dims, .sharding = {}});
  results.push_back({.dtype = op.operands[2]->dtype, .dims = slots.dims, .sharding = {}});
  return absl::OkStatus();
}

const ShardingRule::Factors kTokens = {kFactorB, kNoFactor, kFactorH};
const ShardingRule::Factors kSlots = {kFactorE, kFactorB, kNoFactor};
const ShardingRule::Factors kRows = {kFactorE, kFactorB, kNoFactor, kFactorH};

ShardingRule DispatchSharding(const OpTypes&, const TypeList&) {
  return {.operands = {kTokens, kSlots}, .results = {kRows}};
}

ShardingRule CombineSharding(const OpTypes& op, const TypeList&) {
  ShardingRule rule = {.operands = {kRows, kSlots}, .results = {kTokens}};
  if (op.operands.size() > 2) rule.operands.push_back(kSlots);
  return rule;
}

ShardingRule CombineGradSharding(const OpTypes&, const TypeList&) {
  return {.operands = {kRows, kSlots, kSlots, kTokens}, .results = {kRows, kSlots}};
}

double CombineFlops(const OpTypes& op, const TypeList&) {
  return 2.0 * static_cast<double>(ElementCount(op.operands[0]->dims));
}

double CombineGradFlops(const OpTypes& op, const TypeList&) {
  return 3.0 * static_cast<double>(ElementCount(op.operands[0]->dims));
}

// Calls visit(slot, row, token) for each slot that is taken: its position among the slots, where
// its row starts, and where the row of its token starts.
void ForEachRow(const Tensor& slots, int64_t tokens, int64_t width,
                const std::function<void(size_t, size_t, size_t)>& visit) {
  const int64_t batch = slots.dims()[1], capacity = slots.dims()[2];
  for (int64_t i = 0; i < slots.size(); ++i) {
    const int64_t token = slots.ints()[static_cast<size_t>(i)];
    if (token < 0 || token >= tokens) continue;
    const int64_t b = i / capacity % batch;
    visit(static_cast<size_t>(i), static_cast<size_t>(i * width),
          static_cast<size_t>((b * tokens + token) * width));
  }
}

absl::Status EvaluateDispatch(Evaluation& e) {
  const Dims& x = e.operand(0).dims();
  const auto width = static_cast<size_t>(x[2]);
  ForEachRow(e.operand(1), x[1], x[2], [&](size_t, size_t row, size_t token) {
    for (size_t h = 0; h < width; ++h) {
      e.results[0].floats()[row + h] = e.operand(0).floats()[token + h];
    }
  });
  return absl::OkStatus();
}

absl::Status EvaluateCombine(Evaluation& e) {
  const Dims& out = e.results[0].dims();
  const auto width = static_cast<size_t>(out[2]);
  ForEachRow(e.operand(1), out[1], out[2], [&](size_t slot, size_t row, size_t token) {
    const double gate = e.has_operand(2) ? e.operand(2).floats()[slot] : 1;
    for (size_t h = 0; h < width; ++h) {
      e.results[0].floats()[token + h] += gate * e.operand(0).floats()[row + h];
    }
  });
  return absl::OkStatus();
}

absl::Status EvaluateCombineGrad(Evaluation& e) {
  const Dims& out = e.operand(3).dims();
  const auto width = static_cast<size_t>(out[2]);
  const auto &y = e.operand(0).floats(), &dout = e.operand(3).floats();
  ForEachRow(e.operand(1), out[1], out[2], [&](size_t slot, size_t row, size_t token) {
    for (size_t h = 0; h < width; ++h) {
      e.results[0].floats()[row + h] = e.operand(2).floats()[slot] * dout[token + h];
      e.results[1].floats()[slot] += y[row + h] * dout[token + h];
    }
  });
  return absl::OkStatus();
}

absl::Status DispatchGradient(GradientContext& c) {
  const int64_t size = c.operand_type(0).dims[1];
  c.SetOperandGradient(0, c.builder().Op(OpKind::kCombine, {c.result_gradient(), c.operand(1)},
                                         c.GradientName(0), {{"size", size}}));
  return c.builder().status();
}

absl::Status CombineGradient(GradientContext& c) {
  Builder& b = c.builder();
  if (c.operand_count() == 2) {
    c.SetOperandGradient(
        0, b.Op(OpKind::kDispatch, {c.result_gradient(), c.operand(1)}, c.GradientName(0)));
    return b.status();
  }
  const ValueId operands[] = {c.operand(0), c.operand(1), c.operand(2), c.result_gradient()};
  const OpId op = b.Ops(OpKind::kCombineGrad, operands);
  if (!op.valid()) return b.status();
  c.SetOperandGradient(0, b.function().result(op, 0));
  c.SetOperandGradient(2, b.function().result(op, 1));
  return absl::OkStatus();
}

}  // namespace
}  // namespace experts_cc

extern const OpInfo kRouteOp = {
    .name = "Route",
    .summary =
        "weights, choices [B,S,k] to token and gate of each slot [experts,B,capacity]; "
        "capacity = ceil(S k capacity_factor / experts), -1 in an empty slot",
    .operands = 2,
    .results = 2,
    .infer = experts_cc::InferRoute,
    .sharding = experts_cc::RouteSharding,
    .evaluate = experts_cc::EvaluateRoute,
    .gradient = experts_cc::RouteGradient,
    .no_gradient = 0b10,
};

extern const OpInfo kRouteGradOp = {
    .name = "RouteGrad",
    .summary = "gradient of the weights of Route from its choices and the gradient of its gates",
    .operands = 2,
    .infer = experts_cc::InferRouteGrad,
    .sharding = experts_cc::RouteGradSharding,
    .evaluate = experts_cc::EvaluateRouteGrad,
};

extern const OpInfo kDispatchOp = {
    .name = "Dispatch",
    .summary = "tokens x [B,S,H] to their slots [E,B,C] of experts: [E,B,C,H], zero if empty",
    .operands = 2,
    .infer = experts_cc::InferDispatch,
    .sharding = experts_cc::DispatchSharding,
    .evaluate = experts_cc::EvaluateDispatch,
    .gradient = experts_cc::DispatchGradient,
    .no_gradient = 0b10,
    .access = MemoryAccess::kSorting,
};

extern const OpInfo kCombineOp = {
    .name = "Combine",
    .summary =
        "y [E,B,C,H] of the slots [E,B,C] back to tokens [B,size,H]: their sum, each times "
        "its gate [E,B,C]",
    .operands = 3,
    .optional = 1,
    .infer = experts_cc::InferCombine,
    .flops = experts_cc::CombineFlops,
    .sharding = experts_cc::CombineSharding,
    .evaluate = experts_cc::EvaluateCombine,
    .gradient = experts_cc::CombineGradient,
    .no_gradient = 0b10,
    .access = MemoryAccess::kSorting,
};

extern const OpInfo kCombineGradOp = {
    .name = "CombineGrad",
    .summary = "gradients of Combine(y, slots, gates) from that of its result: of y, of gates",
    .operands = 4,
    .results = 2,
    .infer = experts_cc::InferCombineGrad,
    .flops = experts_cc::CombineGradFlops,
    .sharding = experts_cc::CombineGradSharding,
    .evaluate = experts_cc::EvaluateCombineGrad,
    .access = MemoryAccess::kSorting,
};

}  // namespace orrery::ir
