#include "transforms/training/pad_dimensions.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/rebuild.h"
#include "support/status.h"
#include "transforms/pass/pass.h"
#include "transforms/training/dimension_classes.h"

namespace orrery::transforms {
namespace pad_dimensions_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Of how many units the class is when `multiple` divides what is counted.
int64_t UnitsOf(const DimensionClass& of, int64_t multiple) {
  const int64_t step = multiple / std::gcd(multiple, of.count / of.unit);
  return (of.unit + step - 1) / step * step;
}

// No more than twice as many as there are. Heads are as wide as they are. Whether shares are worth
// it is asked of what ranks share out, so that asking again changes nothing.
int64_t PaddedUnits(const DimensionClass& of, const Padding& padding) {
  if (of.fixed || !of.of_weight || of.unit == 0 || padding.ranks > 2 * of.count) return of.unit;
  const int64_t even = UnitsOf(of, padding.ranks);
  if (even > 2 * of.unit) return of.unit;
  const bool heads = of.kind == DimensionKind::kHeads;
  if (heads || padding.share > 2 * even / padding.ranks) return even;
  const int64_t shared = UnitsOf(of, padding.ranks * padding.share);
  return shared < 2 * even ? shared : even;
}

class Padder {
 public:
  Padder(const Function& function, const Padding& padding)
      : function_(function), classes_(function) {
    for (const DimensionClass& each : classes_.all()) {
      units_.push_back(PaddedUnits(each, padding));
    }
  }

  absl::StatusOr<PaddedFunction> Run() {
    while (any() && KeepsWhatMisfits()) {
    }
    PaddedFunction made{.function = function_, .padded = List()};
    if (made.padded.empty()) return made;
    for (const OpId op : function_.order()) {
      const std::optional<ir::AttributeSet> changed = AttributesOf(op);
      if (!changed.has_value()) continue;
      made.function.SetAttributes(op, made.function.InternAttributes(*changed));
    }
    const auto input = [&](const ir::Input& each, const ir::TensorType&) {
      return TypeOf(each.value);
    };
    ORRERY_ASSIGN_OR_RETURN(made.function, ir::RebuildWithInputs(made.function, {.input = input}));
    return made;
  }

 private:
  bool Grows(size_t c) const { return units_[c] != classes_.all()[c].unit; }
  bool any() const {
    for (size_t c = 0; c < units_.size(); ++c) {
      if (Grows(c)) return true;
    }
    return false;
  }

  int64_t SizeOf(ValueId value, size_t dim) const {
    const int64_t size = function_.type(value).dims[dim];
    const int32_t of = classes_.Of(value, dim);
    if (of == DimensionClasses::kNone) return size;
    const auto c = static_cast<size_t>(of);
    return Grows(c) ? size / classes_.all()[c].unit * units_[c] : size;
  }
  ir::TensorType TypeOf(ValueId value) const {
    ir::TensorType type = function_.type(value);
    for (size_t d = 0; d < type.dims.size(); ++d) type.dims[d] = SizeOf(value, d);
    return type;
  }
  bool Grows(ValueId value) const {
    for (size_t d = 0; d < function_.type(value).dims.size(); ++d) {
      if (SizeOf(value, d) != function_.type(value).dims[d]) return true;
    }
    return false;
  }

  // Values of an op.
  template <typename Visit>
  void ForEachValue(OpId op, const Visit& visit) const {
    for (const ValueId operand : function_.operands(op)) visit(operand);
    for (int32_t j = 0; j < function_.result_count(op); ++j) visit(function_.result(op, j));
  }
  bool Touches(OpId op) const {
    bool touches = false;
    ForEachValue(op, [&](ValueId value) { touches = touches || Grows(value); });
    return touches;
  }

  // Whether there was an op that does not take what it would get, or makes something else of it:
  // then all that it has of classes stays as it is.
  bool KeepsWhatMisfits() {
    bool found = false;
    for (const OpId op : function_.order()) {
      if (!Touches(op) || Fits(op)) continue;
      found = true;
      ForEachValue(op, [&](ValueId value) {
        for (size_t d = 0; d < function_.type(value).dims.size(); ++d) {
          const int32_t of = classes_.Of(value, d);
          if (of == DimensionClasses::kNone) continue;
          units_[static_cast<size_t>(of)] = classes_.all()[static_cast<size_t>(of)].unit;
        }
      });
    }
    return found;
  }

  bool Fits(OpId op) const {
    const ir::OpInfo& info = function_.info(op);
    if (info.infer == nullptr) return false;
    std::vector<ir::TensorType> types;
    std::vector<const ir::TensorType*> operands;
    for (const ValueId operand : function_.operands(op)) types.push_back(TypeOf(operand));
    for (const ir::TensorType& type : types) operands.push_back(&type);
    const ir::AttributeSet attributes = AttributesOf(op).value_or(function_.attributes(op));
    ir::TypeList results;
    const absl::Status status = ir::InferTypes(
        function_.kind(op),
        {.attributes = attributes, .operands = operands, .mesh = function_.mesh()}, results);
    if (!status.ok()) return false;
    for (int32_t j = 0; j < function_.result_count(op); ++j) {
      if (results[static_cast<size_t>(j)] != TypeOf(function_.result(op, j))) return false;
    }
    return true;
  }

