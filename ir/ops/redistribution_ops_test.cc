#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ir/op_info.h"
#include "ir/tensor.h"
#include "ir/tensor_parts.h"

// The ops that change a layout, each against what the ranks hold before and after.

namespace orrery::ir {
namespace redistribution_ops_test_cc {
namespace {

using Random = std::mt19937_64;

int64_t Below(Random& random, int64_t limit) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
}

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

const Mesh& Ranks() {
  static const auto& kMesh = *new Mesh({{"a", 2}, {"b", 2}, {"c", 3}, {"d", 1}});
  return kMesh;
}

// All axes in any order.
std::vector<int> Shuffled(Random& random) {
  std::vector<int> order(Ranks().axes().size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(Below(random, static_cast<int64_t>(i)))]);
  }
  return order;
}

AxisList SomeAxes(Random& random) {
  std::vector<int> order = Shuffled(random);
  order.resize(static_cast<size_t>(1 + Below(random, 3)));
  return Axes(order);
}

// Each axis splits one of two dimensions of 12, or sums, or does nothing.
TensorType AnyType(Random& random) {
  TensorType type{DType::kI64, {12, 12}, {}};
  for (const int axis : Shuffled(random)) {
    const auto to = static_cast<size_t>(Below(random, 4));
    const auto index = static_cast<AxisIndex>(axis);
    if (to < 2) {
      AxisList axes = type.sharding.at(to);
      axes.push_back(index);
      type.sharding.Set(to, 2, axes);
    }
    if (to == 2) type.sharding.partial.push_back(index);
  }
  type.sharding.partial = type.sharding.partial.Sorted();
  return type;
}

Tensor Whole() {
  std::vector<int64_t> values(144);
  std::iota(values.begin(), values.end(), 1);
  return Tensor::OfInts(DType::kI64, {12, 12}, values);
}

// Parts whose sum over the partial axes is the whole, all of them different.
Tensor Brought(const TensorType& type, int64_t rank) {
  TensorType split = type;
  split.sharding.partial = {};
  Tensor part = Scatter(Whole(), split, Ranks(), rank);
  const int64_t ranks = Ranks().size(type.sharding.partial);
  if (ranks == 1) return part;
  const int64_t position = PartOf(Ranks(), rank, type.sharding.partial);
  const int64_t others = ranks * (ranks - 1) / 2;  // the sum of 0, 1, …
  for (int64_t& value : part.ints()) {
    value = position > 0 ? 7 * position + position * value : value - 7 * others - value * others;
  }
  return part;
}

struct Application {
  std::string op;
  AttributeSet attributes;
  TensorType operand;
  AxisList axes;
};

absl::StatusOr<TensorType> ResultOf(const Application& application) {
  const OpInfo& info = GetOpInfo(*FindOp(application.op));
  const TensorType* const operands[] = {&application.operand};
  TypeList results;
  const OpTypes types{application.attributes, operands, Ranks()};
  absl::Status status = info.infer(types, results);
  if (status.ok()) status = info.infer_sharding(types, results);
  if (!status.ok()) return status;
  return results[0];
}

// The ranks that differ from `rank` along `axes` only, in the order of their parts.
std::vector<int64_t> GroupOf(const AxisList& axes, int64_t rank) {
  std::vector<int64_t> group;
  for (const int64_t other : AllRanks(Ranks())) {
    if (RestOf(Ranks(), other, axes) == RestOf(Ranks(), rank, axes)) group.push_back(other);
  }
  std::ranges::sort(group, {}, [&axes](int64_t other) { return PartOf(Ranks(), other, axes); });
  return group;
}

Tensor After(const Application& application, const TensorType& result, int64_t rank) {
  const OpInfo& info = GetOpInfo(*FindOp(application.op));
  const std::vector<int64_t> group = GroupOf(application.axes, rank);
  std::vector<Tensor> tensors;
  for (const int64_t other : group) tensors.push_back(Brought(application.operand, other));
  std::vector<const Tensor*> parts;
  for (const Tensor& tensor : tensors) parts.push_back(&tensor);
  const auto position = std::ranges::find(group, rank) - group.begin();
  return info.exchange({.attributes = application.attributes,
                        .mesh = Ranks(),
                        .operand = application.operand,
                        .result = result,
                        .ranks = group,
                        .parts = parts,
                        .position = position});
}

