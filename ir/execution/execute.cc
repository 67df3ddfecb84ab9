#include "ir/execution/execute.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/layout.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor_parts.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::ir {
namespace execute_cc {
namespace {

constexpr int64_t kMaxExecutedRanks = 4096;

// Over how many ranks the results are partial sums that the op makes itself.
int64_t PartialOver(const Function& function, OpId op) {
  AxisList before, made;
  for (const ValueId operand : function.operands(op)) {
    for (const AxisIndex axis : function.type(operand).sharding.partial.axes()) {
      if (!before.contains(axis)) before.push_back(axis);
    }
  }
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    for (const AxisIndex axis : function.type(function.result(op, i)).sharding.partial.axes()) {
      if (!before.contains(axis) && !made.contains(axis)) made.push_back(axis);
    }
  }
  return function.mesh().size(made);
}

// After which op each value is needed no more; invalid: it is an input, an output or unused.
IdTable<ValueId, OpId> LastUses(const Function& function) {
  IdTable<ValueId, OpId> last(function.value_limit());
  for (const OpId op : function.order()) {
    for (const ValueId operand : function.operands(op)) last[operand] = op;
    for (int32_t i = 0; i < function.result_count(op); ++i) last[function.result(op, i)] = op;
  }
  for (const Input& input : function.inputs()) last[input.value] = OpId();
  for (const Output& output : function.outputs()) last[output.value] = OpId();
  return last;
}

// Ranks that go from op to op together. So many parameters: made at one place.
class Lockstep {
 public:
  Lockstep(const Function& function, std::span<const int64_t> ranks, const Surroundings& around,
           const ExecuteOptions& options, std::vector<RankValues>& values)
      : function_(function), ranks_(ranks), around_(around), options_(options), values_(values) {}

  absl::Status Run() {
    const IdTable<ValueId, OpId> last = LastUses(function_);
    for (const OpId op : function_.order()) {
      if (absl::Status status = RunOp(op); !status.ok()) return Annotate(status, Where(op));
      for (const ValueId operand : function_.operands(op)) Free(operand, last[operand] == op);
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        Free(function_.result(op, i), last[function_.result(op, i)] == op);
      }
    }
    return absl::OkStatus();
  }

 private:
  const Mesh& mesh() const { return function_.mesh(); }
  Tensor& At(size_t position, ValueId value) { return values_[position][value]; }

  std::string Where(OpId op) const {
    std::string where = absl::StrCat(function_.name(), ": ", function_.info(op).name);
    if (function_.result_count(op) == 0) return where;
    return absl::StrCat(where, " ", PrintValue(function_, function_.result(op)));
  }

  void Free(ValueId value, bool dead) {
    if (!dead) return;
    for (RankValues& values : values_) values[value] = Tensor();
  }

  absl::Status RunOp(OpId op) {
    if (function_.info(op).exchange != nullptr) return Collective(op);
    for (size_t position = 0; position < ranks_.size(); ++position) {
      ORRERY_RETURN_IF_ERROR(RunAlone(op, position));
    }
    return absl::OkStatus();
  }

  absl::Status RunAlone(OpId op, size_t position) {
    const auto operand = [&](size_t i) -> Tensor& {
      return At(position, function_.operands(op)[i]);
    };
    switch (function_.kind(op)) {
      case OpKind::kConstant:
        return MakeConstant(op, position);
      case OpKind::kSend:
        if (!around_.send) return absl::UnimplementedError("there is nobody to send to");
        around_.send(op, position, operand(0));
        return absl::OkStatus();
      case OpKind::kReceive: {
        if (!around_.receive) return absl::UnimplementedError("there is nobody to receive from");
        ORRERY_ASSIGN_OR_RETURN(At(position, function_.result(op)), around_.receive(op, position));
        return absl::OkStatus();
      }
      case OpKind::kAllSlice:
        return TakeOwnPart(op, position, operand(0));
      case OpKind::kExtendRows:
      case OpKind::kExtendRowsGrad: {
        if (!around_.extend) return absl::UnimplementedError("there are no other slices");
        ORRERY_ASSIGN_OR_RETURN(At(position, function_.result(op)),
                                around_.extend(op, position, operand(0)));
        return absl::OkStatus();
      }
      case OpKind::kCollect: {
        Tensor all = operand(0);
        const AttributeSet& set = function_.attributes(op);
        const auto dim = static_cast<size_t>(set.Int("dim", 0));
        const int64_t rows = operand(1).dims()[dim];
        PasteRows(operand(1), dim, set.Int("begin", around_.microbatch * rows), all);
        At(position, function_.result(op)) = std::move(all);
        return absl::OkStatus();
      }
      default:
        return Compute(op, position);
    }
  }

