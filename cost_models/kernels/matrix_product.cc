#include "cost_models/kernels/matrix_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace orrery::cost_models {
namespace matrix_product_cc {
namespace {

struct Tile {
  int m, n;
};

constexpr Tile kLargest = {256, 128};
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128},
                           {64, 64},   {256, 64},  {64, 256},  {64, 32},  {32, 64},
                           {16, 64},   {16, 128},  {32, 128},  {128, 32}, {32, 32}};
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 32};

// Bytes of a row that a block takes in at a step, without their scales.
constexpr double kStepBytes = 128;
double StepDepth(ir::DType dtype) {
  return kStepBytes / (dtype == ir::DType::kF4 ? 0.5 : static_cast<double>(ir::SizeOf(dtype)));
}

// How sharply the longest of what goes on at once decides: the norm that they are summed by.
constexpr double kOverlap = 4.5;
// Two elements of 16 bits, in bytes.
constexpr int64_t kPairAlignment = 4;
// A kernel that sums the parts of a split k, and the 4 bytes that each part writes and it reads.
constexpr double kSumSeconds = 2.4e-6;
constexpr double kPartBytes = 8;

// Bytes that a tile reads for a multiply-add, over those of the largest.
double ReadsOf(Tile tile) {
  const auto reads = [](Tile t) { return (t.m + t.n) / (double{1} * t.m * t.n); };
  return reads(tile) / reads(kLargest);
}

// All that is the same for each tile and split, in seconds, elements and bytes. So many fields:
// what a user asks, and what the device has.
struct Kernel {
  double n, k;
  double rows;                       // of all products together
  double m, batch;                   // of products that are alike; or
  std::span<const int64_t> of_each;  // of those that are not, how many each has
  double flops_per_second, bytes_per_second, cores;
  double step_depth, step_seconds;
  double operand_bytes;  // read once, and the result written
  const ProductRates& rates;

  // Rows of tiles that are so high.
  double TileRows(int tile_m) const {
    if (of_each.empty()) return std::ceil(m / tile_m) * batch;
    int64_t count = 0;
    for (const int64_t rows_of_one : of_each) count += (rows_of_one + tile_m - 1) / tile_m;
    return static_cast<double>(count);
  }
};

// Seconds of one way to run it.
struct Parts {
  double waves = 0, products = 0, memory = 0, steps = 0, reductions = 0;
  double products_shared = 0;  // were waves not rounded up

  double AtLeast() const { return std::max({products, memory, steps}) + reductions; }
  double Sum() const { return SumWith(products); }
  double SumShared() const { return SumWith(products_shared); }

 private:
  double SumWith(double of_products) const {
    const double longest = std::max({of_products, memory, steps});
    double sum = 0;
    for (const double part : {of_products, memory, steps}) {
      sum += std::pow(part / longest, kOverlap);
    }
    return longest * std::pow(sum, 1 / kOverlap) + reductions;
  }
};

// `tile_rows` rows of tiles, of all products.
Parts PartsOf(const Kernel& kernel, Tile tile, double tile_rows, int splits) {
  const ProductRates& rates = kernel.rates;
  const double blocks = tile_rows * std::ceil(kernel.n / tile.n) * splits;
  const double steps = std::ceil(kernel.k / splits / kernel.step_depth);
  const double waves = blocks / kernel.cores;
  const double counted =
      std::max(1.0, waves + rates.wave_weight * (std::ceil(waves) - waves)) * kernel.cores;
  const double penalty = 1 + rates.tile_penalty * (ReadsOf(tile) - 1);
  const double block_flops =
      2.0 * tile.m * tile.n * (steps * kernel.step_depth + rates.fill) * penalty;
  const double parts = splits == 1 ? 0 : kPartBytes * splits * kernel.rows * kernel.n;
  return {.waves = waves,
          .products = counted * block_flops / kernel.flops_per_second,
          .memory = (kernel.operand_bytes + parts) / kernel.bytes_per_second,
          .steps = steps * kernel.step_seconds,
          .reductions = splits == 1 ? 0 : kSumSeconds,
          .products_shared = blocks * block_flops / kernel.flops_per_second};
}

// What is left of the efficiency where rows do not begin at multiples of 16 bytes.
double AlignedShare(const ir::ProductShape& shape, ProductTypes types,
                    const cluster::Unaligned& unaligned) {
  const int64_t alignment = RowAlignment(shape, types);
  if (alignment == kFullAlignment) return 1;
  if (shape.batch > 1) return unaligned.batch;
  return alignment >= kPairAlignment ? unaligned.even : unaligned.odd;
}

