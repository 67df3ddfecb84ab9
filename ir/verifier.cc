#include "ir/verifier.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::ir {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 60;

class Verifier {
 public:
  explicit Verifier(const Function& function)
      : function_(function),
        defined_(function.value_limit(), 0),
        seen_(function.op_limit(), 0),
        checked_types_(function.types().size(), 0) {}

  absl::Status Run() {
    for (const Input& input : function_.inputs()) ORRERY_RETURN_IF_ERROR(Define(input.value));
    for (const OpId op : function_.order()) {
      absl::Status status = CheckOp(op);
      if (!status.ok()) return Annotate(status, Describe(op));
    }
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
    const StringId name = function_.value_name_id(value);
    if (name == StringId(0) || names_.insert(name).second) return absl::OkStatus();
    return Broken(value, "is the name of two values; wanted one");
  }

  absl::Status CheckType(ValueId value) {
    char& checked = checked_types_[function_.type_id(value)];
    if (checked != 0) return absl::OkStatus();
    checked = 1;
    const TensorType& type = function_.type(value);
    int64_t bytes = SizeOf(type.dtype);
    for (const int64_t dim : type.dims) {
      if (dim < 1 || __builtin_mul_overflow(bytes, dim, &bytes) || bytes > kMaxBytes) {
        return Broken(value, absl::StrCat("is ", ToString(type, function_.mesh()),
                                          "; wanted dimensions of at least 1 and at most 2^60 bytes"));
      }
    }
    return CheckSharding(value, type);
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
      const int64_t parts = function_.mesh().size(type.sharding.split[d]);
      if (type.dims[d] % parts == 0) continue;
      return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                               .detail = absl::StrCat(function_.name(), ": ",
                                                      PrintValue(function_, value), ": dimension ", d,
                                                      " of ", type.dims[d],
                                                      " does not divide into ", parts, " parts")});
    }
    return absl::OkStatus();
  }

  absl::Status CheckOp(OpId op) {
    if (seen_[op] != 0) return absl::InvalidArgumentError("stands twice in the order");
    seen_[op] = 1;
    for (const ValueId operand : function_.operands(op)) {
      if (defined_[operand] == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("uses ", PrintValue(function_, operand), " before it is defined"));
      }
    }
    ORRERY_RETURN_IF_ERROR(CheckArity(op));
    ORRERY_RETURN_IF_ERROR(CheckInferred(op));
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      ORRERY_RETURN_IF_ERROR(Define(function_.result(op, i)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckArity(OpId op) const {
    const OpInfo& info = function_.info(op);
    const auto operands = static_cast<int>(function_.operands(op).size());
    if (info.operands != OpInfo::kVariadic && operands != info.operands) {
      return absl::InvalidArgumentError(
          absl::StrCat("got ", operands, " operands; wanted ", info.operands));
    }
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
      return absl::InvalidArgumentError(absl::StrCat("got ", function_.result_count(op),
                                                     " results; wanted ", inferred_.size()));
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const TensorType& declared = function_.type(function_.result(op, i));
      const TensorType& inferred = inferred_[static_cast<size_t>(i)];
      if (declared == inferred) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "result ", i, " is declared ", ToString(declared, function_.mesh()),
          " but its operands make it ", ToString(inferred, function_.mesh())));
    }
    return absl::OkStatus();
  }

  absl::Status Outputs() const {
    absl::flat_hash_set<std::pair<ValueId, OutputRole>> returned;
    for (const Output& output : function_.outputs()) {
      if (defined_[output.value] == 0) return Broken(output.value, "is returned but not defined");
      if (!returned.insert({output.value, output.role}).second) {
        return Broken(output.value, absl::StrCat("is returned twice as ", ToString(output.role)));
      }
      const bool belongs = output.role == OutputRole::kGradient ||
                           output.role == OutputRole::kUpdated ||
                           output.role == OutputRole::kAccumulator;
      const bool is_input = output.of.valid() && defined_[output.of] != 0 &&
                            !function_.producer(output.of).valid();
      if (belongs != output.of.valid() || (belongs && !is_input)) {
        return Broken(output.value,
                      absl::StrCat("is returned as ", ToString(output.role),
                                   belongs ? "; wanted the input that it belongs to, as in gradient(%w)"
                                           : "; that role belongs to no input"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status DeadOps() const {
    const IdTable<ValueId, int32_t> uses = CountUses(function_);
    for (const OpId op : function_.order()) {
      bool alive = function_.info(op).op_class == OpClass::kSend;
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        alive = alive || uses[function_.result(op, i)] > 0;
      }
      if (!alive) {
        return absl::InvalidArgumentError(
            absl::StrCat(Describe(op), ": nothing uses its results; wanted no dead op"));
      }
    }
    return absl::OkStatus();
  }

  const Function& function_;
  IdTable<ValueId, char> defined_;
  IdTable<OpId, char> seen_;
  IdTable<TypeId, char> checked_types_;
  absl::flat_hash_set<StringId> names_;
  absl::InlinedVector<const TensorType*, 4> operand_types_;
  TypeList inferred_;
};

}  // namespace

absl::Status Verify(const Function& function) { return Verifier(function).Run(); }

}  // namespace orrery::ir
