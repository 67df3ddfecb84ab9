#ifndef ORRERY_TRANSFORMS_STAGES_PLACEMENT_H_
#define ORRERY_TRANSFORMS_STAGES_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Which devices run which ops, where stages are no chain: docs/placement.md.

namespace orrery::transforms {

/// Devices, by their numbers in the cluster, that run ops together: dp replicas of hp ranks each.
struct DeviceSet {
  int64_t dp = 1;
  int64_t hp = 1;
  std::vector<int32_t> devices = {};  // of its ranks

  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceSet& set) {
    return H::combine(std::move(h), set.dp, set.hp, set.devices);
  }
};

/// Forward ops on a set of devices; what else the step does for them is done there, too.
struct PlacedGroup {
  /// RE2 that is found in the name of a value that the op makes; "*": any op.
  std::string pattern;
  int32_t set = 0;  // of Placement::sets

  friend bool operator==(const PlacedGroup&, const PlacedGroup&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PlacedGroup& group) {
    return H::combine(std::move(h), group.pattern, group.set);
  }
};

/// Groups of ops, and the devices of each; an op is of the first group whose pattern matches. No
/// groups: stages are cut from a chain, as other axes say.
struct Placement {
  std::vector<PlacedGroup> groups = {};
  std::vector<DeviceSet> sets = {};  // in the order of the groups; no device is of two

  bool empty() const { return groups.empty(); }
  /// Devices of all sets.
  int64_t ranks() const;
  /// The largest degree of a set; 1 without sets.
  int64_t most_dp() const;
  int64_t most_hp() const;

  friend bool operator==(const Placement&, const Placement&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Placement& placement) {
    return H::combine(std::move(h), placement.groups, placement.sets);
  }
};

/// Reads "text=0-3;image=2x2@4;*=0-3": of each group a pattern, and its devices. "0-3,6" are
/// replicas; "2x2@4" are dp x hp of them, from device 4 on, "2x2@4,6,8,10" these. An empty text
/// has no groups. Errors: another form, a text of `;` and blanks, a pattern that is none, a device
/// that a group names twice, one that is of two sets.
absl::StatusOr<Placement> ParsePlacement(absl::string_view text);
/// What that reads.
std::string ToString(const Placement& placement);
/// "0-3", "2x2@4": devices as a placement names them.
std::string ToString(const DeviceSet& set);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_PLACEMENT_H_
