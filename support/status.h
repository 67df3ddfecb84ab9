#ifndef ORRERY_SUPPORT_STATUS_H_
#define ORRERY_SUPPORT_STATUS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery {

/// Why a candidate cannot run. Not an error: a search counts these and goes on.
enum class InfeasibleReason { kDivisibility, kMemory, kSchedule, kUnsupported };

/// The reason as one lower-case word: "divisibility", "memory", "schedule", "unsupported".
absl::string_view ToString(InfeasibleReason reason);

/// What cannot be done and why: "64 layers do not divide into 3 stages".
struct Infeasible {
  InfeasibleReason reason = InfeasibleReason::kUnsupported;
  std::string detail;
};

/// A status that carries `infeasible`, so that it travels the same way as an error does.
absl::Status InfeasibleStatus(const Infeasible& infeasible);

/// The infeasibility that `status` carries, or nothing when it is fine or a real error.
std::optional<Infeasible> AsInfeasible(const absl::Status& status);

/// `status` with "where: " before its message; its code and its infeasibility stay.
absl::Status Annotate(const absl::Status& status, absl::string_view where);

/// The value, or the error with `where` before it.
template <typename T>
absl::StatusOr<T> Annotated(absl::StatusOr<T> value, absl::string_view where) {
  if (value.ok()) return value;
  return Annotate(value.status(), where);
}

}  // namespace orrery

#define ORRERY_CONCAT_INNER(a, b) a##b
#define ORRERY_CONCAT(a, b) ORRERY_CONCAT_INNER(a, b)

/// Returns from the function when `expression`, a status, is not ok.
#define ORRERY_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    if (absl::Status orrery_status = (expression); !orrery_status.ok()) { \
      return orrery_status;                                               \
    }                                                                     \
  } while (false)

#define ORRERY_ASSIGN_OR_RETURN_IMPL(result, lhs, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return result.status();                   \
  lhs = *std::move(result)

/// Assigns the value of a StatusOr to `lhs`, or returns its status.
#define ORRERY_ASSIGN_OR_RETURN(lhs, expression) \
  ORRERY_ASSIGN_OR_RETURN_IMPL(ORRERY_CONCAT(orrery_result_, __LINE__), lhs, expression)

#endif  // ORRERY_SUPPORT_STATUS_H_
