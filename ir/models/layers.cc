#include "ir/models/layers.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"

namespace orrery::ir {

constexpr double kEpsilon = 1e-5;

int64_t Layers::Dim(ValueId value, int d) const {
  if (!value.valid()) return 1;
  const Dims& dims = builder_.function().type(value).dims;
  return dims[d < 0 ? dims.size() - static_cast<size_t>(-d) : static_cast<size_t>(d)];
}

std::vector<ValueId> Layers::Ops(OpKind kind, std::initializer_list<ValueId> operands,
                                 int32_t count, absl::string_view name,
                                 const AttributeSet& attributes) {
  std::vector<ValueId> results(static_cast<size_t>(count));
  const OpId op = builder_.Ops(kind, std::span(operands.begin(), operands.size()), {}, attributes);
  if (!op.valid()) return results;
  for (int32_t i = 0; i < count; ++i) {
    results[static_cast<size_t>(i)] = builder_.function().result(op, i);
  }
  builder_.function().SetName(results[0], name);
  return results;
}

ValueId Layers::Rows(ValueId table, ValueId ids, const std::string& name) {
  return Op(OpKind::kGather, {table, ids}, name, {{"axis", int64_t{0}}});
}

ValueId Layers::ByRows(ValueId x, ValueId table, const std::string& name) {
  return Op(OpKind::kMatMul, {x, table}, name, {{"transpose_w", int64_t{1}}});
}

ValueId Layers::Embedding(ValueId ids, int64_t rows, int64_t width, const std::string& name) {
  return Rows(Parameter(absl::StrCat(name, ".weight"), {rows, width}), ids, name);
}

bool Adapters::Adapt(absl::string_view name) const {
  if (rank == 0 || !absl::StartsWith(name, "h.") || absl::EndsWith(name, ".router")) return false;
  return !qkv_only || absl::EndsWith(name, ".q") || absl::EndsWith(name, ".k") ||
         absl::EndsWith(name, ".v") || absl::EndsWith(name, ".qkv");
}

// The scale of the sum is one of the narrow product, which takes no time of its own.
ValueId Layers::Adapted(ValueId y, ValueId x, const Dims& weights, const std::string& name) {
  if (!adapters_.Adapt(name)) return y;
  const auto product = [&](ValueId value, int64_t columns, absl::string_view which) {
    const std::string of = absl::StrCat(name, ".lora_", which);
    Dims dims = weights;
    dims[dims.size() - 2] = Dim(value, -1);
    dims.back() = columns;
    const ValueId weight = builder_.Parameter(absl::StrCat(of, ".weight"), {dtype_, dims, {}});
    return Op(OpKind::kMatMul, {value, weight}, of);
  };
  SetName(y, absl::StrCat(name, ".base"));
  return Op(OpKind::kAdd, {y, product(product(x, adapters_.rank, "a"), weights.back(), "b")}, name);
}

ValueId Layers::Linear(ValueId x, int64_t width, const Linearity& with, const std::string& name) {
  const Dims dims = {Dim(x, -1), width};
  const ValueId weight = Parameter(absl::StrCat(name, ".weight"), dims);
  if (!with.bias && with.activation.empty()) {
    return Adapted(builder_.MatMul(x, weight, name), x, dims, name);
  }
  AttributeSet attributes;
  if (!with.activation.empty()) attributes.Set("activation", std::string(with.activation));
  if (!with.bias) return Ops(OpKind::kLinear, {x, weight}, 1, name, attributes)[0];
  const ValueId bias = Parameter(absl::StrCat(name, ".bias"), {width});
  return Ops(OpKind::kLinear, {x, weight, bias}, 1, name, attributes)[0];
}

std::vector<ValueId> Layers::LinearGroup(ValueId x, std::initializer_list<Branch> branches,
                                         bool bias, const std::string& prefix) {
  std::vector<ValueId> operands = {x};
  std::vector<std::string> names;
  for (const Branch& branch : branches) names.push_back(absl::StrCat(prefix, branch.name));
  for (size_t i = 0; i < names.size(); ++i) {
    operands.push_back(
        Parameter(absl::StrCat(names[i], ".weight"), {Dim(x, -1), branches.begin()[i].width}));
  }
  for (size_t i = 0; bias && i < names.size(); ++i) {
    operands.push_back(Parameter(absl::StrCat(names[i], ".bias"), {branches.begin()[i].width}));
  }
  const std::vector<absl::string_view> views(names.begin(), names.end());
  const OpId op = builder_.Ops(OpKind::kLinearGroup, operands, views,
                               {{"count", static_cast<int64_t>(names.size())}});
  std::vector<ValueId> results(names.size());
  for (size_t i = 0; op.valid() && i < names.size(); ++i) {
    results[i] = builder_.function().result(op, static_cast<int32_t>(i));
  }
  for (size_t i = 0; op.valid() && i < names.size(); ++i) {
    results[i] = Adapted(results[i], x, {Dim(x, -1), branches.begin()[i].width}, names[i]);
  }
  return results;
}

ValueId Layers::Products(ValueId x, int64_t width, const std::string& name) {
  const Dims dims = {Dim(x, 0), Dim(x, -1), width};
  const ValueId weights = Parameter(absl::StrCat(name, ".weight"), dims);
  return Adapted(Op(OpKind::kMatMul, {x, weights}, name), x, dims, name);
}

ValueId Layers::Attention(const std::vector<ValueId>& qkv, const Heads& heads,
                          const std::string& prefix) {
  AttributeSet attributes = {{"heads", heads.heads},
                             {"scale", 1 / std::sqrt(static_cast<double>(heads.head_dim))}};
  if (heads.kv_heads > 0) attributes.Set("kv_heads", heads.kv_heads);
  if (heads.causal) attributes.Set("causal", int64_t{1});
  if (heads.flash) attributes.Set("flash", int64_t{1});
  if (heads.dropout > 0) attributes.Set("dropout", heads.dropout);
  const ValueId y =
      Ops(OpKind::kAttention, {qkv[0], qkv[1], qkv[2]}, 1, prefix + "core", attributes)[0];
  return Linear(y, heads.width, {.bias = heads.bias}, prefix + "proj");
}

ValueId Layers::Norm(ValueId x, bool root_mean_square, bool bias, const std::string& name) {
  const ValueId weight = Parameter(absl::StrCat(name, ".weight"), {Dim(x, -1)});
  const AttributeSet attributes = {{"axis", int64_t{-1}}, {"epsilon", kEpsilon}};
  if (root_mean_square) return Ops(OpKind::kRmsNorm, {x, weight}, 1, name, attributes)[0];
  if (!bias) return Ops(OpKind::kLayerNorm, {x, weight}, 1, name, attributes)[0];
  const ValueId beta = Parameter(absl::StrCat(name, ".bias"), {Dim(x, -1)});
  return Ops(OpKind::kLayerNorm, {x, weight, beta}, 1, name, attributes)[0];
}

ValueId Layers::Dropout(ValueId x, double ratio, const std::string& name) {
  if (ratio == 0) return x;
  return Ops(OpKind::kDropout, {x}, 1, name, {{"ratio", ratio}})[0];
}

void Layers::ReturnCrossEntropy(ValueId logits, ValueId labels, absl::string_view name) {
  int64_t rows = 1;
  for (size_t d = 0; d < builder_.type(labels).dims.size(); ++d) {
    rows *= builder_.type(labels).dims[d];
  }
  builder_.Return(Op(OpKind::kCrossEntropy, {logits, labels}, name, {{"batch", rows}}),
                  OutputRole::kLoss);
}

absl::StatusOr<Function> Layers::FinishWithCrossEntropy(ValueId logits, ValueId labels) {
  ReturnCrossEntropy(logits, labels, "loss");
  return std::move(builder_).Finalize();
}

}  // namespace orrery::ir