std::string Says(const Application& application) {
  return absl::StrCat(application.op, " ", ToString(application.attributes), " of ",
                      ToString(application.operand, Ranks()));
}

// What each rank has after it, summed over what is still partial, is its part of the whole.
void ExpectRight(const Application& application, const TensorType& result) {
  TensorType split = result;
  split.sharding.partial = {};
  for (const int64_t rank : AllRanks(Ranks())) {
    const Tensor wanted = Scatter(Whole(), split, Ranks(), rank);
    Tensor sum(DType::kI64, wanted.dims());
    for (const int64_t other : GroupOf(result.sharding.partial, rank)) {
      const Tensor part = After(application, result, other);
      ASSERT_EQ(part.dims(), wanted.dims()) << Says(application);
      AddTensor(part, sum);
    }
    ASSERT_EQ(sum, wanted) << Says(application) << " on rank " << rank;
  }
}

Application AnyApplication(Random& random) {
  static const char* const kOps[] = {"AllReduce", "AllGather", "ReduceScatter", "AllToAll"};
  Application made{.op = kOps[Below(random, 4)],
                   .attributes = {},
                   .operand = AnyType(random),
                   .axes = SomeAxes(random)};
  const AxisList partial = made.operand.sharding.partial;
  // What may be taken off, mostly: all that is partial, or the inner end of a dimension.
  const int64_t dim = Below(random, 2);
  const auto split = made.operand.sharding.at(static_cast<size_t>(dim));
  const bool sums = made.op == "AllReduce" || made.op == "ReduceScatter";
  if (Below(random, 4) > 0 && sums && !partial.empty()) made.axes = partial;
  if (Below(random, 4) > 0 && !sums && !split.empty()) {
    made.axes = AxisList(split.axes().back());
    if (split.axes().size() > 2 && Below(random, 2) == 0) made.axes = split;
  }
  made.attributes.Set("axes", Ranks().Names(made.axes));
  const char* const name = made.op == "AllToAll" ? "from" : "dim";
  if (made.op != "AllReduce") made.attributes.Set(name, dim);
  if (made.op == "AllToAll") made.attributes.Set("to", 1 - dim);
  return made;
}

