#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_PACKED_LAYOUT_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_PACKED_LAYOUT_H_

#include <array>
#include <cstdint>
#include <utility>

#include "ir/mesh.h"
#include "ir/type.h"

// A layout in one cache line, as searches over many thousands of them keep it.

namespace orrery::transforms::redistribution {

/// What a mesh axis does in a layout.
enum class AxisRole : uint8_t { kReplicates, kSplits, kPartial };

/// The same as an ir::Sharding of a tensor of at most kMaxDims dimensions: what each axis does.
class PackedLayout {
 public:
  /// The most dimensions that a tensor may have.
  static constexpr int kMaxDims = 30;

  /// All axes replicate.
  PackedLayout() { roles_.fill(kReplicated); }
  explicit PackedLayout(const ir::Sharding& sharding);
  /// The sharding that it was made from, of a tensor of `rank` dimensions.
  ir::Sharding Unpack(size_t rank) const;

  /// What the axis does.
  AxisRole role(ir::AxisIndex axis) const;
  /// The dimension that `axis` splits; -1 if it splits none.
  int dim(ir::AxisIndex axis) const;
  /// Requires a partial axis.
  ir::Reduction reduction(ir::AxisIndex axis) const;
  /// How many axes split the dimension outside of `axis`, which must split one.
  int position(ir::AxisIndex axis) const { return roles_[axis] >> 5; }
  /// The axes that split `dim`, the outermost first.
  ir::AxisList axes(int dim) const;
  /// The first of them; -1 if the dimension is not split.
  int major(int dim) const;
  /// The block of a split dimension: see ir::Sharding.
  int64_t block(int dim) const;

  /// Replaces what splits `dim`: axes that split it before and are not among `axes` replicate
  /// after.
  void SetSplit(int dim, const ir::AxisList& axes, int64_t block = ir::kNestedChunks);
  /// Splits `dim`, which `position` other axes split in nested chunks, once more, innermost.
  void PushSplit(int dim, ir::AxisIndex axis, int position) {
    roles_[axis] = Pack(static_cast<uint8_t>(dim), static_cast<uint8_t>(position));
  }
  /// Takes away the innermost axis of a dimension that is split in nested chunks.
  void PopSplit(ir::AxisIndex axis) { roles_[axis] = kReplicated; }
  /// Makes an axis partial that splits nothing.
  void SetPartial(ir::AxisIndex axis, ir::Reduction reduction);
  /// Of an axis that splits nothing.
  void SetReplicated(ir::AxisIndex axis) { roles_[axis] = kReplicated; }

  friend bool operator==(const PackedLayout&, const PackedLayout&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PackedLayout& layout) {
    return H::combine_contiguous(H::combine_contiguous(std::move(h), layout.roles_.data(), kBytes),
                                 layout.blocks_.data(), layout.blocks_.size());
  }

 private:
  // A role in a byte: position among the axes of a dimension (3 bits) and dimension (5 bits), where
  // 30 is none, with the reduction instead of the position, and 31 is replicated.
  static constexpr uint8_t kPartialDim = 30;
  static constexpr uint8_t kReplicated = 31;
  static uint8_t Pack(uint8_t dim, uint8_t position) {
    return static_cast<uint8_t>(dim | position << 5);
  }

  // With one byte that stays as it is, for a word to compare and to hash.
  static constexpr size_t kBytes = 8;
  static_assert(ir::kMaxAxes < kBytes);

  std::array<uint8_t, kBytes> roles_;
  std::array<int64_t, ir::kMaxAxes> blocks_ = {};  // by the first axis that splits the dimension
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_PACKED_LAYOUT_H_
