#ifndef ORRERY_TRANSFORMS_TRAINING_LORA_H_
#define ORRERY_TRANSFORMS_TRAINING_LORA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// Training few weights beside many that stay as they are: low-rank adapters (Hu et al., "LoRA:
// Low-Rank Adaptation of Large Language Models", ICLR 2022). Frozen weights may be stored in fewer
// bits: transforms/training/quantize_frozen.h.

namespace orrery::transforms {

/// Adapters of the products y = x W: y = x W + (alpha / rank) (x A) B.
struct LoraOptions {
  int64_t rank = 0;  // columns of A, rows of B; 0: no adapters
  double alpha = 0;  // 0: as the rank, a scale of 1
  /// Of the name of the weight, or of the product: the products that get them (syntax of RE2, may
  /// match anywhere). Empty: all with a weight but those that make logits (FindHeads).
  std::string match = {};
};

/// "rank=16,alpha=32,match=attn.*", where match is last and may hold commas; alpha and match may be
/// missing. InvalidArgument for anything else, and for a key that is there twice.
absl::StatusOr<LoraOptions> ParseLora(absl::string_view text);

/// Puts adapters beside products (MatMul, Linear, each of a LinearGroup) of a forward function,
/// with or without a loss, and freezes all other parameters. What a Linear does with its sum, an
/// activation, becomes an op of its own behind the adapters' sum. A weight that several products
/// read has one pair. False when the rank is 0. An error where no product matches, or there is a
/// backward pass already.
absl::StatusOr<bool> AddLora(ir::Function& function, const LoraOptions& options);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_LORA_H_
