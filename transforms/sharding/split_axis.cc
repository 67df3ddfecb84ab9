#include "transforms/sharding/split_axis.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/check.h"

namespace orrery::transforms {
namespace split_axis_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Function;
using ir::OpId;
using ir::TensorType;
using ir::ValueId;

// The attributes that name axes: of collectives, of permutations, of ops that make a split.
constexpr absl::string_view kAxisAttributes[] = {"axes", "to", "split"};

class Splitter {
 public:
  Splitter(const Function& from, const AxisSplit& split)
      : from_(from),
        split_(split),
        axis_(AxisOf(from.mesh(), split.axis)),
        to_(from.name(), MeshOf(from.mesh())),
        types_(from.types().size()),
        values_(from.value_limit()) {
    to_.KeepNamesOf(from);
    to_.Reserve(from.op_limit(), from.value_limit());
  }

  Function Run() && {
    for (const ir::Input& input : from_.inputs()) {
      values_[input.value] = to_.AddInputOfType("", TypeIn(input.value), input.role);
      to_.SetKeptName(values_[input.value], from_.value_name(input.value));
    }
    for (const OpId op : from_.order()) Copy(op);
    for (const ir::Output& output : from_.outputs()) {
      to_.AddOutput({.value = values_[output.value],
                     .role = output.role,
                     .of = output.of.valid() ? values_[output.of] : ValueId()});
    }
    return std::move(to_);
  }

 private:
  static AxisIndex AxisOf(const ir::Mesh& mesh, absl::string_view name) {
    const auto axis = mesh.Find(name);
    ORRERY_CHECK(axis.has_value()) << ir::ToString(mesh) << " has no axis " << std::string(name);
    return *axis;
  }

  ir::Mesh MeshOf(const ir::Mesh& mesh) const {
    std::vector<ir::Axis> axes = mesh.axes();
    ORRERY_CHECK(axes[axis_].size % split_.size == 0)
        << ir::ToString(mesh) << " by " << split_.size;
    axes[axis_].size /= split_.size;
    axes.insert(axes.begin() + axis_ + 1, {.name = std::string(split_.inner), .size = split_.size});
    return ir::Mesh(std::move(axes));
  }

  AxisList Map(const AxisList& axes) const {
    AxisList mapped;
    for (const AxisIndex axis : axes.axes()) {
      mapped.push_back(static_cast<AxisIndex>(axis > axis_ ? axis + 1 : axis));
      if (axis == axis_) mapped.push_back(static_cast<AxisIndex>(axis_ + 1));
    }
    return mapped;
  }

  ir::TypeId TypeIn(ValueId value) {
    ir::TypeId& known = types_[from_.type_id(value)];
    if (known.valid()) return known;
    TensorType type = from_.type(value);
    for (AxisList& axes : type.sharding.split) axes = Map(axes);
    type.sharding.partial = Map(type.sharding.partial);
    type.sharding.reductions = {};  // sums, as all of a function are
    return known = to_.InternType(type);
  }

  ir::AttributeSet Map(const ir::AttributeSet& attributes) const {
    ir::AttributeSet mapped = attributes;
    for (const absl::string_view name : kAxisAttributes) {
      const ir::Attribute* const attribute = attributes.Find(name);
      if (attribute == nullptr || !std::holds_alternative<std::string>(*attribute)) continue;
      // Lists of names with dots between, and lists of those with semicolons.
      std::vector<std::string> lists;
      for (const absl::string_view list : absl::StrSplit(std::get<std::string>(*attribute), ';')) {
        std::vector<std::string> names;
        for (const absl::string_view axis : absl::StrSplit(list, '.')) {
          names.emplace_back(axis);
          if (axis == split_.axis) names.emplace_back(split_.inner);
        }
        lists.push_back(absl::StrJoin(names, "."));
      }
      mapped.Set(name, absl::StrJoin(lists, ";"));
    }
    return mapped;
  }

  void Copy(OpId op) {
    std::vector<ValueId> operands;
    std::vector<ir::TypeId> types;
    for (const ValueId operand : from_.operands(op)) operands.push_back(values_[operand]);
    for (int32_t i = 0; i < from_.result_count(op); ++i)
      types.push_back(TypeIn(from_.result(op, i)));
    const OpId copy = to_.AddOpOfTypes(from_.kind(op), operands,
                                       to_.InternAttributes(Map(from_.attributes(op))), types);
    for (int32_t i = 0; i < from_.result_count(op); ++i) {
      values_[from_.result(op, i)] = to_.result(copy, i);
      to_.SetKeptName(to_.result(copy, i), from_.value_name(from_.result(op, i)));
    }
  }

  const Function& from_;
  const AxisSplit split_;
  const AxisIndex axis_;
  Function to_;
  IdTable<ir::TypeId, ir::TypeId> types_;  // of the copy, by the old type
  IdTable<ValueId, ValueId> values_;       // likewise
};

}  // namespace
}  // namespace split_axis_cc

ir::Function SplitAxis(const ir::Function& function, const AxisSplit& split) {
  return split_axis_cc::Splitter(function, split).Run();
}

double SplitAxisPrices::StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                                    Bytes size) const {
  const auto outer = static_cast<ir::AxisIndex>(inner_ - 1);
  ORRERY_CHECK(axes.contains(inner_) == axes.contains(outer)) << "along a part of an axis";
  ir::AxisList before;
  for (const ir::AxisIndex axis : axes.axes()) {
    if (axis != inner_)
      before.push_back(axis < inner_ ? axis : static_cast<ir::AxisIndex>(axis - 1));
  }
  return before_.StepSeconds(kind, before, size);
}

}  // namespace orrery::transforms
