#ifndef ORRERY_TOOLS_KERNEL_QUESTION_H_
#define ORRERY_TOOLS_KERNEL_QUESTION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/device.h"
#include "tools/kernel_loops.h"

// One kernel by the cost model `kernels`: how long it takes, what decides that, and what was
// measured near it.

namespace orrery::tools {

/// The flags of the program `kernel` for one kernel, as they were given. So many fields: a flag
/// each.
struct KernelFlags {
  std::string op = "matmul", dtype = "bf16", layout = "TN";
  std::string shape = {}, device = {}, json = {};
  std::string attention = "cudnn", cost_model = "kernels";
  bool backward = false, all_keys = false, kernel_each = false, print_device = false;
  KernelLoopFlags loops = {};
};

/// The device kind or file of that name, or the first whose name begins so: "h100".
absl::StatusOr<cluster::Device> DeviceByBeginning(const std::string& name);

/// Prints the answer, and writes it to `json` where that is named. Errors name the flag.
absl::Status AnswerKernel(const KernelFlags& flags);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_KERNEL_QUESTION_H_
