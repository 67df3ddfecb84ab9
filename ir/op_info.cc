#include "ir/op_info.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::ir {

#define ORRERY_OP(name, file) extern const OpInfo k##name##Op;
#include "ir/ops.def"
#undef ORRERY_OP

namespace op_info_cc {
namespace {

constexpr const OpInfo* kOps[] = {
#define ORRERY_OP(name, file) &k##name##Op,
#include "ir/ops.def"
#undef ORRERY_OP
};

// Which axes split each factor, as the operands have it; null while no operand said.
struct FactorAxes {
  std::array<AxisList, 32> axes;
  std::array<bool, 32> known = {};
  std::array<int, 32> operand = {};   // who said it first, for the message; -1: the attribute
  std::array<int64_t, 32> size = {};  // of that operand's dimension
};

// Dimensions that are split as one have their parts at the same places only where they divide, or
// are of one size.
absl::Status CheckAligned(const OpTypes& op, const AxisList& axes, int64_t size, int64_t other) {
  const int64_t parts = op.mesh.size(axes);
  if (size == other || (size % parts == 0 && other % parts == 0)) return absl::OkStatus();
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kDivisibility,
       .detail = absl::StrCat("dimensions of ", size, " and ", other, " are split as one into ",
                              parts, " parts, which do not divide them")});
}

absl::Status BindFactor(const OpTypes& op, int operand, size_t dim, int8_t factor,
                        FactorAxes& bound) {
  const AxisList axes = op.operands[static_cast<size_t>(operand)]->sharding.at(dim);
  if (factor == kNoFactor) {
    if (axes.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("dimension ", dim, " of operand ", operand,
                                                   " is split over ", op.mesh.Names(axes),
                                                   "; it must be whole"));
  }
  const auto f = static_cast<size_t>(factor);
  if (!bound.known[f]) {
    bound.known[f] = true;
    bound.axes[f] = axes;
    bound.operand[f] = operand;
    bound.size[f] = op.operands[static_cast<size_t>(operand)]->dims[dim];
    return absl::OkStatus();
  }
  const int64_t size = op.operands[static_cast<size_t>(operand)]->dims[dim];
  if (bound.axes[f] == axes) return CheckAligned(op, axes, bound.size[f], size);
  return absl::InvalidArgumentError(
      absl::StrCat("operands ", bound.operand[f], " and ", operand,
                   " run over one dimension that is split over '", op.mesh.Names(bound.axes[f]),
                   "' in the one and over '", op.mesh.Names(axes), "' in the other"));
}

absl::Status BindFactors(const OpTypes& op, const ShardingRule& rule, FactorAxes& bound) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    for (size_t d = 0; d < rule.operands[i].size(); ++d) {
      ORRERY_CHECK(rule.operands[i][d] < static_cast<int>(bound.axes.size()));
      absl::Status status = BindFactor(op, static_cast<int>(i), d, rule.operands[i][d], bound);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// The axes of the factor that only results have.
absl::Status BindMade(const OpTypes& op, const ShardingRule& rule, FactorAxes& bound) {
  if (rule.made == kNoFactor) return absl::OkStatus();
  const auto f = static_cast<size_t>(rule.made);
  bound.known[f] = true;
  bound.operand[f] = -1;
  const std::string names = op.attributes.String("split", "");
  if (names.empty()) return absl::OkStatus();
  if (absl::Status status = ParseAxes({{"axes", names}}, op.mesh, bound.axes[f]); !status.ok()) {
    return status;
  }
  for (size_t other = 0; other < bound.axes.size(); ++other) {
    for (const AxisIndex axis : bound.axes[f].axes()) {
      if (other == f || !bound.axes[other].contains(axis)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("split='", names, "' names an axis that splits an operand; wanted others"));
    }
  }
  return absl::OkStatus();
}

// The axes over which the results are partial because operands are.
absl::Status PartialOperands(const OpInfo& info, const OpTypes& op, AxisList& partial) {
  absl::InlinedVector<const AxisList*, 4> all;
  for (const TensorType* operand : op.operands) all.push_back(&operand->sharding.partial);
  const auto is_partial = [](const AxisList* axes) { return !axes->empty(); };
  const auto some = std::ranges::find_if(all, is_partial);
  partial = some == all.end() ? AxisList() : **some;
  if (PassesPartial(info, all)) return absl::OkStatus();
  auto named = some;
  if (info.linear) {
    named = std::ranges::find_if(all, [&](const AxisList* axes) { return *axes != *all.front(); });
    if ((*named)->empty()) named = all.begin();
  }
  return absl::InvalidArgumentError(absl::StrCat("operand ", named - all.begin(),
                                                 " is partial over ", op.mesh.Names(**named),
                                                 "; it must be reduced first"));
}

// A reshaped dimension has another size than the one it is split as. What does not divide in the
// operand already must have the same size here.
absl::Status CheckDivides(const OpTypes& op, const ShardingRule::Factors& factors,
                          const FactorAxes& bound, const TensorType& result) {
  for (size_t d = 0; d < factors.size(); ++d) {
    if (factors[d] == kNoFactor) continue;
    const auto f = static_cast<size_t>(factors[d]);
    const int64_t parts = op.mesh.size(bound.axes[f]);
    if (bound.size[f] % parts != 0) {
      ORRERY_RETURN_IF_ERROR(CheckAligned(op, bound.axes[f], bound.size[f], result.dims[d]));
      continue;
    }
    if (result.dims[d] % parts == 0) continue;
    const std::string whose =
        bound.operand[f] < 0 ? absl::StrCat("that split='", op.mesh.Names(bound.axes[f]), "' wants")
                             : absl::StrCat("of the operand's dimension of ", bound.size[f]);
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kDivisibility,
         .detail = absl::StrCat("dimension ", d, " of the result, of ", result.dims[d],
                                ", does not divide into the ", parts, " parts ", whose)});
  }
  return absl::OkStatus();
}

