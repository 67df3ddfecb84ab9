#include "ir/rebuild.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::ir {
namespace {

class Rebuilder {
 public:
  Rebuilder(const Function& from, const Rebuild& change)
      : from_(from), change_(change), to_(from.name(), from.mesh()), values_(from.value_limit()) {
    to_.Reserve(static_cast<int32_t>(from.order().size()), from.value_limit());
  }

  absl::StatusOr<Function> Run() && {
    for (const Input& input : from_.inputs()) {
      const TensorType& type = from_.type(input.value);
      values_[input.value] =
          to_.AddInput(from_.value_name(input.value),
                       change_.input ? change_.input(input, type) : type, input.role);
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
  absl::Status Copy(OpId op) {
    operands_.clear();
    for (const ValueId operand : from_.operands(op)) {
      ORRERY_CHECK(values_[operand].valid())
          << op << " uses " << operand << " before it is defined";
      operands_.push_back(values_[operand]);
    }
    const AttributesId attributes = CopyAttributes(op);
    if (absl::Status status = Infer(op); !status.ok()) {
      return Annotate(status, Where(op));
    }
    names_.clear();
    for (int32_t i = 0; i < from_.result_count(op); ++i) {
      names_.push_back(from_.value_name(from_.result(op, i)));
    }
    const OpId copy = to_.AddOp(from_.kind(op), operands_, attributes, results_, names_);
    for (int32_t i = 0; i < from_.result_count(op); ++i) {
      values_[from_.result(op, i)] = to_.result(copy, i);
    }
    return absl::OkStatus();
  }

  // Leaves the types of the results in results_.
  absl::Status Infer(OpId op) {
    if (from_.info(op).infer == nullptr) {
      results_.clear();
      for (int32_t i = 0; i < from_.result_count(op); ++i) {
        const TensorType& type = from_.type(from_.result(op, i));
        results_.push_back(change_.uninferred ? change_.uninferred(from_.kind(op), type) : type);
      }
      return absl::OkStatus();
    }
    types_.clear();
    for (const ValueId operand : operands_) types_.push_back(&to_.type(operand));
    const AttributeSet& set = changed_.has_value() ? *changed_ : from_.attributes(op);
    return InferTypes(from_.kind(op), {.attributes = set, .operands = types_, .mesh = to_.mesh()},
                      results_);
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
  IdTable<ValueId, ValueId> values_;  // of the copy, by the old value
  std::vector<AttributesId> kept_;    // of the copy, by the old id
  std::optional<AttributeSet> changed_;
  // Reused from op to op.
  std::vector<ValueId> operands_;
  std::vector<const TensorType*> types_;
  std::vector<absl::string_view> names_;
  TypeList results_;
};

}  // namespace

absl::StatusOr<Function> RebuildWithInputs(const Function& function, const Rebuild& change) {
  return Rebuilder(function, change).Run();
}

}  // namespace orrery::ir
