#include "ir/verifier.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/dead_code.h"
#include "ir/layout.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::ir {
namespace verifier_cc {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 60;
constexpr size_t kMaxRank = 30;  // a sharding rule has 32 factors, a product two more than its rank

class Verifier {
 public:
  explicit Verifier(const Function& function)
      : function_(function),
        defined_(function.value_limit(), 0),
        input_roles_(function.value_limit(), nullptr),
        seen_(function.op_limit(), 0),
        checked_types_(function.types().size(), 0),
        computed_with_(function.value_limit(), 0),
        moved_(function.value_limit(), 0) {
    for (const OpId op : function.order()) {
      for (const ValueId operand : function.operands(op)) {
        (IsOfShards(op) ? moved_ : computed_with_)[operand] = 1;
      }
    }
  }

  absl::Status Run() {
    for (const Input& input : function_.inputs()) input_roles_[input.value] = &input.role;
    for (const Input& input : function_.inputs()) ORRERY_RETURN_IF_ERROR(Define(input.value));
    for (const OpId op : function_.order()) ORRERY_RETURN_IF_ERROR(CheckOp(op));
    ORRERY_RETURN_IF_ERROR(Outputs());
    return DeadOps();
  }

 private:
  std::string Describe(OpId op) const {
    const std::string kind(function_.info(op).name);
    if (function_.result_count(op) == 0) return absl::StrCat(function_.name(), ": ", kind);
    return absl::StrCat(function_.name(), ": ", PrintValue(function_, function_.result(op)), " (",
                        kind, ")");
  }
  absl::Status Broken(ValueId value, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(function_.name(), ": ", PrintValue(function_, value), " ", what));
  }

  absl::Status Define(ValueId value) {
    defined_[value] = 1;
    ORRERY_RETURN_IF_ERROR(CheckType(value));
    const absl::string_view name = function_.value_name(value);
    if (name.empty() || names_.insert(name).second) return absl::OkStatus();
    return Broken(value, "is the name of two values; wanted one");
  }

  absl::Status CheckType(ValueId value) {
    char& checked = checked_types_[function_.type_id(value)];
    if (checked != 0) return absl::OkStatus();
    const TensorType& type = function_.type(value);
    ORRERY_RETURN_IF_ERROR(CheckAxes(value, type));
    checked = IsPlain(type) ? 1 : 0;  // some values may be of another type, and others not
    int64_t bytes = SizeOf(type.dtype);
    for (const int64_t dim : type.dims) {
      if (dim < 1 || __builtin_mul_overflow(bytes, dim, &bytes) || bytes > kMaxBytes) {
        return Broken(value,
                      absl::StrCat("is ", ToString(type, function_.mesh()),
                                   "; wanted dimensions of at least 1 and at most 2^60 bytes"));
      }
    }
    if (type.dims.size() > kMaxRank) {
      return Broken(
          value, absl::StrCat("has ", type.dims.size(), " dimensions; wanted at most ", kMaxRank));
    }
    return CheckSharding(value, type);
  }

  // First of all, because a type of unknown axes cannot even be printed.
  absl::Status CheckAxes(ValueId value, const TensorType& type) const {
    const Sharding& sharding = type.sharding;
    if (sharding.replicated() && sharding.blocks.empty()) return absl::OkStatus();
    const auto known = [this](const AxisList& list) {
      return std::all_of(list.axes().begin(), list.axes().end(),
                         [this](AxisIndex axis) { return axis < function_.mesh().axes().size(); });
    };
    if (!known(sharding.partial) ||
        !std::all_of(sharding.split.begin(), sharding.split.end(), known)) {
      return Broken(
          value, absl::StrCat("is sharded over axes that ", ToString(function_.mesh()), " lacks"));
    }
    const bool whole = std::all_of(sharding.split.begin(), sharding.split.end(),
                                   [](const AxisList& list) { return list.empty(); });
    const bool fits = sharding.blocks.empty() || sharding.blocks.size() == type.dims.size();
    if (fits && (sharding.split.empty() || (!whole && sharding.split.size() == type.dims.size()))) {
      return absl::OkStatus();
    }
    return Broken(value,
                  absl::StrCat("has ", type.dims.size(), " dimensions and a sharding of ",
                               sharding.split.size(),
                               "; wanted one split a dimension, or none where all are whole"));
  }

