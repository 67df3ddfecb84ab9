#include "transforms/sharding/emit_sharded.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/redistribution/emit.h"
#include "transforms/sharding/ring_attention.h"

namespace orrery::transforms {
namespace emit_sharded_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;
using redistribution::MoveKind;

class Emitter {
 public:
  Emitter(const AxisProblem& problem, const ChosenShardings& chosen, LayoutWays& ways)
      : function_(problem.function),
        axis_(problem.axis),
        chosen_(chosen),
        ways_(ways),
        builder_(function_.name(), problem.mesh),
        versions_(function_.value_limit()),
        named_(function_.value_limit(), kNoLayout) {
    const Function& function = function_;
    builder_.function().Reserve(function.op_limit() + function.op_limit() / 4,
                                function.value_limit() + function.op_limit() / 4);
    for (const ir::Input& input : function.inputs()) Take(input.value);
    for (const OpId op : function.order()) {
      for (int32_t i = 0; i < function.result_count(op); ++i) Take(function.result(op, i));
    }
    for (const ir::Output& output : function.outputs()) {
      if (output.of.valid()) named_[output.value] = chosen.Given(output.of);
    }
  }

  absl::StatusOr<Function> Run() {
    for (const ir::Input& input : function_.inputs()) {
      const AxisLayout layout = chosen_.Left(input.value);
      versions_[input.value].push_back(
          {layout,
           builder_.AddInput(function_.value_name(input.value),
                             InLayout(function_.type(input.value), layout, axis_), input.role)});
    }
    for (const OpId op : function_.order()) {
      if (absl::Status status = EmitOp(op); !status.ok()) return status;
    }
    for (const ir::Output& output : function_.outputs()) {
      const AxisLayout layout = chosen_.Given(output.of.valid() ? output.of : output.value);
      builder_.Return(Version(output.value, layout), output.role,
                      output.of.valid() ? versions_[output.of][0].value : ValueId());
    }
    ORRERY_ASSIGN_OR_RETURN(Function result, std::move(builder_).Finalize());
    ir::RemoveDeadOps(result);
    return result;
  }

 private:
  // A value of the old function in one of its layouts.
  struct LaidOut {
    AxisLayout layout = kWholeLayout;
    ValueId value;
  };

  void Take(ValueId value) {
    named_[value] = chosen_.Given(value);
    const absl::string_view name = function_.value_name(value);
    if (!name.empty()) taken_.insert(std::string(name));
  }

  absl::Status EmitOp(OpId op) {
    std::vector<ValueId> operands;
    const auto old = function_.operands(op);
    for (size_t i = 0; i < old.size(); ++i) {
      operands.push_back(Version(old[i], chosen_.Wanted(op, i)));
      if (!builder_.status().ok()) return builder_.status();
    }
    const std::vector<ValueId> made =
        chosen_.HowOf(op) == OpStrategy::How::kRing ? Ring(op, operands) : Copy(op, operands);
    if (!builder_.status().ok()) return builder_.status();
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId value = function_.result(op, i);
      versions_[value].push_back({chosen_.Left(value), made[static_cast<size_t>(i)]});
      // At once, among the ops that it belongs to.
      if (chosen_.Left(value) != chosen_.Given(value)) Version(value, chosen_.Given(value));
    }
    return builder_.status();
  }

