#ifndef ORRERY_IMPORTER_ONNX_ONNX_OP_H_
#define ORRERY_IMPORTER_ONNX_ONNX_OP_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/onnx/known_values.h"
#include "ir/function.h"
#include "ir/op_info.h"
#include "ir/tensor.h"

// The one record of an ONNX op type: how a node of it becomes ops of the IR. A new op type is such
// a record in onnx_ops/<family>.cc and one line in onnx_ops.def.

namespace orrery::importer {

/// The values of an ONNX graph so far, by name. The names are those of the model, which must
/// outlive this.
using Scope = absl::flat_hash_map<absl::string_view, ir::ValueId>;

/// One node of the graph, and the function that its ops go to. Errors of its methods do not say
/// which node it is: the caller adds that.
/// So many parameters: it is all that a record of an op sees, made at one place.
class NodeContext {
 public:
  NodeContext(const onnx::NodeProto& node, int64_t opset, KnownValues& known,
              ir::Function& function, Scope& scope)
      : node_(node), opset_(opset), known_(known), function_(function), scope_(scope) {}

  const onnx::NodeProto& node() const { return node_; }
  /// The version of the opset that the model imports: it decides what a node means.
  int64_t opset() const { return opset_; }

  /// Whether input i is there: an optional input may be left out, or have the empty name.
  bool has_input(int i) const {
    return i >= 0 && i < node_.input_size() && !node_.input(i).empty();
  }
  /// Whether anyone may use output i.
  bool has_output(int i) const { return i < node_.output_size() && !node_.output(i).empty(); }
  /// The value of input i. One that is not there is an error, which `status` has from then on. A
  /// reference to a type holds until the next op.
  ir::ValueId input(int i) const;
  const ir::TensorType& type(ir::ValueId value) const { return function_.type(value); }
  const ir::TensorType& input_type(int i) const { return type(input(i)); }
  /// Whether the value has been made by an op of that kind.
  bool MadeBy(ir::ValueId value, ir::OpKind kind) const;
  /// The function so far.
  const ir::Function& function() const { return function_; }
  /// Whether a dimension of `size` has the batch, for certain.
  bool GrowsWithBatch(int64_t size) const { return known_.GrowsWithBatch(size); }

  /// What a value holds, when that is known while the model is imported: constants, small
  /// initializers, and what ops make of them. Null otherwise. Good until the next op.
  const ir::Tensor* Known(ir::ValueId value) const { return known_.Compute(function_, value); }
  const ir::Tensor* KnownInput(int i) const { return Known(input(i)); }
  /// Input i as whole numbers that are known: a shape, axes. An error that says so otherwise.
  absl::StatusOr<std::vector<int64_t>> IntegerInput(int i) const;

  /// The attribute, or null.
  const onnx::AttributeProto* Attribute(absl::string_view name) const;
  // The attribute as one type; `fallback` when it is absent. One of another type is an error, which
  // `status` has from then on.
  int64_t Int(absl::string_view name, int64_t fallback);
  double Float(absl::string_view name, double fallback);
  std::string String(absl::string_view name, absl::string_view fallback);
  std::vector<int64_t> Ints(absl::string_view name, std::vector<int64_t> fallback = {});
  std::vector<double> Floats(absl::string_view name, std::vector<double> fallback = {});
  /// What went wrong with attributes and inputs so far; whoever calls `lower` looks at it first.
  const absl::Status& status() const { return status_; }

  /// Appends an op of one result, whose type is inferred. An error says what is wrong with the
  /// operands, or that the result is too large. When all operands are known and the result is
  /// small, a constant that holds the result replaces the op.
  absl::StatusOr<ir::ValueId> Op(ir::OpKind kind, std::span<const ir::ValueId> operands,
                                 const ir::AttributeSet& attributes = {});
  absl::StatusOr<ir::ValueId> Op(ir::OpKind kind, std::initializer_list<ir::ValueId> operands,
                                 const ir::AttributeSet& attributes = {}) {
    return Op(kind, std::span(operands.begin(), operands.size()), attributes);
  }
  /// The same for an op of several results.
  absl::StatusOr<std::vector<ir::ValueId>> Ops(ir::OpKind kind,
                                               std::span<const ir::ValueId> operands,
                                               const ir::AttributeSet& attributes = {});
  /// Appends a constant; `values` may be empty.
  absl::StatusOr<ir::ValueId> Constant(const ir::TensorType& type, const ir::AttributeSet& values);
  /// Appends a constant that holds `tensor`; one of more than kMaxValues elements forgets them.
  absl::StatusOr<ir::ValueId> Constant(const ir::Tensor& tensor);

  /// Makes `value` output i of the node, and gives it that name if it is new. Nothing happens to an
  /// output that the node leaves out.
  void SetOutput(int i, ir::ValueId value);
  /// The same for the result of an op, passing its error on: `return c.Return(c.Op(…));`.
  absl::Status Return(const absl::StatusOr<ir::ValueId>& value);

 private:
  ir::ValueId Missing(int i) const;
  absl::StatusOr<ir::ValueId> CountedWithBatch(ir::ValueId value);
  const onnx::AttributeProto* Typed(absl::string_view name,
                                    onnx::AttributeProto_AttributeType type);
  // The results as constants; nothing when they cannot be folded.
  std::optional<std::vector<ir::ValueId>> Fold(ir::OpKind kind,
                                               std::span<const ir::ValueId> operands,
                                               const ir::AttributeSet& attributes,
                                               const ir::TypeList& results);

  const onnx::NodeProto& node_;
  int64_t opset_;
  KnownValues& known_;
  ir::Function& function_;
  Scope& scope_;
  mutable absl::Status status_;
};

struct OnnxOp {
  absl::string_view type;
  /// "" is ONNX's own; kAnyDomain: whatever domain the node names.
  absl::string_view domain = "";
  int inputs = 1;  // that must be there
  /// The first version of the default opset whose definition is lowered; older ones meant other
  /// things by it.
  int64_t since_opset = 1;
  /// Bit i: input i is a weight. A constant of floating point that stands there is a parameter.
  uint32_t weights = 0;
  /// Appends the ops of the node and sets its outputs.
  absl::Status (*lower)(NodeContext& node) = nullptr;
};

inline constexpr absl::string_view kAnyDomain = "*";
/// ONNX Runtime's own op types.
inline constexpr absl::string_view kMicrosoft = "com.microsoft";

/// The record of an op type; null for one that is not supported. "ai.onnx" is the default domain.
const OnnxOp* FindOnnxOp(absl::string_view domain, absl::string_view type);

/// All records, in the order of onnx_ops.def.
std::span<const OnnxOp* const> OnnxOps();

/// How many op types are supported.
inline size_t OnnxOpCount() { return OnnxOps().size(); }

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_ONNX_OP_H_
