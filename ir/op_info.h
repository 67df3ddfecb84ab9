#ifndef ORRERY_IR_OP_INFO_H_
#define ORRERY_IR_OP_INFO_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/attributes.h"
#include "ir/mesh.h"
#include "ir/op_kind_fwd.h"
#include "ir/type.h"
#include "support/units.h"

// The one record of an op kind: all that a new op needs, besides its line in ops.def. Parser,
// printer, verifier, differentiation, sharding and the cost models read these records.

namespace orrery::ir {

/// How an op is carried out, as far as anything outside its record must know.
enum class OpClass : uint8_t {
  kCompute,     // a kernel
  kView,        // no work: its result is its first operand under another type or name
  kOptimizer,   // a kernel that updates parameters, once a step
  kCollective,  // among the ranks along some mesh axes
  kSend,        // to another pipeline stage
  kReceive,     // from another pipeline stage
};

/// The types of the results of one op.
using TypeList = absl::InlinedVector<TensorType, 2>;

/// One application of an op, as its record sees it: attributes, and the types of its operands.
struct OpTypes {
  const AttributeSet& attributes;
  std::span<const TensorType* const> operands;
  const Mesh& mesh;
};

/// Instead of a factor: the dimension must not be split.
inline constexpr int8_t kNoFactor = -1;

/// For each dimension of each operand and result, the factor of the computation that it runs over;
/// kNoFactor for a dimension that must not be split. A matrix product has factors m, k and n, its
/// operands are (m k) and (k n), its result is (m n). Dimensions of one factor are split alike; a
/// factor that a result lacks leaves that result partial over the axes that split it.
struct ShardingRule {
  /// The factor of each dimension of one tensor; kNoFactor where it has none.
  using Factors = absl::InlinedVector<int8_t, 4>;
  absl::InlinedVector<Factors, 4> operands;
  absl::InlinedVector<Factors, 2> results;
  /// Bit j: what result j lacks does not leave it partial. Each rank has its own, and any of them
  /// will do: running statistics of the batch.
  uint32_t own_results = 0;
  /// What is computed from a share is the share of what the whole would give. Not so where each
  /// rank normalizes by the statistics of its share of the batch.
  bool exact = true;
  /// Bit i: operand i may also be whole where the others are split along a factor that it has. The
  /// rule is then another one: it is made anew from those types.
  uint32_t whole_too = 0;
  /// A factor of results that no operand has: the axes that split it are those that the attribute
  /// "split" names.
  int8_t made = kNoFactor;
};

class GradientContext;
class Tensor;
struct Evaluation;

/// What one rank of a group sees of a collective among them.
struct GroupExchange {
  const AttributeSet& attributes;
  const Mesh& mesh;
  const TensorType& operand;             // global
  const TensorType& result;              // global
  std::span<const int64_t> ranks;        // of the group, in the order of their parts along `axes`
  std::span<const Tensor* const> parts;  // what each of them brings
  int64_t position = 0;                  // of this rank among them
};

/// `batch` products of matrices [m,k] and [k,n], in one kernel; m are the rows of the result.
struct ProductShape {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

/// Those that an op runs one after another, a kernel each.
using ProductShapes = absl::InlinedVector<ProductShape, 2>;

/// How kernels go over memory, which decides what of its peak they reach.
enum class MemoryAccess : uint8_t {
  kInOrder,        // as most
  kSorting,        // rows to other places
  kAlongSequence,  // one kernel hands on to the next what it has of the positions before
};

/// The one record of an op kind: what it is called, computes, costs, and how it may be split; it
/// fills in what it needs of so many fields.
struct OpInfo {
  /// Stands for a number of operands or results that each op has for itself.
  static constexpr int kVariadic = -1;

  absl::string_view name;
  absl::string_view summary;  // one line of meaning, with shapes
  OpClass op_class = OpClass::kCompute;
  int operands = 1;  // or kVariadic
  int optional = 0;  // so many of the last operands may be missing
  int results = 1;   // or kVariadic

