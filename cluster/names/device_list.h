#ifndef ORRERY_CLUSTER_NAMES_DEVICE_LIST_H_
#define ORRERY_CLUSTER_NAMES_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/link.h"

namespace orrery::cluster {

/// "0-7,16" as devices of a cluster of `devices`; "0-56:8" is each eighth. All of the cluster where
/// the text is empty. An error of one line where there is no such device, or a range is backwards.
absl::StatusOr<std::vector<DeviceId>> ParseDevices(const std::string& text, int32_t devices);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_NAMES_DEVICE_LIST_H_
