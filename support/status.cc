#include "support/status.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "support/enum_names.h"

namespace orrery {
namespace status_cc {
namespace {

constexpr absl::string_view kInfeasiblePayload = "orrery/infeasible";
constexpr EnumNames<InfeasibleReason, 4> kReasons(
    {{"divisibility", InfeasibleReason::kDivisibility},
     {"memory", InfeasibleReason::kMemory},
     {"schedule", InfeasibleReason::kSchedule},
     {"unsupported", InfeasibleReason::kUnsupported}});

}  // namespace
}  // namespace status_cc

absl::string_view ToString(InfeasibleReason reason) { return status_cc::kReasons.Of(reason); }

absl::Status InfeasibleStatus(const Infeasible& infeasible) {
  absl::Status status = absl::FailedPreconditionError(infeasible.detail);
  status.SetPayload(status_cc::kInfeasiblePayload, absl::Cord(ToString(infeasible.reason)));
  return status;
}

std::optional<Infeasible> AsInfeasible(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(status_cc::kInfeasiblePayload);
  if (!payload.has_value()) return std::nullopt;
  const std::optional<InfeasibleReason> reason = status_cc::kReasons.Find(std::string(*payload));
  if (!reason.has_value()) return std::nullopt;
  return Infeasible{.reason = *reason, .detail = std::string(status.message())};
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
