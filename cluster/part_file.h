#ifndef ORRERY_CLUSTER_PART_FILE_H_
#define ORRERY_CLUSTER_PART_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/collective_profile.h"
#include "cluster/device.h"

// Parts of a cluster as files of their own: a cluster file of one `device_kinds`, or of
// `collectives`, and nothing else.

namespace orrery::cluster {

/// The device of that name, or of the cluster file of that name, which has one kind.
absl::StatusOr<Device> FindDeviceOrFile(absl::string_view name);

/// A file that FindDeviceOrFile reads as the same device, with a comment on each of its rates.
/// Those of an assumption stand there as comments.
std::string PrintDevice(const Device& device);

/// The profile of that name, or of the cluster file of that name.
absl::StatusOr<CollectiveProfile> FindCollectivesOrFile(absl::string_view name);

/// A file that FindCollectivesOrFile reads as the same profile. Requires protocols.
std::string PrintCollectives(const CollectiveProfile& profile);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_PART_FILE_H_
