#ifndef ORRERY_IR_OPS_CHECKS_H_
#define ORRERY_IR_OPS_CHECKS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ir/op_info.h"
#include "ir/ops/kernels.h"

// What inference of many ops asks of their operands, with its errors.

namespace orrery::ir {

/// Operand i is of floating point.
inline absl::Status CheckFloat(const OpTypes& op, size_t i = 0) {
  if (IsFloat(op.operands[i]->dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "operand ", i, " is of ", ToString(op.operands[i]->dtype), "; wanted floating point"));
}

/// Operand i is a whole number.
inline absl::Status CheckInteger(const OpTypes& op, size_t i) {
  if (!IsFloat(op.operands[i]->dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("operand ", i, " is of ",
                                                 ToString(op.operands[i]->dtype),
                                                 "; wanted a type of whole numbers"));
}

/// Operand i has the element type of operand 0.
inline absl::Status CheckTypeOfFirst(const OpTypes& op, size_t i) {
  if (op.operands[i]->dtype == op.operands[0]->dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("element types differ; got ",
                                                 ToString(op.operands[0]->dtype), " and ",
                                                 ToString(op.operands[i]->dtype)));
}

/// Operand i has exactly these dims; `what` names them: "wanted [4] (one a channel)".
inline absl::Status CheckDims(const OpTypes& op, size_t i, const Dims& wanted,
                              absl::string_view what) {
  if (op.operands[i]->dims == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("operand ", i, " has shape ",
                                                 Show(op.operands[i]->dims), "; wanted ",
                                                 Show(wanted), what.empty() ? "" : " ", what));
}

/// Operand i has at least `rank` dimensions; `form` shows them: "[batch,channels,..]".
inline absl::Status CheckRankAtLeast(const OpTypes& op, size_t i, size_t rank,
                                     absl::string_view form) {
  if (op.operands[i]->dims.size() >= rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("operand ", i, " has shape ", Show(op.operands[i]->dims), "; wanted ", form));
}

/// A result of that type, not sharded.
inline void AddResult(TypeList& results, DType dtype, Dims dims) {
  results.push_back({.dtype = dtype, .dims = std::move(dims), .sharding = {}});
}

/// The type in which statistics of a tensor are kept: at least f32.
inline DType StatisticsType(DType dtype) { return dtype == DType::kF64 ? dtype : DType::kF32; }

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_CHECKS_H_
