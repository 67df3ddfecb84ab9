#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/builder.h"
#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/pass/pass.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace backward_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OutputRole;
using ir::ValueId;

// Whether the gradient of `op` asks where its operand has the batch: that of a reduction over it,
// that of a Reshape that has the batch in a dimension with others, and that of the likelihood of a
// label among the samples.
bool AsksForBatch(const Function& function, OpId op, int64_t batch) {
  const ir::AttributeSet& set = function.attributes(op);
  const ir::Dims& dims = function.type(function.operands(op)[0]).dims;
  if (function.kind(op) == ir::OpKind::kReshape) {
    const std::vector<int64_t> shape = set.Ints("shape");
    const ir::Dims& to = function.type(function.result(op)).dims;
    return std::ranges::find(shape, -1) != shape.end() &&
           (dims.empty() || to.empty() || shape[0] != -1 || dims[0] != batch || to[0] != batch);
  }
  if (function.kind(op) == ir::OpKind::kNegativeLikelihood) return dims[1] == batch;
  if (function.kind(op) != ir::OpKind::kReduceSum && function.kind(op) != ir::OpKind::kReduceMean)
    return false;
  return std::ranges::any_of(
      set.Ints("axes"), [&](int64_t axis) { return dims[static_cast<size_t>(axis)] % batch == 0; });
}

// Types are inferred once more only where somebody asks.
ir::GradientContext::BatchPlaces FindBatch(const Function& function) {
  const int64_t batch = ir::BatchOf(function);
  for (const OpId op : function.order()) {
    if (batch > 0 && !function.operands(op).empty() && AsksForBatch(function, op, batch))
      return {ir::BatchDims(function), ir::LastBatchDims(function)};
  }
  const IdTable<ValueId, int8_t> none(function.value_limit(), -1);
  return {none, none};
}

// Reverse-mode differentiation of one function; the gradients of a value are summed as they come.
class Backward {
 public:
  explicit Backward(Function function)
      : builder_(std::move(function)),
        needed_(this->function().value_limit(), 0),
        batch_(FindBatch(this->function())),
        gradients_(this->function().value_limit()) {}

  absl::StatusOr<Function> Run() {
    MarkNeeded();
    const std::vector<OpId> forward = function().order();
    for (auto op = forward.rbegin(); op != forward.rend(); ++op) {
      absl::Status status = Differentiate(*op);
      if (!status.ok()) return Annotate(status, absl::StrCat(function().name(), ": ", Name(*op)));
    }
    for (const ValueId parameter : found_)
      builder_.ReturnGradient(gradients_[parameter], parameter);
    return std::move(builder_).Finalize();
  }

 private:
  const Function& function() const { return builder_.function(); }
  std::string Name(OpId op) const {
    return absl::StrCat(function().info(op).name, " ",
                        ir::PrintValue(function(), function().result(op)));
  }

  // A value needs a gradient when it is a trained parameter or is made from one, and the loss
  // is made from it.
  void MarkNeeded() {
    for (const ir::Input& input : function().inputs()) {
      const bool trained = input.role == ir::InputRole::kParameter &&
                           ir::IsFloat(function().type(input.value).dtype);
      needed_[input.value] = trained ? 1 : 0;
    }
    for (const OpId op : function().order()) {
      if (!PassesGradients(op)) continue;
      for (int32_t i = 0; i < function().result_count(op); ++i) {
        const ValueId result = function().result(op, i);
        needed_[result] = ir::IsFloat(function().type(result).dtype) ? 1 : 0;
      }
    }
    for (const ir::Output& output : function().outputs()) {
      if (output.role == OutputRole::kLoss) losses_.push_back(output.value);
    }
  }

  // Whether a gradient would flow from the results of the op into a value that needs one.
  bool PassesGradients(OpId op) const {
    const auto operands = function().operands(op);
    const uint32_t never = function().info(op).no_gradient;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (needed_[operands[i]] != 0 && (i >= 32 || (never >> i & 1) == 0)) return true;
    }
    return false;
  }

  bool IsLoss(OpId op) const {
    for (const ValueId loss : losses_) {
      if (function().producer(loss) == op) return true;
    }
    return false;
  }

  absl::Status Differentiate(OpId op) {
    std::vector<ValueId> of_results;
    bool reached = IsLoss(op);
    bool needed = false;
    for (int32_t i = 0; i < function().result_count(op); ++i) {
      const ValueId result = function().result(op, i);
      of_results.push_back(gradients_[result]);
      reached = reached || gradients_[result].valid();
      needed = needed || needed_[result] != 0;
    }
    if (!reached || !needed) return absl::OkStatus();
    if (IsLoss(op) && !function().info(op).is_loss) {
      return absl::UnimplementedError(
          "makes the loss that is returned; wanted a loss op, such as Loss");
    }
    if (function().info(op).gradient == nullptr) {
      return absl::UnimplementedError("has no gradient rule, and a parameter depends on it");
    }
    const std::vector<ValueId> operands(function().operands(op).begin(),
                                        function().operands(op).end());
    ir::GradientContext context(builder_, op, of_results, needed_, &batch_);
    ORRERY_RETURN_IF_ERROR(function().info(op).gradient(context));
    for (size_t i = 0; i < operands.size(); ++i) {
      ORRERY_RETURN_IF_ERROR(Contribute(operands[i], context.operand_gradients()[i]));
    }
    return absl::OkStatus();
  }

  absl::Status Contribute(ValueId value, ValueId gradient) {
    if (!gradient.valid() || needed_[value] == 0) return absl::OkStatus();
    ValueId& sum = gradients_[value];
    if (!sum.valid() && !function().producer(value).valid()) found_.push_back(value);
    sum = sum.valid() ? builder_.Add(sum, gradient) : gradient;
    return builder_.status();
  }

  ir::Builder builder_;
  IdTable<ValueId, char> needed_;  // of the values that there were before
  ir::GradientContext::BatchPlaces batch_;
  IdTable<ValueId, ValueId> gradients_;
  std::vector<ValueId> losses_;
  std::vector<ValueId> found_;  // parameters, in the order in which their gradients were found
};

bool Has(const Function& function, OutputRole role) {
  for (const ir::Output& output : function.outputs()) {
    if (output.role == role) return true;
  }
  return false;
}

}  // namespace
}  // namespace backward_cc

absl::StatusOr<bool> BuildBackward(ir::Function& function) {
  if (backward_cc::Has(function, ir::OutputRole::kGradient) ||
      backward_cc::Has(function, ir::OutputRole::kUpdated))
    return false;
  if (!backward_cc::Has(function, ir::OutputRole::kLoss)) {
    return absl::InvalidArgumentError(
        absl::StrCat(function.name(), ": has no loss to differentiate; try attach-loss first"));
  }
  ORRERY_ASSIGN_OR_RETURN(function, backward_cc::Backward(function).Run());
  ir::RemoveDeadOps(function);  // what a rule appended and nobody wants
  return true;
}

extern const PassInfo kBuildBackwardPass = {
    .name = "build-backward",
    .summary = "appends the gradients of the loss with respect to all parameters",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) { return BuildBackward(function); },
    .idempotent = true,
};

}  // namespace orrery::transforms
