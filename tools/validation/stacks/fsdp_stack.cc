#include "tools/validation/software_stack.h"

// Parameters and gradients in fp32 and no other copy of the parameters, as much together as 16 bits
// and a copy. The backward of the loss in fp32 holds logarithms of probabilities, their gradient
// and that of the logits: 12 bytes, beside the room of the logits of 16 bits, which the step has.
// That of split logits (torch.distributed.tensor, _nll_loss_and_log_softmax_backward) holds two
// more on the way: 20.
//
// Kernels are those of MosaicML's LLM Foundry: FlashAttention in Triton (attn_impl: triton) and a
// fused loss (flash-attn's, no more traffic than the op's). Two metrics of each microbatch
// (LanguageCrossEntropy and LanguagePerplexity, composer/metrics/nlp.py) compute it again, eagerly:
// logits to fp32 (6) and log_softmax, which reads thrice (16). Its AdamW (Composer's
// DecoupledAdamW) is a kernel an operation, 88 bytes a parameter, beside the norm (4) and clipping
// (8); the op has 30. Activations are kernels of their own (4).
//
// That checkpoints run a whole layer again, as PyTorch's did before 2.1, is an assumption: rows do
// not print the version, and full recomputation comes out 8 % shorter without. `slowdown`, by how
// much NCCL's kernels slow down what runs beside them, is fitted on the rows that are not kept
// back: of 0, 0.2 and 0.4 the one with the least error.

namespace orrery::tools {

extern constinit const SoftwareStack kFsdpStack = {
    .name = "fsdp",
    .summary = "LLM Foundry of 2023 on PyTorch's FSDP: parameters in fp32, attention in Triton.",
    .fp16 = {.loss = 12},
    .bf16 = {.loss = 12},
    .split_loss = 20,
    .recomputes_whole = true,
    .slowdown = 0.4,
    .attention = cost_models::AttentionClass::kTriton,
    .fp16_traffic = {.update = 70, .loss = 44, .activation = 4},
    .bf16_traffic = {.update = 70, .loss = 44, .activation = 4},
};

}  // namespace orrery::tools
