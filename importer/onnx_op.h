#ifndef ORRERY_IMPORTER_ONNX_OP_H_
#define ORRERY_IMPORTER_ONNX_OP_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// The one record of an ONNX op type: how a node of it becomes ops of the IR. A new op type is such
// a record in onnx_ops/<family>.cc and one line in onnx_ops.def.

namespace orrery::importer {

/// The values of an ONNX graph so far, by name. The names are those of the model, which must
/// outlive this.
using Scope = absl::flat_hash_map<absl::string_view, ir::ValueId>;

/// One node of the graph, and the function that its ops go to. Errors of its methods do not say
/// which node it is: the caller adds that.
class NodeContext {
 public:
  NodeContext(const onnx::NodeProto& node, ir::Function& function, Scope& scope)
      : node_(node), function_(function), scope_(scope) {}

  const onnx::NodeProto& node() const { return node_; }

  /// Whether input i is there: an optional input may be left out, or have the empty name.
  bool has_input(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }
  /// The value of input i, which must be there. A reference to a type holds until the next op.
  ir::ValueId input(int i) const;
  const ir::TensorType& type(ir::ValueId value) const { return function_.type(value); }
  const ir::TensorType& input_type(int i) const { return type(input(i)); }

  /// The attribute, or null. The ONNX checker has seen to it that it is of the type that its op
  /// says.
  const onnx::AttributeProto* Attribute(absl::string_view name) const;
  int64_t Int(absl::string_view name, int64_t fallback) const;
  double Float(absl::string_view name, double fallback) const;

  /// Appends an op of one result, whose type is inferred. An error says what is wrong with the
  /// operands, or that the result is too large.
  absl::StatusOr<ir::ValueId> Op(ir::OpKind kind, std::initializer_list<ir::ValueId> operands,
                                 const ir::AttributeSet& attributes = {});
  /// Appends a constant; `values` may be empty.
  absl::StatusOr<ir::ValueId> Constant(const ir::TensorType& type, const ir::AttributeSet& values);

  /// Makes `value`, the result of an op of this node, output i of the node, and gives it that name.
  void SetOutput(int i, ir::ValueId value);

 private:
  const onnx::NodeProto& node_;
  ir::Function& function_;
  Scope& scope_;
};

struct OnnxOp {
  absl::string_view type;
  int inputs = 1;  // that must be there
  /// The first version of the default opset whose definition is lowered; older ones meant other
  /// things by it.
  int64_t since_opset = 1;
  /// Appends the ops of the node and sets its outputs.
  absl::Status (*lower)(NodeContext& node) = nullptr;
};

/// The record of an op type of the default domain; null for one that is not supported.
const OnnxOp* FindOnnxOp(absl::string_view type);

/// "Add, Constant, Gemm": all op types that are supported.
std::string SupportedOnnxOps();

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_OP_H_
