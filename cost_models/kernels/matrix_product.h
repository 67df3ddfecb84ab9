#ifndef ORRERY_COST_MODELS_KERNELS_MATRIX_PRODUCT_H_
#define ORRERY_COST_MODELS_KERNELS_MATRIX_PRODUCT_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "cluster/device.h"
#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/least_kernel.h"
#include "ir/op_info.h"
#include "ir/type.h"
#include "support/units.h"

// How long a matrix product takes by its shape. A kernel cuts the result into tiles, one a block;
// cores run blocks in waves, each a loop over k; where there are few tiles, k is split too and the
// parts are summed. Of all tiles and splits the fastest counts, as libraries choose (Osama et al.,
// "Stream-K", 2023, describes both; docs/kernels.md has the formula).

namespace orrery::cost_models {

/// The peak of products of operands of that type. Matrix units work on narrow floats only, as
/// PyTorch has them: TF32 is not taken for f32. Data sheets here have no peak of f64 and of
/// integers: those count as f32, which flatters them.
FlopRate MatrixPeak(ir::DType dtype, const cluster::Device& device);

/// Types of the operands, and of what is written; and whether rows of operands run along k. Else,
/// as of gradients of weights, those of the first run along m.
struct ProductTypes {
  ir::DType in = ir::DType::kBF16;
  ir::DType out = ir::DType::kBF16;
  bool along_k = true;
};

/// Bytes that all rows begin at multiples of, as tensor cores' fastest kernels need them (NVIDIA,
/// Matrix Multiplication Background, section 3.1: multiples of 8 elements of 16 bits).
inline constexpr int64_t kFullAlignment = 16;

/// The largest power of two of bytes, up to that, that all rows begin at multiples of; 0 where two
/// elements share a byte and rows begin within one. Of wide operands, which no such kernels take,
/// kFullAlignment.
int64_t RowAlignment(const ir::ProductShape& shape, ProductTypes types);

/// So many fields: what a user asks of a kernel.
struct ProductTime {
  Duration time;    // of the kernel, without its start
  Duration shared;  // the same, where others take the cores that its last wave leaves idle
  int tile_m = 0, tile_n = 0;
  int splits = 1;     // of k
  double waves = 0;   // of blocks over the cores
  Duration products;  // the four that decide; the longest is what limits it
  Duration memory;
  Duration steps;       // of one block, at the least step
  Duration reductions;  // of the parts of a split k

  /// "products", "memory" or "steps of a block".
  absl::string_view limit() const;
};

/// The kernel by the fastest tile and split, at `clock` times the clock of a burst. No shape takes
/// longer than one that is no smaller in each dimension, if both or neither are aligned. Requires
/// sizes of at least 1.
ProductTime PriceProduct(const ir::ProductShape& shape, ProductTypes types,
                         const cluster::Device& device, double clock = 1);

/// What no tile, split or alignment beats, of such a product and of any parts of it together: its
/// flops, and once what a block does before and after its loop, at the rate of the largest tile
/// and full waves; and its operands and result, once, at the rate of the memory.
LeastKernel LeastProduct(const ir::ProductShape& shape, ProductTypes types,
                         const cluster::Device& device, double clock = 1);

/// Products of experts: rows[e] rows times the matrix [k,n] of expert e.
struct GroupedShape {
  std::span<const int64_t> rows;
  int64_t n = 0, k = 0;
};

/// The same in one kernel whose blocks are of all experts, as CUTLASS's grouped products and
/// torch._grouped_mm have it: waves are of all blocks together, and the last rows of each expert
/// fill a tile of their own. Experts without rows take nothing.  Requires n and k of at least 1,
/// and a row.
ProductTime PriceGroupedProduct(const GroupedShape& shape, ProductTypes types,
                                const cluster::Device& device, double clock = 1);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_MATRIX_PRODUCT_H_
