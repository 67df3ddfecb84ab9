#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/batch.h"
#include "ir/builder.h"
#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "support/word_list.h"
#include "transforms/pass/pass.h"
#include "transforms/training/loss_parts.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace attach_loss_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool IsScalar(const Function& function, ValueId value) {
  return ir::IsFloat(function.type(value).dtype) && function.type(value).dims.empty();
}

IdTable<ValueId, char> MadeFromData(const Function& function) {
  IdTable<ValueId, char> made(function.value_limit(), 0);
  for (const ir::Input& input : function.inputs()) {
    made[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
  }
  for (const OpId op : function.order()) {
    const auto operands = function.operands(op);
    const bool any =
        std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return made[v] != 0; });
    for (int32_t i = 0; any && i < function.result_count(op); ++i) made[function.result(op, i)] = 1;
  }
  return made;
}

// The result that is a loss already: one number of floating point that depends on data, as a
// temperature that is handed out does not.
ValueId OwnLoss(const Function& function) {
  for (const ir::Output& output : function.outputs()) {
    if (!IsScalar(function, output.value) || !function.producer(output.value).valid()) continue;
    if (MadeFromData(function)[output.value] != 0) return output.value;
  }
  return ValueId();
}

absl::StatusOr<ValueId> FindOutput(const Function& function, const std::string& name) {
  std::string known;
  for (const ir::Output& output : function.outputs()) {
    const ir::TensorType& type = function.type(output.value);
    const bool may_have =
        ir::IsFloat(type.dtype) && !type.dims.empty() && function.producer(output.value).valid();
    if (name.empty() && !may_have) continue;
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

bool IsSoftmax(const Function& function, OpId op) {
  return function.kind(op) == OpKind::kSoftmax || function.kind(op) == OpKind::kLogSoftmax;
}

// The logits whose softmax `value` is, over the last dimension or over dimension 1.
std::optional<ValueId> Logits(const Function& function, ValueId value) {
  const OpId op = Maker(function, value);
  if (!op.valid() || !IsSoftmax(function, op)) return std::nullopt;
  const auto rank = static_cast<int64_t>(function.type(value).dims.size());
  const int64_t axis = function.attributes(op).Int("axis", -1);
  if (axis != -1 && axis != rank - 1 && axis != 1) return std::nullopt;
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

// The dimension of the classes: that of the softmax; the channels of a convolution; else the last.
size_t ClassDim(const Function& function, ValueId output) {
  const size_t rank = function.type(output).dims.size(), last = rank - 1;
  OpId op = Maker(function, output);
  if (!op.valid() || rank < 3) return last;
  if (IsSoftmax(function, op)) {
    const int64_t axis = function.attributes(op).Int("axis", -1);
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  }
  while (op.valid() &&
         (function.kind(op) == OpKind::kAdd || function.kind(op) == OpKind::kResize)) {
    op = Maker(function, function.operands(op)[0]);
  }
  const bool image = op.valid() && (function.kind(op) == OpKind::kConv ||
                                    function.kind(op) == OpKind::kConvTranspose);
  return image ? 1 : last;
}

// Whether each sample has a score for each other one, as the logits of CLIP are.
bool ScoresSamples(const Function& function, ValueId output) {
  const ir::Dims& dims = function.type(output).dims;
  const int64_t batch = ir::BatchOf(function);
  return dims.size() == 2 && dims[0] == batch && dims[1] == batch && batch > 1 &&
         ir::LastBatchDims(function)[output] == 1;
}

std::string AutoKind(const Function& function, ValueId output) {
  const ir::Dims& dims = function.type(output).dims;
  const bool classes = dims.size() >= 2 && dims[ClassDim(function, output)] >= 2;
  const OpId maker = Maker(function, output);
  if (maker.valid() && function.kind(maker) == OpKind::kNegativeLikelihood) return "sum";
  const bool scores = Logits(function, output).has_value() || IsProductOfAny(function, output) ||
                      ScoresSamples(function, output);
  return classes && scores ? "cross-entropy" : "mse";
}

// A new input of that type. Rows of [batch · rest] come as [batch, rest], so that samples can be
// told apart, and are looked at as rows.
ValueId TargetOf(ir::Builder& b, ValueId output, ir::TensorType type, const std::string& name) {
  const int64_t batch = ir::BatchOf(b.function());
  const int64_t rows = type.dims.empty() ? 0 : type.dims[0];
  const bool flat =
      batch > 0 && rows > batch && rows % batch == 0 && ir::BatchDims(b.function())[output] == 0;
  if (!flat) return b.Data(b.FreeName(name), type);
  std::vector<int64_t> shape(type.dims.begin(), type.dims.end());
  shape[0] = -1;
  type.dims[0] = rows / batch;
  type.dims.insert(type.dims.begin(), batch);
  type.sharding = {};
  return b.Op(OpKind::kReshape, {b.Data(b.FreeName(name), type)}, "", {{"shape", shape}});
}

// The type of a label for each row of logits.
ir::TensorType LabelsOf(const ir::TensorType& logits, size_t classes) {
  ir::TensorType labels = {.dtype = ir::DType::kI64, .dims = logits.dims, .sharding = {}};
  labels.dims.erase(labels.dims.begin() + static_cast<std::ptrdiff_t>(classes));
  return labels;
}

// Of classes in dimension 1 before others, as in segmentation: the likelihood of each position's
// label.
absl::StatusOr<ValueId> CrossEntropyOfPositions(ir::Builder& b, ValueId logits) {
  const ir::TensorType labels = LabelsOf(b.type(logits), 1);
  const ValueId likelihoods = b.Op(OpKind::kLogSoftmax, {logits}, "", {{"axis", int64_t{1}}});
  const ValueId target = TargetOf(b, logits, labels, "labels");
  const ir::OpId positions = b.Ops(OpKind::kNegativeLikelihood, std::array{likelihoods, target},
                                   std::array<absl::string_view, 2>{"", ""});
  ORRERY_RETURN_IF_ERROR(b.status());
  return b.Op(OpKind::kSumLoss, {b.function().result(positions)}, b.FreeName("loss"),
              {{"batch", ir::ElementCount(labels.dims)}});
}

absl::StatusOr<ValueId> CrossEntropy(ir::Builder& b, ValueId output) {
  const ValueId logits = Logits(b.function(), output).value_or(output);
  const size_t rank = b.type(logits).dims.size();
  if (rank < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(ir::PrintValue(b.function(), output), " has ", rank,
                     " dimensions; cross-entropy wants samples and classes; try `loss` mse"));
  }
  if (ClassDim(b.function(), output) + 1 < rank) return CrossEntropyOfPositions(b, logits);
  const ir::TensorType labels = LabelsOf(b.type(logits), rank - 1);
  const int64_t rows = ir::ElementCount(labels.dims);
  const ValueId target = TargetOf(b, logits, labels, "labels");
  return b.Op(OpKind::kCrossEntropy, {logits, target}, b.FreeName("loss"), {{"batch", rows}});
}

absl::StatusOr<ValueId> SquaredError(ir::Builder& b, ValueId output) {
  const ir::TensorType type = b.type(output);
  const ValueId target = TargetOf(b, output, type, "target");
  return b.Loss(output, target, type.dims[0], b.FreeName("loss"));
}

absl::StatusOr<ValueId> Sum(ir::Builder& b, ValueId output) {
  const LossParts parts = PartsOfLoss(b, output);
  const OpId maker = b.function().producer(parts.value);
  const bool loss = maker.valid() && b.function().info(maker).is_loss;
  if (loss && parts.count == 1) return parts.value;
  ir::AttributeSet attributes;
  if (parts.count > 1) attributes.Set("batch", parts.count);
  return b.Op(OpKind::kSumLoss, {parts.value}, b.FreeName("loss"), attributes);
}

// `output` with the batch as a dimension of its own where others stand before it in one, as in rows
// of [time · batch]; and which dimension that is, or none where nothing is to be done.
std::pair<ValueId, int8_t> WithBatchApart(ir::Builder& b, ValueId output) {
  const int64_t batch = ir::BatchOf(b.function());
  const ir::Dims dims = b.type(output).dims;
  if (batch < 2 || dims.size() < 2) return {output, -1};
  const bool may = std::ranges::any_of(dims, [&](int64_t size) { return size % batch == 0; });
  if (!may) return {output, -1};
  const IdTable<ValueId, int8_t> batch_dims = ir::BatchDims(b.function());
  const int8_t dim = batch_dims[output];
  if (dim < 0) return {output, -1};
  const auto at = static_cast<size_t>(dim);
  if (dims[at] == batch) return {output, dim};
  const int64_t outside = ir::OutsideOfBatch(b.function(), batch_dims)[output];
  if (outside < 2 || dims[at] % outside != 0) return {output, -1};
  std::vector<int64_t> shape(dims.begin(), dims.end());
  shape[at] = -1;
  shape.insert(shape.begin() + dim, outside);
  const ValueId apart = b.Op(OpKind::kReshape, {output}, "", {{"shape", shape}});
  return {apart, static_cast<int8_t>(dim + 1)};
}

// `output`, transposed where the batch is another dimension than the first: labels come sample by
// sample, and losses go so. Where the batch came before, the simplifier finds what both undo.
ValueId WithBatchFirst(ir::Builder& b, ValueId output) {
  const auto [apart, dim] = WithBatchApart(b, output);
  if (dim <= 0 || !apart.valid()) return apart;
  std::vector<int64_t> perm = {dim};
  for (int64_t d = 0; d < std::ssize(b.type(apart).dims); ++d) {
    if (d != dim) perm.push_back(d);
  }
  return b.Op(OpKind::kTranspose, {apart}, "", {{"perm", perm}});
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
      absl::StrCat("there is no loss '", kind, "'; wanted ", LossNames()));
}

bool MayBeOwn(const LossChoice& choice) { return choice.kind == "auto" || choice.kind == "sum"; }

// The outputs that get a loss: all of a list of names; without one the graph's own loss, or the
// first that can have one.
absl::StatusOr<std::vector<ValueId>> ChooseOutputs(const Function& function,
                                                   const LossChoice& choice) {
  const ValueId own = MayBeOwn(choice) && choice.output.empty() ? OwnLoss(function) : ValueId();
  if (own.valid()) return std::vector<ValueId>{own};
  std::vector<std::string> names = {choice.output};
  if (!FindOutput(function, choice.output).ok()) names = absl::StrSplit(choice.output, ',');
  std::vector<ValueId> outputs;
  for (const std::string& name : names) {
    ORRERY_ASSIGN_OR_RETURN(const ValueId output, FindOutput(function, name));
    if (std::find(outputs.begin(), outputs.end(), output) == outputs.end()) {
      outputs.push_back(output);
    }
  }
  return outputs;
}

absl::StatusOr<ValueId> Attach(ir::Builder& b, ValueId output, const LossChoice& choice) {
  const Function& function = b.function();
  const bool own = MayBeOwn(choice) && IsScalar(function, output);
  const ir::TensorType& type = function.type(output);
  if (!own && (!ir::IsFloat(type.dtype) || type.dims.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat(function.name(), ": output ", ir::PrintValue(function, output), " is ",
                     ir::ToString(type, function.mesh()),
                     "; wanted one of floating point with at least one dimension"));
  }
  std::string kind = choice.kind;
  if (own) kind = "sum";
  if (kind == "auto") kind = AutoKind(function, output);
  ORRERY_ASSIGN_OR_RETURN(const LossRow* row, FindLoss(kind));
  return row->attach(b, WithBatchFirst(b, output));
}

}  // namespace
}  // namespace attach_loss_cc

