#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_DATAFLOW_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_DATAFLOW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "ir/attributes.h"
#include "ir/function.h"
#include "ir/op_kind_fwd.h"
#include "ir/type.h"
#include "support/id.h"
#include "support/units.h"

// A function as a search over rewrites keeps thousands of them: nodes of a few words over one table
// of what ops do, without dead ops, without two ops that compute one thing, with a fingerprint and
// a price.

namespace orrery::transforms::substitutions {

ORRERY_DEFINE_ID(WorkId, "work");

/// What a node does, with its types; each once in a WorkTable.
struct Work {
  ir::OpKind kind = {};
  bool is_input = false;
  ir::AttributesId attributes;
  absl::InlinedVector<ir::TypeId, 3> operands;
  absl::InlinedVector<ir::TypeId, 2> results;
  Duration price;
};

/// Whether the two operands of the kind may change places.
bool IsCommutative(ir::OpKind kind);

/// What ops do, each with the types that its record infers and its price, once.
class WorkTable {
 public:
  /// Time of an op of these types on the device that is optimized for.
  using Price = std::function<Duration(ir::OpKind kind, const ir::AttributeSet& attributes,
                                       std::span<const ir::TensorType* const> operands,
                                       std::span<const ir::TensorType* const> results)>;

  /// Without a price, each op takes a picosecond, and views none.
  explicit WorkTable(Price price = nullptr) : price_(std::move(price)) {}

  /// The id of a type in this table.
  ir::TypeId Intern(const ir::TensorType& type) { return types_.Intern(type); }
  const ir::TensorType& type(ir::TypeId id) const { return types_[id]; }
  /// The attributes that an op has.
  const ir::AttributeSet& attributes(ir::AttributesId id) const { return attributes_[id]; }
  const Work& operator[](WorkId id) const { return works_[static_cast<size_t>(id.index())]; }

  /// An input of that type.
  WorkId Input(ir::TypeId type);
  /// The op on operands of these types; invalid where its record does not take them.
  WorkId Infer(ir::OpKind kind, const ir::AttributeSet& attributes,
               std::span<const ir::TypeId> operands);
  /// The op with results of these types, which are not inferred.
  WorkId Typed(ir::OpKind kind, const ir::AttributeSet& attributes,
               std::span<const ir::TypeId> operands, std::span<const ir::TypeId> results);

 private:
  using Key = std::vector<int32_t>;
  WorkId Add(const Key& key, Work work);

  Price price_;
  ir::TypeTable types_;
  ir::AttributeTable attributes_;
  std::vector<Work> works_;
  absl::flat_hash_map<Key, WorkId> by_key_;
};

/// A value: a result of a node.
struct Port {
  int32_t node = -1;
  int32_t result = 0;

  friend auto operator<=>(const Port&, const Port&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Port& port) {
    return H::combine(std::move(h), port.node, port.result);
  }
};

/// An op, or an input, of a Dataflow.
struct Node {
  WorkId work;
  absl::InlinedVector<Port, 3> operands;
  /// Not one with any other node of another mark: what is random, or of which not all is known.
  int32_t mark = -1;
  /// Depends on nothing but weights: it is computed once, not for each batch.
  bool fixed = false;
  uint64_t fingerprint = 0;
  absl::InlinedVector<ir::ValueId, 1> names = {};  // of the first function, whose names they take
};

/// See the top of this file. The nodes of inputs are the first ones; operands stand before ops.
struct Dataflow {
  std::vector<Node> nodes;
  int32_t inputs = 0;
  std::vector<Port> outputs;
  uint64_t fingerprint = 0;
  Duration price;  // of all ops that are not fixed

  const Node& at(Port port) const { return nodes[static_cast<size_t>(port.node)]; }
  int32_t op_count() const { return static_cast<int32_t>(nodes.size()) - inputs; }
};

/// The type of a value.
ir::TypeId TypeOf(const WorkTable& works, const Dataflow& flow, Port port);

/// What stands instead of values of a flow: nodes that are added behind its own, and which value
/// takes the place of which.
struct Replacement {
  std::vector<Node> nodes;
  std::vector<std::pair<Port, Port>> values;  // old, new
};

/// The flow with its values replaced. Nothing where a value would then depend on itself.
std::optional<Dataflow> Replace(const WorkTable& works, const Dataflow& flow,
                                const Replacement& replacement);

/// Whether no two outputs that were two values have become one, nor an output an input: functions
/// return each value once.
bool KeepsOutputsApart(const Dataflow& from, const Dataflow& to);

/// A function of one device as a flow. With `weights_are_fixed` what depends on weights and buffers
/// alone costs nothing.
absl::StatusOr<Dataflow> ToDataflow(const ir::Function& function, bool weights_are_fixed,
                                    WorkTable& works);

/// The same with each op by itself, also where two compute one thing: what the function costs as it
/// stands.
absl::StatusOr<Dataflow> OpByOp(const ir::Function& function, bool weights_are_fixed,
                                WorkTable& works);

/// The inverse: `like` says the inputs, names and roles of the function.
ir::Function ToFunction(const WorkTable& works, const Dataflow& flow, const ir::Function& like);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_DATAFLOW_H_
