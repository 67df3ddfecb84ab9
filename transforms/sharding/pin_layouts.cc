#include <re2/re2.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "ir/model_facts.h"
#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"
#include "transforms/sharding/sharding_choices.h"

namespace orrery::transforms {
namespace pin_layouts_cc {
namespace {

using ir::Function;
using ir::TensorType;
using ir::ValueId;

// The time of a search is at most this, times the length of a name.
constexpr int64_t kPatternBytes = 256 << 10;
constexpr size_t kLongestPattern = 1000;
constexpr size_t kLongestName = 10'000;

class Pinner {
 public:
  Pinner(const Function& function, const ir::Mesh& mesh, ir::AxisIndex axis)
      : function_(function),
        mesh_(mesh),
        axis_(axis),
        pins_(function.value_limit(), kNoLayout),
        parameter_of_(function.value_limit()) {
    for (const ir::OpId op : function.order()) {
      if (function.info(op).op_class != ir::OpClass::kOptimizer) continue;
      const ir::OptimizerOperands operands(function, op);
      const auto belongs = [&](ValueId value, size_t i) {
        parameter_of_[value] = operands.parameters()[operands.ParameterOf(i)];
      };
      for (size_t i = 0; i < operands.all().size(); ++i) belongs(operands.all()[i], i);
      for (int32_t i = 0; i < function.result_count(op); ++i) {
        belongs(function.result(op, i), static_cast<size_t>(i));
      }
    }
  }

  absl::StatusOr<PinnedLayouts> Run(const std::vector<ShardingPin>& pins) {
    for (const ShardingPin& pin : pins) {
      if (pin.axis != mesh_.axes()[axis_].name || pin.dim == ShardingPin::kBatch) continue;
      if (absl::Status status = Keep(pin); !status.ok()) return status;
    }
    for (const ir::Output& output : function_.outputs()) {
      if (!output.of.valid() && pins_[output.value] == kNoLayout) {
        pins_[output.value] = kReducedLayout;
      }
    }
    return std::move(pins_);
  }

 private:
  std::string Where(const ShardingPin& pin) const {
    return absl::StrCat(function_.name(), ": pin '", absl::string_view(pin.pattern).substr(0, 80),
                        "=", mesh_.axes()[axis_].name, "@",
                        pin.dim == ShardingPin::kWhole ? "whole" : absl::StrCat(pin.dim), "': ");
  }

  absl::Status Keep(const ShardingPin& pin) {
    if (pin.pattern.size() > kLongestPattern) {
      return absl::InvalidArgumentError(absl::StrCat(Where(pin), "the pattern has ",
                                                     pin.pattern.size(), " characters; wanted ",
                                                     kLongestPattern, " at most"));
    }
    RE2::Options options;
    options.set_log_errors(false);
    options.set_never_capture(true);
    options.set_max_mem(kPatternBytes);
    const RE2 pattern(pin.pattern, options);
    if (!pattern.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Where(pin), "is no regular expression; wanted one such as 'mlp.up.weight$'"));
    }
    bool any = false;
    for (const ir::Input& input : function_.inputs()) {
      if (absl::Status status = KeepOf(input.value, pin, pattern, any); !status.ok()) return status;
    }
    for (const ir::OpId op : function_.order()) {
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        absl::Status status = KeepOf(function_.result(op, i), pin, pattern, any);
        if (!status.ok()) return status;
      }
    }
    if (any) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(Where(pin), "matches the name of no value"));
  }

  bool Matches(ValueId value, const RE2& pattern) const {
    const absl::string_view name = function_.value_name(value).substr(0, kLongestName);
    return !name.empty() && RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), pattern);
  }

  // Whether an optimizer keeps the value as a mean over that dimension of a parameter that is
  // pinned, too: it follows that.
  bool IsMeanOfPinned(ValueId value, const ShardingPin& pin, const RE2& pattern) const {
    const ValueId parameter = parameter_of_[value];
    return parameter.valid() && pin.dim >= 0 && Matches(parameter, pattern) &&
           !ir::HasDimension(function_.type(parameter).dims, function_.type(value).dims,
                             static_cast<size_t>(pin.dim));
  }

  absl::Status KeepOf(ValueId value, const ShardingPin& pin, const RE2& pattern, bool& any) {
    if (!Matches(value, pattern)) return absl::OkStatus();
    any = true;
    if (pins_[value] != kNoLayout) return absl::OkStatus();
    const TensorType& type = function_.type(value);
    const int rank = static_cast<int>(type.dims.size());
    if (pin.dim < ShardingPin::kWhole || pin.dim >= rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          Where(pin), ir::PrintValue(function_, value), " is ", ir::ToString(type, mesh_),
          "; wanted one of its ", rank, " dimensions, counted from 0, or whole"));
    }
    if (IsMeanOfPinned(value, pin, pattern)) return absl::OkStatus();
    if (pin.dim >= 0 && !CanSplit(type, static_cast<size_t>(pin.dim), axis_, mesh_)) {
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kDivisibility,
           .detail = absl::StrCat(Where(pin), "dimension ", pin.dim, " of ",
                                  ir::PrintValue(function_, value), ", which is ",
                                  ir::ToString(type, mesh_), ", does not divide over ",
                                  mesh_.axes()[axis_].name, "=", mesh_.size(axis_))});
    }
    pins_[value] = static_cast<AxisLayout>(pin.dim);
    return absl::OkStatus();
  }

  const Function& function_;
  const ir::Mesh& mesh_;
  const ir::AxisIndex axis_;
  PinnedLayouts pins_;
  IdTable<ValueId, ValueId> parameter_of_;  // of what an optimizer reads and makes
};

}  // namespace
}  // namespace pin_layouts_cc

absl::StatusOr<PinnedLayouts> PinLayouts(const ir::Function& function, const ir::Mesh& mesh,
                                         ir::AxisIndex axis, const std::vector<ShardingPin>& pins) {
  return pin_layouts_cc::Pinner(function, mesh, axis).Run(pins);
}

absl::Status PinData(const AxisProblem& problem, const std::vector<bool>& batched,
                     PinnedLayouts& pins) {
  const ir::Function& base = problem.function;
  const auto& [name, parts] = problem.mesh.axes()[problem.axis];
  if (name == "hp") return absl::OkStatus();
  const size_t dim = name == "ep" ? 0 : 1;
  const int64_t positions = ir::SequenceLength(base);
  bool any = false;
  for (size_t i = 0; i < base.inputs().size(); ++i) {
    const ir::Input& input = base.inputs()[i];
    const ir::TensorType& type = base.type(input.value);
    if (!batched[i] || type.dims.size() <= dim) continue;
    if (dim == 1 && type.dims[1] != positions) continue;
    any = true;
    if (pins[input.value] != kNoLayout) continue;
    if (!CanSplit(type, dim, problem.axis, problem.mesh)) {
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kDivisibility,
           .detail = absl::StrCat(name, "=", parts, ": dimension ", dim, " of ",
                                  ir::PrintValue(base, input.value), ", which is ",
                                  ir::ToString(type, problem.mesh), ", does not divide")});
    }
    pins[input.value] = static_cast<AxisLayout>(dim);
  }
  if (any) return absl::OkStatus();
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kUnsupported,
       .detail = absl::StrCat(name, "=", parts, ": no data input has a dimension ", dim,
                              " to split; wanted a batch of sequences")});
}

}  // namespace orrery::transforms
