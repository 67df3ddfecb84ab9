#ifndef ORRERY_IR_TYPE_H_
#define ORRERY_IR_TYPE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "ir/mesh.h"
#include "support/id.h"
#include "support/units.h"

// The type of a value: element type, global shape, and how the value is sharded over a mesh.

namespace orrery::ir {

ORRERY_DEFINE_ID(TypeId, "type");

/// What an element is; ir::ToString names each.
enum class DType : uint8_t {
  kBool,
  kF8,
  kF4,  // e2m1, and for each 16 elements a scale of 8 bits (NVFP4)
  kF16,
  kBF16,
  kF32,
  kF64,
  kI8,
  kI32,
  kI64,
  kI16,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8Block,  // f8, and for each 128 elements in a row a scale of 4 bytes (DeepSeek-V3's)
  kNF4,      // 4 bits; a scale of 8 bits a 64 elements, of these 4 bytes a 256 scales (QLoRA's)
  kI8Block,  // 8 bits of a whole number, and for each 256 elements a scale of 4 bytes
};

/// Bytes an element, whole ones: 1 of kF4 and kNF4, of which a tensor has more than one in a byte.
int64_t SizeOf(DType dtype);
/// Bytes an element in a large tensor, with its share of a scale: 9/16 of kF4, 33/32 of kF8Block,
/// 0.516 of kNF4 (Dettmers et al., QLoRA, section 3: 4 + 0.127 bits), 65/64 of kI8Block.
double BytesOf(DType dtype);
/// "f32".
absl::string_view ToString(DType dtype);
/// The inverse of ToString; nothing for an unknown name.
std::optional<DType> ParseDType(absl::string_view name);
/// Whether its elements are of floating point.
bool IsFloat(DType dtype);
/// Whether it is a copy that products read, narrower than 16 bits: kF8, kF8Block, kF4.
bool IsNarrow(DType dtype);
/// Whether it is a form in which weights are stored and not computed with: kNF4, kI8Block.
bool IsQuantized(DType dtype);

/// The size of each dimension, outermost first; none for a scalar.
using Dims = absl::InlinedVector<int64_t, 4>;

/// Number of elements; 1 for a scalar.
int64_t ElementCount(const Dims& dims);

/// How the values of ranks become one where a value is partial.
enum class Reduction : uint8_t { kSum, kAverage, kProduct, kMax, kMin };

/// Sizes of the parts of a split dimension, where its size does not divide evenly. A positive
/// number is a block size: blocks of so many elements are dealt to the parts in turn
/// (block-cyclic).
inline constexpr int64_t kNestedChunks = 0;  // axis by axis parts of ceil(n / p), the last short
/// The other way of equal parts: sizes differ by at most one, the large ones first.
inline constexpr int64_t kBalancedChunks = -1;  // sizes differ by at most one, the large ones first

/// The one layout of a tensor on a mesh: for each dimension the ordered mesh axes that split it
/// (the first one outermost) and how large its parts are, and the axes over which the value is
/// still partial, with the reduction that makes it whole. Axes that are not used hold replicas.
struct Sharding {
  absl::InlinedVector<AxisList, 4> split;  // empty: nothing is split; else one a dimension
  absl::InlinedVector<int64_t, 2> blocks;  // empty: kNestedChunks throughout; else one a dimension
  AxisList partial;                        // ascending
  std::array<Reduction, kMaxAxes> reductions = {};  // by axis; kSum where not partial

  bool replicated() const { return split.empty() && partial.empty(); }
  /// The axes that split dimension `dim`.
  AxisList at(size_t dim) const { return split.empty() ? AxisList() : split[dim]; }
  /// kNestedChunks, kBalancedChunks or the block size of dimension `dim`.
  int64_t block(size_t dim) const { return blocks.empty() ? kNestedChunks : blocks[dim]; }
  /// Sets what splits dimension `dim` of `rank`, keeping the form in which nothing split is empty.
  /// The block of a dimension that `axes` do not split is kNestedChunks.
  void Set(size_t dim, size_t rank, AxisList axes, int64_t block = kNestedChunks);
  /// Whether the axis splits a dimension, or is partial.
  bool Uses(AxisIndex axis) const;

  friend bool operator==(const Sharding&, const Sharding&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Sharding& s) {
    return H::combine(std::move(h), s.split, s.blocks, s.partial, s.reductions);
  }
};

/// The type of a value on all ranks together.
struct TensorType {
  DType dtype = DType::kF32;
  Dims dims;  // global: of the whole tensor
  Sharding sharding;

  friend bool operator==(const TensorType&, const TensorType&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TensorType& t) {
    return H::combine(std::move(h), t.dtype, t.dims, t.sharding);
  }
};

/// The part of `type` that the fullest rank of `mesh` holds: rank 0.
TensorType LocalType(const TensorType& type, const Mesh& mesh);

/// Bytes of the tensor as its dims say, without regard to sharding; of kF4 and
/// kF8Block rounded up.
Bytes SizeOf(const TensorType& type);

/// Whether the type is within the limits that the verifier sets: at most 30 dimensions, none
/// negative, and at most 2^60 bytes.
bool IsWithinLimits(const TensorType& type);

/// "f32[8192@dp,512@hp] partial(hp)".
std::string ToString(const TensorType& type, const Mesh& mesh);

/// Each distinct type once, under a dense id.
class TypeTable {
 public:
  TypeTable() = default;
  TypeTable(const TypeTable& other);
  TypeTable& operator=(const TypeTable& other);
  TypeTable(TypeTable&&) = default;
  TypeTable& operator=(TypeTable&&) = default;

  /// The id of a type: that of an equal one that is there, or a new one.
  TypeId Intern(const TensorType& type);
  const TensorType& operator[](TypeId id) const { return types_[static_cast<size_t>(id.index())]; }
  int32_t size() const { return static_cast<int32_t>(types_.size()); }

 private:
  std::deque<TensorType> types_;  // references to a type stay good
  absl::flat_hash_map<size_t, absl::InlinedVector<TypeId, 1>> by_hash_;
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_TYPE_H_
