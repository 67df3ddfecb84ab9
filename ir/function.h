#ifndef ORRERY_IR_FUNCTION_H_
#define ORRERY_IR_FUNCTION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/attributes.h"
#include "ir/mesh.h"
#include "ir/op_kind_fwd.h"
#include "ir/type.h"
#include "support/id.h"
#include "support/id_table.h"
#include "support/name_list.h"

// A function is a list of ops over typed values, as structure of arrays: each op is a row of a few
// parallel arrays, its operands a range of one pool, its results consecutive values. The order in
// which ops run stands apart from the ops.

namespace orrery::ir {

ORRERY_DEFINE_ID(OpId, "op");
ORRERY_DEFINE_ID(ValueId, "value");

/// What an input of a function is to the training step.
enum class InputRole : uint8_t {
  kData,         // a batch of samples, or their labels; dimension 0 is the batch
  kParameter,    // trained
  kFrozen,       // a weight that is not trained: no gradient, no state
  kBuffer,       // resident and never trained: running statistics, frozen tables
  kState,        // of the optimizer: moments
  kSaved,        // left by the forward of the same microbatch
  kAccumulator,  // what earlier microbatches have added up
};

/// Whether the input is a weight of the model, trained or not.
constexpr bool IsWeight(InputRole role) {
  return role == InputRole::kParameter || role == InputRole::kFrozen;
}

/// What an output of a function is to the training step.
enum class OutputRole : uint8_t {
  kResult,
  kLoss,
  kGradient,     // of the input that it names
  kUpdated,      // the next value of the input that it names
  kSaved,        // for the backward of the same microbatch
  kAccumulator,  // the next value of the accumulator that it names
};

/// A value that callers give, and what it is to them.
struct Input {
  ValueId value;
  InputRole role = InputRole::kData;

  friend bool operator==(const Input&, const Input&) = default;
};

/// A value that callers get, and what it is to them.
struct Output {
  ValueId value;
  OutputRole role = OutputRole::kResult;
  ValueId of;  // the input that a gradient, an update or an accumulation belongs to

  friend bool operator==(const Output&, const Output&) = default;
};

absl::string_view ToString(InputRole role);
absl::string_view ToString(OutputRole role);

/// See the top of this file. Values are numbered in order of creation; a name is optional.
/// So many fields: arrays of ops and arrays of values.
class Function {
 public:
  explicit Function(absl::string_view name = "main", Mesh mesh = Mesh())
      : name_(name), mesh_(std::move(mesh)) {}

  const std::string& name() const { return name_; }
  /// Gives the function another name.
  void Rename(absl::string_view name) { name_ = std::string(name); }
  const Mesh& mesh() const { return mesh_; }
  /// Puts it on another mesh, with the same axes but for the sizes of some that split nothing.
  void SetMesh(Mesh mesh) { mesh_ = std::move(mesh); }

  // Building. Nothing here checks types: `ir::Builder` infers them and `ir::Verify` checks them.

  /// Adds an input after those that are there, and returns its value; the name may be empty.
  ValueId AddInput(absl::string_view name, const TensorType& type, InputRole role) {
    return AddInputOfType(name, types_.Intern(type), role);
  }
  /// The same with a type of this function's own table.
  ValueId AddInputOfType(absl::string_view name, TypeId type, InputRole role);
  /// Appends an op at the end of the order and makes its results, one for each of `types`; `names`
  /// is empty or as long.
  OpId AddOp(OpKind kind, std::span<const ValueId> operands, AttributesId attributes,
             std::span<const TensorType> types, std::span<const absl::string_view> names = {});
  /// The same with types of this function's own table.
  OpId AddOpOfTypes(OpKind kind, std::span<const ValueId> operands, AttributesId attributes,
                    std::span<const TypeId> types, std::span<const absl::string_view> names = {});
  /// The id of a type in this function's own table, which gets it where it is new.
  TypeId InternType(const TensorType& type) { return types_.Intern(type); }
  /// The id of a set in this function's own table, which gets it where it is new.
  AttributesId InternAttributes(const AttributeSet& set) { return attributes_.Intern(set); }
  /// Adds an output after those that are there.
  void AddOutput(const Output& output) { outputs_.push_back(output); }
  /// Replaces all outputs.
  void SetOutputs(std::vector<Output> outputs) { outputs_ = std::move(outputs); }
  /// Replaces the order; ops that it leaves out are gone as far as anyone can tell.
  void SetOrder(std::vector<OpId> order) { order_ = std::move(order); }
  /// Makes another value operand `i` of an op; it must have the type of the old one.
  void SetOperand(OpId op, size_t i, ValueId value) {
    operand_pool_[op_operands_[op].begin + i] = value;
  }
  /// Gives an op other attributes, of this function's own table.
  void SetAttributes(OpId op, AttributesId attributes) { op_attributes_[op] = attributes; }
  /// Gives a value a name, of which a copy is kept; an empty one takes the name away.
  void SetName(ValueId value, absl::string_view name) {
    names_.Set(static_cast<size_t>(value.index()), name);
  }
  /// Makes the names that `other` has now good for SetKeptName here, whatever becomes of `other`.
  void KeepNamesOf(const Function& other) { names_.KeepTextOf(other.names_); }
  /// The same as SetName for a name of a function whose names are kept: nothing is copied.
  void SetKeptName(ValueId value, absl::string_view name) {
    names_.SetKept(static_cast<size_t>(value.index()), name);
  }
  /// Makes room for that many ops and values in all, to save reallocation.
  void Reserve(int32_t ops, int32_t values);

