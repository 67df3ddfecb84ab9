#include "tools/validation/stacks/deepspeed_figures.h"

// BLOOM's training: its scripts set CUDA_LAUNCH_BLOCKING=1, so that the host waits for each kernel
// before it launches another (bigscience, train/tr11-176B-ml/tr11-176B-ml.slurm). What a launch
// takes then is fitted on the rows of BLOOM's sweep that are not kept back: of 80 to 160 us, in
// which two or three of PyTorch's stand for one here.

namespace orrery::tools {
namespace deepspeed_blocking_stack_cc {
namespace {

constexpr SoftwareStack Blocking() {
  SoftwareStack stack = DeepspeedFigures("deepspeed-blocking");
  stack.launch_us = 140;
  stack.waits_for_kernels = true;
  return stack;
}

}  // namespace
}  // namespace deepspeed_blocking_stack_cc

extern constinit const SoftwareStack kDeepspeedBlockingStack =
    deepspeed_blocking_stack_cc::Blocking();

}  // namespace orrery::tools
