#ifndef ORRERY_LOWERING_BLOCKS_STACK_MEMORY_H_
#define ORRERY_LOWERING_BLOCKS_STACK_MEMORY_H_

namespace orrery::lowering {

/// What the software of a training job holds beside the tensors of the step as the IR has them. A
/// number of bytes for each element; 0: nothing.
struct StackMemory {
  /// Of gradients, for each parameter of a rank, from the first microbatch to the last: what they
  /// take beyond one copy in the type of the parameter. 2: buffers of fp32 beside parameters of 16
  /// bits.
  double gradient = 0;
  /// While a loss of classes and its gradient are computed, for each logit of a rank: copies in
  /// fp32 of what the IR has in the type of the logits.
  double loss = 0;
  /// The same where the logits are split over ranks, each of which has a part of the classes.
  double split_loss = 0;
  /// While parameters are updated, for each element that the rank updates.
  double update = 0;
  /// Of what a stage sends forward, for each element and each microbatch under way on it: buffers
  /// of a pipeline that are kept until the microbatch's backward.
  double sent = 0;

  friend bool operator==(const StackMemory&, const StackMemory&) = default;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_STACK_MEMORY_H_
