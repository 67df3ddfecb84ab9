#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/pass/pass.h"

// A product whose columns are parted at once, as GPT-2 computes queries, keys and values with one
// weight: a LinearGroup with a weight for each part. It is one kernel and as many parameters as
// before; but each part can now be split among ranks by its own columns, which columns of the
// packed weight side by side could not.

namespace orrery::transforms {
namespace unpack_weights_cc {
namespace {

using ir::AttributeSet;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// A product, perhaps a Reshape that leaves its columns alone, and the Split of its columns.
struct Packed {
  OpId product, reshape, split;
};

class Unpacker {
 public:
  explicit Unpacker(const Function& function)
      : function_(function),
        uses_(ir::CountUses(function)),
        is_parameter_(function.value_limit(), 0),
        parts_(function.value_limit()),
        packed_(function.op_limit()),
        skipped_(function.op_limit(), 0),
        builder_(function.name()),
        copy_{.from = function, .to = builder_.function()},
        transposed_(function.value_limit(), 0),
        part_values_(function.value_limit()) {
    for (const ir::Input& input : function.inputs()) {
      is_parameter_[input.value] = input.role == ir::InputRole::kParameter ? 1 : 0;
    }
  }

  bool Find() {
    bool found = false;
    for (const OpId op : function_.order()) {
      const std::optional<Packed> packed = Match(op);
      if (!packed.has_value()) continue;
      packed_[op] = packed;
      skipped_[packed->product] = 1;
      if (packed->reshape.valid()) skipped_[packed->reshape] = 1;
      const std::vector<int64_t> sizes = function_.attributes(op).Ints("sizes");
      const auto operands = function_.operands(packed->product);
      for (const ValueId weight : operands.subspan(1)) parts_[weight] = sizes;
      transposed_[operands[1]] =
          function_.attributes(packed->product).Int("transpose_w", 0) != 0 ? 1 : 0;
      found = true;
    }
    return found;
  }

  absl::StatusOr<Function> Run() {
    for (const ir::Input& input : function_.inputs()) CopyInput(input);
    for (const OpId op : function_.order()) {
      if (skipped_[op] != 0) continue;
      if (packed_[op].has_value()) {
        Unpack(*packed_[op]);
      } else {
        ir::CopyOp(op, copy_);
      }
      if (!builder_.status().ok()) break;
    }
    for (const ir::Output& output : function_.outputs()) {
      if (!builder_.status().ok()) break;
      builder_.Return(copy_.values[output.value], output.role,
                      output.of.valid() ? copy_.values[output.of] : ValueId());
    }
    return std::move(builder_).Finalize();
  }

 private:
  // The op that makes a value which nothing else uses; invalid otherwise.
  OpId OnlyMaker(ValueId value) const {
    return uses_[value] == 1 ? function_.producer(value) : OpId();
  }

  bool SplitsColumns(OpId op) const {
    if (function_.kind(op) != OpKind::kSplit) return false;
    const auto rank = static_cast<int64_t>(function_.type(function_.operands(op)[0]).dims.size());
    const int64_t axis = function_.attributes(op).Int("axis", 0);
    return axis == rank - 1 || axis == -1;
  }

  std::optional<Packed> Match(OpId split) const {
    if (!SplitsColumns(split)) return std::nullopt;
    Packed packed{.product = {}, .reshape = {}, .split = split};
    ValueId value = function_.operands(split)[0];
    OpId op = OnlyMaker(value);
    if (op.valid() && function_.kind(op) == OpKind::kReshape) {
      const ValueId from = function_.operands(op)[0];
      if (function_.type(from).dims.back() != function_.type(value).dims.back()) {
        return std::nullopt;
      }
      packed.reshape = op;
      op = OnlyMaker(from);
    }
    packed.product = op;
    return op.valid() && IsPlainProduct(op) ? std::optional(packed) : std::nullopt;
  }

