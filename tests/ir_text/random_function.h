#ifndef ORRERY_TESTS_IR_TEXT_RANDOM_FUNCTION_H_
#define ORRERY_TESTS_IR_TEXT_RANDOM_FUNCTION_H_

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/dead_code.h"
#include "ir/function.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::ir {

/// Makes functions that verify, of all op kinds, with all that the text form can say: meshes and
/// shardings, names of any bytes and none, attributes of any kind, ops dropped from the order, each
/// role. The same seed makes the same functions on every machine.
class RandomFunctions {
 public:
  explicit RandomFunctions(uint64_t seed) : random_(seed) {}

  Function Next() {
    names_.clear();
    inputs_.clear();
    values_.clear();
    const std::string name = AnyBytes(8);  // apart: arguments are evaluated in any order
    function_ = Function(name, AnyMesh());
    for (int64_t i = Below(4); i >= 0; --i) NewInput(AnyType());
    for (int64_t i = Below(12); i > 0; --i) {
      TryOp(static_cast<OpKind>(Below(OpKindCount())));
    }
    Return();
    return std::move(function_);
  }

  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }

 private:
  template <typename T>
  T OneOf(std::initializer_list<T> list) {
    return list.begin()[Below(static_cast<int64_t>(list.size()))];
  }
  bool Coin() { return Below(2) == 0; }

  std::string AnyBytes(int64_t limit) {
    std::string bytes;
    for (int64_t i = Below(limit); i > 0; --i) {
      bytes += Coin() ? static_cast<char>(Below(256))
                      : OneOf({'a', '7', '/', '"', '\\', '%', '\n', '-'});
    }
    return bytes;
  }

  // Not taken yet; empty in one case of three.
  std::string NewName() {
    while (Below(3) != 0) {
      std::string name = Coin() ? absl::StrCat("v", names_.size()) : AnyBytes(6);
      if (Below(8) == 0) name = absl::StrCat(Below(20));
      if (names_.insert(name).second) return name;
    }
    return "";
  }

  Mesh AnyMesh() {
    std::vector<Axis> axes;
    for (const char* name : {"dp", "h-p", "_3"}) {
      if (Coin()) axes.push_back({name, 1 + Below(4)});
    }
    return Mesh(std::move(axes));
  }

  TensorType AnyType() {
    TensorType type{static_cast<DType>(Below(9)), {}, {}};
    if (Coin()) type.dtype = DType::kF32;
    for (int64_t rank = Below(4); rank > 0; --rank) {
      type.dims.push_back(OneOf<int64_t>({1, 6, 12, 24, 24, int64_t{3} << 16}));
    }
    ShardAtRandom(type);
    return type;
  }

  // Lets each axis of the mesh idle, split a dimension that it divides, or leave the value partial.
  void ShardAtRandom(TensorType& type) {
    for (size_t axis = 0; axis < function_.mesh().axes().size(); ++axis) {
      const auto index = static_cast<AxisIndex>(axis);
      const auto d = static_cast<size_t>(Below(static_cast<int64_t>(type.dims.size()) + 3));
      if (d == type.dims.size()) type.sharding.partial.push_back(index);
      if (d >= type.dims.size()) continue;
      AxisList axes = type.sharding.at(d);
      axes.push_back(index);
      if (type.dims[d] % function_.mesh().size(axes) == 0) {
        type.sharding.Set(d, type.dims.size(), axes);
      }
    }
  }

  double AnyDouble() {
    using Limits = std::numeric_limits<double>;
    if (Coin()) return static_cast<double>(Below(2000) - 1000) / 64;
    return OneOf({0.0, -0.0, 0.1, -1e-7, 1e22, Limits::max(), Limits::lowest(), Limits::min(),
                  Limits::denorm_min(), Limits::epsilon(), Limits::infinity(), -Limits::infinity(),
                  Limits::quiet_NaN(), 1.0 / 3, 123456789.0, 4503599627370497.5});
  }

  int64_t AnyInt() {
    using Limits = std::numeric_limits<int64_t>;
    return Coin() ? Below(100) : OneOf({Limits::max(), Limits::min(), int64_t{-1}, int64_t{0}});
  }

  Attribute AnyAttribute() {
    std::vector<int64_t> ints(static_cast<size_t>(Below(3)));
    std::vector<double> doubles(static_cast<size_t>(Below(3)));
    for (int64_t& value : ints) value = AnyInt();
    for (double& value : doubles) value = AnyDouble();
    return OneOf<Attribute>({AnyInt(), AnyDouble(), AnyBytes(10), ints, doubles});
  }

  AttributeSet AnyAttributes() {
    AttributeSet set;
    for (int64_t i = Below(4) - 1; i > 0; --i) {
      const std::string name =
          Coin() ? absl::StrCat("extra", Below(9)) : absl::StrCat("~", AnyBytes(5));
      set.Set(name, AnyAttribute());
    }
    return set;
  }

  ValueId NewInput(const TensorType& type) {
    const auto role = static_cast<InputRole>(Below(5));
    const ValueId value = function_.AddInput(NewName(), type, role);
    inputs_.push_back(value);
    values_.push_back(value);
    return value;
  }

  ValueId Old() {
    return values_[static_cast<size_t>(Below(static_cast<int64_t>(values_.size())))];
  }
  const TensorType& TypeOf(ValueId value) const { return function_.type(value); }

  // The right operand of a product with `x`; sharded as x is where they meet.
  ValueId NewWeight(const TensorType& x) {
    TensorType w{x.dtype, {x.dims.back(), 24}, {}};
    w.sharding.Set(0, 2, x.sharding.at(x.dims.size() - 1));
    return NewInput(w);
  }

  std::vector<ValueId> OptimizerOperands(int64_t parameters) {
    std::vector<ValueId> operands;
    for (int64_t i = parameters; i > 0; --i) {
      TensorType type = AnyType();
      type.sharding.partial = AxisList();
      operands.push_back(NewInput(type));
    }
    for (int64_t i = parameters * (1 + Below(3)); i > 0; --i) {
      operands.push_back(
          NewInput(TypeOf(operands[operands.size() - static_cast<size_t>(parameters)])));
    }
    return operands;
  }

  // Operands that have a chance; `attributes` gets what the op needs besides.
  std::vector<ValueId> Operands(OpKind kind, AttributeSet& attributes) {
    const int count = GetOpInfo(kind).operands;
    if (count == 0) return {};
    if (count == OpInfo::kVariadic) {
      attributes.Set("parameters", 1 + Below(3));
      return OptimizerOperands(attributes.Int("parameters", 1));
    }
    const ValueId x = Old();
    const TensorType type = TypeOf(x);
    std::vector<ValueId> operands = {x};
    SetShapeAttributes(kind, type, attributes);
    if ((kind == OpKind::kMatMul || kind == OpKind::kMatMulGrad) && type.dims.size() >= 2) {
      operands.push_back(NewWeight(type));
      TensorType dy = type;
      dy.dims.back() = 24;
      dy.sharding.Set(dy.dims.size() - 1, dy.dims.size(), AxisList());
      if (kind == OpKind::kMatMulGrad) operands.push_back(NewInput(dy));
      return operands;
    }
    while (operands.size() < static_cast<size_t>(count)) {
      operands.push_back(Coin() ? Old() : NewInput(type));
    }
    return operands;
  }

  void SetShapeAttributes(OpKind kind, const TensorType& x, AttributeSet& attributes) {
    const auto rank = static_cast<int64_t>(x.dims.size());
    attributes.Set("batch", 1 + Below(64));
    std::vector<int64_t> dims(x.dims.size());
    for (int64_t d = 0; d < rank; ++d) dims[static_cast<size_t>(d)] = d;
    for (size_t d = dims.size(); d > 1; --d)
      std::swap(dims[d - 1], dims[static_cast<size_t>(Below(static_cast<int64_t>(d)))]);
    if (kind == OpKind::kTranspose) attributes.Set("perm", dims);
    if (kind == OpKind::kReduceSum) {
      dims.resize(static_cast<size_t>(Below(rank + 1)));
      attributes.Set("axes", dims);
    }
    if (kind == OpKind::kAllReduce) {
      attributes.Set("axes", function_.mesh().Names(x.sharding.partial));
    }
    if (kind == OpKind::kReduceScatter && rank > 0) {
      attributes.Set("dim", Below(rank));
      attributes.Set("axes", function_.mesh().Names(x.sharding.partial));
    }
    if (kind == OpKind::kAllToAll && rank > 1) {
      const int64_t from = Below(rank);
      attributes.Set("from", from);
      attributes.Set("to", (from + 1) % rank);
      attributes.Set("axes", function_.mesh().Names(x.sharding.at(static_cast<size_t>(from))));
    }
    if (kind == OpKind::kAllGather && rank > 0) {
      const int64_t dim = Below(rank);
      attributes.Set("dim", dim);
      attributes.Set("axes", function_.mesh().Names(x.sharding.at(static_cast<size_t>(dim))));
    }
  }

  bool Fits(const TensorType& type) const {
    double bytes = static_cast<double>(SizeOf(type.dtype));
    AxisList used = type.sharding.partial;
    for (size_t d = 0; d < type.dims.size(); ++d) {
      bytes *= static_cast<double>(type.dims[d]);
      const AxisList axes = type.sharding.at(d);
      if (type.dims[d] < 1 || type.dims[d] % function_.mesh().size(axes) != 0) return false;
      for (const AxisIndex axis : axes.axes()) {
        if (used.contains(axis)) return false;
        used.push_back(axis);
      }
    }
    return bytes < 1e18;
  }

  void TryOp(OpKind kind) {
    AttributeSet attributes = AnyAttributes();
    const std::vector<ValueId> operands = Operands(kind, attributes);
    TypeList results;
    if (GetOpInfo(kind).infer == nullptr) {
      results.push_back(AnyType());
    } else {
      std::vector<const TensorType*> types;
      for (const ValueId operand : operands) types.push_back(&TypeOf(operand));
      const OpTypes op{.attributes = attributes, .operands = types, .mesh = function_.mesh()};
      if (!InferTypes(kind, op, results).ok()) return;
    }
    for (const TensorType& result : results) {
      if (!Fits(result)) return;
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < results.size(); ++i) names.push_back(NewName());
    const std::vector<absl::string_view> views(names.begin(), names.end());
    const OpId op =
        function_.AddOp(kind, operands, function_.InternAttributes(attributes), results, views);
    for (int32_t i = 0; i < function_.result_count(op); ++i)
      values_.push_back(function_.result(op, i));
  }

  // From the last op on: what nothing uses is returned, or gone.
  void Return() {
    IdTable<ValueId, int32_t> uses = CountUses(function_);
    std::vector<OpId> order = function_.order(), kept;
    for (; !order.empty(); order.pop_back()) {
      const OpId op = order.back();
      const bool used = IsUsed(function_, op, uses);
      if (!used && Below(3) == 0) {
        for (const ValueId operand : function_.operands(op)) --uses[operand];
        continue;
      }
      if (!used)
        ReturnOne(function_.result(op, static_cast<int32_t>(Below(function_.result_count(op)))));
      kept.insert(kept.begin(), op);
    }
    function_.SetOrder(std::move(kept));
    if (!inputs_.empty() && Coin()) ReturnOne(inputs_[0]);
  }

  void ReturnOne(ValueId value) {
    Output output{.value = value, .role = static_cast<OutputRole>(Below(6)), .of = ValueId()};
    const ValueId owner =
        inputs_.empty() ? ValueId()
                        : inputs_[static_cast<size_t>(Below(static_cast<int64_t>(inputs_.size())))];
    const bool owned = output.role == OutputRole::kGradient ||
                       output.role == OutputRole::kUpdated ||
                       output.role == OutputRole::kAccumulator;
    if (owned) output.of = owner;
    if (output.role == OutputRole::kAccumulator && owner.valid() &&
        function_.input_role(owner) != InputRole::kAccumulator) {
      output.role = OutputRole::kUpdated;
    }
    if (owned && !owner.valid()) output.role = OutputRole::kResult;
    function_.AddOutput(output);
  }

  std::mt19937_64 random_;
  Function function_;
  std::set<std::string> names_;
  std::vector<ValueId> inputs_, values_;
};

}  // namespace orrery::ir

#endif  // ORRERY_TESTS_IR_TEXT_RANDOM_FUNCTION_H_
