#include "support/status.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace orrery {
namespace status_cc {
namespace {

constexpr absl::string_view kInfeasiblePayload = "orrery/infeasible";
constexpr InfeasibleReason kReasons[] = {InfeasibleReason::kDivisibility, InfeasibleReason::kMemory,
                                         InfeasibleReason::kSchedule,
                                         InfeasibleReason::kUnsupported};

}  // namespace
}  // namespace status_cc

absl::string_view ToString(InfeasibleReason reason) {
  switch (reason) {
    case InfeasibleReason::kDivisibility:
      return "divisibility";
    case InfeasibleReason::kMemory:
      return "memory";
    case InfeasibleReason::kSchedule:
      return "schedule";
    case InfeasibleReason::kUnsupported:
      return "unsupported";
  }
  return "unsupported";
}

absl::Status InfeasibleStatus(const Infeasible& infeasible) {
  absl::Status status = absl::FailedPreconditionError(infeasible.detail);
  status.SetPayload(status_cc::kInfeasiblePayload, absl::Cord(ToString(infeasible.reason)));
  return status;
}

std::optional<Infeasible> AsInfeasible(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(status_cc::kInfeasiblePayload);
  if (!payload.has_value()) return std::nullopt;
  for (const InfeasibleReason reason : status_cc::kReasons) {
    if (*payload == ToString(reason)) {
      return Infeasible{.reason = reason, .detail = std::string(status.message())};
    }
  }
  return std::nullopt;
}

absl::Status Annotate(const absl::Status& status, absl::string_view where) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(where, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace orrery
