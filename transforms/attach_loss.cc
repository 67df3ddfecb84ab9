#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "support/status.h"
#include "transforms/dead_code.h"
#include "transforms/pass.h"
#include "transforms/training_step.h"

namespace orrery::transforms {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool IsTrained(const Function& function) {
  for (const ir::Output& output : function.outputs()) {
    if (output.role != ir::OutputRole::kResult) return true;
  }
  return false;
}

absl::StatusOr<ValueId> FindOutput(const Function& function, const std::string& name) {
  std::string known;
  for (const ir::Output& output : function.outputs()) {
    const ir::TensorType& type = function.type(output.value);
    if (name.empty() && (!ir::IsFloat(type.dtype) || type.dims.empty())) continue;
    if (name.empty() || function.value_name(output.value) == name) return output.value;
    absl::StrAppend(&known, known.empty() ? "" : ", ", function.value_name(output.value));
  }
  if (!name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(function.name(), ": has no output '", name, "'; wanted one of ", known));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      function.name(), ": has no result of floating-point type to put a loss on; wanted one"));
}

// The op that makes `value`, looking through those that change nothing; invalid for an input.
OpId Maker(const Function& function, ValueId value) {
  OpId op = function.producer(value);
  while (op.valid() &&
         (function.kind(op) == OpKind::kIdentity || function.kind(op) == OpKind::kCast)) {
    op = function.producer(function.operands(op)[0]);
  }
  return op;
}

bool IsProduct(const Function& function, OpId op) {
  return op.valid() && function.info(op).matrix_product && function.result_count(op) == 1;
}

// The logits whose softmax `value` is; nothing when it is none over the last dimension.
std::optional<ValueId> Logits(const Function& function, ValueId value) {
  const OpId op = Maker(function, value);
  if (!op.valid()) return std::nullopt;
  const OpKind kind = function.kind(op);
  if (kind != OpKind::kSoftmax && kind != OpKind::kLogSoftmax) return std::nullopt;
  const auto rank = static_cast<int64_t>(function.type(value).dims.size());
  const int64_t axis = function.attributes(op).Int("axis", -1);
  if (axis != -1 && axis != rank - 1) return std::nullopt;
  return function.operands(op)[0];
}

// Whether a matrix product makes `value`, with or without a bias.
bool IsProductOfAny(const Function& function, ValueId value) {
  const OpId op = Maker(function, value);
  if (!op.valid() || function.kind(op) != OpKind::kAdd) return IsProduct(function, op);
  for (const ValueId operand : function.operands(op)) {
    if (IsProduct(function, Maker(function, operand))) return true;
  }
  return false;
}

std::string AutoKind(const Function& function, ValueId output) {
  const ir::Dims& dims = function.type(output).dims;
  const bool classes = dims.size() >= 2 && dims.back() >= 2;
  const bool scores = Logits(function, output).has_value() || IsProductOfAny(function, output);
  return classes && scores ? "cross-entropy" : "mse";
}

absl::StatusOr<ValueId> CrossEntropy(ir::Builder& b, ValueId output) {
  const ValueId logits = Logits(b.function(), output).value_or(output);
  ir::TensorType labels = b.type(logits);
  if (labels.dims.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(ir::PrintValue(b.function(), output), " has ", labels.dims.size(),
                     " dimensions; cross-entropy wants samples and classes; try --loss mse"));
  }
  labels.dims.pop_back();
  labels.dtype = ir::DType::kI64;
  const int64_t rows = ir::ElementCount(labels.dims);
  const ValueId target = b.Data(b.FreeName("labels"), labels);
  return b.Op(OpKind::kCrossEntropy, {logits, target}, b.FreeName("loss"), {{"batch", rows}});
}

absl::StatusOr<ValueId> SquaredError(ir::Builder& b, ValueId output) {
  const ir::TensorType type = b.type(output);
  const ValueId target = b.Data(b.FreeName("target"), type);
  return b.Loss(output, target, type.dims[0], b.FreeName("loss"));
}

absl::StatusOr<ValueId> Sum(ir::Builder& b, ValueId output) {
  return b.Op(OpKind::kSumLoss, {output}, b.FreeName("loss"));
}

struct LossRow {
  absl::string_view name;
  absl::StatusOr<ValueId> (*attach)(ir::Builder& b, ValueId output);
};
constexpr std::array<LossRow, 3> kLosses = {
    {{"cross-entropy", CrossEntropy}, {"mse", SquaredError}, {"sum", Sum}}};

absl::StatusOr<const LossRow*> FindLoss(absl::string_view kind) {
  for (const LossRow& row : kLosses) {
    if (row.name == kind) return &row;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no loss '", kind, "'; wanted auto, cross-entropy, mse, sum or none"));
}

}  // namespace

absl::StatusOr<bool> AttachLoss(Function& function, const LossChoice& choice) {
  if (choice.kind == "none" || IsTrained(function)) return false;
  ORRERY_ASSIGN_OR_RETURN(const ValueId output, FindOutput(function, choice.output));
  const ir::TensorType& type = function.type(output);
  if (!ir::IsFloat(type.dtype) || type.dims.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(function.name(), ": output ", ir::PrintValue(function, output), " is ",
                     ir::ToString(type, function.mesh()),
                     "; wanted one of floating point with at least one dimension"));
  }
  const std::string kind = choice.kind == "auto" ? AutoKind(function, output) : choice.kind;
  ORRERY_ASSIGN_OR_RETURN(const LossRow* row, FindLoss(kind));
  ir::Builder b(function);
  ORRERY_ASSIGN_OR_RETURN(const ValueId loss, row->attach(b, output));
  ORRERY_ASSIGN_OR_RETURN(function, std::move(b).Finalize());
  function.SetOutputs({{.value = loss, .role = ir::OutputRole::kLoss, .of = {}}});
  RemoveDeadOps(function);
  return true;
}

extern const PassInfo kAttachLossPass = {
    .name = "attach-loss",
    .summary =
        "puts a loss on one result of a function that has none: auto, cross-entropy, mse, "
        "sum or none",
    .options = "loss=auto,output=",
    .run =
        [](Function& function, const PassOptions& options) {
          return AttachLoss(function, {.kind = options.find("loss")->second,
                                       .output = options.find("output")->second});
        },
    .idempotent = true,
};

}  // namespace orrery::transforms
