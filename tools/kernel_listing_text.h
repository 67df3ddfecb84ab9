#ifndef ORRERY_TOOLS_KERNEL_LISTING_TEXT_H_
#define ORRERY_TOOLS_KERNEL_LISTING_TEXT_H_

#include <string>

#include "cluster/device.h"
#include "ir/function.h"
#include "lowering/blocks/stack_kernels.h"

// The kernels that software makes of a function, beside those that it is op by op.

namespace orrery::tools {

/// A function on a device, by a stack.
struct KernelListingQuestion {
  const ir::Function& function;
  const cluster::Device& device;
  std::string stack;  // its name
  lowering::StackKernels kernels;
};

/// A line a kernel: ops, what it reads and writes, what it needs of a core; then launches, traffic
/// and time, beside those without fusion, by the cost model `kernels`.
std::string KernelListingText(const KernelListingQuestion& question);
/// The same as JSON.
std::string KernelListingJson(const KernelListingQuestion& question);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_KERNEL_LISTING_TEXT_H_
