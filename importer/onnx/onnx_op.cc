#include "importer/onnx/onnx_op.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx/tensor_values.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {

#define ORRERY_ONNX_OP(type, file) extern const OnnxOp k##type##OnnxOp;
#include "importer/onnx/onnx_ops.def"
#undef ORRERY_ONNX_OP

namespace onnx_op_cc {
namespace {

constexpr const OnnxOp* kOnnxOps[] = {
#define ORRERY_ONNX_OP(type, file) &k##type##OnnxOp,
#include "importer/onnx/onnx_ops.def"
#undef ORRERY_ONNX_OP
};

}  // namespace
}  // namespace onnx_op_cc

const OnnxOp* FindOnnxOp(absl::string_view domain, absl::string_view type) {
  using Key = std::pair<absl::string_view, absl::string_view>;
  static const absl::flat_hash_map<Key, const OnnxOp*> by_type = [] {
    absl::flat_hash_map<Key, const OnnxOp*> map;
    for (const OnnxOp* op : onnx_op_cc::kOnnxOps) map.emplace(Key(op->domain, op->type), op);
    return map;
  }();
  const absl::string_view own = domain == "ai.onnx" ? "" : domain;
  for (const absl::string_view key : {own, kAnyDomain}) {
    const auto found = by_type.find(Key(key, type));
    if (found != by_type.end()) return found->second;
  }
  return nullptr;
}

std::span<const OnnxOp* const> OnnxOps() { return onnx_op_cc::kOnnxOps; }

ir::ValueId NodeContext::input(int i) const {
  if (!has_input(i)) return Missing(i);
  const auto found = scope_.find(node_.input(i));
  ORRERY_CHECK(found != scope_.end()) << node_.op_type() << " reads '" << node_.input(i) << "'";
  return found->second;
}

// A scalar instead of the input; what becomes of it is thrown away with the error.
ir::ValueId NodeContext::Missing(int i) const {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("input ", i, " is missing; ", Printable(node_.op_type()), " wants it"));
  }
  const ir::TensorType scalar;
  return function_.result(
      function_.AddOp(ir::OpKind::kConstant, {}, ir::AttributesId(0), std::span(&scalar, 1)));
}

const onnx::AttributeProto* NodeContext::Attribute(absl::string_view name) const {
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

const onnx::AttributeProto* NodeContext::Typed(absl::string_view name,
                                               onnx::AttributeProto_AttributeType type) {
  const onnx::AttributeProto* attribute = Attribute(name);
  if (attribute == nullptr || attribute->type() == type) return attribute;
  // Files before IR version 3 leave the type out.
  if (attribute->type() == onnx::AttributeProto::UNDEFINED) return attribute;
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' is of type ",
                     onnx::AttributeProto_AttributeType_Name(attribute->type()), "; wanted ",
                     onnx::AttributeProto_AttributeType_Name(type)));
  }
  return nullptr;
}

int64_t NodeContext::Int(absl::string_view name, int64_t fallback) {
  const onnx::AttributeProto* attribute = Typed(name, onnx::AttributeProto::INT);
  return attribute == nullptr ? fallback : attribute->i();
}

