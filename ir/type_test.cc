#include "ir/type.h"

#include <map>
#include <random>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::ir {
namespace type_test_cc {
namespace {

using testing::ElementsAre;

constexpr DType kAll[] = {DType::kBool, DType::kF8,   DType::kF8Block, DType::kF4,
                          DType::kF16,  DType::kBF16, DType::kF32,     DType::kF64,
                          DType::kI8,   DType::kI32,  DType::kI64};

TensorType ShardedType() {
  TensorType type{DType::kF32, {8, 12}, {}};
  AxisList both(0);
  both.push_back(1);
  type.sharding.Set(1, 2, both);
  type.sharding.partial = AxisList(2);
  return type;
}

TEST(DType, ReadsItsOwnName) {
  std::string table;
  for (const DType dtype : kAll) {
    EXPECT_EQ(ParseDType(ToString(dtype)), dtype);
    absl::StrAppend(&table, ToString(dtype), ":", SizeOf(dtype), IsFloat(dtype) ? "f " : " ");
  }
  EXPECT_EQ(table, "bool:1 f8:1f f8b:1f f4:1f f16:2f bf16:2f f32:4f f64:8f i8:1 i32:4 i64:8 ");
  EXPECT_FALSE(ParseDType("f31").has_value());
  EXPECT_FALSE(ParseDType("").has_value());
}

// 8 bytes of elements and one of their scale, for each 16.
TEST(DType, OfFourBitsSharesBytes) {
  const auto bytes = [](Dims dims) { return SizeOf(TensorType{DType::kF4, std::move(dims), {}}); };
  EXPECT_EQ(bytes({16}), Bytes(9));
  EXPECT_EQ(bytes({17}), Bytes(10));
  EXPECT_EQ(bytes({}), Bytes(1));
  EXPECT_EQ(bytes({0}), Bytes(0));
  EXPECT_EQ(bytes({32, 64}), Bytes(32 * 64 / 16 * 9));
  EXPECT_EQ(BytesOf(DType::kF4), 0.5625);
  EXPECT_EQ(BytesOf(DType::kBF16), 2);
  // 4 bits, 8 for each 64 elements, 32 for each 256 of those: 4.127 (QLoRA, section 3).
  EXPECT_DOUBLE_EQ(8 * BytesOf(DType::kNF4), 4 + 8.0 / 64 + 32.0 / (64 * 256));
  EXPECT_EQ(SizeOf(TensorType{DType::kNF4, {64, 256}, {}}), Bytes(64 * 256 / 2 + 256 + 4));
  EXPECT_EQ(SizeOf(TensorType{DType::kI8Block, {64, 256}, {}}), Bytes(64 * 260));
  // The largest that is within limits.
  EXPECT_EQ(bytes({int64_t{1} << 60}), Bytes((int64_t{1} << 56) * 9));
}

// 128 bytes of elements and four of their scale, for each 128.
TEST(DType, OfBlocksSharesScales) {
  const auto bytes = [](Dims dims) {
    return SizeOf(TensorType{DType::kF8Block, std::move(dims), {}});
  };
  EXPECT_EQ(bytes({128}), Bytes(132));
  EXPECT_EQ(bytes({129}), Bytes(134));
  EXPECT_EQ(bytes({1}), Bytes(2));
  EXPECT_EQ(bytes({64, 256}), Bytes(64 * 2 * 132));
  EXPECT_EQ(BytesOf(DType::kF8Block), 1.03125);
  EXPECT_TRUE(IsNarrow(DType::kF8Block) && IsNarrow(DType::kF8) && IsNarrow(DType::kF4));
  EXPECT_TRUE(IsQuantized(DType::kNF4) && IsQuantized(DType::kI8Block));
  EXPECT_FALSE(IsNarrow(DType::kNF4) || IsQuantized(DType::kF4) || IsQuantized(DType::kI8));
  EXPECT_FALSE(IsNarrow(DType::kBF16) || IsNarrow(DType::kI8) || IsNarrow(DType::kBool));
}

TEST(Sharding, IsEmptyWhenNothingIsSplit) {
  Sharding sharding;
  sharding.Set(1, 3, AxisList());
  EXPECT_TRUE(sharding.replicated());
  sharding.Set(1, 3, AxisList(0));
  EXPECT_EQ(sharding.split.size(), 3u);
  EXPECT_EQ(sharding.at(1), AxisList(0));
  EXPECT_EQ(sharding.at(2), AxisList());
  EXPECT_TRUE(sharding.Uses(0));
  EXPECT_FALSE(sharding.Uses(1));
  sharding.Set(1, 3, AxisList());
  EXPECT_EQ(sharding, Sharding());
  sharding.partial = AxisList(1);
  EXPECT_TRUE(sharding.Uses(1));
  EXPECT_FALSE(sharding.replicated());
}

TEST(TensorType, KnowsWhatARankHolds) {
  const Mesh mesh({{"dp", 2}, {"hp", 3}, {"pp", 5}});
  const TensorType type = ShardedType();
  EXPECT_EQ(ToString(type, mesh), "f32[8,12@dp.hp] partial(pp)");
  EXPECT_EQ(ToString(LocalType(type, mesh), mesh), "f32[8,2]");
  EXPECT_EQ(ElementCount(type.dims), 96);
  EXPECT_EQ(SizeOf(type), Bytes(384));
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ToString(TensorType{DType::kBool, {}, {}}, Mesh()), "bool[]");
}

// The largest part: what the fullest rank needs.
TEST(TensorType, RoundsUpWhatDoesNotDivide) {
  const Mesh mesh({{"dp", 5}, {"hp", 1}, {"pp", 1}});
  EXPECT_EQ(ToString(LocalType(ShardedType(), mesh), mesh), "f32[8,3]");
  TensorType cyclic = ShardedType();
  cyclic.sharding.Set(1, 2, AxisList(0), 2);
  EXPECT_EQ(ToString(LocalType(cyclic, mesh), mesh), "f32[8,4]");
}

TEST(TypeTable, HasEachTypeOnce) {
  TypeTable table;
  std::vector<TypeId> ids;
  for (int64_t dim = 1; dim <= 100; ++dim) {
    ids.push_back(table.Intern({DType::kF32, {dim, 2}, {}}));
  }
  const TensorType& first = table[ids[0]];
  EXPECT_EQ(table.size(), 100);
  TypeTable copy(table), moved(std::move(table));
  for (int64_t dim = 1; dim <= 100; ++dim) {
    const TensorType type{DType::kF32, {dim, 2}, {}};
    EXPECT_EQ(copy.Intern(type), ids[static_cast<size_t>(dim - 1)]);
    EXPECT_EQ(moved.Intern(type), ids[static_cast<size_t>(dim - 1)]);
  }
  EXPECT_EQ(first.dims[0], 1);
  EXPECT_EQ(copy.Intern(ShardedType()), TypeId(100));
  EXPECT_EQ(moved.size(), 100);
}

TEST(TypeTable, TellsAllPartsOfATypeApart) {
  TensorType other_partial = ShardedType(), other_split = ShardedType(),
             other_dtype = ShardedType();
  other_partial.sharding.partial = AxisList();
  other_split.sharding.Set(1, 2, AxisList(1));
  other_dtype.dtype = DType::kI32;
  TypeTable table;
  EXPECT_EQ(table.Intern(ShardedType()), TypeId(0));
  EXPECT_EQ(table.Intern(other_partial), TypeId(1));
  EXPECT_EQ(table.Intern(other_split), TypeId(2));
  EXPECT_EQ(table.Intern(other_dtype), TypeId(3));
  EXPECT_EQ(table.Intern({DType::kF32, {8, 12}, {}}), TypeId(4));
  EXPECT_EQ(absl::Hash<TensorType>()(ShardedType()), absl::Hash<TensorType>()(ShardedType()));
}

// Sharding::Set and what reads it back.

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

TEST(ShardingSet, KeepsBlocksOfSplitDimensionsOnly) {
  Sharding sharding;
  sharding.Set(1, 3, Axes({2, 0}), 5);
  EXPECT_THAT(sharding.split, ElementsAre(AxisList(), Axes({2, 0}), AxisList()));
  EXPECT_THAT(sharding.blocks, ElementsAre(0, 5, 0));
  sharding.Set(0, 3, AxisList(), 7);
  EXPECT_THAT(sharding.blocks, ElementsAre(0, 5, 0));
  sharding.Set(0, 3, Axes({1}));
  EXPECT_THAT(sharding.blocks, ElementsAre(0, 5, 0));
  sharding.Set(2, 3, Axes({3}), kBalancedChunks);
  EXPECT_THAT(sharding.blocks, ElementsAre(0, 5, kBalancedChunks));
  sharding.Set(1, 3, Axes({2, 0}));  // nested again
  EXPECT_THAT(sharding.blocks, ElementsAre(0, 0, kBalancedChunks));
  sharding.Set(2, 3, AxisList(), 9);
  EXPECT_TRUE(sharding.blocks.empty());
  EXPECT_THAT(sharding.split, ElementsAre(Axes({1}), Axes({2, 0}), AxisList()));
  sharding.Set(0, 3, AxisList());
  sharding.Set(1, 3, AxisList(), 4);
  EXPECT_EQ(sharding, Sharding());
}

// Whatever was set before: one form for one meaning, and the last one counts.
TEST(ShardingSet, HasOneFormHoweverItCameAbout) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const size_t rank = 1 + random() % 4;
    Sharding sharding;
    std::map<size_t, std::pair<AxisList, int64_t>> last;
    for (uint64_t sets = random() % 8; sets > 0; --sets) {
      const size_t dim = random() % rank;
      const AxisList axes = random() % 3 == 0 ? AxisList() : AxisList(static_cast<AxisIndex>(dim));
      const int64_t block = static_cast<int64_t>(random() % 4) - 1;
      sharding.Set(dim, rank, axes, block);
      last[dim] = {axes, axes.empty() ? kNestedChunks : block};
    }
    Sharding once;
    bool any_split = false, any_block = false;
    for (const auto& [dim, set] : last) {
      EXPECT_EQ(sharding.at(dim), set.first);
      EXPECT_EQ(sharding.block(dim), set.second);
      EXPECT_EQ(sharding.Uses(static_cast<AxisIndex>(dim)), !set.first.empty());
      any_split = any_split || !set.first.empty();
      any_block = any_block || set.second != kNestedChunks;
      once.Set(dim, rank, set.first, set.second);
    }
    EXPECT_EQ(sharding.split.size(), any_split ? rank : 0);
    EXPECT_EQ(sharding.blocks.size(), any_block ? rank : 0);
    EXPECT_EQ(sharding.replicated(), !any_split);
    EXPECT_EQ(sharding, once);
    EXPECT_EQ(absl::Hash<Sharding>()(sharding), absl::Hash<Sharding>()(once));
  }
}

