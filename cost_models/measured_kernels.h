#ifndef ORRERY_COST_MODELS_MEASURED_KERNELS_H_
#define ORRERY_COST_MODELS_MEASURED_KERNELS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cost_models/cost_model.h"
#include "cost_models/kernel_table.h"
#include "cost_models/op_kernels.h"
#include "support/time_source.h"

// Kernels as they were measured, and between measured ones: the model `kernels` gives the shape of
// the function, measurements give its level. The time of a kernel is that of the model times a mean
// of what the nearest measured ones took over what the model says of them (Shepard, 1968, of their
// logarithms); docs/kernels.md has the weights and how near a kernel must be. All without what the
// host adds to a start: kernels are measured in a captured graph, or one behind the other.

namespace orrery::cost_models {

/// A time and where it is from.
struct KernelPrice {
  Duration time;
  TimeSource source = TimeSource::kModelled;
};

/// A measured kernel beside the one that is asked for.
struct NearKernel {
  const MeasuredKernel* measured = nullptr;
  /// In doublings of sizes, as straight lines go; another layout counts as half of one.
  double distance = 0;
  bool in_reach = false;  // each size at most twice the other
  Duration model = {};    // by `kernels`, without the host
};

/// The measured kernels of a table; see the top of this file.
class MeasuredKernels {
 public:
  explicit MeasuredKernels(std::vector<MeasuredKernel> table) : table_(std::move(table)) {}

  /// The time of a kernel: measured, where the table has its sizes, layout and type; by the nearest
  /// of its form and type, where one is in reach; else that of the model. Positive where that is.
  /// Never less than the launch overhead of the device.
  KernelPrice Price(const OpKernel& kernel, const cluster::Device& device) const;

  /// The nearest of its form and type on that device, in reach or not, at most so many. They live
  /// as long as this.
  std::vector<NearKernel> Nearest(const OpKernel& kernel, const cluster::Device& device,
                                  size_t most) const;

  /// Whether any was measured on such a device.
  bool Has(const cluster::Device& device) const;

 private:
  std::vector<MeasuredKernel> table_;
};

/// The cost model of a table: kernels as `kernels` has them where nothing near was measured,
/// collectives and messages as there. `spec` and errors are those of ReadKernelTable.
absl::StatusOr<std::unique_ptr<const CostModel>> MakeMeasuredKernelsCostModel(
    const std::string& spec);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_MEASURED_KERNELS_H_