void ShardResult(const ShardingRule& rule, size_t j, const FactorAxes& bound, AxisList partial,
                 TensorType& result) {
  const ShardingRule::Factors& factors = rule.results[j];
  std::array<bool, 32> present = {};
  for (size_t d = 0; d < factors.size(); ++d) {
    if (factors[d] == kNoFactor) continue;
    const auto f = static_cast<size_t>(factors[d]);
    present[f] = true;
    result.sharding.Set(d, result.dims.size(), bound.axes[f]);
  }
  result.sharding.partial = partial;
  const bool own = j < 32 && (rule.own_results >> j & 1) != 0;
  for (size_t f = 0; f < bound.axes.size() && !own; ++f) {
    if (present[f]) continue;
    for (const AxisIndex axis : bound.axes[f].axes()) result.sharding.partial.push_back(axis);
  }
  result.sharding.partial = result.sharding.partial.Sorted();
}

absl::Status InferShardings(const OpInfo& info, const OpTypes& op, TypeList& results) {
  if (info.infer_sharding != nullptr) return info.infer_sharding(op, results);
  const bool sharded = std::any_of(op.operands.begin(), op.operands.end(),
                                   [](const TensorType* t) { return !t->sharding.replicated(); });
  if (!sharded && op.attributes.Find("split") == nullptr) return absl::OkStatus();
  if (info.sharding == nullptr) {
    return absl::InvalidArgumentError("cannot be split; all its operands must be whole");
  }
  const ShardingRule rule = info.sharding(op, results);
  FactorAxes bound;
  if (absl::Status status = BindFactors(op, rule, bound); !status.ok()) return status;
  if (absl::Status status = BindMade(op, rule, bound); !status.ok()) return status;
  AxisList partial;
  if (absl::Status status = PartialOperands(info, op, partial); !status.ok()) return status;
  for (size_t j = 0; j < results.size(); ++j) {
    ORRERY_RETURN_IF_ERROR(CheckDivides(op, rule.results[j], bound, results[j]));
    ShardResult(rule, j, bound, partial, results[j]);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace op_info_cc

const OpInfo& GetOpInfo(OpKind kind) { return *op_info_cc::kOps[static_cast<size_t>(kind)]; }

int OpKindCount() { return static_cast<int>(std::size(op_info_cc::kOps)); }

std::optional<OpKind> FindOp(absl::string_view name) {
  for (size_t i = 0; i < std::size(op_info_cc::kOps); ++i) {
    if (op_info_cc::kOps[i]->name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

bool PassesPartial(const OpInfo& info, std::span<const AxisList* const> partial) {
  const auto is_partial = [](const AxisList* axes) { return !axes->empty(); };
  const auto some = std::ranges::find_if(partial, is_partial);
  if (some == partial.end()) return true;
  const auto alike = [&](const AxisList* axes) { return *axes == **some; };
  if (info.linear && std::ranges::all_of(partial, alike)) return true;
  const auto i = some - partial.begin();
  return i < 32 && (info.linear_in >> i & 1) != 0 &&
         std::none_of(some + 1, partial.end(), is_partial);
}

absl::Status CheckOperandCount(const OpInfo& info, int64_t count) {
  if (info.operands == OpInfo::kVariadic) return absl::OkStatus();
  if (count <= info.operands && count >= info.operands - info.optional) return absl::OkStatus();
  const std::string wanted =
      info.optional == 0 ? absl::StrCat(info.operands)
                         : absl::StrCat(info.operands - info.optional, " to ", info.operands);
  return absl::InvalidArgumentError(absl::StrCat("got ", count, " operands; wanted ", wanted));
}

absl::Status InferTypes(OpKind kind, const OpTypes& op, TypeList& results) {
  const OpInfo& info = GetOpInfo(kind);
  ORRERY_RETURN_IF_ERROR(CheckOperandCount(info, static_cast<int64_t>(op.operands.size())));
  ORRERY_CHECK(info.infer != nullptr) << info.name << " has no type of its own accord";
  results.clear();
  if (absl::Status status = info.infer(op, results); !status.ok()) return status;
  for (const TensorType& result : results) {
    if (IsWithinLimits(result)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "its result would be ", ToString(result, op.mesh), "; wanted at most 2^60 bytes"));
  }
  return op_info_cc::InferShardings(info, op, results);
}

ShardingRule ElementwiseRule(const OpTypes& op, const TypeList& results) {
  const size_t rank = results[0].dims.size();
  const auto factors = [&](const Dims& dims) {
    ShardingRule::Factors row(dims.size(), kNoFactor);
    for (size_t d = 0; d < dims.size(); ++d) {
      const size_t aligned = rank - dims.size() + d;
      if (dims[d] == results[0].dims[aligned]) row[d] = static_cast<int8_t>(aligned);
    }
    return row;
  };
  ShardingRule rule;
  for (const TensorType* operand : op.operands) rule.operands.push_back(factors(operand->dims));
  for (const TensorType& result : results) rule.results.push_back(factors(result.dims));
  return rule;
}

}  // namespace orrery::ir
