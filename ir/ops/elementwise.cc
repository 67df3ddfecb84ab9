#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"

// Ops that compute one result element from the operand elements in the same place.

namespace orrery::ir {
namespace {

std::string Show(const Dims& dims) { return absl::StrCat("[", absl::StrJoin(dims, ","), "]"); }

absl::Status InferUnary(const OpTypes& op, TypeList& results) {
  results.push_back({.dtype = op.operands[0]->dtype, .dims = op.operands[0]->dims, .sharding = {}});
  return absl::OkStatus();
}

absl::Status InferBroadcast(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &y = *op.operands[1];
  if (x.dtype != y.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("element types differ; got ", ToString(x.dtype), " and ", ToString(y.dtype)));
  }
  const size_t rank = std::max(x.dims.size(), y.dims.size());
  Dims dims(rank, 1);
  for (size_t back = 1; back <= rank; ++back) {
    const int64_t a = back <= x.dims.size() ? x.dims[x.dims.size() - back] : 1;
    const int64_t b = back <= y.dims.size() ? y.dims[y.dims.size() - back] : 1;
    if (a != b && a != 1 && b != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", Show(x.dims), " and ", Show(y.dims), " do not broadcast"));
    }
    dims[rank - back] = a == 1 ? b : a;
  }
  results.push_back({.dtype = x.dtype, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

absl::Status InferSameShapes(const OpTypes& op, TypeList& results) {
  if (op.operands[0]->dims != op.operands[1]->dims) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shapes differ; got ", Show(op.operands[0]->dims), " and ", Show(op.operands[1]->dims)));
  }
  return InferUnary(op, results);
}

double OneFlopAnElement(const OpTypes&, const TypeList& results) {
  return static_cast<double>(ElementCount(results[0].dims));
}

// Sums `gradient` down to the shape of operand i, over the dimensions that broadcasting added.
ValueId Unbroadcast(GradientContext& c, ValueId gradient, int i) {
  const Dims from = c.builder().type(gradient).dims, to = c.operand_type(i).dims;
  if (from == to) return gradient;
  std::vector<int64_t> axes;
  for (size_t d = 0; d < from.size() - to.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  return c.builder().Op(OpKind::kReduceSum, {gradient}, c.GradientName(i), {{"axes", axes}});
}

// Whether broadcasting only added leading dimensions to operand i, which is what Unbroadcast
// undoes.
bool OnlyLeading(GradientContext& c, int i) {
  const Dims to = c.operand_type(i).dims, from = c.builder().type(c.result()).dims;
  return std::equal(to.rbegin(), to.rend(), from.rbegin());
}

absl::Status AddGradient(GradientContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (!c.needs(i)) continue;
    if (!OnlyLeading(c, i)) {
      return absl::UnimplementedError("no gradient through a broadcast dimension of size 1");
    }
    c.SetOperandGradient(i, Unbroadcast(c, c.result_gradient(), i));
  }
  return c.builder().status();
}

absl::Status MulGradient(GradientContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (!c.needs(i)) continue;
    if (!OnlyLeading(c, i)) {
      return absl::UnimplementedError("no gradient through a broadcast dimension of size 1");
    }
    const ValueId full = c.builder().Op(OpKind::kMul, {c.result_gradient(), c.operand(1 - i)});
    c.SetOperandGradient(i, Unbroadcast(c, full, i));
  }
  return c.builder().status();
}

absl::Status ScaleGradient(GradientContext& c) {
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kScale, {c.result_gradient()}, c.GradientName(0), c.attributes()));
  return c.builder().status();
}

absl::Status ReluGradient(GradientContext& c) {
  c.SetOperandGradient(0,
                       c.builder().ReluGrad(c.operand(0), c.result_gradient(), c.GradientName(0)));
  return c.builder().status();
}

}  // namespace

extern const OpInfo kAddOp = {
    .name = "Add",
    .summary = "x + y, with broadcasting",
    .operands = 2,
    .infer = InferBroadcast,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .gradient = AddGradient,
    .linear = true,
};

extern const OpInfo kMulOp = {
    .name = "Mul",
    .summary = "x times y, with broadcasting",
    .operands = 2,
    .infer = InferBroadcast,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .gradient = MulGradient,
};

extern const OpInfo kScaleOp = {
    .name = "Scale",
    .summary = "x times the number `factor`",
    .operands = 1,
    .infer = InferUnary,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .gradient = ScaleGradient,
    .linear = true,
};

extern const OpInfo kReluOp = {
    .name = "Relu",
    .summary = "max(x, 0)",
    .operands = 1,
    .infer = InferUnary,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
    .gradient = ReluGradient,
};

extern const OpInfo kReluGradOp = {
    .name = "ReluGrad",
    .summary = "gradient of Relu(x) from that of its result: dy where x > 0, else 0",
    .operands = 2,
    .infer = InferSameShapes,
    .flops = OneFlopAnElement,
    .sharding = ElementwiseRule,
};

}  // namespace orrery::ir
