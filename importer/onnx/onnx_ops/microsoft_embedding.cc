#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// The embeddings of BERT as ONNX Runtime fuses them: rows of three tables, their sum, and its norm.

namespace orrery::importer {
namespace microsoft_embedding_cc {
namespace {

using ir::OpKind;
using ir::ValueId;
using Ints = std::vector<int64_t>;

// Inputs of the node.
constexpr int kIds = 0, kSegments = 1, kWords = 2, kPositions = 3, kSegmentTable = 4;
constexpr int kGamma = 5, kBeta = 6, kMask = 7, kPositionIds = 8;

absl::StatusOr<ValueId> RowsOf(NodeContext& c, int table, int ids) {
  return c.Op(OpKind::kGather, {c.input(table), c.input(ids)}, {{"axis", int64_t{0}}});
}

// Those that are given, or the first rows of the table.
absl::StatusOr<ValueId> Positions(NodeContext& c) {
  if (c.has_input(kPositionIds)) return RowsOf(c, kPositions, kPositionIds);
  const int64_t rows = c.input_type(kIds).dims[1];
  const ir::Dims& table = c.input_type(kPositions).dims;
  if (table.size() != 2 || table[0] < rows) {
    return absl::InvalidArgumentError(absl::StrCat("a table of ", table.empty() ? 0 : table[0],
                                                   " positions for ", rows, " of a sample"));
  }
  if (table[0] == rows) return c.input(kPositions);
  return c.Op(OpKind::kSlice, {c.input(kPositions)},
              {{"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{rows}}, {"steps", Ints{1}}});
}

// How many ids of each sample the mask has 1 for; none where there is no mask.
absl::Status SetMaskIndex(NodeContext& c) {
  if (!c.has_output(1)) return absl::OkStatus();
  const ValueId of = c.has_input(kMask) ? c.input(kMask) : c.input(kIds);
  ir::Tensor number(c.type(of).dtype, {});
  if (c.has_input(kMask)) number.SetNumber(0, 1);
  ORRERY_ASSIGN_OR_RETURN(const ValueId other, c.Constant(number));
  ValueId ones;
  if (c.has_input(kMask)) {
    ORRERY_ASSIGN_OR_RETURN(ones, c.Op(OpKind::kEqual, {of, other}));
  } else {
    ORRERY_ASSIGN_OR_RETURN(ones, c.Op(OpKind::kMul, {of, other}));
  }
  if (c.type(ones).dtype != ir::DType::kI32) {
    ORRERY_ASSIGN_OR_RETURN(ones, c.Op(OpKind::kCast, {ones}, {{"to", "i32"}}));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId count,
                          c.Op(OpKind::kReduceSum, {ones}, {{"axes", Ints{1}}}));
  c.SetOutput(1, count);
  return absl::OkStatus();
}

absl::Status LowerEmbedding(NodeContext& c) {
  if (c.input_type(kIds).dims.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("ids have ", c.input_type(kIds).dims.size(),
                                                   " dimensions; wanted [batch,rows]"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId words, RowsOf(c, kWords, kIds));
  ORRERY_ASSIGN_OR_RETURN(const ValueId positions, Positions(c));
  ORRERY_ASSIGN_OR_RETURN(ValueId sum, c.Op(OpKind::kAdd, {words, positions}));
  if (c.has_input(kSegments)) {
    ORRERY_ASSIGN_OR_RETURN(const ValueId segments, RowsOf(c, kSegmentTable, kSegments));
    ORRERY_ASSIGN_OR_RETURN(sum, c.Op(OpKind::kAdd, {sum, segments}));
  }
  const ValueId operands[] = {sum, c.input(kGamma), c.input(kBeta)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                          c.Ops(OpKind::kLayerNorm, operands,
                                {{"axis", int64_t{2}}, {"epsilon", c.Float("epsilon", 1e-12)}}));
  c.SetOutput(0, results[0]);
  ORRERY_RETURN_IF_ERROR(SetMaskIndex(c));
  c.SetOutput(2, sum);
  return absl::OkStatus();
}

}  // namespace
}  // namespace microsoft_embedding_cc

extern const OnnxOp kMicrosoftEmbedLayerNormalizationOnnxOp = {
    .type = "EmbedLayerNormalization",
    .domain = kMicrosoft,
    .weights = 0b1111100,
    .lower = microsoft_embedding_cc::LowerEmbedding};

}  // namespace orrery::importer
