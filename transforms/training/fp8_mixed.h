#ifndef ORRERY_TRANSFORMS_TRAINING_FP8_MIXED_H_
#define ORRERY_TRANSFORMS_TRAINING_FP8_MIXED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"

// Mixed precision with products of 8 or 4 bits, as Transformer Engine and Megatron have it
// (Micikevicius et al., "FP8 Formats for Deep Learning", 2022; NVIDIA, "Pretraining Large Language
// Models with NVFP4", 2025): docs/mixed_precision.md.

namespace orrery::transforms {

/// Has the products of linear layers, forward and backward (FindFp8Products), read 8-bit copies of
/// their operands and write the type that they wrote before. Each value is copied once, by a Cast
/// where it is first used so, or before it is gathered or moved if nobody else wants the result;
/// forward leaves backward that copy. The copy of a weight is a parameter of its own, "w.f8", which
/// the update makes from the updated weight, once a step; a weight without an optimizer, or of
/// several products, is copied in each microbatch. What one type stands for: E4M3, and E5M2 of
/// gradients; their scales are left out.
///
/// Of a training step of 16 bits, or a forward pass; sharded over a mesh or not. False when there
/// is no such product.
absl::StatusOr<bool> Fp8Mixed(ir::Function& function);

/// The same with copies that have a scale for each 128 elements in a row, "w.f8b": DeepSeek-V3's
/// (2412.19437, section 3.3), TransformerEngine's Float8BlockScaling.
absl::StatusOr<bool> Fp8Block(ir::Function& function);

/// The same with copies of 4 bits, of NVFP4: "w.f4".
absl::StatusOr<bool> Nvfp4Mixed(ir::Function& function);

/// Any of them, by the type of the copies: kF8, kF8Block or kF4.
absl::StatusOr<bool> MixProducts(ir::Function& function, ir::DType copies);

/// A parameter, and its narrow copy that the update makes anew: values of one function.
struct WeightCopy {
  ir::ValueId parameter, copy;
  ir::OpId cast;
};

/// Those of a step, or of its update.
std::vector<WeightCopy> FindWeightCopies(const ir::Function& function);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_FP8_MIXED_H_
