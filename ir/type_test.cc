#include "ir/type.h"

#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace orrery::ir {
namespace type_test_cc {
namespace {

constexpr DType kAll[] = {DType::kBool, DType::kF8, DType::kF16, DType::kBF16, DType::kF32,
                          DType::kF64,  DType::kI8, DType::kI32, DType::kI64};

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
  EXPECT_EQ(table, "bool:1 f8:1f f16:2f bf16:2f f32:4f f64:8f i8:1 i32:4 i64:8 ");
  EXPECT_FALSE(ParseDType("f31").has_value());
  EXPECT_FALSE(ParseDType("").has_value());
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

}  // namespace
}  // namespace type_test_cc
}  // namespace orrery::ir
