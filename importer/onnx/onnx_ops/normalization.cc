#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Normalizations: by layer, batch, instance, group, and across channels.

namespace orrery::importer {
namespace normalization_cc {
namespace {

// Where scale and bias broadcast to what is normalized: by ones, then as the graph says.
absl::StatusOr<std::vector<ir::ValueId>> NormalizeThenScale(NodeContext& c, const ir::Dims& dims,
                                                            const ir::AttributeSet& attributes) {
  const ir::TensorType ones = {.dtype = c.input_type(0).dtype, .dims = dims, .sharding = {}};
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId unit, c.Constant(ones, {{"fill", 1.0}}));
  const ir::ValueId operands[] = {c.input(0), unit};
  ORRERY_ASSIGN_OR_RETURN(std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kLayerNorm, operands, attributes));
  ORRERY_ASSIGN_OR_RETURN(results[0], c.Op(ir::OpKind::kMul, {results[0], c.input(1)}));
  if (c.has_input(2)) {
    ORRERY_ASSIGN_OR_RETURN(results[0], c.Op(ir::OpKind::kAdd, {results[0], c.input(2)}));
  }
  return results;
}

absl::Status LowerLayerNormalization(NodeContext& c) {
  const ir::Dims& x = c.input_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(c.Int("axis", -1), x.size()));
  const ir::Dims inner(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
  const ir::AttributeSet attributes = {{"axis", static_cast<int64_t>(axis)},
                                       {"epsilon", c.Float("epsilon", 1e-5)}};
  std::vector<ir::ValueId> operands = {c.input(0), c.input(1)};
  if (c.has_input(2)) operands.push_back(c.input(2));
  bool plain = true;
  for (size_t i = 1; i < operands.size(); ++i) plain = plain && c.type(operands[i]).dims == inner;
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          plain ? c.Ops(ir::OpKind::kLayerNorm, operands, attributes)
                                : NormalizeThenScale(c, inner, attributes));
  for (int i = 0; i < 3; ++i) c.SetOutput(i, results[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

// Before opset 7 the attribute `is_test` told training from inference. Then a node with more than
// one output was one of training, whose last two are the saved statistics; from opset 14 on another
// attribute says it.
absl::Status LowerBatchNormalization(NodeContext& c) {
  if (c.Int("spatial", 1) == 0) {
    return absl::UnimplementedError("spatial=0 is not supported; wanted statistics of channels");
  }
  const bool training =
      c.opset() >= 14 ? c.Int("training_mode", 0) != 0 : c.has_output(1) || c.has_output(2);
  ir::AttributeSet attributes = {{"epsilon", c.Float("epsilon", 1e-5)}};
  if (training) {
    attributes.Set("training", int64_t{1});
    attributes.Set("momentum", c.Float("momentum", 0.9));
  }
  std::vector<ir::ValueId> operands;
  for (int i = 0; i < 5; ++i) operands.push_back(c.input(i));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kBatchNorm, operands, attributes));
  c.SetOutput(0, results[0]);
  if (!training) return absl::OkStatus();
  for (int i = 1; i < 3; ++i) c.SetOutput(i, results[static_cast<size_t>(i) + 2]);
  for (int i = 3; i < 5; ++i) c.SetOutput(i, results[static_cast<size_t>(i) - 2]);
  return absl::OkStatus();
}

absl::Status LowerGroups(NodeContext& c, int64_t groups) {
  const ir::ValueId operands[] = {c.input(0), c.input(1), c.input(2)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kGroupNorm, operands,
                                {{"groups", groups}, {"epsilon", c.Float("epsilon", 1e-5)}}));
  c.SetOutput(0, results[0]);
  return absl::OkStatus();
}

absl::Status LowerInstanceNormalization(NodeContext& c) {
  const ir::Dims& x = c.input_type(0).dims;
  if (x.size() >= 2) return LowerGroups(c, x[1]);
  return absl::InvalidArgumentError(
      absl::StrCat("input 0 has ", x.size(), " dimensions; wanted [batch,channels,..]"));
}

absl::Status LowerGroupNormalization(NodeContext& c) {
  return LowerGroups(c, c.Int("num_groups", 0));
}

absl::Status LowerLrn(NodeContext& c) {
  return c.Return(c.Op(ir::OpKind::kLocalResponseNorm, {c.input(0)},
                       {{"size", c.Int("size", 0)},
                        {"alpha", c.Float("alpha", 1e-4F)},
                        {"beta", c.Float("beta", 0.75)},
                        {"bias", c.Float("bias", 1)}}));
}

}  // namespace
}  // namespace normalization_cc

extern const OnnxOp kLayerNormalizationOnnxOp = {
    .type = "LayerNormalization",
    .inputs = 2,
    .weights = 0b110,
    .lower = normalization_cc::LowerLayerNormalization};

// Before opset 6 inputs were told apart by the attribute `consumed_inputs`.
extern const OnnxOp kBatchNormalizationOnnxOp = {
    .type = "BatchNormalization",
    .inputs = 5,
    .since_opset = 6,
    .weights = 0b11110,
    .lower = normalization_cc::LowerBatchNormalization};

extern const OnnxOp kInstanceNormalizationOnnxOp = {
    .type = "InstanceNormalization",
    .inputs = 3,
    .weights = 0b110,
    .lower = normalization_cc::LowerInstanceNormalization};

// Scale and bias are one a group until opset 20, one a channel from then on.
extern const OnnxOp kGroupNormalizationOnnxOp = {
    .type = "GroupNormalization",
    .inputs = 3,
    .since_opset = 18,
    .weights = 0b110,
    .lower = normalization_cc::LowerGroupNormalization};

extern const OnnxOp kLRNOnnxOp = {.type = "LRN", .lower = normalization_cc::LowerLrn};

}  // namespace orrery::importer
