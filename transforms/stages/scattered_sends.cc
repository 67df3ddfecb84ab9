#include "transforms/stages/scattered_sends.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace scattered_sends_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

class Scattering {
 public:
  Scattering(const ir::Function& function, ir::AxisIndex axis, StagePlan& plan)
      : function_(function), axis_(axis), plan_(plan) {}

  ir::Function Run() {
    FindReaders();
    const std::vector<OpId> order = function_.order();
    for (const OpId op : order) {
      for (int32_t i = 0; i < function_.result_count(op); ++i) Scatter(function_.result(op, i));
    }
    if (!slices_.empty()) SetOrder(order);
    return std::move(function_);
  }

 private:
  // Of a value, what reads it in another stage than the one that makes it, by stage, in order.
  using Readers = std::map<int32_t, std::vector<std::pair<OpId, size_t>>>;

  bool IsOfMicrobatch(OpId op) const {
    return plan_.phase[op] != StepPhase::kUpdate && plan_.repeated[op] == 0 &&
           !plan_.runs_on.contains(op);
  }

  void FindReaders() {
    for (const OpId op : function_.order()) {
      if (!IsOfMicrobatch(op)) continue;
      const auto operands = function_.operands(op);
      for (size_t i = 0; i < operands.size(); ++i) {
        const OpId maker = function_.producer(operands[i]);
        if (!maker.valid() || !IsOfMicrobatch(maker) || plan_.stage[maker] == plan_.stage[op]) {
          continue;
        }
        readers_[operands[i]][plan_.stage[op]].emplace_back(op, i);
      }
    }
  }

  // The first dimension that divides among the ranks.
  std::optional<size_t> DimOf(const ir::TensorType& type) const {
    if (type.sharding.Uses(axis_) || !type.sharding.partial.empty()) return std::nullopt;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      int64_t parts = function_.mesh().size(axis_);
      const ir::AxisList axes = type.sharding.at(d);
      for (const ir::AxisIndex axis : axes.axes()) parts *= function_.mesh().size(axis);
      if (type.sharding.block(d) == ir::kNestedChunks && type.dims[d] % parts == 0) return d;
    }
    return std::nullopt;
  }

  // Adds an op of one operand and result.
  OpId Add(OpKind kind, ValueId value, size_t dim, ir::TypeId type) {
    const ir::AttributesId attributes =
        function_.InternAttributes({{"axes", function_.mesh().Names(ir::AxisList(axis_))},
                                    {"dim", static_cast<int64_t>(dim)}});
    return function_.AddOpOfTypes(kind, std::span(&value, 1), attributes, std::span(&type, 1));
  }

  void Scatter(ValueId value) {
    const auto found = readers_.find(value);
    if (found == readers_.end()) return;
    const ir::TensorType whole = function_.type(value);
    const std::optional<size_t> dim = DimOf(whole);
    if (!dim.has_value()) return;
    ir::TensorType part = whole;
    ir::AxisList axes = part.sharding.at(*dim);
    axes.push_back(axis_);
    part.sharding.Set(*dim, part.dims.size(), axes);
    const OpId maker = function_.producer(value);
    const OpId slice = Add(OpKind::kAllSlice, value, *dim, function_.InternType(part));
    Place(slice, plan_.phase[maker], plan_.stage[maker]);
    slices_[maker].push_back(slice);
    for (const auto& [stage, ops] : found->second) {
      const OpId gather =
          Add(OpKind::kAllGather, function_.result(slice), *dim, function_.type_id(value));
      Place(gather, plan_.phase[ops.front().first], stage);
      gathers_[ops.front().first].push_back(gather);
      for (const auto& [op, operand] : ops) {
        function_.SetOperand(op, operand, function_.result(gather));
      }
    }
  }

  void Place(OpId op, StepPhase phase, int32_t stage) {
    plan_.phase.resize(op.index() + 1, phase);
    plan_.stage.resize(op.index() + 1, stage);
    plan_.repeated.resize(op.index() + 1, 0);
    plan_.home.resize(function_.value_limit(), -1);
  }

  void SetOrder(const std::vector<OpId>& old) {
    std::vector<OpId> order;
    const auto add = [&](const auto& ops, OpId op) {
      const auto found = ops.find(op);
      if (found != ops.end()) order.insert(order.end(), found->second.begin(), found->second.end());
    };
    for (const OpId op : old) {
      add(gathers_, op);
      order.push_back(op);
      add(slices_, op);
    }
    function_.SetOrder(std::move(order));
  }

  ir::Function function_;
  const ir::AxisIndex axis_;
  StagePlan& plan_;
  std::map<ValueId, Readers> readers_;
  std::map<OpId, std::vector<OpId>> slices_, gathers_;  // behind an op, before an op
};

}  // namespace
}  // namespace scattered_sends_cc

ir::Function ScatterSends(const ir::Function& function, StagePlan& plan) {
  const std::optional<ir::AxisIndex> axis = function.mesh().Find("hp");
  if (!axis.has_value() || function.mesh().size(*axis) == 1) return function;
  return scattered_sends_cc::Scattering(function, *axis, plan).Run();
}

}  // namespace orrery::transforms
