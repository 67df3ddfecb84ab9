#ifndef ORRERY_LOWERING_BLOCKS_STACK_KERNELS_H_
#define ORRERY_LOWERING_BLOCKS_STACK_KERNELS_H_

#include <algorithm>
#include <cstdint>

#include "cost_models/kernels/kernel_choice.h"
#include "support/units.h"

namespace orrery::lowering {

/// What software makes of the ops of a step. So many fields: a figure of a stack each.
struct StackKernels {
  /// Element-wise kernels are fused as a compiler does (lowering/blocks/pointwise_groups.h), where
  /// the cost model prices such kernels.
  bool fuses_pointwise = false;
  /// But for copies of 8 or 4 bits, which are kernels of their own (TransformerEngine's).
  bool copies_apart = false;
  /// No more of them are one kernel than a core has registers and shared memory for
  /// (lowering/blocks/kernel_room.h).
  bool bounds_fusion = false;
  /// Kernels side by side that read one value are one kernel, and those that do the same to other
  /// tensors share a launch (lowering/blocks/batched_kernels.h).
  bool batches_kernels = false;
  /// Where they are not, a dropout and the sum behind it are one kernel all the same.
  bool fuses_dropout_sums = false;
  /// Where products of weights' gradients add to the sums themselves (Megatron's gradient
  /// accumulation fusion), how much longer they take for it: a share of what a kernel takes that
  /// adds a gradient of 16 bits to a sum. 1: such kernels add.
  double sum_share = 1;
  /// Checkpoints run a layer again as a whole, also what nothing reads (KeepRule::whole).
  bool recomputes_whole = false;
  /// Nothing is computed while tensor-parallel ranks communicate: collectives over hp alone are on
  /// the stream of kernels (Megatron before December 2021).
  bool waits_for_tensor_parallel = false;
  /// Nothing is computed on a rank while it sends to another stage: such sends are on the stream
  /// of kernels (Megatron's and DeepSpeed's pipelines of 2021 to 2023).
  bool waits_for_sends = false;
  /// A token goes once to each node that has experts of it, from where it goes on to them, and once
  /// to each rank where all are in one node (DeepEP, HybridEP); else once to each expert.
  bool sends_tokens_once = false;
  /// What goes to experts on other ranks and back is under way while kernels of another microbatch
  /// run, so that none waits for it (Megatron's overlap_moe_expert_parallel_comm).
  bool overlaps_experts = false;
  /// What goes to another stage is sent once by all tensor-parallel ranks together, the part of
  /// each, and gathered there (transforms/stages/scattered_sends.h).
  bool scatters_sends = false;
  /// No gradient is reduced before the last backward of the rank, of all its chunks.
  bool reduces_after_backward = false;
  /// What tensor-parallel ranks gather, or reduce and scatter, lies one part behind the other, and
  /// is copied to where it belongs, or from there, by a kernel of its own (PyTorch's DTensor, whose
  /// sequence is the second dimension).
  bool copies_gathers = false;
  /// Gathers and reduce-scatters over tensor-parallel ranks go on under the products that read and
  /// make what they move (lowering/blocks/pipelined_products.h).
  bool pipelines_products = false;
  /// Gathers of updated parameters go on while the forward of the next step runs
  /// (lowering/placement/early_gathers.h).
  bool gathers_ahead = false;
  /// Gradients are reduced so many parameters at a time, or the second for each data-parallel rank
  /// where that is more, unless it is said otherwise; 0: as without a stack.
  int64_t bucket_parameters = 0, bucket_parameters_a_rank = 0;
  /// In 16 bits; 0: as without a stack.
  Bytes BucketSize(int64_t ranks) const {
    return Bytes(2 * std::max(bucket_parameters, bucket_parameters_a_rank * ranks));
  }
  /// The share of its rate that a device loses while it communicates, where that is more than its
  /// own: NCCL's kernels take cores and memory from others.
  double slowdown = 0;
  /// How long the host takes to launch a kernel of forward or backward: these take no less than all
  /// their launches (lowering/blocks/launch_floor.h).
  Duration launch = Duration(0);
  /// The host launches nothing before what it launched has ended (CUDA_LAUNCH_BLOCKING=1): every
  /// launch of forward and backward is time of the device.
  bool waits_for_kernels = false;
  /// What a collective takes besides, between the kernels of a step: streams wait for each other,
  /// and ranks for the last of them.
  Duration collective = Duration(0);
  /// How long the device waits before each forward while the host prepares a microbatch: data,
  /// masks, what it reads back from the device.
  Duration prepare = Duration(0);
  /// How long the device waits before each update, of which a synchronous step has one, while the
  /// host loads, logs, and does what is the same however large the step is.
  Duration step = Duration(0);
  /// How long the device waits in each forward of a layer of experts while the host reads back how
  /// many rows each has, and launches their products.
  Duration experts = Duration(0);
  /// Forward and backward are captured graphs (CUDA graphs): the host launches none of their
  /// kernels, which follow each other as soon as the device can start them.
  bool graphs = false;

  /// Which kernels cost models price, and what these move besides.
  cost_models::KernelChoice choice = {};

  friend bool operator==(const StackKernels&, const StackKernels&) = default;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_STACK_KERNELS_H_
