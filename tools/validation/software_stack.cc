#include "tools/validation/software_stack.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::tools {
namespace software_stack_cc {
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
//   together as 16 bits and a copy. The backward of the loss in fp32 holds logarithms of
//   probabilities, their gradient and that of the logits: 12 bytes, beside the room of the logits
//   of 16 bits, which the step has. That of split logits (torch.distributed.tensor,
//   _nll_loss_and_log_softmax_backward) holds two more on the way: 20.
constexpr Stack kStacks[] = {{"ideal", {}, {}, 0},
                             {"megatron", {.loss = 8, .update = 4}, {.gradient = 2, .loss = 8}, 8},
                             {"deepspeed", {.loss = 8, .update = 6}, {.gradient = 4, .loss = 8}, 8},
                             {"fsdp", {.loss = 12}, {.loss = 12}, 20},
                             {"torchtitan", {.loss = 12}, {.loss = 12}, 20}};

}  // namespace
}  // namespace software_stack_cc

StackUse StackUseOf(const ir::Function& step, int64_t hp) {
  StackUse use = {.splits_logits = hp > 1};
  for (const ir::Input& input : step.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    use.dtype = step.type(input.value).dtype;
    break;
  }
  return use;
}

absl::StatusOr<lowering::StackMemory> StackMemoryOf(absl::string_view stack, const StackUse& use) {
  for (const software_stack_cc::Stack& known : software_stack_cc::kStacks) {
    if (known.name != stack) continue;
    if (ir::SizeOf(use.dtype) > 2) return lowering::StackMemory();
    lowering::StackMemory memory = use.dtype == ir::DType::kF16 ? known.fp16 : known.bf16;
    if (use.splits_logits) memory.loss = known.split_loss;
    return memory;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no stack '", stack, "'; wanted one of ", StackNames()));
}

std::string StackNames() {
  return absl::StrJoin(software_stack_cc::kStacks, ", ",
                       [](std::string* out, const software_stack_cc::Stack& stack) {
                         absl::StrAppend(out, stack.name);
                       });
}

}  // namespace orrery::tools
