#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/op_kind.h"
#include "ir/roles.h"
#include "support/status.h"
#include "transforms/pass/pass.h"

// Batch norms of inference go into the convolution before them (Markuš 2018; TensorRT, ONNX
// Runtime and PyTorch's fuse_conv_bn do it when they load a model): with s = gain / sqrt(variance +
// epsilon), weights times s and the bias (b - mean) s + beta compute the same. So the function is
// the same with other weights, whose names stay: the bias goes by that of the norm, and gain, mean,
// variance and the convolution's own bias are gone. Left are norms that add a branch, which
// simplify makes, and those of a training step, which go by the batch or whose input backward
// reads.

namespace orrery::transforms {
namespace fold_batch_norm_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

class Folder {
 public:
  explicit Folder(const Function& function)
      : function_(function),
        uses_(ir::CountUses(function)),
        is_weight_(function.value_limit(), 0),
        convolution_(function.op_limit()),
        is_folded_(function.op_limit(), 0),
        fate_(function.value_limit(), Fate::kStays),
        type_(function.value_limit()),
        builder_(function.name()),
        copy_{.from = function, .to = builder_.function()} {
    for (const ir::Input& input : function.inputs()) {
      is_weight_[input.value] = ir::IsWeightOrBuffer(input.role) ? 1 : 0;
    }
  }

  bool Find() {
    bool found = false;
    for (const OpId op : function_.order()) {
      const OpId convolution = ConvolutionBefore(op);
      if (!convolution.valid()) continue;
      convolution_[op] = convolution;
      is_folded_[convolution] = 1;
      const auto norm = function_.operands(op), own = function_.operands(convolution);
      for (const size_t gone : {size_t{1}, size_t{3}, size_t{4}}) fate_[norm[gone]] = Fate::kGoes;
      if (own.size() > 2) fate_[own[2]] = Fate::kGoes;
      fate_[norm[2]] = Fate::kRetyped;
      type_[norm[2]] = function_.type(own[0]).dtype;
      found = true;
    }
    return found;
  }

  absl::StatusOr<Function> Run() {
    for (const ir::Input& input : function_.inputs()) CopyInput(input);
    for (const OpId op : function_.order()) {
      if (is_folded_[op] != 0) continue;
      if (convolution_[op].valid()) {
        Fold(op, convolution_[op]);
      } else {
        ir::CopyOp(op, copy_);
      }
      if (!builder_.status().ok()) return builder_.status();
    }
    for (const ir::Output& output : function_.outputs()) {
      builder_.Return(copy_.values[output.value], output.role,
                      output.of.valid() ? copy_.values[output.of] : ValueId());
    }
    return std::move(builder_).Finalize();
  }

 private:
  enum class Fate : uint8_t { kStays, kGoes, kRetyped };

  // A weight that nothing else reads, and no output belongs to.
  bool IsOwnWeight(ValueId value) const {
    const bool named = std::ranges::any_of(
        function_.outputs(), [&](const ir::Output& output) { return output.of == value; });
    return is_weight_[value] != 0 && uses_[value] == 1 && !named;
  }

  // The convolution that a norm may go into; invalid: none.
  OpId ConvolutionBefore(OpId op) const {
    if (function_.kind(op) != OpKind::kBatchNorm) return OpId();
    if (function_.attributes(op).Int("training", 0) != 0) return OpId();
    const auto norm = function_.operands(op);
    if (norm.size() != 5 || uses_[norm[0]] != 1) return OpId();
    const OpId maker = function_.producer(norm[0]);
    if (!maker.valid() || function_.kind(maker) != OpKind::kConv) return OpId();
    if (function_.attributes(maker).Find("activation") != nullptr) return OpId();
    const auto own = function_.operands(maker);
    const auto are_own = [&](auto values) {
      return std::ranges::all_of(values, [&](ValueId value) { return IsOwnWeight(value); });
    };
    return are_own(norm.subspan(1)) && are_own(own.subspan(1)) ? maker : OpId();
  }

  void CopyInput(const ir::Input& input) {
    const Fate fate = fate_[input.value];
    if (fate == Fate::kGoes) return;
    ir::TensorType type = function_.type(input.value);
    if (fate == Fate::kRetyped) type.dtype = type_[input.value];
    copy_.values[input.value] =
        builder_.AddInput(function_.value_name(input.value), type, input.role);
  }

  void Fold(OpId op, OpId convolution) {
    const auto norm = function_.operands(op), own = function_.operands(convolution);
    ir::AttributeSet attributes = function_.attributes(convolution);
    const auto* const activation = function_.attributes(op).Find("activation");
    if (activation != nullptr) attributes.Set("activation", *activation);
    const ValueId operands[] = {copy_.values[own[0]], copy_.values[own[1]], copy_.values[norm[2]]};
    const ValueId result = function_.result(op);
    copy_.values[result] =
        builder_.Op(OpKind::kConv, operands, function_.value_name(result), attributes);
  }

  const Function& function_;
  IdTable<ValueId, int32_t> uses_;
  IdTable<ValueId, char> is_weight_;
  IdTable<OpId, OpId> convolution_;  // that a norm goes into
  IdTable<OpId, char> is_folded_;    // of convolutions
  IdTable<ValueId, Fate> fate_;      // of inputs
  IdTable<ValueId, ir::DType> type_;
  ir::Builder builder_;
  ir::FunctionCopy copy_;
};

absl::StatusOr<bool> FoldBatchNorm(Function& function, const PassOptions&) {
  if (!function.mesh().empty()) return false;
  Folder folder(function);
  if (!folder.Find()) return false;
  ORRERY_ASSIGN_OR_RETURN(function, folder.Run());
  return true;
}

}  // namespace
}  // namespace fold_batch_norm_cc

extern const PassInfo kFoldBatchNormPass = {
    .name = "fold-batch-norm",
    .summary =
        "of inference, before simplify: puts batch norms into the weights of the convolutions "
        "before "
        "them",
    .options = "",
    .run = fold_batch_norm_cc::FoldBatchNorm,
    .idempotent = true,
};

}  // namespace orrery::transforms
