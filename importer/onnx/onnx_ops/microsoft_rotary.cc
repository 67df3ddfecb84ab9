#include "importer/onnx/onnx_ops/microsoft_rotary.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Rotary positions as ONNX Runtime has them: tables of half the features, rows picked by position.

namespace orrery::importer {
namespace microsoft_rotary_cc {
namespace {

using ir::OpKind;
using ir::ValueId;
using Ints = std::vector<int64_t>;

// Rows of a table in the order of the rows of x: [rows,d/2] or [batch,rows,d/2].
absl::StatusOr<ValueId> RowsOf(NodeContext& c, int input, int positions, int64_t rows) {
  const ValueId table = c.input(input);
  const int64_t all = c.type(table).dims[0];
  const bool given = c.has_input(positions);
  const bool from_one = given && c.input_type(positions).dims.size() == 1;
  if (from_one && c.input_type(positions).dims[0] != 1) {
    return absl::InvalidArgumentError(absl::StrCat("got ", c.input_type(positions).dims[0],
                                                   " positions; wanted 1, or [batch,rows]"));
  }
  const ir::Tensor* const known = from_one ? c.KnownInput(positions) : nullptr;
  const int64_t first = known != nullptr ? static_cast<int64_t>(known->Number(0)) : 0;
  if (!given || known != nullptr) {
    if (first < 0 || first + rows > all) {
      return absl::InvalidArgumentError(
          absl::StrCat("a table of ", all, " positions; wanted ", first + rows, ", as x has rows"));
    }
    if (first == 0 && rows == all) return table;
    return c.Op(OpKind::kSlice, {table},
                {{"axes", Ints{0}},
                 {"starts", Ints{first}},
                 {"ends", Ints{first + rows}},
                 {"steps", Ints{1}}});
  }
  ValueId ids = c.input(positions);
  if (from_one) {
    ir::Tensor counted(c.type(ids).dtype, {rows});
    for (int64_t i = 0; i < rows; ++i) counted.SetNumber(i, static_cast<double>(i));
    ORRERY_ASSIGN_OR_RETURN(const ValueId counts, c.Constant(counted));
    ORRERY_ASSIGN_OR_RETURN(ids, c.Op(OpKind::kAdd, {ids, counts}));
  }
  return c.Op(OpKind::kGather, {table, ids}, {{"axis", int64_t{0}}});
}

// A column for each feature, of which two share an angle.
absl::StatusOr<ValueId> OfFeatures(NodeContext& c, ValueId half, bool interleaved) {
  ir::Dims dims = c.type(half).dims;
  if (!interleaved) {
    return c.Op(OpKind::kConcat, {half, half}, {{"axis", static_cast<int64_t>(dims.size()) - 1}});
  }
  const auto last = static_cast<int64_t>(dims.size());
  ORRERY_ASSIGN_OR_RETURN(const ValueId one,
                          c.Op(OpKind::kUnsqueeze, {half}, {{"axes", Ints{last}}}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId pairs, c.Op(OpKind::kConcat, {one, one}, {{"axis", last}}));
  dims.back() *= 2;
  return c.Op(OpKind::kReshape, {pairs}, {{"shape", Ints(dims.begin(), dims.end())}});
}

absl::StatusOr<ValueId> TableOf(NodeContext& c, int input, const RotaryTables& tables,
                                const ir::Dims& x, bool interleaved) {
  const ir::Dims& table = c.input_type(input).dims;
  if (table.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", input, " has ", table.size(), " dimensions; wanted 2"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId half, RowsOf(c, input, tables.positions, x[x.size() - 2]));
  ORRERY_ASSIGN_OR_RETURN(const ValueId all, OfFeatures(c, half, interleaved));
  if (x.size() < 4 || c.type(all).dims.size() < 3) return all;
  return c.Op(OpKind::kUnsqueeze, {all}, {{"axes", Ints{1}}});  // for all heads
}

}  // namespace

absl::Status LowerRotaryEmbedding(NodeContext& c) {
  if (c.Int("is_packed_batching", 0) != 0) {
    return absl::UnimplementedError("is_packed_batching=1 is not supported; wanted 0");
  }
  if (c.Float("scale", 1) != 1) {
    return absl::UnimplementedError("scale is not supported; wanted 1");
  }
  const RotaryTables tables = {.cos = 2, .sin = 3, .positions = 1};
  const bool interleaved = c.Int("interleaved", 0) != 0;
  const ir::Dims dims = c.input_type(0).dims;
  const int64_t heads = c.Int("num_heads", 0), turned = c.Int("rotary_embedding_dim", 0);
  if (dims.size() != 3 || heads < 1 || dims[2] % heads != 0 || turned == 0 ||
      dims[2] / heads == turned) {
    return c.Return(Rotate(c, c.input(0), tables, interleaved));
  }
  const Ints perm = {0, 2, 1, 3};
  ORRERY_ASSIGN_OR_RETURN(ValueId x,
                          c.Op(OpKind::kReshape, {c.input(0)},
                               {{"shape", Ints{dims[0], dims[1], heads, dims[2] / heads}}}));
  ORRERY_ASSIGN_OR_RETURN(x, c.Op(OpKind::kTranspose, {x}, {{"perm", perm}}));
  ORRERY_ASSIGN_OR_RETURN(x, Rotate(c, x, tables, interleaved));
  ORRERY_ASSIGN_OR_RETURN(x, c.Op(OpKind::kTranspose, {x}, {{"perm", perm}}));
  return c.Return(c.Op(OpKind::kReshape, {x}, {{"shape", Ints(dims.begin(), dims.end())}}));
}

}  // namespace microsoft_rotary_cc

absl::StatusOr<ir::ValueId> Rotate(NodeContext& c, ir::ValueId x, const RotaryTables& tables,
                                   bool interleaved) {
  using ir::OpKind;
  const ir::Dims dims = c.type(x).dims;
  if (dims.size() < 3 || dims.size() > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("x has ", dims.size(), " dimensions; wanted 3 or 4"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId cos,
                          microsoft_rotary_cc::TableOf(c, tables.cos, tables, dims, interleaved));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId sin,
                          microsoft_rotary_cc::TableOf(c, tables.sin, tables, dims, interleaved));
  ir::AttributeSet attributes;
  if (interleaved) attributes.Set("layout", "interleaved");
  const int64_t width = c.type(cos).dims.back();
  if (dims.size() == 3 || dims[3] <= width) {
    return c.Op(OpKind::kRotary, {x, cos, sin}, attributes);
  }
  ORRERY_ASSIGN_OR_RETURN(
      const std::vector<ir::ValueId> parts,
      c.Ops(OpKind::kSplit, std::span(&x, 1),
            {{"axis", int64_t{3}}, {"sizes", std::vector<int64_t>{width, dims[3] - width}}}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId turned,
                          c.Op(OpKind::kRotary, {parts[0], cos, sin}, attributes));
  return c.Op(OpKind::kConcat, {turned, parts[1]}, {{"axis", int64_t{3}}});
}

extern const OnnxOp kMicrosoftRotaryEmbeddingOnnxOp = {
    .type = "RotaryEmbedding",
    .domain = kMicrosoft,
    .inputs = 4,
    .lower = microsoft_rotary_cc::LowerRotaryEmbedding};

}  // namespace orrery::importer
