#include "ir/rebuild.h"

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "ir/last_of_kind.h"
#include "ir/op_info.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::ir {
namespace rebuild_cc {
namespace {

class Rebuilder {
 public:
  Rebuilder(const Function& from, const Rebuild& change)
      : from_(from),
        change_(change),
        to_(from.name(), from.mesh()),
        values_(from.value_limit()),
        kept_types_(from.types().size()) {
    to_.Reserve(static_cast<int32_t>(from.order().size()), from.value_limit());
    to_.KeepNamesOf(from);
  }

  absl::StatusOr<Function> Run() && {
    for (const Input& input : from_.inputs()) {
      const TensorType& type = from_.type(input.value);
      const TypeId here =
          change_.input ? TypeOf(input.value, change_.input(input, type)) : Kept(input.value);
      values_[input.value] = to_.AddInputOfType("", here, input.role);
      CopyName(input.value);
    }
    for (const OpId op : from_.order()) ORRERY_RETURN_IF_ERROR(Copy(op));
    for (const Output& output : from_.outputs()) {
      to_.AddOutput({.value = values_[output.value],
                     .role = output.role,
                     .of = output.of.valid() ? values_[output.of] : ValueId()});
    }
    return std::move(to_);
  }

 private:
  using TypeIds = absl::InlinedVector<TypeId, 2>;

  absl::Status Copy(OpId op) {
    operands_.clear();
    for (const ValueId operand : from_.operands(op)) {
      ORRERY_CHECK(values_[operand].valid())
          << op << " uses " << operand << " before it is defined";
      operands_.push_back(values_[operand]);
    }
    const AttributesId attributes = CopyAttributes(op);
    const absl::StatusOr<TypeIds> types = Infer(op, attributes);
    if (!types.ok()) return Annotate(types.status(), Where(op));
    const OpId copy = to_.AddOpOfTypes(from_.kind(op), operands_, attributes, *types);
    for (int32_t i = 0; i < from_.result_count(op); ++i) {
      values_[from_.result(op, i)] = to_.result(copy, i);
      CopyName(from_.result(op, i));
    }
    return absl::OkStatus();
  }

  // The type that a value had, in the table of the copy; it is looked up once.
  TypeId Kept(ValueId old) {
    TypeId& kept = kept_types_[from_.type_id(old)];
    if (!kept.valid()) kept = to_.InternType(from_.type(old));
    return kept;
  }

  // The type of what stands for `old`: mostly the one that it had.
  TypeId TypeOf(ValueId old, const TensorType& type) {
    return type == from_.type(old) ? Kept(old) : to_.InternType(type);
  }

  void CopyName(ValueId value) { to_.SetKeptName(values_[value], from_.value_name(value)); }

  // The types of the results, in the table of the copy.
  absl::StatusOr<TypeIds> Infer(OpId op, AttributesId attributes) {
    TypeIds ids;
    if (from_.info(op).infer == nullptr) {
      for (int32_t i = 0; i < from_.result_count(op); ++i) {
        const ValueId old = from_.result(op, i);
        ids.push_back(change_.uninferred ? TypeOf(old, change_.uninferred(op, from_.type(old)))
                                         : Kept(old));
      }
      return ids;
    }
    const TypeIds* const known = inferred_.Find(to_, from_.kind(op), attributes, operands_);
    if (known != nullptr) return *known;
    types_.clear();
    for (const ValueId operand : operands_) types_.push_back(&to_.type(operand));
    const AttributeSet& set = changed_.has_value() ? *changed_ : from_.attributes(op);
    ORRERY_RETURN_IF_ERROR(InferTypes(
        from_.kind(op), {.attributes = set, .operands = types_, .mesh = to_.mesh()}, results_));
    for (size_t i = 0; i < results_.size(); ++i) {
      const auto position = static_cast<int32_t>(i);
      ids.push_back(position < from_.result_count(op)
                        ? TypeOf(from_.result(op, position), results_[i])
                        : to_.InternType(results_[i]));
    }
    return inferred_.Put(to_, from_.kind(op), attributes, operands_, std::move(ids));
  }

  // The attributes in the copy. Sets that stay are looked up by their old id: interning a set
  // compares texts, which would cost more than the rest of the op.
  AttributesId CopyAttributes(OpId op) {
    changed_.reset();
    const AttributesId old = from_.attributes_id(op);
    if (old == AttributesId(0)) return old;
    if (change_.attributes) changed_ = change_.attributes(from_.kind(op), from_.attributes(op));
    if (changed_.has_value()) return to_.InternAttributes(*changed_);
    const auto row = static_cast<size_t>(old.index());
    if (kept_.size() <= row) kept_.resize(row + 1);
    if (!kept_[row].valid()) kept_[row] = to_.InternAttributes(from_.attributes(op));
    return kept_[row];
  }

  std::string Where(OpId op) const {
    std::string where = absl::StrCat(from_.name(), ": ", from_.info(op).name);
    if (from_.result_count(op) == 0) return where;
    const absl::string_view name = from_.value_name(from_.result(op));
    return name.empty() ? where : absl::StrCat(where, " '", name, "'");
  }

  const Function& from_;
  const Rebuild& change_;
  Function to_;
  IdTable<ValueId, ValueId> values_;    // of the copy, by the old value
  std::vector<AttributesId> kept_;      // of the copy, by the old id
  IdTable<TypeId, TypeId> kept_types_;  // likewise
  std::optional<AttributeSet> changed_;
  LastOfKind<TypeIds> inferred_;
  // Reused from op to op.
  std::vector<ValueId> operands_;
  std::vector<const TensorType*> types_;
  TypeList results_;
};

}  // namespace
}  // namespace rebuild_cc

absl::StatusOr<Function> RebuildWithInputs(const Function& function, const Rebuild& change) {
  return rebuild_cc::Rebuilder(function, change).Run();
}

}  // namespace orrery::ir