  std::vector<absl::string_view> NamesOf(OpId op) const {
    std::vector<absl::string_view> names;
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      names.push_back(function_.value_name(function_.result(op, i)));
    }
    return names;
  }

  // The op on new operands, and its results; none after an error.
  std::vector<ValueId> Copy(OpId op, const std::vector<ValueId>& operands) {
    const std::vector<absl::string_view> names = NamesOf(op);
    const bool makes = chosen_.HowOf(op) == OpStrategy::How::kMakes;
    ir::AttributeSet split;
    if (makes) split = SplitFurther(function_.attributes(op), builder_.function().mesh(), axis_);
    const ir::AttributeSet& attributes = makes ? split : function_.attributes(op);
    const OpId copy =
        function_.info(op).infer == nullptr
            ? builder_.TypedOp(function_.kind(op), operands, function_.type(function_.result(op)),
                               names[0], attributes)
            : builder_.Ops(function_.kind(op), operands, names, attributes);
    std::vector<ValueId> results;
    for (int32_t i = 0; copy.valid() && i < function_.result_count(op); ++i) {
      results.push_back(builder_.function().result(copy, i));
    }
    return results;
  }

  std::vector<ValueId> Ring(OpId op, const std::vector<ValueId>& operands) {
    const AttentionRing ring = {.attributes = function_.attributes(op),
                                .axes = builder_.function().mesh().axes()[axis_].name};
    const AttentionOperands qkv = {operands[0], operands[1], operands[2]};
    const std::vector<absl::string_view> names = NamesOf(op);
    if (function_.kind(op) == OpKind::kAttention) {
      const AttentionResults results = EmitRing(ring, qkv, names, builder_);
      return {results.y, results.logarithms};
    }
    const AttentionOperands gradients =
        EmitRingGrad(ring, {qkv, {operands[3], operands[4]}, operands[5]}, names, builder_);
    return {gradients.q, gradients.k, gradients.v};
  }

  // `value` in that layout.
  ValueId Version(ValueId value, AxisLayout layout) {
    if (const ValueId there = Existing(value, layout); there.valid()) return there;
    const AxisLayout given = chosen_.Given(value), extra = chosen_.Extra(value);
    if (extra != kNoLayout && extra != layout && !Existing(value, extra).valid() &&
        ways_.Find(value, extra, layout).seconds < ways_.Find(value, given, layout).seconds) {
      Change(value, extra);
    }
    return Change(value, layout);
  }

  ValueId Existing(ValueId value, AxisLayout layout) const {
    for (const LaidOut& version : versions_[value]) {
      if (version.layout == layout) return version.value;
    }
    return ValueId();
  }

  // From the version that is nearest.
  ValueId Change(ValueId value, AxisLayout layout) {
    LaidOut from = versions_[value][0];
    for (const LaidOut& version : versions_[value]) {
      if (ways_.Find(value, version.layout, layout).seconds <
          ways_.Find(value, from.layout, layout).seconds) {
        from = version;
      }
    }
    const LayoutWay& way = ways_.Find(value, from.layout, layout);
    if (way.steps.empty()) {
      builder_.Fail(absl::InternalError(absl::StrCat(
          ir::PrintValue(function_, value), ": no way from layout ", static_cast<int>(from.layout),
          " to ", static_cast<int>(layout), "; wanted one of finite cost")));
      return ValueId();
    }
    for (const LayoutStep& step : way.steps) {
      if (const ValueId there = Existing(value, step.after); there.valid()) {
        from = {step.after, there};
        continue;
      }
      from = {step.after, Step(value, step, from.value)};
      if (!builder_.status().ok()) return ValueId();
      versions_[value].push_back(from);
    }
    return from.value;
  }

  ValueId Step(ValueId value, const LayoutStep& step, ValueId from) {
    if (step.kind == MoveKind::kAllReduce) return AllReduce(value, from);
    return redistribution::EmitStep({.kind = step.kind,
                                     .axes = AxisList(axis_),
                                     .from = step.before,
                                     .to = step.after,
                                     .after = {}},
                                    from, Renamed(value, step), builder_);
  }

  // A sum over other axes and then over this one is one sum over all of them.
  ValueId AllReduce(ValueId value, ValueId from) {
    const std::string name = Renamed(value, {MoveKind::kAllReduce, kPartialLayout, kWholeLayout});
    AxisList axes(axis_);
    Function& function = builder_.function();
    const OpId producer = function.producer(from);
    if (producer.valid() && function.kind(producer) == OpKind::kAllReduce) {
      AxisList others;
      if (ir::ParseAxes(function.attributes(producer), function.mesh(), others).ok()) {
        for (const AxisIndex other : others.axes()) axes.push_back(other);
        from = function.operands(producer)[0];
      }
    }
    return builder_.Op(OpKind::kAllReduce, {from}, name,
                       {{"axes", function.mesh().Names(axes.Sorted())}});
  }

  // The name goes to the version that is returned, or that consumers are given; if those take a
  // partial one, to what first becomes of it.
  std::string Renamed(ValueId value, const LayoutStep& step) {
    const std::string name(function_.value_name(value));
    const AxisLayout named = named_[value];
    const bool takes =
        named == kPartialLayout ? step.before == kPartialLayout : step.after == named;
    const LaidOut& first = versions_[value][0];
    if (name.empty() || !takes || builder_.function().value_name(first.value) != name) return "";
    std::string old = absl::StrCat(name, first.layout == kPartialLayout ? ".partial" : ".left");
    while (!taken_.insert(old).second) old += "'";
    builder_.function().SetName(first.value, old);
    return name;
  }

  const Function& function_;
  const AxisIndex axis_;
  const ChosenShardings& chosen_;
  LayoutWays& ways_;
  ir::Builder builder_;
  IdTable<ValueId, std::vector<LaidOut>> versions_;  // the first as its producer leaves it
  IdTable<ValueId, AxisLayout> named_;               // the layout of the version with its name
  absl::flat_hash_set<std::string> taken_;
};

}  // namespace
}  // namespace emit_sharded_cc

absl::StatusOr<ir::Function> EmitSharded(const AxisProblem& problem, const ChosenShardings& chosen,
                                         LayoutWays& ways) {
  return emit_sharded_cc::Emitter(problem, chosen, ways).Run();
}

}  // namespace orrery::transforms
