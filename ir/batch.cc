#include "ir/batch.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/rebuild.h"
#include "support/status.h"

namespace orrery::ir {
namespace batch_cc {
namespace {

struct Change {
  int64_t from = 0, to = 0;

  // n times to/from; nothing when that is no whole number of at least 1.
  std::optional<int64_t> Scaled(int64_t n) const {
    const __int128 product = static_cast<__int128>(n) * to;
    const __int128 scaled = product / from;
    if (scaled < 1 || scaled > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(scaled);
  }
};

std::optional<AttributeSet> ScaleLoss(const AttributeSet& attributes, const Change& change) {
  const std::optional<int64_t> scaled = change.Scaled(attributes.Int("batch", 0));
  if (!scaled.has_value()) return std::nullopt;
  AttributeSet changed = attributes;
  changed.Set("batch", *scaled);
  return changed;
}

// The factor of a mean over the batch: the reverse of its number of elements.
AttributeSet ScaleFactor(const AttributeSet& attributes, const Change& change) {
  AttributeSet changed = attributes;
  changed.Set("factor", attributes.Number("factor", 1) * static_cast<double>(change.from) /
                            static_cast<double>(change.to));
  return changed;
}

std::optional<AttributeSet> ScaleExpand(const AttributeSet& attributes, const Change& change) {
  std::vector<int64_t> shape = attributes.Ints("shape");
  const int64_t dim = attributes.Int("batch_dim", -1);
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size())) return std::nullopt;
  const std::optional<int64_t> scaled = change.Scaled(shape[static_cast<size_t>(dim)]);
  if (!scaled.has_value()) return std::nullopt;
  shape[static_cast<size_t>(dim)] = *scaled;
  AttributeSet changed = attributes;
  changed.Set("shape", shape);
  return changed;
}

bool IsRecurrent(OpKind kind) {
  return kind == OpKind::kLstm || kind == OpKind::kGru || kind == OpKind::kRnn;
}

absl::Status Mixes(const Function& function, OpId op, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(function.name(), ": ", function.info(op).name,
                                                 " '", function.value_name(function.result(op)),
                                                 "' cannot have another batch: ", why));
}

// `changed` is `function` op by op, or why it cannot be: then a recurrent op whose time is as long
// as the batch is large is what is wrong, unless its batch is too.
absl::Status CheckSamplesStayApart(const Function& function,
                                   const absl::StatusOr<Function>& changed) {
  const int64_t batch = BatchOf(function);
  for (size_t i = 0; i < function.order().size(); ++i) {
    const OpId op = function.order()[i];
    if (function.operands(op).empty()) continue;
    const Dims& x = function.type(function.operands(op)[0]).dims;
    for (size_t d = 0; d < x.size(); ++d) {
      const absl::string_view why = MixesAlong(function.kind(op), function.attributes(op), d);
      if (why.empty()) continue;
      const bool changes =
          changed.ok() ? changed->type(changed->operands(changed->order()[i])[0]).dims[d] != x[d]
                       : IsRecurrent(function.kind(op)) && x[0] == batch && x[1] != batch;
      if (changes) return Mixes(function, op, why);
    }
  }
  return changed.status();
}

int64_t ProductBefore(const Dims& dims, int8_t dim) {
  int64_t product = 1;
  for (size_t d = 0; d < static_cast<size_t>(dim); ++d) product *= dims[d];
  return product;
}

// What lies outside of the batch in dimension `dim` of the result, from what does in operand 0.
int64_t OutsideInReshape(const Dims& from, int8_t from_dim, int64_t outside, const Dims& to,
                         int8_t dim) {
  const int64_t before = ProductBefore(from, from_dim) * outside, own = ProductBefore(to, dim);
  return own > 0 && before % own == 0 ? before / own : 0;
}

}  // namespace
}  // namespace batch_cc

absl::string_view MixesAlong(OpKind kind, const AttributeSet& attributes, size_t dim) {
  if (batch_cc::IsRecurrent(kind) && dim == 0) {
    return "its steps in time are dimension 0 of the first input, where the batch should be; try "
           "to export the model with batch_first=True";
  }
  if (kind != OpKind::kRoll) return "";
  const std::vector<int64_t> axes = attributes.Ints("axes");
  const bool rolls = std::find(axes.begin(), axes.end(), static_cast<int64_t>(dim)) != axes.end();
  return rolls ? "it moves samples along the batch; wanted samples that know nothing of each other"
               : "";
}

