#include "transforms/sharding/facts/gathered.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/type.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace gathered_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

class Finder {
 public:
  Finder(const Function& function, ir::AxisIndex axis)
      : function_(function),
        axis_(axis),
        phases_(FindPhases(function)),
        from_data_(function.value_limit(), 0),
        users_(function.value_limit()) {
    for (const ir::Input& input : function.inputs()) {
      from_data_[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
    }
    for (const OpId op : function.order()) {
      bool any = false;
      for (const ValueId operand : function.operands(op)) {
        any |= from_data_[operand] != 0;
        if (!users_[operand].valid()) users_[operand] = op;
      }
      for (int32_t j = 0; any && j < function.result_count(op); ++j) {
        from_data_[function.result(op, j)] = 1;
      }
    }
  }

  std::vector<GatheredActivation> Run() const {
    std::vector<GatheredActivation> found;
    for (const OpId op : function_.order()) {
      if (!Moves(op) || phases_[op] == StepPhase::kUpdate) continue;
      const ValueId value = function_.operands(op)[0], whole = function_.result(op);
      if (from_data_[value] == 0) continue;
      const OpId reader = ReaderOf(whole);
      found.push_back({.value = ir::PrintValue(function_, value),
                       .reader = NameOf(reader),
                       .why = WhyOf(reader),
                       .bytes = BytesOf(whole)});
    }
    return found;
  }

 private:
  bool Moves(OpId op) const {
    const ir::OpKind kind = function_.kind(op);
    if (kind != ir::OpKind::kAllGather && kind != ir::OpKind::kAllToAll) return false;
    ir::AxisList axes;
    return ir::ParseAxes(function_.attributes(op), function_.mesh(), axes).ok() &&
           axes.contains(axis_);
  }

  Bytes BytesOf(ValueId value) const {
    return ir::SizeOf(ir::LocalType(function_.type(value), function_.mesh()));
  }

  // Over views of it and what moves it further; invalid where it is returned.
  OpId ReaderOf(ValueId value) const {
    OpId op = users_[value];
    while (op.valid()) {
      const ir::OpInfo& info = function_.info(op);
      const bool passes = info.op_class == ir::OpClass::kView || info.strided_view ||
                          info.op_class == ir::OpClass::kCollective ||
                          function_.kind(op) == ir::OpKind::kTranspose;
      if (!passes || !users_[function_.result(op)].valid()) return op;
      op = users_[function_.result(op)];
    }
    return op;
  }

  std::string NameOf(OpId op) const {
    if (!op.valid()) return "the caller";
    return absl::StrCat(function_.info(op).name, " ",
                        ir::PrintValue(function_, function_.result(op)));
  }

  std::string WhyOf(OpId op) const {
    if (!op.valid()) return "which is given the results of all ranks";
    const bool meets = std::ranges::any_of(function_.operands(op),
                                           [&](ValueId operand) { return IsSplit(operand); });
    return meets ? "where samples of a rank meet those of all ranks"
                 : "which each rank computes of the samples of all ranks";
  }

  bool IsSplit(ValueId value) const {
    const ir::TensorType& type = function_.type(value);
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (type.sharding.at(d).contains(axis_)) return true;
    }
    return false;
  }

  const Function& function_;
  const ir::AxisIndex axis_;
  const IdTable<OpId, StepPhase> phases_;
  IdTable<ValueId, char> from_data_;
  IdTable<ValueId, OpId> users_;  // the first of each value
};

}  // namespace
}  // namespace gathered_cc

std::vector<GatheredActivation> ActivationsGathered(const ir::Function& sharded,
                                                    absl::string_view axis) {
  const std::optional<ir::AxisIndex> index = sharded.mesh().Find(axis);
  if (!index.has_value() || sharded.mesh().size(*index) < 2) return {};
  return gathered_cc::Finder(sharded, *index).Run();
}

std::string ToString(const std::vector<GatheredActivation>& gathered) {
  if (gathered.empty()) return "";
  const auto largest = std::ranges::max_element(gathered, {}, &GatheredActivation::bytes);
  Bytes sum;
  for (const GatheredActivation& one : gathered) sum = sum + one.bytes;
  const std::string more = gathered.size() == 1 ? ""
                                                : absl::StrCat("; with ", gathered.size() - 1,
                                                               " more, ", ToString(sum), " in all");
  return absl::StrCat(largest->value, ", ", ToString(largest->bytes), " for ", largest->reader,
                      ", ", largest->why, more);
}

}  // namespace orrery::transforms
