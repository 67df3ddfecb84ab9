#ifndef ORRERY_SEARCH_VIEWS_KERNEL_LIST_H_
#define ORRERY_SEARCH_VIEWS_KERNEL_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/op_kernels.h"
#include "ir/type.h"
#include "search/runs/run.h"
#include "search/settings/setting.h"
#include "support/units.h"

// The kernels of a step, those that are alike as one: what a device is busy with.

namespace orrery::search {

/// A kernel of a step.
struct StepKernel {
  std::string op;                      // the kind, "MatMulGrad"
  ir::DType dtype = ir::DType::kBF16;  // of the first operand of a floating-point type
  cost_models::OpKernel kernel;        // `time` is that of the cost model of the setting
  int64_t count = 0;                   // a step, of one rank of each stage

  /// What all of them take.
  double seconds() const { return static_cast<double>(count) * kernel.time.seconds(); }
};

/// Those of a run, what takes longest first. On the first kind of device of the cluster, each op by
/// itself: what software fuses are several. An op of several kernels (gradients of a product) parts
/// its time as `kernels` does. Of slices of the sequence all count as those of one like them.
std::vector<StepKernel> KernelsOfStep(const Setting& setting, const Run& run);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_KERNEL_LIST_H_