std::string LossNames() {
  std::vector<absl::string_view> names = {"auto"};
  for (const attach_loss_cc::LossRow& row : attach_loss_cc::kLosses) names.push_back(row.name);
  names.push_back("none");
  return ListWords(names, " or ");
}

bool IsTrained(const ir::Function& function) {
  for (const ir::Output& output : function.outputs()) {
    if (output.role != ir::OutputRole::kResult) return true;
  }
  return false;
}

absl::StatusOr<bool> AttachLoss(ir::Function& function, const LossChoice& choice) {
  if (choice.kind == "none" || IsTrained(function)) return false;
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> outputs,
                          attach_loss_cc::ChooseOutputs(function, choice));
  ir::Builder b(function);
  std::vector<ir::Output> losses;
  for (const ir::ValueId output : outputs) {
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId loss, attach_loss_cc::Attach(b, output, choice));
    losses.push_back({.value = loss, .role = ir::OutputRole::kLoss, .of = {}});
  }
  ORRERY_ASSIGN_OR_RETURN(function, std::move(b).Finalize());
  function.SetOutputs(std::move(losses));
  ir::RemoveDeadOps(function);
  return true;
}

extern const PassInfo kAttachLossPass = {
    .name = "attach-loss",
    .summary =
        "puts a loss on one result of a function that has none: auto, cross-entropy, mse, "
        "sum or none",
    .options = "loss=auto,output=",
    .run =
        [](ir::Function& function, const PassOptions& options) {
          return AttachLoss(function, {.kind = options.find("loss")->second,
                                       .output = options.find("output")->second});
        },
    .idempotent = true,
};

}  // namespace orrery::transforms