TEST(Redistributions, LeaveEachRankItsPart) {
  Random random(1);
  int applied = 0;
  for (int i = 0; i < 200; ++i) {
    const Application application = AnyApplication(random);
    const auto result = ResultOf(application);
    if (!result.ok()) continue;
    ++applied;
    ExpectRight(application, *result);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(applied, 75);
}

// Whether the ranks along `axes` have, among them, all that each of them is to have.
bool CanPermute(const TensorType& before, const Sharding& after, const AxisList& axes) {
  const auto has = [&](int64_t rank, int64_t other) {
    for (size_t d = 0; d < before.dims.size(); ++d) {
      if (PartOf(Ranks(), rank, after.at(d)) != PartOf(Ranks(), other, before.sharding.at(d))) {
        return false;
      }
    }
    return true;
  };
  return std::ranges::all_of(AllRanks(Ranks()), [&](int64_t rank) {
    const std::vector<int64_t> group = GroupOf(axes, rank);
    return std::ranges::any_of(group, [&](int64_t other) { return has(rank, other); });
  });
}

// Of partial values too: each summand stays with its own.
TEST(Permute, TakesWhatTheGroupCanGive) {
  Random random(2);
  int permuted = 0, refused = 0, summands = 0;
  for (int i = 0; i < 1500; ++i) {
    Application application{
        .op = "Permute", .attributes = {}, .operand = AnyType(random), .axes = SomeAxes(random)};
    TensorType other = AnyType(random);
    if (Ranks().size(other.sharding.at(0)) != Ranks().size(application.operand.sharding.at(0)) ||
        Ranks().size(other.sharding.at(1)) != Ranks().size(application.operand.sharding.at(1))) {
      continue;
    }
    other.sharding.partial = application.operand.sharding.partial;
    AxisList used = other.sharding.partial;
    bool fits = true;
    for (const size_t d : {0u, 1u}) {
      const AxisList axes = other.sharding.at(d);
      for (const AxisIndex axis : axes.axes()) fits = fits && !used.contains(axis);
    }
    if (!fits) continue;
    application.attributes = {{"axes", Ranks().Names(application.axes)},
                              {"to", absl::StrCat(Ranks().Names(other.sharding.at(0)), ";",
                                                  Ranks().Names(other.sharding.at(1)))}};
    const auto result = ResultOf(application);
    const bool can = CanPermute(application.operand, other.sharding, application.axes);
    EXPECT_TRUE(can || !result.ok()) << Says(application);
    AttributeSet along_all = application.attributes;  // there anything can be had
    along_all.Set("axes", "a.b.c.d");
    EXPECT_TRUE(
        ResultOf(
            {.op = "Permute", .attributes = along_all, .operand = application.operand, .axes = {}})
            .ok());
    (result.ok() ? permuted : refused)++;
    if (!result.ok()) continue;
    summands += result->sharding.partial.empty() ? 0 : 1;
    EXPECT_EQ(result->sharding.split, other.sharding.split);
    ExpectRight(application, *result);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(permuted, 30);
  EXPECT_GT(refused, 30);
  EXPECT_GT(summands, 10);
}

// a and b swap, and c holds summands: those of c=1 come from c=1.
TEST(Permute, KeepsSummandsApart) {
  TensorType operand{DType::kI64, {12, 12}, {}};
  operand.sharding.Set(0, 2, Axes({0}));
  operand.sharding.Set(1, 2, Axes({1}));
  operand.sharding.partial = Axes({2});
  const Application swap{.op = "Permute",
                         .attributes = {{"axes", "a.b.c"}, {"to", "b;a"}},
                         .operand = operand,
                         .axes = Axes({0, 1, 2})};
  const auto result = ResultOf(swap);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(ToString(*result, Ranks()), "i64[12@b,12@a] partial(c)");
  ExpectRight(swap, *result);
}

// Row or column i of the result is number i - by * (12 / parts) of the whole.
Tensor Rotated(size_t dim, int64_t positions) {
  Tensor rotated = Whole();
  for (int64_t i = 0; i < 12; ++i) {
    PastePart(SlicePart(Whole(), dim, ((i - positions) % 12 + 12) % 12, 12), dim, i, rotated);
  }
  return rotated;
}

TEST(Rotate, HandsPartsOnInACircle) {
  Random random(3);
  int rotated = 0, whole = 0;
  for (int i = 0; i < 400; ++i) {
    TensorType operand = AnyType(random);
    operand.sharding.partial = {};
    const auto dim = static_cast<size_t>(Below(random, 2));
    AxisList axes = operand.sharding.at(dim);
    if (axes.empty()) axes = Axes({3});  // of one rank
    const bool alone = Ranks().size(axes) == 1;
    const int64_t parts = alone ? 4 : Ranks().size(axes), by = Below(random, 41) - 20;
    const Application application{.op = "Rotate",
                                  .attributes = {{"axes", Ranks().Names(axes)},
                                                 {"dim", static_cast<int64_t>(dim)},
                                                 {"parts", parts},
                                                 {"by", by}},
                                  .operand = operand,
                                  .axes = axes};
    const auto result = ResultOf(application);
    ASSERT_TRUE(result.ok()) << Says(application) << ": " << result.status();
    EXPECT_EQ(*result, operand);
    const Tensor wanted = Rotated(dim, by * (12 / parts));
    for (const int64_t rank : AllRanks(Ranks())) {
      ASSERT_EQ(After(application, *result, rank), Scatter(wanted, operand, Ranks(), rank))
          << Says(application) << " on rank " << rank;
    }
    (alone ? whole : rotated)++;
  }
  EXPECT_GT(rotated, 100);
  EXPECT_GT(whole, 20);
}

std::string Inferred(const std::string& op, const AttributeSet& attributes,
                     const TensorType& operand) {
  const auto result =
      ResultOf({.op = op, .attributes = attributes, .operand = operand, .axes = {}});
  return result.ok() ? ToString(*result, Ranks()) : std::string(result.status().message());
}

TEST(Redistributions, SayWhatAxesTheyWant) {
  TensorType type{DType::kI64, {12, 12}, {}};
  type.sharding.Set(0, 2, Axes({0, 2}));
  type.sharding.partial = Axes({1});
  EXPECT_EQ(Inferred("AllReduce", {}, type),
            "the attribute axes is missing; wanted the axes to work along");
  EXPECT_EQ(Inferred("AllReduce", {{"axes", "b.x"}}, type),
            "axes=\"b.x\" are no axes of mesh(a=2, b=2, c=3, d=1)");
  EXPECT_EQ(Inferred("AllReduce", {{"axes", "b.b"}}, type),
            "axes=\"b.b\" are no axes of mesh(a=2, b=2, c=3, d=1)");
  EXPECT_EQ(Inferred("AllReduce", {{"axes", "b.a"}}, type), "its operand is not partial over a");
  EXPECT_EQ(Inferred("AllReduce", {{"axes", "b"}}, type), "i64[12@a.c,12]");
  // Only the inner end comes off, in its own order.
  const AttributeSet outer = {{"axes", "a"}, {"dim", int64_t{0}}};
  EXPECT_EQ(Inferred("AllGather", outer, type), "dimension 0 of its operand is not split over a");
  const AttributeSet turned = {{"axes", "c.a"}, {"dim", int64_t{0}}};
  EXPECT_EQ(Inferred("AllGather", turned, type),
            "dimension 0 of its operand is not split over c.a");
  const AttributeSet inner = {{"axes", "c"}, {"dim", int64_t{0}}};
  EXPECT_EQ(Inferred("AllGather", inner, type), "i64[12@a,12] partial(b)");
  const AttributeSet beyond = {{"axes", "c"}, {"dim", int64_t{2}}};
  EXPECT_EQ(Inferred("AllGather", beyond, type), "dim=2 is no dimension of its operand");
  const AttributeSet negative = {{"axes", "c"}, {"dim", int64_t{-1}}};
  EXPECT_EQ(Inferred("AllSlice", negative, type), "dim=-1 is no dimension of its operand");
  const AttributeSet summed = {{"axes", "b"}, {"dim", int64_t{1}}};
  EXPECT_EQ(Inferred("AllSlice", summed, type), "its operand is sharded over b");
  EXPECT_EQ(Inferred("ReduceScatter", summed, type), "i64[12@a.c,12@b]");
  EXPECT_EQ(Inferred("Rotate", {{"axes", "a.c"}, {"dim", int64_t{0}}, {"parts", int64_t{6}}}, type),
            "i64[12@a.c,12] partial(b)");
  EXPECT_EQ(Inferred("Rotate", {{"axes", "c"}, {"dim", int64_t{0}}, {"parts", int64_t{3}}}, type),
            "dimension 0 of its operand is split over 'a.c'; wanted parts=3 ranks along c with one "
            "part each, or one rank with all");
  EXPECT_EQ(Inferred("Rotate", {{"axes", "d"}, {"dim", int64_t{1}}, {"parts", int64_t{5}}}, type),
            "dimension 1 (12) and parts=5; wanted parts that it falls into");
  EXPECT_EQ(Inferred("Rotate", {{"axes", "d"}, {"dim", int64_t{2}}}, type),
            "dim=2 is no dimension of its operand");
  const AttributeSet doubled = {{"axes", "a.c"}, {"to", "c;a.c"}};
  EXPECT_EQ(Inferred("Permute", doubled, type),
            "to=\"c;a.c\" splits dimension 0 into 3 parts; wanted 6, as it is");
  const AttributeSet twice = {{"axes", "a.c"}, {"to", "c.a;a"}};
  EXPECT_EQ(Inferred("Permute", twice, type), "to=\"c.a;a\" has a twice, or it is partial");
  const AttributeSet apart = {{"axes", "c"}, {"to", "c.a;"}};
  EXPECT_EQ(Inferred("Permute", apart, type), "to=\"c.a;\" changes axes of dimension 0 beyond c");
}

}  // namespace
}  // namespace redistribution_ops_test_cc
}  // namespace orrery::ir
