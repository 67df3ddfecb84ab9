#include "importer/onnx_op.h"

#include <span>

#include "absl/strings/str_join.h"
#include "importer/onnx_type.h"
#include "ir/op_info.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::importer {

#define ORRERY_ONNX_OP(type, file) extern const OnnxOp k##type##OnnxOp;
#include "importer/onnx_ops.def"
#undef ORRERY_ONNX_OP

namespace {

constexpr const OnnxOp* kOnnxOps[] = {
#define ORRERY_ONNX_OP(type, file) &k##type##OnnxOp,
#include "importer/onnx_ops.def"
#undef ORRERY_ONNX_OP
};

}  // namespace

const OnnxOp* FindOnnxOp(absl::string_view type) {
  static const absl::flat_hash_map<absl::string_view, const OnnxOp*> by_type = [] {
    absl::flat_hash_map<absl::string_view, const OnnxOp*> map;
    for (const OnnxOp* op : kOnnxOps) map.emplace(op->type, op);
    return map;
  }();
  const auto found = by_type.find(type);
  return found == by_type.end() ? nullptr : found->second;
}

std::string SupportedOnnxOps() {
  return absl::StrJoin(kOnnxOps, ", ", [](std::string* out, const OnnxOp* op) {
    out->append(op->type.data(), op->type.size());
  });
}

ir::ValueId NodeContext::input(int i) const {
  ORRERY_CHECK(has_input(i)) << node_.op_type() << " reads input " << i;
  const auto found = scope_.find(node_.input(i));
  ORRERY_CHECK(found != scope_.end()) << node_.op_type() << " reads '" << node_.input(i) << "'";
  return found->second;
}

const onnx::AttributeProto* NodeContext::Attribute(absl::string_view name) const {
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t NodeContext::Int(absl::string_view name, int64_t fallback) const {
  const onnx::AttributeProto* attribute = Attribute(name);
  return attribute == nullptr ? fallback : attribute->i();
}

double NodeContext::Float(absl::string_view name, double fallback) const {
  const onnx::AttributeProto* attribute = Attribute(name);
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

absl::StatusOr<ir::ValueId> NodeContext::Op(ir::OpKind kind,
                                            std::initializer_list<ir::ValueId> operands,
                                            const ir::AttributeSet& attributes) {
  absl::InlinedVector<const ir::TensorType*, 4> types;
  for (const ir::ValueId operand : operands) types.push_back(&function_.type(operand));
  ir::TypeList results;
  ORRERY_RETURN_IF_ERROR(ir::InferTypes(
      kind, {.attributes = attributes, .operands = types, .mesh = function_.mesh()}, results));
  const ir::OpId op = function_.AddOp(kind, std::span(operands.begin(), operands.size()),
                                      function_.InternAttributes(attributes), results);
  return function_.result(op);
}

absl::StatusOr<ir::ValueId> NodeContext::Constant(const ir::TensorType& type,
                                                  const ir::AttributeSet& values) {
  ORRERY_RETURN_IF_ERROR(CheckSize(type));
  const ir::OpId op = function_.AddOp(ir::OpKind::kConstant, {}, function_.InternAttributes(values),
                                      std::span(&type, 1));
  return function_.result(op);
}

void NodeContext::SetOutput(int i, ir::ValueId value) {
  ORRERY_CHECK(function_.producer(value).valid() && function_.value_name(value).empty())
      << node_.op_type() << ": " << value << " is no new value";
  if (i >= node_.output_size() || node_.output(i).empty()) return;
  function_.SetName(value, node_.output(i));
  scope_[node_.output(i)] = value;
}

}  // namespace orrery::importer
