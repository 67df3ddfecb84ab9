#include "ir/type.h"

#include <algorithm>
#include <array>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"

namespace orrery::ir {
namespace type_cc {
namespace {

struct DTypeRow {
  DType dtype;
  absl::string_view name;
  int64_t size;
  bool is_float;
};

constexpr std::array<DTypeRow, 18> kDTypes = {{{DType::kBool, "bool", 1, false},
                                               {DType::kF8, "f8", 1, true},
                                               {DType::kF4, "f4", 1, true},
                                               {DType::kF16, "f16", 2, true},
                                               {DType::kBF16, "bf16", 2, true},
                                               {DType::kF32, "f32", 4, true},
                                               {DType::kF64, "f64", 8, true},
                                               {DType::kI8, "i8", 1, false},
                                               {DType::kI32, "i32", 4, false},
                                               {DType::kI64, "i64", 8, false},
                                               {DType::kI16, "i16", 2, false},
                                               {DType::kU8, "u8", 1, false},
                                               {DType::kU16, "u16", 2, false},
                                               {DType::kU32, "u32", 4, false},
                                               {DType::kU64, "u64", 8, false},
                                               {DType::kF8Block, "f8b", 1, true},
                                               {DType::kNF4, "nf4", 1, true},
                                               {DType::kI8Block, "i8b", 1, true}}};

constexpr int32_t kScanned = 6;

// What elements share a scale.
struct Blocks {
  int64_t elements, bytes;  // of a block, its scale included
};

constexpr Blocks BlocksOf(DType dtype) {
  switch (dtype) {
    case DType::kF4:
      return {.elements = 16, .bytes = 9};
    case DType::kF8Block:
      return {.elements = 128, .bytes = 132};
    case DType::kNF4:  // 256 blocks of 64: 8192 bytes, 256 scales, one of those
      return {.elements = 16384, .bytes = 8452};
    case DType::kI8Block:
      return {.elements = 256, .bytes = 260};
    default:
      return {.elements = 0, .bytes = 0};
  }
}

const DTypeRow& Row(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

}  // namespace
}  // namespace type_cc

int64_t SizeOf(DType dtype) { return type_cc::Row(dtype).size; }

double BytesOf(DType dtype) {
  const auto [elements, bytes] = type_cc::BlocksOf(dtype);
  if (elements == 0) return static_cast<double>(SizeOf(dtype));
  return static_cast<double>(bytes) / static_cast<double>(elements);
}

absl::string_view ToString(DType dtype) { return type_cc::Row(dtype).name; }
bool IsFloat(DType dtype) { return type_cc::Row(dtype).is_float; }
bool IsQuantized(DType dtype) { return dtype == DType::kNF4 || dtype == DType::kI8Block; }
bool IsNarrow(DType dtype) { return IsFloat(dtype) && SizeOf(dtype) == 1 && !IsQuantized(dtype); }

std::optional<DType> ParseDType(absl::string_view name) {
  for (const type_cc::DTypeRow& row : type_cc::kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

int64_t ElementCount(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

void Sharding::Set(size_t dim, size_t rank, AxisList axes, int64_t block) {
  if (axes.empty()) block = kNestedChunks;
  if (!blocks.empty() || block != kNestedChunks) {
    blocks.resize(rank, kNestedChunks);
    blocks[dim] = block;
    if (std::ranges::all_of(blocks, [](int64_t b) { return b == kNestedChunks; })) blocks.clear();
  }
  if (split.empty()) {
    if (axes.empty()) return;
    split.resize(rank);
  }
  split[dim] = axes;
  if (std::ranges::all_of(split, [](const AxisList& list) { return list.empty(); })) split.clear();
}

bool Sharding::Uses(AxisIndex axis) const {
  for (const AxisList& list : split) {
    if (list.contains(axis)) return true;
  }
  return partial.contains(axis);
}

TensorType LocalType(const TensorType& type, const Mesh& mesh) {
  TensorType local{.dtype = type.dtype, .dims = type.dims, .sharding = {}};
  for (size_t d = 0; d < type.sharding.split.size(); ++d) {
    local.dims[d] = LargestPart(SplitOf(type.sharding, type.dims, d), mesh);
  }
  return local;
}

Bytes SizeOf(const TensorType& type) {
  const int64_t count = ElementCount(type.dims);
  const auto [elements, bytes] = type_cc::BlocksOf(type.dtype);
  if (elements == 0) return Bytes(count * SizeOf(type.dtype));
  return Bytes(count / elements * bytes + (count % elements * bytes + elements - 1) / elements);
}

bool IsWithinLimits(const TensorType& type) {
  constexpr size_t kMaxRank =
      30;  // a sharding rule has 32 factors, a product two more than its rank
  constexpr int64_t kMaxBytes = int64_t{1} << 60;
  int64_t bytes = SizeOf(type.dtype);
  for (const int64_t dim : type.dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes) ||
        bytes > kMaxBytes)
      return false;
  }
  return type.dims.size() <= kMaxRank;
}

std::string ToString(const TensorType& type, const Mesh& mesh) {
  return absl::StrCat(ToString(type.dtype), LayoutText(type.sharding, type.dims, mesh));
}

TypeTable::TypeTable(const TypeTable& other) {
  for (const TensorType& type : other.types_) Intern(type);
}

TypeTable& TypeTable::operator=(const TypeTable& other) {
  if (this != &other) *this = TypeTable(other);
  return *this;
}

TypeId TypeTable::Intern(const TensorType& type) {
  // Most functions have a handful of types: comparing with the first few beats hashing.
  for (int32_t i = 0; i < std::min(size(), type_cc::kScanned); ++i) {
    if ((*this)[TypeId(i)] == type) return TypeId(i);
  }
  auto& ids = by_hash_[absl::Hash<TensorType>()(type)];
  for (const TypeId id : ids) {
    if ((*this)[id] == type) return id;
  }
  const TypeId id(size());
  types_.push_back(type);
  ids.push_back(id);
  return id;
}

}  // namespace orrery::ir
