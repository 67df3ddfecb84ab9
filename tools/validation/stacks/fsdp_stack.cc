#include "tools/validation/software_stack.h"

// Parameters and gradients in fp32 and no other copy of the parameters, as much together as 16 bits
// and a copy. The backward of the loss in fp32 holds logarithms of probabilities, their gradient
// and that of the logits: 12 bytes, beside the room of the logits of 16 bits, which the step has.
// That of split logits (torch.distributed.tensor, _nll_loss_and_log_softmax_backward) holds two
// more on the way: 20.

namespace orrery::tools {

extern constinit const SoftwareStack kFsdpStack = {
    .name = "fsdp",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
};

}  // namespace orrery::tools