  // The sizes in attributes; nothing where none is another one.
  std::optional<ir::AttributeSet> AttributesOf(OpId op) const {
    if (!Touches(op)) return std::nullopt;
    const OpKind kind = function_.kind(op);
    const ir::AttributeSet& old = function_.attributes(op);
    ir::AttributeSet changed = old;
    if (kind == OpKind::kAttention || kind == OpKind::kAttentionGrad) {
      SetHeads(op, "heads", 0, changed);
      SetHeads(op, "kv_heads", 1, changed);
    } else if (kind == OpKind::kReshape || kind == OpKind::kExpand) {
      changed.Set("shape", ShapeOf(op));
    } else if (kind == OpKind::kSplit) {
      changed.Set("sizes", PartsOf(op));
    } else if (kind == OpKind::kGatherGrad || kind == OpKind::kGatherElementsGrad) {
      if (old.Find("size") == nullptr) return std::nullopt;
      changed.Set("size", SizeOf(function_.result(op), static_cast<size_t>(old.Int("axis", 0))));
    }
    if (changed == old) return std::nullopt;
    return changed;
  }

  // In proportion to the dimension of q or k that has them.
  void SetHeads(OpId op, absl::string_view name, size_t operand, ir::AttributeSet& changed) const {
    if (changed.Find(name) == nullptr) return;
    const ValueId value = function_.operands(op)[operand];
    const size_t dim = function_.type(value).dims.size() == 3 ? 2 : 1;
    const int64_t heads = changed.Int(name, 1), size = function_.type(value).dims[dim];
    changed.Set(name, heads * SizeOf(value, dim) / size);
  }

  std::vector<int64_t> ShapeOf(OpId op) const {
    std::vector<int64_t> shape = function_.attributes(op).Ints("shape");
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] > 0) shape[d] = SizeOf(function_.result(op), d);
    }
    return shape;
  }

  std::vector<int64_t> PartsOf(OpId op) const {
    const auto axis = static_cast<size_t>(function_.attributes(op).Int("axis", 0));
    std::vector<int64_t> sizes;
    for (int32_t j = 0; j < function_.result_count(op); ++j) {
      sizes.push_back(SizeOf(function_.result(op, j), axis));
    }
    return sizes;
  }

  std::vector<PaddedDimension> List() const {
    std::vector<PaddedDimension> list;
    for (size_t c = 0; c < units_.size(); ++c) {
      if (!Grows(c)) continue;
      const DimensionClass& of = classes_.all()[c];
      PaddedDimension padded{
          .name = std::string(NameOf(of)), .from = of.count, .to = of.count / of.unit * units_[c]};
      if (std::ranges::find(list, padded) == list.end()) list.push_back(std::move(padded));
    }
    return list;
  }

  // Rows of a table are a vocabulary where a loss has as many classes.
  absl::string_view NameOf(const DimensionClass& of) const {
    switch (of.kind) {
      case DimensionKind::kHeads:
        return "heads";
      case DimensionKind::kClasses:
        return "vocabulary";
      case DimensionKind::kTable:
        return IsVocabulary(of) ? "vocabulary" : "table";
      case DimensionKind::kChannels:
        return "channels";
      case DimensionKind::kWidth:
        return "width";
    }
    return "";
  }
  bool IsVocabulary(const DimensionClass& table) const {
    return std::ranges::any_of(classes_.all(), [&](const DimensionClass& each) {
      return each.kind == DimensionKind::kClasses && !each.fixed && each.count == table.count;
    });
  }

  const Function& function_;
  const DimensionClasses classes_;
  std::vector<int64_t> units_;  // of each class, as it is padded
};

absl::StatusOr<bool> Run(Function& function, const PassOptions& options) {
  Padding padding;
  ORRERY_ASSIGN_OR_RETURN(padding.ranks, PositiveOption(options, "ranks"));
  ORRERY_ASSIGN_OR_RETURN(padding.share, PositiveOption(options, "share"));
  ORRERY_ASSIGN_OR_RETURN(PaddedFunction made, PadDimensions(function, padding));
  if (made.padded.empty()) return false;
  function = std::move(made.function);
  return true;
}

}  // namespace
}  // namespace pad_dimensions_cc

std::string ToString(std::span<const PaddedDimension> padded) {
  return absl::StrJoin(padded, ", ", [](std::string* text, const PaddedDimension& each) {
    absl::StrAppend(text, each.name, " ", each.from, " -> ", each.to);
  });
}

absl::StatusOr<PaddedFunction> PadDimensions(const ir::Function& function, const Padding& padding) {
  return pad_dimensions_cc::Padder(function, padding).Run();
}

extern const PassInfo kPadDimensionsPass = {
    .name = "pad-dimensions",
    .summary = "heads, vocabularies and widths that `ranks` do not share out evenly are padded",
    .options = "ranks=8,share=1",
    .run = pad_dimensions_cc::Run,
    .idempotent = true,
};

}  // namespace orrery::transforms