  absl::Status CheckSharding(ValueId value, const TensorType& type) const {
    AxisList used = type.sharding.partial;
    for (size_t d = 0; d < type.sharding.split.size(); ++d) {
      for (const AxisIndex axis : type.sharding.split[d].axes()) {
        if (used.contains(axis)) {
          return Broken(value, absl::StrCat("is ", ToString(type, function_.mesh()),
                                            "; wanted each axis at most once"));
        }
        used.push_back(axis);
      }
      if (type.sharding.block(d) != kNestedChunks && !OnlyMoves(value)) {
        return Broken(value, absl::StrCat("is ", ToString(type, function_.mesh()),
                                          "; wanted no blocks: the values of a function are split "
                                          "evenly, and blocks are for redistributions"));
      }
      const int64_t parts = function_.mesh().size(type.sharding.split[d]);
      if (type.dims[d] % parts == 0) continue;
      if (OnlyMoves(value) || !IsData(value)) continue;
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kDivisibility,
           .detail =
               absl::StrCat(function_.name(), ": ", PrintValue(function_, value), ": dimension ", d,
                            " of ", type.dims[d], " does not divide into ", parts, " parts")});
    }
    for (const AxisIndex axis : type.sharding.partial.axes()) {
      if (type.sharding.reductions[axis] == Reduction::kSum || OnlyMoves(value)) continue;
      return Broken(value, absl::StrCat("is ", ToString(type, function_.mesh()),
                                        "; wanted sums: the values of a function are partial in ",
                                        "no other way, which is for redistributions"));
    }
    return CheckStrays(value, type);
  }

  // Whether parts are even and without blocks, and what is partial a sum.
  bool IsPlain(const TensorType& type) const {
    for (size_t d = 0; d < type.sharding.split.size(); ++d) {
      if (type.dims[d] % function_.mesh().size(type.sharding.split[d]) != 0) return false;
      if (type.sharding.block(d) != kNestedChunks) return false;
    }
    const auto partial = type.sharding.partial.axes();
    return std::ranges::all_of(
        partial, [&](AxisIndex axis) { return type.sharding.reductions[axis] == Reduction::kSum; });
  }

  // Whether the op moves shards of parameters and their like, or computes element by element.
  bool IsOfShards(OpId op) const {
    switch (function_.kind(op)) {
      case OpKind::kAccumulate:
      case OpKind::kAdd:
      case OpKind::kAllGather:
      case OpKind::kAllReduce:
      case OpKind::kAllSlice:
      case OpKind::kAllToAll:
      case OpKind::kMakePartial:
      case OpKind::kPermute:
      case OpKind::kReblock:
      case OpKind::kReceive:
      case OpKind::kReduceScatter:
      case OpKind::kSend:
        return true;
      default:
        return function_.info(op).op_class == OpClass::kOptimizer;
    }
  }

  // Samples are dealt evenly; of what is computed, rules of ops see to it that parts fit together.
  bool IsData(ValueId value) const {
    return !function_.producer(value).valid() && *input_roles_[value] == InputRole::kData;
  }

  // Whether the value is only moved, so that it may lie on the ranks in any way: shards may leave
  // the last ranks less, and so may redistributions.
  bool OnlyMoves(ValueId value) const {
    if (computed_with_[value] != 0) return false;
    const OpId op = function_.producer(value);
    return op.valid() ? IsOfShards(op) : moved_[value] != 0;
  }

  // What no text form shows: blocks where nothing is split, reductions of axes that are whole.
  absl::Status CheckStrays(ValueId value, const TensorType& type) const {
    return Annotate(ir::CheckSharding(type.sharding, type.dims, function_.mesh()),
                    absl::StrCat(function_.name(), ": ", PrintValue(function_, value), " is ",
                                 ToString(type, function_.mesh())));
  }

  absl::Status CheckOp(OpId op) {
    if (absl::Status status = CheckUse(op); !status.ok()) return Annotate(status, Describe(op));
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      ORRERY_RETURN_IF_ERROR(CheckAxes(result, function_.type(result)));
    }
    if (absl::Status status = CheckInferred(op); !status.ok())
      return Annotate(status, Describe(op));
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      ORRERY_RETURN_IF_ERROR(Define(function_.result(op, i)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckUse(OpId op) {
    if (seen_[op] != 0) return absl::InvalidArgumentError("stands twice in the order");
    seen_[op] = 1;
    for (const ValueId operand : function_.operands(op)) {
      if (defined_[operand] == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("uses ", PrintValue(function_, operand), " before it is defined"));
      }
    }
    return CheckArity(op);
  }

  absl::Status CheckArity(OpId op) const {
    const OpInfo& info = function_.info(op);
    const auto operands = static_cast<int64_t>(function_.operands(op).size());
    ORRERY_RETURN_IF_ERROR(CheckOperandCount(info, operands));
    if (info.results == OpInfo::kVariadic || function_.result_count(op) == info.results) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("got ", function_.result_count(op), " results; wanted ", info.results));
  }

  absl::Status CheckInferred(OpId op) {
    if (function_.info(op).infer == nullptr) return absl::OkStatus();
    operand_types_.clear();
    for (const ValueId operand : function_.operands(op)) {
      operand_types_.push_back(&function_.type(operand));
    }
    const OpTypes types{.attributes = function_.attributes(op),
                        .operands = operand_types_,
                        .mesh = function_.mesh()};
    ORRERY_RETURN_IF_ERROR(InferTypes(function_.kind(op), types, inferred_));
    if (static_cast<size_t>(function_.result_count(op)) != inferred_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("got ", function_.result_count(op), " results; wanted ", inferred_.size()));
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const TensorType& declared = function_.type(function_.result(op, i));
      const TensorType& inferred = inferred_[static_cast<size_t>(i)];
      if (declared == inferred) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("result ", i, " is declared ", ToString(declared, function_.mesh()),
                       " but its operands make it ", ToString(inferred, function_.mesh())));
    }
    return absl::OkStatus();
  }

  absl::Status Outputs() const {
    absl::flat_hash_set<std::tuple<ValueId, OutputRole, ValueId>> returned;
    for (const Output& output : function_.outputs()) {
      ORRERY_CHECK(output.value.index() < function_.value_limit() &&
                   output.of.index() < function_.value_limit())
          << function_.name() << " returns " << output.value << " of " << output.of;
      if (!output.value.valid()) {
        return absl::InvalidArgumentError(absl::StrCat(function_.name(), ": returns no value as ",
                                                       ToString(output.role), "; wanted one"));
      }
      if (defined_[output.value] == 0) return Broken(output.value, "is returned but not defined");
      if (!returned.insert({output.value, output.role, output.of}).second) {
        return Broken(output.value, absl::StrCat("is returned twice as ", ToString(output.role)));
      }
      ORRERY_RETURN_IF_ERROR(CheckOwner(output));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOwner(const Output& output) const {
    const InputRole* owner = output.of.valid() ? input_roles_[output.of] : nullptr;
    absl::string_view trouble;
    switch (output.role) {
      case OutputRole::kGradient:
      case OutputRole::kUpdated:
        if (owner == nullptr) trouble = "wanted the input that it belongs to, as in gradient(%w)";
        break;
      case OutputRole::kAccumulator:
        if (owner == nullptr || *owner != InputRole::kAccumulator) {
          trouble = "wanted the input accumulator that it belongs to, as in accumulator(%sum)";
        }
        break;
      default:
        if (output.of.valid()) trouble = "that role belongs to no input";
    }
    if (trouble.empty()) return absl::OkStatus();
    return Broken(output.value,
                  absl::StrCat("is returned as ", ToString(output.role), "; ", trouble));
  }

  absl::Status DeadOps() const {
    const IdTable<ValueId, int32_t> uses = CountUses(function_);
    for (const OpId op : function_.order()) {
      if (!IsUsed(function_, op, uses)) {
        return absl::InvalidArgumentError(
            absl::StrCat(Describe(op), ": nothing uses its results; wanted no dead op"));
      }
    }
    return absl::OkStatus();
  }

  const Function& function_;
  IdTable<ValueId, char> defined_;
  IdTable<ValueId, const InputRole*> input_roles_;  // null for what an op makes
  IdTable<OpId, char> seen_;
  IdTable<TypeId, char> checked_types_;
  IdTable<ValueId, char> computed_with_;  // by ops that want parts without blocks
  IdTable<ValueId, char> moved_;          // by others
  absl::flat_hash_set<absl::string_view> names_;
  absl::InlinedVector<const TensorType*, 4> operand_types_;
  TypeList inferred_;
};

}  // namespace
}  // namespace verifier_cc

absl::Status Verify(const Function& function) { return verifier_cc::Verifier(function).Run(); }

}  // namespace orrery::ir