  // Of a value of `type` what a rank holds, which may be less than others do.
  Dims HeldDims(const TensorType& type, size_t position) const {
    return LocalDims(type.sharding, type.dims, mesh(), ranks_[position]);
  }

  absl::Status MakeConstant(OpId op, size_t position) {
    const ValueId result = function_.result(op);
    if (At(position, result).size() > 0) return absl::OkStatus();  // it was supplied
    TensorType whole = function_.type(result);
    whole.sharding = {};
    const std::optional<Tensor> value = ConstantTensor(function_.attributes(op), whole);
    if (!value.has_value()) {
      return absl::FailedPreconditionError("its values were not kept; give them by its name");
    }
    At(position, result) = Scatter(*value, function_.type(result), mesh(), ranks_[position]);
    return absl::OkStatus();
  }

  absl::Status TakeOwnPart(OpId op, size_t position, const Tensor& part) {
    const TensorType& before = function_.type(function_.operands(op)[0]);
    const TensorType& after = function_.type(function_.result(op));
    Tensor own(part.dtype(), HeldDims(after, position));
    CopyHeld(part, {.type = before, .rank = ranks_[position]},
             {.type = after, .rank = ranks_[position]}, mesh(), own);
    At(position, function_.result(op)) = std::move(own);
    return absl::OkStatus();
  }

  absl::Status Compute(OpId op, size_t position) {
    const OpInfo& info = function_.info(op);
    if (info.evaluate == nullptr) return absl::UnimplementedError("cannot be evaluated");
    std::vector<const Tensor*> operands;
    for (const ValueId operand : function_.operands(op)) operands.push_back(&At(position, operand));
    std::vector<Tensor> results;
    std::vector<TensorType> types;
    std::vector<Share> shares;
    const auto share = [&](ValueId value) {
      if (mesh().empty()) return;
      shares.push_back(ShareOf(function_.type(value), mesh(), ranks_[position]));
    };
    for (const ValueId operand : function_.operands(op)) share(operand);
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      types.push_back({.dtype = function_.type(result).dtype,
                       .dims = HeldDims(function_.type(result), position),
                       .sharding = {}});
      results.emplace_back(types.back().dtype, types.back().dims);
      share(result);
    }
    Evaluation evaluation{.attributes = function_.attributes(op),
                          .operands = operands,
                          .results = results,
                          .partial_over = PartialOver(function_, op),
                          .shares = shares};
    ORRERY_RETURN_IF_ERROR(info.evaluate(evaluation));
    ORRERY_CHECK(results.size() == types.size()) << info.name;
    for (size_t i = 0; i < results.size(); ++i) {
      ORRERY_CHECK(results[i].dtype() == types[i].dtype && results[i].dims() == types[i].dims)
          << info.name << " has made a result of another type";
      if (options_.round || !results[i].is_float()) results[i].RoundToDType();
      At(position, function_.result(op, static_cast<int32_t>(i))) = std::move(results[i]);
    }
    return absl::OkStatus();
  }

  // The positions of the ranks in the group of `position`, in the order of their parts.
  std::vector<size_t> GroupOf(size_t position, const AxisList& axes) const {
    std::vector<size_t> group;
    for (size_t other = 0; other < ranks_.size(); ++other) {
      if (RestOf(mesh(), ranks_[other], axes) == RestOf(mesh(), ranks_[position], axes)) {
        group.push_back(other);
      }
    }
    std::sort(group.begin(), group.end(), [&](size_t a, size_t b) {
      return PartOf(mesh(), ranks_[a], axes) < PartOf(mesh(), ranks_[b], axes);
    });
    return group;
  }

  absl::Status Collective(OpId op) {
    AxisList axes;
    ORRERY_RETURN_IF_ERROR(ParseAxes(function_.attributes(op), mesh(), axes));
    const ValueId from = function_.operands(op)[0], to = function_.result(op);
    for (size_t position = 0; position < ranks_.size(); ++position) {
      const std::vector<size_t> group = GroupOf(position, axes);
      ORRERY_CHECK(static_cast<int64_t>(group.size()) == mesh().size(axes))
          << "a group is incomplete";
      std::vector<int64_t> ranks;
      std::vector<const Tensor*> parts;
      for (const size_t member : group) {
        ranks.push_back(ranks_[member]);
        parts.push_back(&At(member, from));
      }
      Tensor result =
          function_.info(op).exchange({.attributes = function_.attributes(op),
                                       .mesh = mesh(),
                                       .operand = function_.type(from),
                                       .result = function_.type(to),
                                       .ranks = ranks,
                                       .parts = parts,
                                       .position = PartOf(mesh(), ranks_[position], axes)});
      ORRERY_CHECK(result.dims() == HeldDims(function_.type(to), position)) << Where(op);
      if (options_.round || !result.is_float()) result.RoundToDType();
      At(position, to) = std::move(result);
    }
    return absl::OkStatus();
  }

  const Function& function_;
  const std::span<const int64_t> ranks_;
  const Surroundings& around_;
  const ExecuteOptions& options_;
  std::vector<RankValues>& values_;
};

