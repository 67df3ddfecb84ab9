#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/products.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::importer {
namespace matmul_cc {
namespace {

// A vector before the product is a row that vanishes from the result, one behind it a column.
absl::Status LowerMatMul(NodeContext& c) {
  const size_t x_rank = c.input_type(0).dims.size(), w_rank = c.input_type(1).dims.size();
  if (x_rank >= 2 && w_rank >= 2) {
    return c.Return(c.Op(ir::OpKind::kMatMul, {c.input(0), c.input(1)}));
  }
  if (x_rank == 0 || w_rank == 0 || std::max(x_rank, w_rank) > 24) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs have ", x_rank, " and ", w_rank, " dimensions; wanted 1 to 24"));
  }
  std::string leading;  // of the operand that is no vector
  for (size_t d = 2; d < std::max(x_rank, w_rank); ++d) {
    leading += static_cast<char>('A' + static_cast<int>(d));
  }
  const bool row = x_rank == 1, column = w_rank == 1;
  const std::string equation =
      absl::StrCat(row ? "" : leading, row ? "k" : "mk", ",", column ? "" : leading,
                   column ? "k" : "kn", "->", leading, row ? "" : "m", column ? "" : "n");
  return c.Return(c.Op(ir::OpKind::kEinsum, {c.input(0), c.input(1)}, {{"equation", equation}}));
}

absl::StatusOr<ir::ValueId> Product(NodeContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (c.input_type(i).dims.size() == 2) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " has ", c.input_type(i).dims.size(), " dimensions; wanted 2"));
  }
  ir::AttributeSet flips;
  if (c.Int("transA", 0) != 0) flips.Set("transpose_x", int64_t{1});
  if (c.Int("transB", 0) != 0) flips.Set("transpose_w", int64_t{1});
  return c.Op(ir::OpKind::kMatMul, {c.input(0), c.input(1)}, flips);
}

// `value` times the attribute `name`, which is 1 unless it is there.
absl::StatusOr<ir::ValueId> Scaled(NodeContext& c, absl::string_view name, ir::ValueId value) {
  const double factor = c.Float(name, 1);
  if (!std::isfinite(factor)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", factor, "; wanted a finite number"));
  }
  if (factor == 1) return value;
  return c.Op(ir::OpKind::kScale, {value}, {{"factor", factor}});
}

}  // namespace
}  // namespace matmul_cc

// C broadcasts to the product.
absl::StatusOr<ir::ValueId> GemmOf(NodeContext& c) {
  using matmul_cc::Scaled;
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId product, matmul_cc::Product(c));
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId y, Scaled(c, "alpha", product));
  if (c.has_input(2) && c.Float("beta", 1) != 0) {
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId bias, Scaled(c, "beta", c.input(2)));
    ORRERY_ASSIGN_OR_RETURN(y, c.Op(ir::OpKind::kAdd, {y, bias}));
  }
  if (c.type(y).dims == c.type(product).dims) return y;
  return absl::InvalidArgumentError(absl::StrCat(
      "input 2 has shape [", absl::StrJoin(c.input_type(2).dims, ","),
      "]; wanted one that broadcasts to [", absl::StrJoin(c.type(product).dims, ","), "]"));
}

extern const OnnxOp kMatMulOnnxOp = {
    .type = "MatMul", .inputs = 2, .weights = 0b10, .lower = matmul_cc::LowerMatMul};

// Opset 6 says by the attribute `broadcast` whether C broadcasts; that it does shows anyway.
extern const OnnxOp kGemmOnnxOp = {
    .type = "Gemm", .inputs = 2, .since_opset = 6, .weights = 0b110, .lower = [](NodeContext& c) {
      return c.Return(GemmOf(c));
    }};

}  // namespace orrery::importer