  // Reading.

  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  /// The ops in the order in which they run.
  const std::vector<OpId>& order() const { return order_; }
  /// One more than the largest op or value number: the size of a side table.
  int32_t op_limit() const { return op_kinds_.size(); }
  int32_t value_limit() const { return value_types_.size(); }

  /// What an op is: its kind, and the record of that.
  OpKind kind(OpId op) const { return op_kinds_[op]; }
  /// The record of the op's kind.
  const OpInfo& info(OpId op) const { return GetOpInfo(kind(op)); }
  /// The attributes of an op, as an id in this function's own table.
  AttributesId attributes_id(OpId op) const { return op_attributes_[op]; }
  /// The attributes of an op; good until the function goes.
  const AttributeSet& attributes(OpId op) const { return attributes_[op_attributes_[op]]; }
  /// The set that has this id in this function's own table.
  const AttributeSet& attribute_set(AttributesId id) const { return attributes_[id]; }
  /// The operands of an op, in order; good until the next op is added.
  std::span<const ValueId> operands(OpId op) const {
    return std::span(operand_pool_).subspan(op_operands_[op].begin, op_operands_[op].count);
  }
  /// The number of results of an op.
  int32_t result_count(OpId op) const { return op_results_[op].count; }
  /// Result i of an op, from 0; not checked against result_count.
  ValueId result(OpId op, int32_t i = 0) const {
    return ValueId(op_results_[op].first.index() + i);
  }
  /// The op that makes `value`; invalid for an input.
  OpId producer(ValueId value) const { return value_producers_[value]; }

  /// The type of a value, as an id in this function's own table: equal types have equal ids.
  TypeId type_id(ValueId value) const { return value_types_[value]; }
  /// The type of a value; good until the function goes.
  const TensorType& type(ValueId value) const { return types_[value_types_[value]]; }
  const TypeTable& types() const { return types_; }
  /// About how much memory the function takes, its names and tables with it.
  int64_t held_bytes() const;
  /// The name, or "" when it has none; good until the function goes.
  absl::string_view value_name(ValueId value) const {
    return names_[static_cast<size_t>(value.index())];
  }

  /// The role of the input that `value` is; aborts when it is none.
  InputRole input_role(ValueId value) const;
  /// Gives the input that `value` is another role; aborts when it is none.
  void SetInputRole(ValueId value, InputRole role);

 private:
  struct Range {
    uint32_t begin = 0;
    uint32_t count = 0;
  };
  struct Results {
    ValueId first;
    int32_t count = 0;
  };
  ValueId AddValue(absl::string_view name, TypeId type, OpId producer);
  void AppendOperands(std::span<const ValueId> operands);

  std::string name_;
  Mesh mesh_;
  NameList names_;  // of values
  TypeTable types_;
  AttributeTable attributes_;
  IdTable<OpId, OpKind> op_kinds_;
  IdTable<OpId, Range> op_operands_;
  IdTable<OpId, Results> op_results_;
  IdTable<OpId, AttributesId> op_attributes_;
  std::vector<ValueId> operand_pool_;
  IdTable<ValueId, TypeId> value_types_;
  IdTable<ValueId, OpId> value_producers_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<OpId> order_;
};

/// How a value prints: "%y0", `%"a b"` when the name has other characters than names usually have,
/// "%7" without a name: its position among the values in use, inputs first, which takes a look at
/// each.
std::string PrintValue(const Function& function, ValueId value);

/// How often each value is used by ops and outputs.
IdTable<ValueId, int32_t> CountUses(const Function& function);

}  // namespace orrery::ir

#endif  // ORRERY_IR_FUNCTION_H_