// Hands each rank its part of an input.
absl::Status SetInput(const Function& function, ValueId value, const Tensor& whole,
                      const ExecuteOptions& options, std::vector<RankValues>& values) {
  const TensorType& type = function.type(value);
  if (whole.dtype() != type.dtype || whole.dims() != type.dims) {
    return absl::InvalidArgumentError(
        absl::StrCat(function.name(), ": the value given for ", PrintValue(function, value), " is ",
                     ToString(whole.type(), Mesh()), "; wanted ", ToString(type, function.mesh())));
  }
  for (size_t rank = 0; rank < values.size(); ++rank) {
    Tensor& part = values[rank][value];
    part = Scatter(whole, type, function.mesh(), static_cast<int64_t>(rank));
    if (options.round) part.RoundToDType();
  }
  return absl::OkStatus();
}

absl::Status SetInputs(const Function& function, const NamedTensors& inputs,
                       const ExecuteOptions& options, std::vector<RankValues>& values) {
  for (const Input& input : function.inputs()) {
    const auto found = inputs.find(ExecutionName(function, input.value));
    if (found == inputs.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          function.name(), ": input ", PrintValue(function, input.value), " is not given"));
    }
    ORRERY_RETURN_IF_ERROR(SetInput(function, input.value, found->second, options, values));
  }
  for (const OpId op : function.order()) {
    if (function.kind(op) != OpKind::kConstant) continue;
    const auto found = inputs.find(ExecutionName(function, function.result(op)));
    if (found == inputs.end()) continue;
    ORRERY_RETURN_IF_ERROR(SetInput(function, function.result(op), found->second, options, values));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace execute_cc

std::string ExecutionName(const Function& function, ValueId value) {
  const absl::string_view name = function.value_name(value);
  return name.empty() ? PrintValue(function, value).substr(1) : std::string(name);
}

absl::Status ExecuteRanks(const Function& function, std::span<const int64_t> ranks,
                          const Surroundings& around, const ExecuteOptions& options,
                          std::vector<RankValues>& values) {
  return execute_cc::Lockstep(function, ranks, around, options, values).Run();
}

absl::StatusOr<Execution> Execute(const Function& function, const NamedTensors& inputs,
                                  const ExecuteOptions& options) {
  const Mesh& mesh = function.mesh();
  if (!mesh.empty() && mesh.size() > execute_cc::kMaxExecutedRanks) {
    return absl::InvalidArgumentError(absl::StrCat(function.name(), ": got ", mesh.size(),
                                                   " ranks; wanted at most ",
                                                   execute_cc::kMaxExecutedRanks));
  }
  const std::vector<int64_t> ranks = AllRanks(mesh);
  std::vector<RankValues> values(ranks.size(), RankValues(function.value_limit()));
  ORRERY_RETURN_IF_ERROR(execute_cc::SetInputs(function, inputs, options, values));
  ORRERY_RETURN_IF_ERROR(ExecuteRanks(function, ranks, {}, options, values));
  Execution execution;
  for (const Output& output : function.outputs()) {
    std::vector<Tensor> parts;
    for (RankValues& of_rank : values) parts.push_back(of_rank[output.value]);
    execution.outputs.push_back(
        Gather(parts, function.type(output.value), mesh, ranks, execution.disagreement));
  }
  return execution;
}

}  // namespace orrery::ir
