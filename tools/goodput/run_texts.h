#ifndef ORRERY_TOOLS_GOODPUT_RUN_TEXTS_H_
#define ORRERY_TOOLS_GOODPUT_RUN_TEXTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "simulator/goodput/run_spec.h"

// What flags of a long run are written as.

namespace orrery::tools {

/// Seconds of "50000h", "30m", "45s", "2d", "1.5h", "200ms", "3y" (of 365 days): at least 0.
absl::StatusOr<double> ParseSpan(absl::string_view text);

/// Both ends of "2m..10m"; of "5m" one.
absl::StatusOr<simulator::goodput::Spread> ParseSpread(absl::string_view text);

/// For people, in the unit that suits: "54 d", "3.1 h", "11.2 min", "45 s", "12 ms".
std::string SpanText(double seconds);

/// Failures as somebody has published them, by which a run is played where nothing else is said.
struct FailureProfile {
  absl::string_view name, summary, source;
  std::vector<std::pair<absl::string_view, double>> mtbf_hours;  // by component
};
const std::vector<FailureProfile>& AllFailureProfiles();

/// The profile that is taken where none is named.
inline constexpr absl::string_view kUsualFailures = "llama3-405b";

/// Reads "llama3-405b", "device=50000h,host=30000h", "llama3-405b,switch=never" or "none". Later
/// words go before earlier ones; what nothing is said of does not fail.
absl::StatusOr<std::vector<simulator::goodput::FailureRate>> ParseMtbf(absl::string_view text);

/// Where checkpoints go, as a flag says it. So many fields: what can be said of a tier.
struct TierText {
  std::string name;
  std::optional<double> every_s = {};           // neither: the best
  std::optional<int64_t> every_steps = {};      // likewise
  bool blocking = false;                        // training stands still until it is written
  bool own_network = false;                     // it is not written over the cards that steps use
  std::optional<double> bytes_per_second = {};  // of pfs in all, else of a host
  std::optional<double> stall_s = {}, write_s = {}, load_s = {};  // in place of what follows

  bool open() const { return !every_s.has_value() && !every_steps.has_value(); }
};

/// Reads "pfs", "30m" (to pfs), "none", "host:every=1m,pfs:every=30m:bandwidth=2TB/s:blocking".
absl::StatusOr<std::vector<TierText>> ParseTiers(absl::string_view text);

/// Reads "every=24h,away=30m,notice=2m" of a stop; without `notice`, what `usual` has.
absl::StatusOr<simulator::goodput::PlannedStop> ParseStop(
    absl::string_view text, const simulator::goodput::PlannedStop& usual);

/// Reads "wait", "shrink" or "keep-batch".
absl::StatusOr<simulator::goodput::WhenShort> ParseWhenShort(absl::string_view text);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_RUN_TEXTS_H_