TEST(ShardingSet, TellsBlocksAndReductionsApart) {
  TensorType nested{DType::kF32, {8, 8}, {}};
  nested.sharding.Set(0, 2, AxisList(0));
  nested.sharding.partial = AxisList(1);
  TensorType cyclic = nested, balanced = nested, largest = nested;
  cyclic.sharding.Set(0, 2, AxisList(0), 2);
  balanced.sharding.Set(0, 2, AxisList(0), kBalancedChunks);
  largest.sharding.reductions[1] = Reduction::kMax;
  TypeTable table;
  EXPECT_EQ(table.Intern(nested), TypeId(0));
  EXPECT_EQ(table.Intern(cyclic), TypeId(1));
  EXPECT_EQ(table.Intern(balanced), TypeId(2));
  EXPECT_EQ(table.Intern(largest), TypeId(3));
  EXPECT_EQ(table.Intern(cyclic), TypeId(1));
  const Mesh mesh({{"a", 2}, {"b", 2}});
  std::string texts;
  for (int32_t id = 0; id < table.size(); ++id) {
    absl::StrAppend(&texts, ToString(table[TypeId(id)], mesh), "\n");
  }
  EXPECT_EQ(texts,
            "f32[8@a,8] partial(b)\n"
            "f32[8@a/2,8] partial(b)\n"
            "f32[8@a/balanced,8] partial(b)\n"
            "f32[8@a,8] partial(b:max)\n");
}

// What the fullest rank holds, for each kind of blocks.
TEST(LocalType, IsOfTheFullestRank) {
  const Mesh mesh({{"a", 2}, {"b", 3}});
  const auto local = [&mesh](int64_t size, int64_t block) {
    TensorType type{DType::kF16, {4, size}, {}};
    type.sharding.Set(1, 2, Axes({0, 1}), block);
    type.sharding.Set(0, 2, AxisList());
    return ToString(LocalType(type, mesh), mesh);
  };
  EXPECT_EQ(local(12, kNestedChunks), "f16[4,2]");
  EXPECT_EQ(local(13, kNestedChunks), "f16[4,3]");
  EXPECT_EQ(local(13, kBalancedChunks), "f16[4,3]");
  EXPECT_EQ(local(13, 2), "f16[4,3]");
  EXPECT_EQ(local(13, 4), "f16[4,4]");
  EXPECT_EQ(local(30, 4), "f16[4,8]");
  EXPECT_EQ(local(3, 4), "f16[4,3]");
  EXPECT_EQ(local(0, 4), "f16[4,0]");
}

}  // namespace
}  // namespace type_test_cc
}  // namespace orrery::ir