Kernel KernelOf(const ir::ProductShape& shape, ProductTypes types, const cluster::Device& device,
                double clock) {
  const KernelRates& of_device = device.rates;
  const ProductRates& rates = ProductRatesOf(of_device, types.in);
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  const auto in = ir::BytesOf(types.in);
  const auto out = ir::BytesOf(types.out);
  return {.n = n,
          .k = k,
          .rows = m * batch,
          .m = m,
          .batch = batch,
          .of_each = {},
          .flops_per_second = MatrixPeak(types.in, device).flops_per_second() * rates.efficiency *
                              AlignedShare(shape, types, rates.unaligned) * clock,
          .bytes_per_second =
              static_cast<double>(device.memory_bandwidth.bytes_per_second()) * rates.memory,
          .cores = static_cast<double>(of_device.cores),
          .step_depth = StepDepth(types.in),
          .step_seconds = rates.step.seconds() / clock,
          .operand_bytes = batch * (in * (m * k + k * n) + out * m * n),
          .rates = rates};
}

ProductTime FastestOf(const Kernel& kernel) {
  double best = std::numeric_limits<double>::infinity();
  Parts of_best;
  ProductTime answer;
  for (const Tile tile : kTiles) {
    const double tile_rows = kernel.TileRows(tile.m);
    for (const int splits : kSplits) {
      const Parts parts = PartsOf(kernel, tile, tile_rows, splits);
      if (parts.AtLeast() >= best) continue;
      const double seconds = parts.Sum();
      if (seconds >= best) continue;
      best = seconds;
      of_best = parts;
      answer = {.time = Duration::FromSeconds(seconds),
                .shared = {},
                .tile_m = tile.m,
                .tile_n = tile.n,
                .splits = splits,
                .waves = parts.waves,
                .products = Duration::FromSeconds(parts.products),
                .memory = Duration::FromSeconds(parts.memory),
                .steps = Duration::FromSeconds(parts.steps),
                .reductions = Duration::FromSeconds(parts.reductions)};
    }
  }
  answer.shared = Duration::FromSeconds(of_best.SumShared());
  return answer;
}

}  // namespace
}  // namespace matrix_product_cc

absl::string_view ProductTime::limit() const {
  if (products >= memory && products >= steps) return "products";
  return memory >= steps ? "memory" : "steps of a block";
}

FlopRate MatrixPeak(ir::DType dtype, const cluster::Device& device) {
  switch (dtype) {
    case ir::DType::kF4:
      return device.fp4;
    case ir::DType::kF8:
    case ir::DType::kF8Block:
      return device.fp8;
    case ir::DType::kF16:
    case ir::DType::kBF16:
      return device.fp16;
    default:
      return device.fp32;
  }
}

int64_t RowAlignment(const ir::ProductShape& shape, ProductTypes types) {
  const int64_t bits = types.in == ir::DType::kF4 ? 4 : 8 * ir::SizeOf(types.in);
  if (bits > 16) return kFullAlignment;
  const int64_t row = types.along_k ? shape.k : shape.m;
  return std::gcd(std::gcd(row * bits, shape.n * bits), kFullAlignment * 8) / 8;
}

ProductTime PriceProduct(const ir::ProductShape& shape, ProductTypes types,
                         const cluster::Device& device, double clock) {
  return matrix_product_cc::FastestOf(matrix_product_cc::KernelOf(shape, types, device, clock));
}

// Of a tile's flops all parts of k have `fill` of their own, so that no less than one is in the
// sum; small tiles, and waves that are not full, take longer, as Parts say.
LeastKernel LeastProduct(const ir::ProductShape& shape, ProductTypes types,
                         const cluster::Device& device, double clock) {
  const matrix_product_cc::Kernel kernel = matrix_product_cc::KernelOf(shape, types, device, clock);
  const double aligned = kernel.flops_per_second /
                         matrix_product_cc::AlignedShare(shape, types, kernel.rates.unaligned);
  const double flops = 2 * kernel.rows * kernel.n * (kernel.k + kernel.rates.fill);
  return {.arithmetic_s = flops / aligned,
          .memory_s = kernel.operand_bytes / kernel.bytes_per_second,
          .overlap = matrix_product_cc::kOverlap};
}

ProductTime PriceGroupedProduct(const GroupedShape& shape, ProductTypes types,
                                const cluster::Device& device, double clock) {
  int64_t rows = 0, experts = 0;
  for (const int64_t of_one : shape.rows) {
    rows += of_one;
    experts += of_one > 0 ? 1 : 0;
  }
  // Rows of all at once are the same bytes, but for the matrices of other experts.
  matrix_product_cc::Kernel kernel = matrix_product_cc::KernelOf(
      {.batch = 1, .m = rows, .n = shape.n, .k = shape.k}, types, device, clock);
  kernel.of_each = shape.rows;
  kernel.operand_bytes +=
      ir::BytesOf(types.in) * static_cast<double>(experts - 1) * kernel.k * kernel.n;
  return matrix_product_cc::FastestOf(kernel);
}

}  // namespace orrery::cost_models
