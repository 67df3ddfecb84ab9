#ifndef ORRERY_COST_MODELS_KERNEL_TABLE_H_
#define ORRERY_COST_MODELS_KERNEL_TABLE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/op_kernels.h"
#include "ir/type.h"

// Measured kernels: a CSV file of them. docs/kernels.md says what its columns mean.

namespace orrery::cost_models {

/// How many sizes of a kernel tell how near two are. Of a product batch, m, n, k, of products of
/// experts how many experts, and m rows of each; of attention
/// batch x heads, queries, keys, width; of one that moves bytes those, and ones.
inline constexpr size_t kKernelSizeCount = 4;
using KernelSizes = std::array<int64_t, kKernelSizeCount>;

/// One measured kernel. So many fields: three forms of kernel.
struct MeasuredKernel {
  KernelForm form = KernelForm::kProduct;
  ir::DType dtype = ir::DType::kBF16;  // fp16 counts as bf16; of kMoving any
  /// Of a product; nothing: the file does not say.
  std::optional<ProductLayout> layout = {};
  bool backward = false, causal = true;  // of attention
  KernelSizes sizes = {1, 1, 1, 1};
  int64_t heads = 1;            // of attention
  std::string device = {};      // the beginning of its name, as h100; empty: any
  std::vector<int> lines = {};  // of the file, that say so
  double seconds = 0;           // the median of these lines

  /// Whether it was measured on a device of that name.
  bool IsOf(absl::string_view device_name) const;
};

/// How many sizes a shape has, and of which size.
struct SizesWanted {
  /// Bytes and flops of more are no 64-bit numbers.
  static constexpr double kMostTogether = 1e17;
  size_t least = 1, most = 1;
  int64_t most_of_one = int64_t{1} << 24;
};

/// The sizes of "4096x12288x12288", one of the characters of `between` between them; none where
/// they are not as wanted, or together over kMostTogether.
std::vector<int64_t> ParseKernelSizes(absl::string_view text, absl::string_view between,
                                      const SizesWanted& wanted);

/// The type as which products and attention of that type count: fp16 as bf16, which the same units
/// take at the same rate.
ir::DType CountedAs(ir::DType dtype);

/// The shape of a kernel as the table has it, "4096x12288x12288"; empty of kOther.
std::string ShapeText(const MeasuredKernel& row);
std::string ShapeText(const OpKernel& kernel);

/// The sizes of a kernel as measured ones have them. Not of kOther.
KernelSizes SizesOf(const OpKernel& kernel);

/// Reads comma-separated values with a head: op, dtype, shape, layout, seconds, and, if they are
/// there, device and direction, in any order; other columns and lines that begin with # are left
/// out, and so are rows of op `layer`. Rows of the same kernel become one. Errors name `name`, the
/// line, the column, what was found and what was wanted.
absl::StatusOr<std::vector<MeasuredKernel>> ParseKernelTable(absl::string_view text,
                                                             const std::string& name);

/// The table of "FILE", or with "FILE,only=h100" the rows that have this in their device.
absl::StatusOr<std::vector<MeasuredKernel>> ReadKernelTable(const std::string& spec);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNEL_TABLE_H_
