#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/results_test_util.h"
#include "ir/tensor.h"
#include "ir/tensor_parts.h"

// Attention in parts: by hand what parts of it compute, cost and say when they do not fit. That its
// rules split it right is for sharding_oracle_test.cc to say, and that a ring is the whole for
// transforms/sharding/ring_attention_test.cc.

namespace orrery::ir {
namespace attention_test_cc {
namespace {

constexpr double kLowest = std::numeric_limits<float>::lowest();

Tensor F(Dims dims, std::vector<double> values) {
  return Tensor::OfFloats(DType::kF64, std::move(dims), std::move(values));
}

Tensor AnyTensor(const Dims& dims, std::mt19937& random) {
  Tensor tensor(DType::kF64, dims);
  for (double& value : tensor.floats()) value = static_cast<double>(random() % 401) / 100 - 2;
  return tensor;
}

AttributeSet Flash(int64_t heads, int64_t kv_heads) {
  return {{"flash", int64_t{1}}, {"heads", heads}, {"kv_heads", kv_heads}};
}

std::vector<const TensorType*> Pointers(const std::vector<TensorType>& types) {
  std::vector<const TensorType*> pointers;
  for (const TensorType& type : types) pointers.push_back(&type);
  return pointers;
}

// The shardings that follow, or what is wrong.
std::string Inferred(OpKind kind, const std::vector<TensorType>& types,
                     const AttributeSet& attributes, const Mesh& mesh = Mesh()) {
  TypeList results;
  const absl::Status status = InferTypes(kind, {attributes, Pointers(types), mesh}, results);
  if (!status.ok()) return std::string(status.message());
  std::string text;
  for (const TensorType& type : results) absl::StrAppend(&text, ToString(type, mesh), " ");
  return text;
}

TensorType SplitType(Dims dims, size_t dim, AxisIndex axis = 0) {
  TensorType type{DType::kF32, std::move(dims), {}};
  type.sharding.Set(dim, type.dims.size(), AxisList(axis));
  return type;
}

// One row that weighs 3 and one that weighs 1.
TEST(MergeAttention, WeighsByTheSums) {
  const auto merged =
      Results(OpKind::kMergeAttention, {F({1, 1, 2}, {1, -2}), F({1, 1, 1}, {std::log(3.0)}),
                                        F({1, 1, 2}, {5, 6}), F({1, 1, 1}, {0})});
  EXPECT_NEAR(merged[0].Number(0), 2, 1e-12);
  EXPECT_NEAR(merged[0].Number(1), 0, 1e-12);
  EXPECT_NEAR(merged[1].Number(0), std::log(4.0), 1e-12);
}

TEST(MergeAttention, TakesNothingOfHiddenRows) {
  const Tensor seen = F({1, 1, 2}, {1, -2}), hidden = F({1, 1, 2}, {1e30, 7});
  const Tensor l = F({1, 1, 1}, {-700}), lowest = F({1, 1, 1}, {kLowest});
  EXPECT_EQ(Results(OpKind::kMergeAttention, {seen, l, hidden, lowest}),
            (std::vector<Tensor>{seen, l}));
  EXPECT_EQ(Results(OpKind::kMergeAttention, {hidden, lowest, seen, l}),
            (std::vector<Tensor>{seen, l}));
  const auto both = Results(OpKind::kMergeAttention, {seen, lowest, seen, lowest});
  EXPECT_EQ(both, (std::vector<Tensor>{seen, lowest}));
}

// Attention to the first keys and to the last ones, merged, is attention to all; in both layouts.
TEST(MergeAttention, MakesAttentionToAllKeys) {
  std::mt19937 random(1);
  for (const bool packed : {true, false}) {
    const auto tensor = [&](int64_t heads) {
      return AnyTensor(packed ? Dims{2, 6, heads * 3} : Dims{2, heads, 6, 3}, random);
    };
    const size_t rows = packed ? 1 : 2;
    const Tensor q = tensor(4), k = tensor(2), v = tensor(2);
    const AttributeSet attributes = Flash(4, 2);
    std::vector<Tensor> parts;
    for (const int64_t part : {0, 1}) {
      for (Tensor& tensor :
           Results(OpKind::kAttention,
                   {q, SlicePart(k, rows, part, 2), SlicePart(v, rows, part, 2)}, attributes)) {
        parts.push_back(std::move(tensor));
      }
    }
    const auto merged = Results(OpKind::kMergeAttention, parts);
    const auto expected = Results(OpKind::kAttention, {q, k, v}, attributes);
    for (const size_t i : {0u, 1u}) EXPECT_LE(Distance(merged[i], expected[i]), 1e-12);
  }
}

TEST(MergeAttention, WantsWhatAttentionMakes) {
  const TensorType y{DType::kBF16, {2, 6, 8}, {}}, l{DType::kF32, {2, 4, 6}, {}};
  EXPECT_EQ(Inferred(OpKind::kMergeAttention, {y, l, y, l}, {}), "bf16[2,6,8] f32[2,4,6] ");
  const TensorType narrow{DType::kBF16, {2, 4, 6}, {}}, other{DType::kF32, {2, 4, 5}, {}};
  EXPECT_EQ(Inferred(OpKind::kMergeAttention, {y, narrow, y, narrow}, {}),
            "got bf16[2,6,8] and bf16[2,4,6], and bf16[2,6,8] and bf16[2,4,6]; wanted two results "
            "of Attention with flash=1, of one shape");
  EXPECT_NE(Inferred(OpKind::kMergeAttention, {y, l, y, other}, {}), "bf16[2,6,8] f32[2,4,6] ");
  EXPECT_NE(Inferred(OpKind::kMergeAttention, {y, other, y, other}, {}), "bf16[2,6,8] f32[2,4,5] ");
  // Four heads are not split into eight.
  const Mesh mesh({{"hp", 8}});
  EXPECT_EQ(Inferred(OpKind::kMergeAttention,
                     {SplitType({2, 6, 8}, 2), SplitType({2, 4, 6}, 1), SplitType({2, 6, 8}, 2),
                      SplitType({2, 4, 6}, 1)},
                     {}, mesh),
            "dimension 2 of operand 0 is split over hp; it must be whole");
}

// A row of which the mask hides all attends to all keys alike, so that each has its share of dy.
TEST(AttentionGrad, OfHiddenRowsIsSharedAlike) {
  const Tensor q = F({1, 1, 1}, {2}), k = F({1, 4, 1}, {1, 2, 3, 4}),
               v = F({1, 4, 1}, {1, 3, 5, 7});
  const Tensor mask(DType::kBool, {1, 1, 1, 4});
  const AttributeSet attributes = Flash(1, 1);
  const auto y = Results(OpKind::kAttention, {q, k, v, mask}, attributes);
  EXPECT_EQ(y[0], F({1, 1, 1}, {4}));
  const auto gradients =
      Results(OpKind::kAttentionGrad, {q, k, v, y[0], y[1], F({1, 1, 1}, {8}), mask}, attributes);
  EXPECT_EQ(gradients[0], F({1, 1, 1}, {0}));
  EXPECT_EQ(gradients[1], F({1, 4, 1}, {0, 0, 0, 0}));
  EXPECT_EQ(gradients[2], F({1, 4, 1}, {2, 2, 2, 2}));
}

// Of a ring of three turns, with one row a part: at turn 1 row i sees the keys of row i - 1, which
// came later only for row 0.
TEST(Attention, InARingSeesThePartInItsPlace) {
  const Tensor q = F({1, 3, 1}, {1, 1, 1}), k = F({1, 3, 1}, {30, 10, 20});
  const Tensor v = F({1, 3, 1}, {3, 1, 2});
  AttributeSet attributes = Flash(1, 1);
  attributes.Set("causal", int64_t{1});
  attributes.Set("ring_rows", int64_t{1});
  attributes.Set("turn", int64_t{1});
  const auto results = Results(OpKind::kAttention, {q, k, v}, attributes);
  EXPECT_EQ(results[0], v);
  EXPECT_EQ(results[1], F({1, 1, 3}, {kLowest, 10, 20}));
}

TEST(Attention, InARingWantsWholeParts) {
  const TensorType x{DType::kF32, {1, 6, 4}, {}}, mask{DType::kF32, {1, 1, 6, 6}, {}};
  const auto error = [&](const std::vector<TensorType>& types, int64_t rows, int64_t turn,
                         int64_t flash) {
    return Inferred(OpKind::kAttention, types,
                    {{"flash", flash}, {"heads", int64_t{2}}, {"ring_rows", rows}, {"turn", turn}});
  };
  EXPECT_EQ(error({x, x, x}, 2, 2, 1), "f32[1,6,4] f32[1,2,6] ");
  const std::string wanted =
      "; wanted as many rows of both, in whole parts, and a turn below their number";
  EXPECT_EQ(error({x, x, x}, 4, 0, 1),
            "q and k have 6 and 6 rows with ring_rows=4 and turn=0" + wanted);
  EXPECT_EQ(error({x, x, x}, 2, 3, 1),
            "q and k have 6 and 6 rows with ring_rows=2 and turn=3" + wanted);
  EXPECT_EQ(error({x, x, x}, 0, 0, 1),
            "q and k have 6 and 6 rows with ring_rows=0 and turn=0" + wanted);
  const std::string plain = "attention in a ring wants flash=1, no mask and no dropout";
  EXPECT_EQ(error({x, x, x}, 2, 0, 0), plain);
  EXPECT_EQ(error({x, x, x, mask}, 2, 0, 1), plain);
  AttributeSet dropout = Flash(2, 2);
  dropout.Set("ring_rows", int64_t{2});
  dropout.Set("dropout", 0.5);
  EXPECT_EQ(Inferred(OpKind::kAttention, {x, x, x}, dropout), plain);
}

AttributeSet Dropout(double ratio, int64_t flash) {
  return {{"dropout", ratio}, {"flash", flash}, {"heads", int64_t{2}}, {"seed", int64_t{5}}};
}

// Of unlike probabilities, those that stayed are scaled; flash drops the same ones and keeps none
// of it.
TEST(Attention, DropsProbabilities) {
  std::mt19937 random(3);
  const Tensor q = AnyTensor({2, 7, 4}, random), k = AnyTensor({2, 9, 4}, random),
               v = AnyTensor({2, 9, 4}, random);
  const auto results = Results(OpKind::kAttention, {q, k, v}, Dropout(0.25, 0));
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[2].dims(), (Dims{2, 2, 7, 9}));
  int64_t stayed = 0;
  for (int64_t i = 0; i < results[1].size(); ++i) {
    stayed += results[2].Number(i) != 0 ? 1 : 0;
    EXPECT_NEAR(results[3].Number(i), results[2].Number(i) * results[1].Number(i) / 0.75, 1e-12);
  }
  EXPECT_NEAR(static_cast<double>(stayed) / static_cast<double>(results[1].size()), 0.75, 0.1);
  const auto flash = Results(OpKind::kAttention, {q, k, v}, Dropout(0.25, 1));
  ASSERT_EQ(flash.size(), 2u);
  EXPECT_LE(Distance(flash[0], results[0]), 1e-12);
  // Both draw again for the gradient, or read what was kept.
  const Tensor dy = AnyTensor({2, 7, 4}, random);
  const auto kept =
      Results(OpKind::kAttentionGrad, {q, k, v, results[0], results[1], dy, results[2], results[3]},
              Dropout(0.25, 0));
  const auto drawn =
      Results(OpKind::kAttentionGrad, {q, k, v, flash[0], flash[1], dy}, Dropout(0.25, 1));
  for (const size_t i : {0u, 1u, 2u}) EXPECT_LE(Distance(kept[i], drawn[i]), 1e-12);
  AttributeSet other = Dropout(0.25, 1);
  other.Set("seed", int64_t{6});
  EXPECT_GT(Distance(Results(OpKind::kAttention, {q, k, v}, other)[0], flash[0]), 1e-3);
}

TEST(Attention, SaysWhatIsWrongWithDropout) {
  const TensorType x{DType::kF32, {1, 3, 4}, {}}, p{DType::kF32, {1, 2, 3, 3}, {}};
  const TensorType stayed{DType::kBool, {1, 2, 3, 3}, {}};
  EXPECT_EQ(Inferred(OpKind::kAttention, {x, x, x}, Dropout(1, 0)),
            "dropout=1; wanted at least 0 and less than 1");
  EXPECT_EQ(Inferred(OpKind::kAttentionGrad, {x, x, x, x, p, x}, Dropout(0.5, 0)),
            "got 6 operands; wanted 8, and a mask or none");
  EXPECT_EQ(Inferred(OpKind::kAttentionGrad, {x, x, x, x, p, x, p, p}, Dropout(0.5, 0)),
            "what dropout left is f32[1,2,3,3] and f32[1,2,3,3]; wanted bools and floats of shape "
            "[1,2,3,3]");
  EXPECT_EQ(Inferred(OpKind::kAttentionGrad, {x, x, x, x, p, x, stayed, p}, Dropout(0.5, 0)),
            "f32[1,3,4] f32[1,3,4] f32[1,3,4] ");
}

// Parts stay whole, and q, k and v go together.
TEST(Attention, InARingIsSplitBetweenParts) {
  AttributeSet attributes = Flash(2, 2);
  attributes.Set("ring_rows", int64_t{3});
  const TensorType split = SplitType({1, 12, 4}, 1), whole{DType::kF32, {1, 12, 4}, {}};
  EXPECT_EQ(Inferred(OpKind::kAttention, {split, split, split}, attributes, Mesh({{"cp", 2}})),
            "f32[1,12@cp,4] f32[1,2,12@cp] ");
  EXPECT_EQ(Inferred(OpKind::kAttention, {split, split, split}, attributes, Mesh({{"cp", 3}})),
            "dimension 1 of operand 0 is split over cp; it must be whole");
  EXPECT_EQ(Inferred(OpKind::kAttention, {split, whole, whole}, attributes, Mesh({{"cp", 2}})),
            "operands 0 and 1 run over one dimension that is split over 'cp' in the one and over "
            "'' in the other");
}

// Eight heads over eight ranks; two heads of k and v are whole, or on two ranks.
TEST(Attention, SplitsHeadsOverMoreRanksThanKeysHave) {
  const AttributeSet attributes = Flash(8, 2);
  const Mesh eight({{"hp", 8}}), two({{"hp", 2}}), three({{"hp", 3}});
  const TensorType q = SplitType({1, 5, 24}, 2), k{DType::kF32, {1, 5, 6}, {}};
  const TensorType l = SplitType({1, 8, 5}, 1), split_k = SplitType({1, 5, 6}, 2);
  EXPECT_EQ(Inferred(OpKind::kAttention, {q, k, k}, attributes, eight),
            "f32[1,5,24@hp] f32[1,8@hp,5] ");
  EXPECT_EQ(Inferred(OpKind::kAttentionGrad, {q, k, k, q, l, q}, attributes, eight),
            "f32[1,5,24@hp] f32[1,5,6] partial(hp) f32[1,5,6] partial(hp) ");
  EXPECT_EQ(Inferred(OpKind::kAttentionGrad, {q, split_k, split_k, q, l, q}, attributes, two),
            "f32[1,5,24@hp] f32[1,5,6@hp] f32[1,5,6@hp] ");
  // Not through the middle of a head, and not one of k and v alone.
  EXPECT_EQ(Inferred(OpKind::kAttention, {q, k, k}, attributes, three),
            "dimension 2 of operand 0 is split over hp; it must be whole");
  EXPECT_EQ(Inferred(OpKind::kAttention, {q, split_k, k}, attributes, two),
            "operands 0 and 2 run over one dimension that is split over 'hp' in the one and over "
            "'' in the other");
}

// Of one op on the shapes of one rank.
struct Cost {
  double flops;
  int64_t bytes;
};
Cost CostOf(const std::vector<Dims>& dims, const Dims& y, const Dims& l,
            const AttributeSet& attributes) {
  std::vector<TensorType> types;
  for (const Dims& operand : dims) types.push_back({DType::kF32, operand, {}});
  const TypeList results = {{DType::kF32, y, {}}, {DType::kF32, l, {}}};
  const OpInfo& info = GetOpInfo(OpKind::kAttention);
  const std::vector<const TensorType*> pointers = Pointers(types);
  const Mesh mesh;
  const OpTypes op = {attributes, pointers, mesh};
  return {.flops = info.flops(op, results), .bytes = info.bytes(op, results)};
}

// One head of q reads one of the two of k and v, 5 rows of 3; three of eight that do not begin with
// a group of four may read both.
TEST(Attention, OfAFewHeadsReadsWhatTheyNeed) {
  const Cost one = CostOf({{1, 5, 3}, {1, 5, 6}, {1, 5, 6}}, {1, 5, 3}, {1, 1, 5}, Flash(8, 2));
  EXPECT_EQ(one.bytes, 4 * (15 + 15 + 15 + 15 + 5));
  EXPECT_EQ(one.flops, 2 * (15 * 5 + 15 * 5));
  const Cost heads =
      CostOf({{1, 3, 5, 3}, {1, 2, 5, 3}, {1, 2, 5, 3}}, {1, 3, 5, 3}, {1, 3, 5}, Flash(8, 2));
  EXPECT_EQ(heads.bytes, 4 * (45 + 30 + 30 + 45 + 15));
  const Cost all = CostOf({{1, 5, 24}, {1, 5, 6}, {1, 5, 6}}, {1, 5, 24}, {1, 8, 5}, Flash(8, 2));
  EXPECT_EQ(all.bytes, 4 * (120 + 30 + 30 + 120 + 40));
}

// Whole, and one of two ranks: each row meets the three of one part.
TEST(Attention, InARingCountsOnePart) {
  AttributeSet attributes = Flash(1, 1);
  attributes.Set("ring_rows", int64_t{3});
  const Dims whole = {1, 6, 2}, half = {1, 3, 2};
  EXPECT_EQ(CostOf({whole, whole, whole}, whole, {1, 1, 6}, attributes).flops, 2 * 2 * (6 * 2 * 3));
  EXPECT_EQ(CostOf({half, half, half}, half, {1, 1, 3}, attributes).flops, 2 * 2 * (3 * 2 * 3));
}

}  // namespace
}  // namespace attention_test_cc
}  // namespace orrery::ir