  // A product with weights that are parameters and used here alone.
  bool IsPlainProduct(OpId op) const {
    if (function_.kind(op) != OpKind::kLinear && function_.kind(op) != OpKind::kMatMul)
      return false;
    const AttributeSet& set = function_.attributes(op);
    if (set.Int("transpose_x", 0) != 0 || set.Find("activation") != nullptr) return false;
    const auto operands = function_.operands(op);
    if (function_.type(operands[1]).dims.size() != 2) return false;
    return std::all_of(operands.begin() + 1, operands.end(), [&](ValueId value) {
      return is_parameter_[value] != 0 && uses_[value] == 1;
    });
  }

  // The dimension of a weight or bias along which it is parted.
  size_t ColumnsOf(ValueId weight) const {
    if (function_.type(weight).dims.size() == 1) return 0;
    return transposed_[weight] != 0 ? 0 : 1;
  }

  void CopyInput(const ir::Input& input) {
    const std::string name(function_.value_name(input.value));
    const ir::TensorType& type = function_.type(input.value);
    if (parts_[input.value].empty()) {
      copy_.values[input.value] = builder_.AddInput(name, type, input.role);
      return;
    }
    for (size_t i = 0; i < parts_[input.value].size(); ++i) {
      ir::TensorType part = type;
      part.dims[ColumnsOf(input.value)] = parts_[input.value][i];
      part_values_[input.value].push_back(
          builder_.AddInput(name.empty() ? "" : absl::StrCat(name, ".", i), part, input.role));
    }
  }

  void Unpack(const Packed& packed) {
    const auto operands = function_.operands(packed.product);
    operands_ = {copy_.values[operands[0]]};
    for (const ValueId weight : operands.subspan(1)) {
      operands_.insert(operands_.end(), part_values_[weight].begin(), part_values_[weight].end());
    }
    const auto count = static_cast<size_t>(function_.result_count(packed.split));
    AttributeSet set = function_.attributes(packed.product);
    set.Set("count", static_cast<int64_t>(count));
    names_.clear();
    for (size_t i = 0; i < count; ++i) names_.push_back(NameOf(packed, i));
    if (packed.reshape.valid()) names_.clear();
    const OpId group = builder_.Ops(OpKind::kLinearGroup, operands_, names_, set);
    for (size_t i = 0; group.valid() && i < count; ++i) {
      const auto n = static_cast<int32_t>(i);
      ValueId value = builder_.function().result(group, n);
      if (packed.reshape.valid()) value = Reshaped(packed, i, value);
      copy_.values[function_.result(packed.split, n)] = value;
    }
  }

  absl::string_view NameOf(const Packed& packed, size_t i) const {
    return function_.value_name(function_.result(packed.split, static_cast<int32_t>(i)));
  }

  ValueId Reshaped(const Packed& packed, size_t i, ValueId value) {
    std::vector<int64_t> shape = function_.attributes(packed.reshape).Ints("shape");
    shape.back() = builder_.type(value).dims.back();
    return builder_.Op(OpKind::kReshape, {value}, NameOf(packed, i), {{"shape", shape}});
  }

  const Function& function_;
  IdTable<ValueId, int32_t> uses_;
  IdTable<ValueId, char> is_parameter_;
  IdTable<ValueId, std::vector<int64_t>> parts_;  // sizes, of a weight that is parted
  IdTable<OpId, std::optional<Packed>> packed_;   // by the Split
  IdTable<OpId, char> skipped_;
  ir::Builder builder_;
  ir::FunctionCopy copy_;
  IdTable<ValueId, char> transposed_;                   // a weight that is stored [n,k]
  IdTable<ValueId, std::vector<ValueId>> part_values_;  // of a weight that is parted
  std::vector<ValueId> operands_;
  std::vector<absl::string_view> names_;
};

absl::StatusOr<bool> UnpackWeights(Function& function, const PassOptions&) {
  if (!function.mesh().empty()) return false;
  Unpacker unpacker(function);
  if (!unpacker.Find()) return false;
  ORRERY_ASSIGN_OR_RETURN(function, unpacker.Run());
  return true;
}

}  // namespace
}  // namespace unpack_weights_cc

extern const PassInfo kUnpackWeightsPass = {
    .name = "unpack-weights",
    .summary = "parts the weight of a product whose columns are split at once, as of Q, K and V",
    .options = "",
    .run = unpack_weights_cc::UnpackWeights,
    .idempotent = true,
};

}  // namespace orrery::transforms