  /// Appends dtype and global dims of each result, or says what is wrong with the operands. Needs
  /// not look at shardings.
  absl::Status (*infer)(const OpTypes& op, TypeList& results) = nullptr;
  /// Floating-point operations, from the shapes that one rank holds. Null: none.
  double (*flops)(const OpTypes& op, const TypeList& results) = nullptr;
  /// Those of them that rematerialize what forward computed and did not keep. Null: none.
  double (*recomputed_flops)(const OpTypes& op, const TypeList& results) = nullptr;
  /// Bytes that its kernels read and write, from the shapes that one rank holds. Null: all operands
  /// and all results, once each.
  int64_t (*bytes)(const OpTypes& op, const TypeList& results) = nullptr;
  /// The matrix products that it consists of, from the shapes that one rank holds. Null: none, or
  /// of another form, such as a convolution.
  ProductShapes (*products)(const OpTypes& op, const TypeList& results) = nullptr;
  /// How the op may be split. Null: it may not.
  ShardingRule (*sharding)(const OpTypes& op, const TypeList& results) = nullptr;
  /// Instead of `sharding`, for ops that change a sharding: sets it on each result.
  absl::Status (*infer_sharding)(const OpTypes& op, TypeList& results) = nullptr;
  /// Computes the results on tensors. Null: an op among ranks or microbatches, which cannot be
  /// evaluated on its own.
  absl::Status (*evaluate)(Evaluation& evaluation) = nullptr;
  /// Of a collective instead of `evaluate`: what the rank ends up with, from what its group has.
  Tensor (*exchange)(const GroupExchange& exchange) = nullptr;
  /// Adds the ops that compute the gradients of the operands. Null: has no gradient.
  absl::Status (*gradient)(GradientContext& context) = nullptr;
  /// Bit i: operand i takes part, yet no gradient ever flows into it: a condition, an index,
  /// running statistics.
  uint32_t no_gradient = 0;
  /// Each result is a view into operand 0 with strides of its own and takes no memory.
  bool strided_view = false;
  /// Result i is written over operand `in_place_from + i`; negative: a new tensor.
  int in_place_from = -1;
  /// The result of partial operands is the partial result: f(a + b) = f(a) + f(b).
  bool linear = false;
  /// Bit i: where operand i alone is partial, the result is, too: f(a + b, c) = f(a, c) + f(b, c).
  uint32_t linear_in = 0;
  /// Two runs give two results: it is not folded, and two of them are not one.
  bool random = false;
  /// Its gradient rule needs no gradient of its result: a function may end in it.
  bool is_loss = false;
  /// Starts the backward phase: what depends on its result is backward.
  bool seeds_backward = false;
  /// Kernels that carry it out, one after another.
  int kernels = 1;
  MemoryAccess access = MemoryAccess::kInOrder;
  /// Runs on the matrix units where the device has them for the type of its first operand.
  bool matrix_product = false;
  /// Of an optimizer that a step may be made with: what it is called where one is chosen, "adam".
  absl::string_view chosen_as = {};
  /// Of an optimizer: the suffix of each kind of state that it keeps of a parameter, "m,v"; each is
  /// fp32 and as large as the parameter, unless `state_dims` says otherwise.
  absl::string_view states = {};
  /// Of an optimizer: the dims of what it keeps as kind number `state` of a parameter of those
  /// dims: as many, and each as large or 1. Null: the parameter's.
  Dims (*state_dims)(const Dims& parameter, size_t state) = nullptr;
  /// Of an optimizer: it is for matrices of hidden layers alone, and Adam updates all else.
  bool of_matrices = false;
  /// Of an optimizer that is for parameters of two dimensions or more alone: the op that updates
  /// the others.
  absl::string_view of_vectors = {};
};

/// Number of op kinds; kinds are 0 … OpKindCount() - 1.
int OpKindCount();

/// The kind of that name; nothing for an unknown name.
std::optional<OpKind> FindOp(absl::string_view name);

/// Whether the result is partial as operands are, which are partial over `partial` each: over no
/// axis at all, alike in all operands of a linear op, or in one alone that the op is linear in.
bool PassesPartial(const OpInfo& info, std::span<const AxisList* const> partial);

/// An error unless the op may have `count` operands.
absl::Status CheckOperandCount(const OpInfo& info, int64_t count);

/// Types of the results of `kind`, shardings included; the message of an error says what was found
/// and what was wanted, without saying where.
absl::Status InferTypes(OpKind kind, const OpTypes& op, TypeList& results);

/// Axes that the attribute `axes` of a collective names; an error for one that the mesh lacks.
absl::Status ParseAxes(const AttributeSet& attributes, const Mesh& mesh, AxisList& axes);

/// Sharding rule of an op whose operands and results all run over the same dimensions, aligned at
/// the last one as broadcasting does.
ShardingRule ElementwiseRule(const OpTypes& op, const TypeList& results);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OP_INFO_H_
