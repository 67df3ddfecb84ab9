#ifndef ORRERY_COST_MODELS_KERNELS_KERNEL_CHOICE_H_
#define ORRERY_COST_MODELS_KERNELS_KERNEL_CHOICE_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "support/units.h"

// What software makes of ops, where it is not the op that decides: which kernels it has, and what
// these move besides. An OpView carries it, so that cost models stay without state.

namespace orrery::cost_models {

/// Kernels of fused attention, by what their speed follows from.
enum class AttentionClass : uint8_t {
  kCudnn,   // cuDNN's, as TransformerEngine calls them
  kFlash3,  // Shah et al. (2024), for Hopper; other devices run FlashAttention 2
  kFlash2,  // Dao (2023)
  kFlash1,  // Dao et al. (2022): blocks over batch and heads alone
  kTriton,  // its first port to Triton, which MPT used: blocks over queries, too
  kCudnn8,  // cuDNN's of 8 bits: TransformerEngine's fp8_dpa
};

/// Of each class its name, as on the command line: cudnn, flash3, flash2, flash1, triton,
/// cudnn-fp8.
inline constexpr std::array<absl::string_view, 6> kAttentionClassNames = {
    "cudnn", "flash3", "flash2", "flash1", "triton", "cudnn-fp8"};

/// Bytes that software moves besides what an op itself must, an element of 16 bits.
struct ExtraTraffic {
  double gradient_sum = 0;  // of a gradient, to sum it up over microbatches
  /// Of a gradient, where it is reduced over ranks: 2 where its sum in fp32 is.
  double reduction = 0;
  double update = 0;         // of a parameter: norm, clipping, copies, zeroing, split kernels
  double loss = 0;           // of a logit, forward
  double loss_gradient = 0;  // and backward
  /// Of what a product's activation is applied to, forward: where this is a kernel of its own and
  /// no part of the product, it reads and writes.
  double activation = 0;
  /// Of rows that experts get and leave: where ranks send them rank by rank, they are sorted by
  /// expert before and back behind.
  double sorting = 0;
  /// Of what RMS norms, rotary positions and gated activations work on, where software has no
  /// kernel of them: an eager one has several, in fp32. Of rotary positions each way.
  double norm = 0, norm_gradient = 0, rotary = 0, gated = 0, gated_gradient = 0;

  friend bool operator==(const ExtraTraffic&, const ExtraTraffic&) = default;
};

/// How software carries out products of experts, of a matrix each.
struct ExpertProducts {
  /// The model has a mixture of experts: products of a list of matrices are theirs.
  bool present = false;
  /// A kernel each, one behind the other; else one kernel, whose blocks are of all experts.
  bool kernel_each = false;
  /// The least from one such kernel to the next: what the host takes to call the library.
  Duration call = Duration(0);

  friend bool operator==(const ExpertProducts&, const ExpertProducts&) = default;
};

/// All that software decides of an op's kernels.
struct KernelChoice {
  AttentionClass attention = AttentionClass::kCudnn;
  ExpertProducts experts = {};
  ExtraTraffic extra = {};

  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_KERNEL_CHOICE_H_
