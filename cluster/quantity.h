#ifndef ORRERY_CLUSTER_QUANTITY_H_
#define ORRERY_CLUSTER_QUANTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

// Quantities as cluster files write them. What is printed reads back as the same value, where
// ToString of support/units.h rounds for people. ParseBytes and ParseBandwidth are there.

namespace orrery::cluster {

/// Reads "1.8us", "500ns", "7ps", "0s": to whole picoseconds, half of one up. Not below 0, at most
/// a day.
absl::StatusOr<Duration> ParseDuration(absl::string_view text);

/// Reads "989Tflops" and "1.2Pflops": more than 0, at most 10^21.
absl::StatusOr<FlopRate> ParseFlopRate(absl::string_view text);

/// "1.8us", "80GB", "450GB/s", "989Tflops".
std::string Print(Duration duration);
std::string Print(Bytes size);
std::string Print(Bandwidth rate);
std::string Print(FlopRate rate);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_QUANTITY_H_
