#include "tools/software_stack.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::tools {
namespace {

using lowering::StackMemory;

// Bytes an element. Of 16 bits; steps in fp32 hold nothing more.
struct Stack {
  absl::string_view name;
  StackMemory fp16, bf16;
  double split_loss;  // in place of `loss` where logits are split over ranks
};

// megatron: logits are widened to fp32, and their exponentials are a second copy
//   (core/tensor_parallel/cross_entropy.py). With bf16, gradients are summed in fp32 buffers
//   (--accumulate-allreduce-grads-in-fp32, implied by --bf16); with fp16 they are copied to fp32
//   for the update (Float16OptimizerWithFloat16Params).
// deepspeed: the loss is Megatron's. With fp16, ZeRO-1 flattens the gradients of its shard (2) and
//   copies them to fp32 (4) for the update (runtime/zero/stage_1_and_2.py, step). With bf16, it
//   keeps fp32 gradients beside those of 16 bits (runtime/bf16_optimizer.py).
// fsdp, torchtitan: parameters and gradients in fp32 and no other copy of the parameters, as much
//   together as 16 bits and a copy. The loss in fp32 holds its logits, their logarithms and the
//   gradient, 12 bytes; of split logits (torch.distributed.tensor, _loss_parallel) the backward
//   makes the gradient, exponentials, their sum and product beside the logarithms: 20. The step has
//   4 of these, logits and gradient of 16 bits.
constexpr Stack kStacks[] = {{"ideal", {}, {}, 0},
                             {"megatron", {.loss = 8, .update = 4}, {.gradient = 2, .loss = 8}, 8},
                             {"deepspeed", {.loss = 8, .update = 6}, {.gradient = 4, .loss = 8}, 8},
                             {"fsdp", {.loss = 8}, {.loss = 8}, 16},
                             {"torchtitan", {.loss = 8}, {.loss = 8}, 16}};

}  // namespace

absl::StatusOr<StackMemory> StackMemoryOf(absl::string_view stack, const StackUse& use) {
  for (const Stack& known : kStacks) {
    if (known.name != stack) continue;
    if (ir::SizeOf(use.dtype) > 2) return StackMemory();
    StackMemory memory = use.dtype == ir::DType::kF16 ? known.fp16 : known.bf16;
    if (use.splits_logits) memory.loss = known.split_loss;
    return memory;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no stack '", stack, "'; wanted one of ", StackNames()));
}

std::string StackNames() {
  return absl::StrJoin(kStacks, ", ", [](std::string* out, const Stack& stack) {
    absl::StrAppend(out, stack.name);
  });
}

}  // namespace orrery::tools