int64_t BatchOf(const Function& function) {
  for (const Input& input : function.inputs()) {
    const TensorType& type = function.type(input.value);
    if (input.role == InputRole::kData && !type.dims.empty()) return type.dims[0];
  }
  return 0;
}

bool HasBatch(const Function& function, const Input& input) {
  const TensorType& type = function.type(input.value);
  return input.role == InputRole::kData && !type.dims.empty() && type.dims[0] == BatchOf(function);
}

absl::StatusOr<Function> ChangeBatch(const Function& function, int64_t batch, LossBatch losses) {
  const batch_cc::Change change = {.from = BatchOf(function), .to = batch};
  if (change.from == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("has no data input with a batch; wanted one to set to ", batch));
  }
  const auto input = [&](const Input& each, TensorType type) {
    if (HasBatch(function, each)) type.dims[0] = batch;
    return type;
  };
  const auto attributes = [&](OpKind kind, const AttributeSet& set) -> std::optional<AttributeSet> {
    const OpInfo& info = GetOpInfo(kind);
    const bool loss = info.is_loss || info.seeds_backward;
    if (loss && losses == LossBatch::kScales) return batch_cc::ScaleLoss(set, change);
    if (kind == OpKind::kScale && set.Int("over_batch", 0) != 0)
      return batch_cc::ScaleFactor(set, change);
    return set.Find("batch_dim") != nullptr ? batch_cc::ScaleExpand(set, change) : std::nullopt;
  };
  absl::StatusOr<Function> changed = RebuildWithInputs(
      function, {.input = input, .uninferred = nullptr, .attributes = attributes});
  ORRERY_RETURN_IF_ERROR(batch_cc::CheckSamplesStayApart(function, changed));
  return changed;
}

namespace batch_cc {
namespace {

// For each value a dimension that grows with the batch: the first or the last of several.
IdTable<ValueId, int8_t> GrowingDims(const Function& function, bool last) {
  IdTable<ValueId, int8_t> found(function.value_limit(), -1);
  const int64_t batch = BatchOf(function);
  if (batch == 0) return found;
  const absl::StatusOr<Function> twice = ChangeBatch(function, 2 * batch, LossBatch::kStays);
  if (!twice.ok()) return found;
  const auto compare = [&](ValueId one, ValueId two) {
    const Dims &before = function.type(one).dims, &after = twice->type(two).dims;
    for (size_t d = 0; d < before.size(); ++d) {
      if (before[d] != after[d] && (last || found[one] < 0)) found[one] = static_cast<int8_t>(d);
    }
  };
  for (size_t i = 0; i < function.inputs().size(); ++i) {
    compare(function.inputs()[i].value, twice->inputs()[i].value);
  }
  for (size_t i = 0; i < function.order().size(); ++i) {
    const OpId one = function.order()[i], two = twice->order()[i];
    for (int32_t j = 0; j < function.result_count(one); ++j) {
      compare(function.result(one, j), twice->result(two, j));
    }
  }
  return found;
}

}  // namespace
}  // namespace batch_cc

IdTable<ValueId, int8_t> BatchDims(const Function& function) {
  return batch_cc::GrowingDims(function, /*last=*/false);
}

IdTable<ValueId, int8_t> LastBatchDims(const Function& function) {
  return batch_cc::GrowingDims(function, /*last=*/true);
}

IdTable<ValueId, int64_t> OutsideOfBatch(const Function& function,
                                         const IdTable<ValueId, int8_t>& dims) {
  IdTable<ValueId, int64_t> outside(function.value_limit(), 0);
  const int64_t batch = BatchOf(function);
  const auto size = [&](ValueId value) {
    return function.type(value).dims[static_cast<size_t>(dims[value])];
  };
  const auto whole = [&](ValueId value) { return dims[value] >= 0 && size(value) == batch; };
  for (const Input& input : function.inputs()) outside[input.value] = whole(input.value) ? 1 : 0;
  for (const OpId op : function.order()) {
    for (int32_t j = 0; j < function.result_count(op); ++j) {
      const ValueId result = function.result(op, j);
      if (whole(result)) outside[result] = 1;
      if (dims[result] < 0 || whole(result)) continue;
      for (const ValueId x : function.operands(op)) {
        if (dims[x] < 0 || outside[x] == 0 || outside[result] != 0) continue;
        if (function.kind(op) == OpKind::kReshape) {
          outside[result] = batch_cc::OutsideInReshape(function.type(x).dims, dims[x], outside[x],
                                                       function.type(result).dims, dims[result]);
        } else if (size(x) == size(result)) {
          outside[result] = outside[x];
        }
      }
    }
  }
  return outside;
}

}  // namespace orrery::ir