double NodeContext::Float(absl::string_view name, double fallback) {
  const onnx::AttributeProto* attribute = Typed(name, onnx::AttributeProto::FLOAT);
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

std::string NodeContext::String(absl::string_view name, absl::string_view fallback) {
  const onnx::AttributeProto* attribute = Typed(name, onnx::AttributeProto::STRING);
  return attribute == nullptr ? std::string(fallback) : attribute->s();
}

std::vector<int64_t> NodeContext::Ints(absl::string_view name, std::vector<int64_t> fallback) {
  const onnx::AttributeProto* attribute = Typed(name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> NodeContext::Floats(absl::string_view name, std::vector<double> fallback) {
  const onnx::AttributeProto* attribute = Typed(name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return fallback;
  return {attribute->floats().begin(), attribute->floats().end()};
}

bool NodeContext::MadeBy(ir::ValueId value, ir::OpKind kind) const {
  const ir::OpId op = function_.producer(value);
  return op.valid() && function_.kind(op) == kind;
}

absl::StatusOr<std::vector<int64_t>> NodeContext::IntegerInput(int i) const {
  const ir::Tensor* known = KnownInput(i);
  if (known != nullptr && !known->is_float()) return known->ints();
  if (known == nullptr) {
    const absl::Status trouble = known_.Trouble(input(i));
    if (!trouble.ok()) {
      return Annotate(trouble, absl::StrCat("input ", i, " (", Show(node_.input(i)), ")"));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "input ", i, " (", Show(node_.input(i)),
      known == nullptr ? ") depends on data; wanted whole numbers that are known beforehand; try "
                         "to export the model with fixed sizes"
                       : ") is of floating point; wanted whole numbers"));
}

std::optional<std::vector<ir::ValueId>> NodeContext::Fold(ir::OpKind kind,
                                                          std::span<const ir::ValueId> operands,
                                                          const ir::AttributeSet& attributes,
                                                          const ir::TypeList& results) {
  if (operands.empty() || ir::GetOpInfo(kind).random) return std::nullopt;
  absl::InlinedVector<const ir::Tensor*, 4> tensors;
  for (const ir::ValueId operand : operands) {
    const ir::Tensor* known = known_.Find(function_, operand);
    if (known == nullptr) return std::nullopt;
    tensors.push_back(known);
  }
  for (const ir::TensorType& type : results) {
    if (ir::ElementCount(type.dims) > kMaxValues) return std::nullopt;
  }
  const absl::StatusOr<std::vector<ir::Tensor>> values =
      ir::Evaluate(kind, attributes, tensors, results);
  if (!values.ok()) return std::nullopt;  // an index out of range, say: it is the op's to report
  std::vector<ir::ValueId> constants;
  for (const ir::Tensor& value : *values) {
    const absl::StatusOr<ir::ValueId> constant = Constant(value);
    if (!constant.ok()) return std::nullopt;
    constants.push_back(*constant);
  }
  return constants;
}

// A whole number that grows with the batch, as labels of the other view of each sample are computed
// with, as what it is of another batch: how many ones there are. Others stay.
absl::StatusOr<ir::ValueId> NodeContext::CountedWithBatch(ir::ValueId value) {
  const ir::Tensor* const known = known_.Find(function_, value);
  if (known == nullptr || known->is_float() || known->size() != 1 ||
      !GrowsWithBatch(known->ints()[0])) {
    return value;
  }
  const ir::Dims dims = known->dims();
  const int64_t count = known->ints()[0];
  ir::Tensor one(known->dtype(), {1});
  one.SetNumber(0, 1);
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId ones, Constant(one));
  ORRERY_ASSIGN_OR_RETURN(ones,
                          Op(ir::OpKind::kExpand, {ones},
                             {{"shape", std::vector<int64_t>{count}}, {"batch_dim", int64_t{0}}}));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId sum,
                          Op(ir::OpKind::kReduceSum, {ones}, {{"axes", std::vector<int64_t>{0}}}));
  if (dims.empty()) return sum;
  return Op(ir::OpKind::kReshape, {sum},
            {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
}

absl::StatusOr<std::vector<ir::ValueId>> NodeContext::Ops(ir::OpKind kind,
                                                          std::span<const ir::ValueId> operands,
                                                          const ir::AttributeSet& attributes) {
  absl::InlinedVector<const ir::TensorType*, 4> types;
  for (const ir::ValueId operand : operands) types.push_back(&function_.type(operand));
  ir::TypeList results;
  ORRERY_RETURN_IF_ERROR(ir::InferTypes(
      kind, {.attributes = attributes, .operands = types, .mesh = function_.mesh()}, results));
  if (auto folded = Fold(kind, operands, attributes, results)) return *std::move(folded);
  std::vector<ir::ValueId> counted(operands.begin(), operands.end());
  if (kind == ir::OpKind::kAdd || kind == ir::OpKind::kSub || kind == ir::OpKind::kMul) {
    for (ir::ValueId& operand : counted) {
      ORRERY_ASSIGN_OR_RETURN(operand, CountedWithBatch(operand));
    }
  }
  const ir::OpId op =
      function_.AddOp(kind, counted, function_.InternAttributes(attributes), results);
  std::vector<ir::ValueId> values;
  for (int32_t i = 0; i < function_.result_count(op); ++i)
    values.push_back(function_.result(op, i));
  return values;
}

absl::StatusOr<ir::ValueId> NodeContext::Op(ir::OpKind kind, std::span<const ir::ValueId> operands,
                                            const ir::AttributeSet& attributes) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results, Ops(kind, operands, attributes));
  ORRERY_CHECK(results.size() == 1) << ir::GetOpInfo(kind).name;
  return results[0];
}

absl::StatusOr<ir::ValueId> NodeContext::Constant(const ir::TensorType& type,
                                                  const ir::AttributeSet& values) {
  ORRERY_RETURN_IF_ERROR(CheckSize(type));
  const ir::OpId op = function_.AddOp(ir::OpKind::kConstant, {}, function_.InternAttributes(values),
                                      std::span(&type, 1));
  return function_.result(op);
}

absl::StatusOr<ir::ValueId> NodeContext::Constant(const ir::Tensor& tensor) {
  return Constant(tensor.type(), KeptValues(tensor));
}

void NodeContext::SetOutput(int i, ir::ValueId value) {
  if (!has_output(i)) return;
  if (!function_.producer(value).valid() || !function_.value_name(value).empty()) {
    const absl::StatusOr<ir::ValueId> view = Op(ir::OpKind::kIdentity, {value});
    ORRERY_CHECK(view.ok()) << view.status().ToString();
    value = *view;
  }
  function_.SetName(value, node_.output(i));
  scope_[node_.output(i)] = value;
}

absl::Status NodeContext::Return(const absl::StatusOr<ir::ValueId>& value) {
  if (!value.ok()) return value.status();
  SetOutput(0, *value);
  return absl::OkStatus();
}

}  // namespace orrery::importer
