#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/microsoft_rotary.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Attention as ONNX Runtime's optimizer fuses it: written out by heads again, from the products of
// queries, keys and values on. The passes that fuse attention do the rest, as for any export. A
// cache of earlier keys and values belongs to inference, and is refused.

namespace orrery::importer {
namespace microsoft_attention_cc {
namespace {

using ir::OpKind;
using ir::ValueId;
using Ints = std::vector<int64_t>;

// q, k and v by heads: [batch,heads,rows,width].
struct Projections {
  ValueId q, k, v;
};

std::string Shape(const ir::Dims& dims) { return absl::StrCat("[", absl::StrJoin(dims, ","), "]"); }

absl::Status Wanted(absl::string_view what, const ir::Dims& dims, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has shape ", Shape(dims), "; wanted ", wanted));
}

absl::Status RefuseInputs(const NodeContext& c, std::initializer_list<int> inputs,
                          absl::string_view what) {
  for (const int i : inputs) {
    if (!c.has_input(i)) continue;
    return absl::UnimplementedError(
        absl::StrCat("input ", i, " (", what, ") is not supported; a step of training has none"));
  }
  return absl::OkStatus();
}

absl::Status RefuseAttributes(NodeContext& c, std::initializer_list<absl::string_view> names) {
  for (const absl::string_view name : names) {
    if (c.Attribute(name) == nullptr || !c.Attribute(name)->has_i()) continue;
    if (c.Int(name, 0) == 0) continue;
    return absl::UnimplementedError(absl::StrCat(name, "=", c.Int(name, 0), "; wanted 0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Heads(NodeContext& c, absl::string_view name) {
  constexpr int64_t kMostHeads = int64_t{1} << 32;
  const int64_t heads = c.Int(name, 0);
  if (heads > 0 && heads <= kMostHeads) return heads;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", heads, "; wanted 1 to ", kMostHeads));
}

absl::StatusOr<ValueId> Number(NodeContext& c, ir::DType dtype, double value) {
  ir::Tensor number(dtype, {});
  number.SetNumber(0, value);
  return c.Constant(number);
}

// [batch,rows,heads width] by heads.
absl::StatusOr<ValueId> ByHeads(NodeContext& c, ValueId x, int64_t heads) {
  const ir::Dims dims = c.type(x).dims;
  if (dims.size() == 4) return x;
  if (dims.size() != 3 || dims[2] % heads != 0) {
    return Wanted("an operand", dims, absl::StrCat("[batch,rows,features] of ", heads, " heads"));
  }
  ORRERY_ASSIGN_OR_RETURN(
      const ValueId parted,
      c.Op(OpKind::kReshape, {x}, {{"shape", Ints{dims[0], dims[1], heads, dims[2] / heads}}}));
  return c.Op(OpKind::kTranspose, {parted}, {{"perm", Ints{0, 2, 1, 3}}});
}

absl::StatusOr<ValueId> Packed(NodeContext& c, ValueId x) {
  ORRERY_ASSIGN_OR_RETURN(const ValueId rows,
                          c.Op(OpKind::kTranspose, {x}, {{"perm", Ints{0, 2, 1, 3}}}));
  const ir::Dims dims = c.type(rows).dims;
  return c.Op(OpKind::kReshape, {rows}, {{"shape", Ints{dims[0], dims[1], dims[2] * dims[3]}}});
}

absl::StatusOr<std::vector<ValueId>> Split(NodeContext& c, ValueId x, size_t axis,
                                           const Ints& sizes) {
  const ir::Dims& dims = c.type(x).dims;
  // Each within the whole: a file can say anything, and their sum must not overflow.
  const bool within = axis < dims.size() && std::ranges::all_of(sizes, [&](int64_t size) {
                        return size >= 0 && size <= dims[axis];
                      });
  if (!within || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != dims[axis]) {
    return Wanted("what is split", dims,
                  absl::StrCat("parts of ", Shape(ir::Dims(sizes.begin(), sizes.end()))));
  }
  return c.Ops(OpKind::kSplit, std::span(&x, 1),
               {{"axis", static_cast<int64_t>(axis)}, {"sizes", sizes}});
}

// The parts of [batch,rows,heads,parts,width] that attention reads, by heads.
absl::StatusOr<std::vector<ValueId>> Unpacked(NodeContext& c, ValueId x, int64_t parts) {
  ORRERY_ASSIGN_OR_RETURN(std::vector<ValueId> values,
                          Split(c, x, 3, Ints(static_cast<size_t>(parts), 1)));
  for (ValueId& value : values) {
    ORRERY_ASSIGN_OR_RETURN(value, c.Op(OpKind::kSqueeze, {value}, {{"axes", Ints{3}}}));
    ORRERY_ASSIGN_OR_RETURN(value, c.Op(OpKind::kTranspose, {value}, {{"perm", Ints{0, 2, 1, 3}}}));
  }
  return values;
}

// Bools [batch,keys] of keys between positions: lengths [batch], or ends and then beginnings
// [2 batch].
absl::StatusOr<ValueId> KeysInRange(NodeContext& c, ValueId ranges, int64_t batch, int64_t keys) {
  ir::Tensor counted(c.type(ranges).dtype, {keys});
  for (int64_t t = 0; t < keys; ++t) counted.SetNumber(t, static_cast<double>(t));
  ORRERY_ASSIGN_OR_RETURN(const ValueId positions, c.Constant(counted));
  const bool begins = c.type(ranges).dims[0] != batch;
  std::vector<ValueId> columns = {ranges};
  if (begins) {
    ORRERY_ASSIGN_OR_RETURN(ranges, c.Op(OpKind::kReshape, {ranges}, {{"shape", Ints{2, batch}}}));
    ORRERY_ASSIGN_OR_RETURN(columns, Split(c, ranges, 0, {1, 1}));
    for (ValueId& column : columns) {
      ORRERY_ASSIGN_OR_RETURN(column, c.Op(OpKind::kSqueeze, {column}, {{"axes", Ints{0}}}));
    }
  }
  for (ValueId& column : columns) {
    ORRERY_ASSIGN_OR_RETURN(column, c.Op(OpKind::kUnsqueeze, {column}, {{"axes", Ints{1}}}));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId before, c.Op(OpKind::kLess, {positions, columns[0]}));
  if (!begins) return before;
  ORRERY_ASSIGN_OR_RETURN(const ValueId behind,
                          c.Op(OpKind::kGreaterOrEqual, {positions, columns[1]}));
  return c.Op(OpKind::kAnd, {before, behind});
}

// What is visible as bools that broadcast to `logits`, [batch,heads,queries,keys].
absl::StatusOr<ValueId> Visible(NodeContext& c, ValueId mask, const ir::Dims& logits) {
  const ir::Dims dims = c.type(mask).dims;
  const int64_t batch = logits[0];
  constexpr absl::string_view kForms =
      "[batch], [2 batch], [batch,keys], [batch,queries,keys] or [batch,1,rows,rows]";
  if (dims.empty() || dims.size() > 4) return Wanted("the mask", dims, kForms);
  ValueId keep;
  if (dims.size() == 1) {
    if (dims[0] != batch && dims[0] != 2 * batch) return Wanted("the mask", dims, kForms);
    ORRERY_ASSIGN_OR_RETURN(keep, KeysInRange(c, mask, batch, logits[3]));
  } else {
    if (dims.size() == 4 && (dims[2] != logits[2] || dims[3] != logits[3])) {
      const Ints ends = {logits[2], logits[3]};
      ORRERY_ASSIGN_OR_RETURN(mask, c.Op(OpKind::kSlice, {mask},
                                         {{"axes", Ints{2, 3}},
                                          {"starts", Ints{0, 0}},
                                          {"ends", ends},
                                          {"steps", Ints{1, 1}}}));
    }
    ORRERY_ASSIGN_OR_RETURN(const ValueId zero, Number(c, c.type(mask).dtype, 0));
    ORRERY_ASSIGN_OR_RETURN(keep, c.Op(OpKind::kGreater, {mask, zero}));
  }
  if (dims.size() == 4) return keep;
  return c.Op(OpKind::kUnsqueeze, {keep}, {{"axes", dims.size() == 3 ? Ints{1} : Ints{1, 2}}});
}

// What is added to logits: the value of hidden ones, and a bias. Invalid when there is neither.
absl::StatusOr<ValueId> AddedToLogits(NodeContext& c, int mask, int bias, const Projections& p) {
  const ir::Dims &q = c.type(p.q).dims, &k = c.type(p.k).dims;
  const ir::Dims logits = {q[0], q[1], q[2], k[2]};
  const ir::DType dtype = c.type(p.q).dtype;
  ValueId added;
  if (c.has_input(mask)) {
    ORRERY_ASSIGN_OR_RETURN(const ValueId visible, Visible(c, c.input(mask), logits));
    const double filter = c.Float("mask_filter_value", -10000);
    ORRERY_ASSIGN_OR_RETURN(const ValueId zero, Number(c, dtype, 0));
    ORRERY_ASSIGN_OR_RETURN(const ValueId low, Number(c, dtype, filter));
    ORRERY_ASSIGN_OR_RETURN(added, c.Op(OpKind::kWhere, {visible, zero, low}));
  }
  if (!c.has_input(bias)) return added;
  if (!added.valid()) return c.input(bias);
  return c.Op(OpKind::kAdd, {added, c.input(bias)});
}

struct Logits {
  ValueId added;
  bool causal = false;
};

// Output 0: softmax(scale q kᵀ + added) v, packed.
absl::Status Attend(NodeContext& c, const Projections& p, const Logits& how) {
  const ir::Dims q = c.type(p.q).dims, k = c.type(p.k).dims;
  if (how.causal && q[2] != k[2]) {
    return absl::UnimplementedError(absl::StrCat("each row sees those before it, of ", q[2],
                                                 " queries and ", k[2], " keys; wanted as many"));
  }
  double scale = c.Float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q[3]));
  ir::AttributeSet attributes = {{"scale", scale}};
  if (how.causal) attributes.Set("causal", int64_t{1});
  ORRERY_ASSIGN_OR_RETURN(const ValueId logits,
                          c.Op(OpKind::kMatMul, {p.q, p.k}, {{"transpose_w", int64_t{1}}}));
  std::vector<ValueId> operands = {logits};
  if (how.added.valid()) operands.push_back(how.added);
  ORRERY_ASSIGN_OR_RETURN(const ValueId weights,
                          c.Op(OpKind::kMaskedSoftmax, operands, attributes));
  ORRERY_ASSIGN_OR_RETURN(const ValueId y, c.Op(OpKind::kMatMul, {weights, p.v}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId packed, Packed(c, y));
  c.SetOutput(0, packed);
  return absl::OkStatus();
}

// Keys and values in one tensor, [2,batch,heads,rows,width].
absl::Status SetPresent(NodeContext& c, const Projections& p) {
  if (!c.has_output(1)) return absl::OkStatus();
  std::vector<ValueId> both = {p.k, p.v};
  for (ValueId& one : both) {
    ORRERY_ASSIGN_OR_RETURN(one, c.Op(OpKind::kUnsqueeze, {one}, {{"axes", Ints{0}}}));
  }
  ORRERY_ASSIGN_OR_RETURN(const ValueId present,
                          c.Op(OpKind::kConcat, both, {{"axis", int64_t{0}}}));
  c.SetOutput(1, present);
  return absl::OkStatus();
}

absl::StatusOr<Projections> HeadsOf(NodeContext& c, const std::vector<ValueId>& parts,
                                    int64_t heads, int64_t kv_heads) {
  Projections p;
  ORRERY_ASSIGN_OR_RETURN(p.q, ByHeads(c, parts[0], heads));
  ORRERY_ASSIGN_OR_RETURN(p.k, ByHeads(c, parts[1], kv_heads));
  ORRERY_ASSIGN_OR_RETURN(p.v, ByHeads(c, parts[2], kv_heads));
  return p;
}

absl::Status LowerAttention(NodeContext& c) {
  ORRERY_RETURN_IF_ERROR(RefuseInputs(c, {4, 6}, "earlier keys and values"));
  ORRERY_RETURN_IF_ERROR(RefuseAttributes(c, {"do_rotary", "past_present_share_buffer"}));
  ORRERY_ASSIGN_OR_RETURN(const int64_t heads, Heads(c, "num_heads"));
  ORRERY_ASSIGN_OR_RETURN(ValueId all, c.Op(OpKind::kMatMul, {c.input(0), c.input(1)}));
  if (c.has_input(2)) {
    ORRERY_ASSIGN_OR_RETURN(all, c.Op(OpKind::kAdd, {all, c.input(2)}));
  }
  const ir::Dims& dims = c.type(all).dims;
  if (dims.size() != 3) return Wanted("the projection", dims, "[batch,rows,features]");
  const Ints sizes = c.Ints("qkv_hidden_sizes", Ints(3, dims[2] / 3));
  if (sizes.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("qkv_hidden_sizes: got ", sizes.size(), " of them; wanted 3"));
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ValueId> parts, Split(c, all, 2, sizes));
  ORRERY_ASSIGN_OR_RETURN(const Projections p, HeadsOf(c, parts, heads, heads));
  ORRERY_ASSIGN_OR_RETURN(const ValueId added, AddedToLogits(c, 3, 5, p));
  ORRERY_RETURN_IF_ERROR(SetPresent(c, p));
  return Attend(c, p, {.added = added, .causal = c.Int("unidirectional", 0) != 0});
}

// Adds its part of the bias, which those of q, k and v have in a row, to each.
absl::Status AddBiases(NodeContext& c, ValueId bias, std::vector<ValueId>& parts) {
  Ints sizes;
  for (const ValueId part : parts) {
    if (c.type(part).dims.size() != 3) {
      return absl::UnimplementedError("a bias of what is packed or by heads is not supported");
    }
    sizes.push_back(c.type(part).dims[2]);
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ValueId> biases, Split(c, bias, 0, sizes));
  for (size_t i = 0; i < parts.size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(parts[i], c.Op(OpKind::kAdd, {parts[i], biases[i]}));
  }
  return absl::OkStatus();
}

// q, k and v, which may come as one tensor, or as q and one of k and v.
absl::StatusOr<std::vector<ValueId>> PartsOfMultiHead(NodeContext& c) {
  if (!c.has_input(1)) return Unpacked(c, c.input(0), 3);
  std::vector<ValueId> parts = {c.input(0)};
  if (c.has_input(2)) {
    parts.push_back(c.input(1));
    parts.push_back(c.input(2));
  } else {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<ValueId> kv, Unpacked(c, c.input(1), 2));
    parts.insert(parts.end(), kv.begin(), kv.end());
  }
  return parts;
}

absl::Status LowerMultiHeadAttention(NodeContext& c) {
  ORRERY_RETURN_IF_ERROR(RefuseInputs(c, {6, 7, 8, 9}, "earlier keys and values"));
  ORRERY_ASSIGN_OR_RETURN(const int64_t heads, Heads(c, "num_heads"));
  ORRERY_ASSIGN_OR_RETURN(std::vector<ValueId> parts, PartsOfMultiHead(c));
  if (c.has_input(3)) ORRERY_RETURN_IF_ERROR(AddBiases(c, c.input(3), parts));
  ORRERY_ASSIGN_OR_RETURN(const Projections p, HeadsOf(c, parts, heads, heads));
  ORRERY_ASSIGN_OR_RETURN(const ValueId added, AddedToLogits(c, 4, 5, p));
  c.SetOutput(1, p.k);
  c.SetOutput(2, p.v);
  return Attend(c, p, {.added = added, .causal = c.Int("unidirectional", 0) != 0});
}

// Each head of [batch,heads,rows,width] as often as `group` heads of queries read it.
absl::StatusOr<ValueId> Repeat(NodeContext& c, ValueId x, int64_t group) {
  if (group == 1) return x;
  const ir::Dims dims = c.type(x).dims;
  ORRERY_ASSIGN_OR_RETURN(const ValueId one, c.Op(OpKind::kUnsqueeze, {x}, {{"axes", Ints{2}}}));
  const Ints wide = {dims[0], dims[1], group, dims[2], dims[3]};
  ORRERY_ASSIGN_OR_RETURN(const ValueId many, c.Op(OpKind::kExpand, {one}, {{"shape", wide}}));
  return c.Op(OpKind::kReshape, {many},
              {{"shape", Ints{dims[0], dims[1] * group, dims[2], dims[3]}}});
}

absl::Status CheckGrouped(NodeContext& c, int64_t queries) {
  ORRERY_RETURN_IF_ERROR(RefuseInputs(c, {3, 4}, "earlier keys and values"));
  ORRERY_RETURN_IF_ERROR(RefuseInputs(c, {11}, "sinks of heads"));
  ORRERY_RETURN_IF_ERROR(RefuseAttributes(c, {"qk_output", "smooth_softmax"}));
  const int64_t window = c.Int("local_window_size", -1);
  if (window >= 0 && window < queries) {
    return absl::UnimplementedError(
        absl::StrCat("local_window_size is ", window, "; wanted -1, or all ", queries, " rows"));
  }
  if (c.Float("softcap", 0) == 0) return absl::OkStatus();
  return absl::UnimplementedError("softcap is not supported; wanted 0");
}

// q, k and v; one tensor may have the heads of all in its last dimension.
absl::StatusOr<std::vector<ValueId>> PartsOfGrouped(NodeContext& c, int64_t heads,
                                                    int64_t kv_heads) {
  if (c.has_input(1)) return std::vector<ValueId>{c.input(0), c.input(1), c.input(2)};
  const ir::Dims& dims = c.input_type(0).dims;
  const int64_t width = dims.size() == 3 ? dims[2] / (heads + 2 * kv_heads) : 0;
  return Split(c, c.input(0), 2, {heads * width, kv_heads * width, kv_heads * width});
}

// Rows beyond the length of a sample (seqlens_k) are computed like others: causality hides them
// from those that count.
absl::Status LowerGroupQueryAttention(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const int64_t heads, Heads(c, "num_heads"));
  ORRERY_ASSIGN_OR_RETURN(const int64_t kv_heads, Heads(c, "kv_num_heads"));
  if (heads % kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_heads is ", heads, "; wanted a multiple of kv_num_heads, ", kv_heads));
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ValueId> parts, PartsOfGrouped(c, heads, kv_heads));
  ORRERY_ASSIGN_OR_RETURN(Projections p, HeadsOf(c, parts, heads, kv_heads));
  ORRERY_RETURN_IF_ERROR(CheckGrouped(c, c.type(p.q).dims[2]));
  if (c.Int("do_rotary", 0) != 0) {
    const RotaryTables tables = {.cos = 7, .sin = 8, .positions = 9};
    const bool interleaved = c.Int("rotary_interleaved", 0) != 0;
    for (ValueId* const value : {&p.q, &p.k}) {
      ORRERY_ASSIGN_OR_RETURN(*value, Rotate(c, *value, tables, interleaved));
    }
  }
  c.SetOutput(1, p.k);
  c.SetOutput(2, p.v);
  ORRERY_ASSIGN_OR_RETURN(p.k, Repeat(c, p.k, heads / kv_heads));
  ORRERY_ASSIGN_OR_RETURN(p.v, Repeat(c, p.v, heads / kv_heads));
  const ValueId bias = c.has_input(10) ? c.input(10) : ValueId();
  return Attend(c, p, {.added = bias, .causal = true});
}

}  // namespace
}  // namespace microsoft_attention_cc

extern const OnnxOp kMicrosoftAttentionOnnxOp = {.type = "Attention",
                                                 .domain = kMicrosoft,
                                                 .inputs = 2,
                                                 .weights = 0b110,
                                                 .lower = microsoft_attention_cc::LowerAttention};

extern const OnnxOp kMicrosoftMultiHeadAttentionOnnxOp = {
    .type = "MultiHeadAttention",
    .domain = kMicrosoft,
    .weights = 0b1000,
    .lower = microsoft_attention_cc::LowerMultiHeadAttention};

extern const OnnxOp kMicrosoftGroupQueryAttentionOnnxOp = {
    .type = "GroupQueryAttention",
    .domain = kMicrosoft,
    .lower = microsoft_attention_cc::LowerGroupQueryAttention};

}  // namespace orrery::importer
