#ifndef ORRERY_TOOLS_COLLECTIVE_CASES_H_
#define ORRERY_TOOLS_COLLECTIVE_CASES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "simulator/network/network_model.h"
#include "simulator/program/program.h"

// Collectives that another simulator has played, played again.

namespace orrery::tools {

/// "fluid, astra-unaware or astra-aware".
std::string NetworkNames();

/// "fluid", "astra-unaware" or "astra-aware" as a network for `program`; the error lists them.
absl::StatusOr<std::unique_ptr<simulator::NetworkModel>> MakeNetwork(
    absl::string_view name, const simulator::Program& program);

/// Plays every record of `path`, a file in the format of tests/data/collectives_astrasim.json, and
/// returns one line of CSV for each: index, expected and found nanoseconds, found over expected,
/// and a note where there is nothing to compare. A record's backend says through which network;
/// `fluid` takes our own model instead: the record's algorithm as one flow a dimension, one after
/// the other, without endpoint delays and local memory. So are records played that ASTRA-sim's
/// system does not play, and the note says why. No record stops the others.
absl::StatusOr<std::string> PlayCollectiveCases(const std::string& path, bool fluid);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_COLLECTIVE_CASES_H_
