#ifndef ORRERY_CLUSTER_FILE_FILE_RATES_H_
#define ORRERY_CLUSTER_FILE_FILE_RATES_H_

#include "absl/status/statusor.h"
#include "cluster/cluster.pb.h"
#include "cluster/file/file_position.h"
#include "cluster/kernel_rates.h"

// The rates of a device kind, in messages of a cluster file and out of them.

namespace orrery::cluster {

/// What the message says; what it does not say is as in the device that it is `like`, or else as in
/// `otherwise`.
absl::StatusOr<KernelRates> ReadRates(const file::KernelRates& message,
                                      const FilePosition& position, const KernelRates& otherwise);

/// All of them.
void FillRates(KernelRates rates, file::KernelRates& message);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_FILE_FILE_RATES_H_
