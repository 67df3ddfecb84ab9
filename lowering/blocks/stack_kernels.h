#ifndef ORRERY_LOWERING_BLOCKS_STACK_KERNELS_H_
#define ORRERY_LOWERING_BLOCKS_STACK_KERNELS_H_

#include "cost_models/kernels/kernel_choice.h"
#include "support/units.h"

namespace orrery::lowering {

/// What software makes of the ops of a step.
struct StackKernels {
  /// Element-wise kernels are fused as a compiler does (lowering/blocks/pointwise_groups.h), where
  /// the cost model prices such kernels.
  bool fuses_pointwise = false;
  /// Where they are not, a dropout and the sum behind it are one kernel all the same.
  bool fuses_dropout_sums = false;
  /// Products of weights' gradients add to the sums themselves: sums over microbatches take no time
  /// of their own (Megatron's gradient accumulation fusion).
  bool sums_in_products = false;
  /// How long the host takes to launch a kernel of forward or backward: these take no less than all
  /// their launches (lowering/blocks/launch_floor.h).
  Duration launch = Duration(0);

  /// Which kernels cost models price, and what these move besides.
  cost_models::KernelChoice choice = {};

  friend bool operator==(const StackKernels&, const StackKernels&) = default;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_STACK_KERNELS_H_
