#ifndef ORRERY_LOWERING_KERNEL_LISTING_H_
#define ORRERY_LOWERING_KERNEL_LISTING_H_

#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "lowering/blocks/kernel_room.h"
#include "lowering/blocks/task_template.h"
#include "support/units.h"

// Which kernels a function is to a stack: what each reads and writes, and what it needs of a core.

namespace orrery::lowering {

/// One kernel. So many fields: a column each.
struct ListedKernel {
  std::vector<ir::OpId> ops;  // in their order
  int32_t launch = 0;         // kernels of one number are launched together
  int32_t launches = 1;       // of this number and those behind it: an op may be several kernels
  Bytes reads, writes;
  int32_t inside = 0;  // values that it keeps to itself
  KernelNeeds needs;   // of a kernel of several ops
  Flops flops;
  Duration time;  // with its share of a start
};

struct KernelListing {
  std::vector<ListedKernel> kernels;  // by their first op
  int32_t launches = 0;               // as the stack counts them (KernelCosts::Cost::launches)

  Bytes bytes() const;
  Flops flops() const;
  Duration time() const;
};

/// Those of one phase, `context` saying which software, cost model and device. Views, collectives
/// and copies to the host are no kernels.
KernelListing ListKernels(const ir::Function& function, const TemplateContext& context);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_KERNEL_LISTING_H_
