#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/mesh.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

// What the pointwise and reducing ops compute, and what they say when they cannot.

namespace orrery::ir {
namespace pointwise_test_cc {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

Tensor F(Dims dims, std::vector<double> values) {
  return Tensor::OfFloats(DType::kF32, std::move(dims), std::move(values));
}
Tensor F(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return F({count}, std::move(values));
}
Tensor I(std::vector<int64_t> values, DType dtype = DType::kI64) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::OfInts(dtype, {count}, std::move(values));
}
Tensor B(std::vector<int64_t> values) { return I(std::move(values), DType::kBool); }

// "f32[2] 1 2.5" of the results, or the error.
std::string ResultOf(OpKind kind, const std::vector<Tensor>& operands,
                     const AttributeSet& attributes = {}) {
  std::vector<TensorType> types;
  for (const Tensor& operand : operands) types.push_back(operand.type());
  std::vector<const TensorType*> type_pointers;
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < operands.size(); ++i) {
    type_pointers.push_back(&types[i]);
    pointers.push_back(&operands[i]);
  }
  TypeList results;
  const Mesh mesh;
  const absl::Status status = InferTypes(
      kind, {.attributes = attributes, .operands = type_pointers, .mesh = mesh}, results);
  if (!status.ok()) return std::string(status.message());
  const auto values = Evaluate(kind, attributes, pointers, results);
  if (!values.ok()) return std::string(values.status().message());
  return absl::StrJoin(*values, "; ", [](std::string* out, const Tensor& tensor) {
    absl::StrAppend(out, ToString(tensor.type(), Mesh()));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.is_float()) {
        absl::StrAppend(out, " ", tensor.Number(i));
      } else {
        absl::StrAppend(out, " ", tensor.ints()[static_cast<size_t>(i)]);
      }
    }
  });
}

TEST(Arithmetic, OfFloats) {
  EXPECT_EQ(ResultOf(OpKind::kSub, {F({2, 1}, {1, 2}), F({3, 4})}), "f32[2,2] -2 -3 -1 -2");
  EXPECT_EQ(ResultOf(OpKind::kDiv, {F({1, 3}), F({2})}), "f32[2] 0.5 1.5");
  EXPECT_EQ(ResultOf(OpKind::kMod, {F({5.5, -5.5}), F({3})}, {{"fmod", int64_t{1}}}),
            "f32[2] 2.5 -2.5");
  EXPECT_EQ(ResultOf(OpKind::kMod, {F({-5.5}), F({3})}), "f32[1] 0.5");
  EXPECT_EQ(ResultOf(OpKind::kMin, {F({1, 4}), F({2})}), "f32[2] 1 2");
  EXPECT_EQ(ResultOf(OpKind::kMax, {F({1, 4}), F({2})}), "f32[2] 2 4");
  EXPECT_EQ(ResultOf(OpKind::kMax, {F({std::nan("")}), F({2})}), "f32[1] nan");
  EXPECT_EQ(ResultOf(OpKind::kNeg, {F({1, -4})}), "f32[2] -1 4");
  EXPECT_EQ(ResultOf(OpKind::kPRelu, {F({2, 2}, {1, -2, -3, 4}), F({0.5, 0.25})}),
            "f32[2,2] 1 -0.5 -1.5 4");
}

// Whole numbers are computed exactly, and nothing that C++ leaves undefined happens.
TEST(Arithmetic, OfWholeNumbers) {
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;
  EXPECT_EQ(ResultOf(OpKind::kAdd, {I({kLarge}), I({1})}), absl::StrCat("i64[1] ", kLarge + 1));
  EXPECT_EQ(ResultOf(OpKind::kMul, {I({kLeast}), I({-1})}), absl::StrCat("i64[1] ", kLeast));
  EXPECT_EQ(ResultOf(OpKind::kSub, {I({kLeast}), I({1})}),
            absl::StrCat("i64[1] ", std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(ResultOf(OpKind::kDiv, {I({7, -7, 7, 1, kLeast}), I({2, 2, -2, 0, -1})}),
            absl::StrCat("i64[5] 3 -3 -3 0 ", kLeast));
  EXPECT_EQ(ResultOf(OpKind::kMod, {I({-4, 7, 5, 1, kLeast}), I({2, -3, 8, 0, -1})}),
            "i64[5] 0 -2 5 0 0");
  EXPECT_EQ(ResultOf(OpKind::kMod, {I({7}), I({-3})}, {{"fmod", int64_t{1}}}), "i64[1] 1");
  EXPECT_EQ(ResultOf(OpKind::kNeg, {I({kLeast, 3})}), absl::StrCat("i64[2] ", kLeast, " -3"));
  EXPECT_EQ(ResultOf(OpKind::kAbs, {I({-3, 3})}), "i64[2] 3 3");
  EXPECT_EQ(ResultOf(OpKind::kSub, {I({1}, DType::kU8), I({2}, DType::kU8)}), "u8[1] 255");
  // 2^64 - 1 is the greatest u64.
  EXPECT_EQ(ResultOf(OpKind::kMax, {I({-1}, DType::kU64), I({1}, DType::kU64)}), "u64[1] -1");
  EXPECT_EQ(ResultOf(OpKind::kDiv, {I({-1}, DType::kU64), I({kLeast}, DType::kU64)}), "u64[1] 1");
  EXPECT_EQ(ResultOf(OpKind::kSign, {I({-1, 0}, DType::kU64)}), "u64[2] 1 0");
}

TEST(Arithmetic, OfPowers) {
  EXPECT_EQ(ResultOf(OpKind::kPow, {F({2, 9}), F({3, 0.5})}), "f32[2] 8 3");
  EXPECT_EQ(ResultOf(OpKind::kPow, {F({2, 3}), I({3, 2})}), "f32[2] 8 9");
  EXPECT_EQ(ResultOf(OpKind::kPow, {I({2, 4}), F({3, 0.5})}), "i64[2] 8 2");
  EXPECT_EQ(ResultOf(OpKind::kPow, {I({3, -1, 2, 1, 0}), I({39, -3, -1, -5, 0})}),
            "i64[5] 4052555153018976267 -1 0 1 1");
  EXPECT_EQ(ResultOf(OpKind::kPowGrad, {F({2, 0}), F({3, 0}), F({1, 1})}), "f32[2] 12 0");
}

TEST(Comparisons, AreBool) {
  EXPECT_EQ(ResultOf(OpKind::kEqual, {F({1, 2}), F({2})}), "bool[2] 0 1");
  EXPECT_EQ(ResultOf(OpKind::kEqual, {B({0, 1}), B({1})}), "bool[2] 0 1");
  EXPECT_EQ(ResultOf(OpKind::kGreater, {I({1, 3}), I({2})}), "bool[2] 0 1");
  EXPECT_EQ(ResultOf(OpKind::kGreaterOrEqual, {I({1, 2}), I({2})}), "bool[2] 0 1");
  EXPECT_EQ(ResultOf(OpKind::kLess, {I({-1}, DType::kU64), I({2}, DType::kU64)}), "bool[1] 0");
  EXPECT_EQ(ResultOf(OpKind::kLessOrEqual, {F({2, 3}), F({2})}), "bool[2] 1 0");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ResultOf(OpKind::kIsInf, {F({infinity, -infinity, 1, std::nan("")})}),
            "bool[4] 1 1 0 0");
  EXPECT_EQ(ResultOf(OpKind::kIsInf, {F({infinity, -infinity})}, {{"negative", int64_t{0}}}),
            "bool[2] 1 0");
  EXPECT_EQ(ResultOf(OpKind::kIsNaN, {F({infinity, std::nan("")})}), "bool[2] 0 1");
}

TEST(Logic, OfBoolsAndBits) {
  EXPECT_EQ(ResultOf(OpKind::kAnd, {B({0, 1}), B({1})}), "bool[2] 0 1");
  EXPECT_EQ(ResultOf(OpKind::kOr, {B({0, 1}), B({0})}), "bool[2] 0 1");
  EXPECT_EQ(ResultOf(OpKind::kXor, {B({0, 1}), B({1})}), "bool[2] 1 0");
  EXPECT_EQ(ResultOf(OpKind::kNot, {B({0, 1})}), "bool[2] 1 0");
  EXPECT_EQ(ResultOf(OpKind::kAnd, {I({6}), I({3})}), "i64[1] 2");
  EXPECT_EQ(ResultOf(OpKind::kNot, {I({6}, DType::kU8)}), "u8[1] 249");
  EXPECT_EQ(ResultOf(OpKind::kBitShift, {I({200, 1}, DType::kU8), I({1, 70}, DType::kU8)},
                     {{"direction", std::string("left")}}),
            "u8[2] 144 0");
  EXPECT_EQ(ResultOf(OpKind::kBitShift, {I({-1}, DType::kU64), I({63}, DType::kU64)},
                     {{"direction", std::string("right")}}),
            "u64[1] 1");
}

TEST(Choices, OfElementsAndTypes) {
  EXPECT_EQ(ResultOf(OpKind::kWhere, {B({0, 1}), F({2, 1}, {1, 2}), F({9})}), "f32[2,2] 9 1 9 2");
  EXPECT_EQ(ResultOf(OpKind::kCast, {F({1.9, -1.9, 300})}, {{"to", std::string("i8")}}),
            "i8[3] 1 -1 44");
  EXPECT_EQ(ResultOf(OpKind::kCast, {F({0, 0.5, -2})}, {{"to", std::string("bool")}}),
            "bool[3] 0 1 1");
  EXPECT_EQ(ResultOf(OpKind::kCast, {I({kLeast, 3})}, {{"to", std::string("i64")}}),
            absl::StrCat("i64[2] ", kLeast, " 3"));
  EXPECT_EQ(ResultOf(OpKind::kCast, {I({-1}, DType::kU64)}, {{"to", std::string("f64")}}),
            "f64[1] 1.84467e+19");
  EXPECT_EQ(ResultOf(OpKind::kCast, {F({2049})}, {{"to", std::string("f16")}}), "f16[1] 2048");
}

TEST(Reductions, OfRowsAndColumns) {
  const Tensor x = F({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto axes = [](std::vector<int64_t> list, int64_t keep = 0) {
    return AttributeSet{{"axes", std::move(list)}, {"keepdims", keep}};
  };
  EXPECT_EQ(ResultOf(OpKind::kReduceSum, {x}, axes({0})), "f32[3] 5 7 9");
  EXPECT_EQ(ResultOf(OpKind::kReduceSum, {x}, axes({1}, 1)), "f32[2,1] 6 15");
  EXPECT_EQ(ResultOf(OpKind::kReduceSum, {x}, axes({})), "f32[2,3] 1 2 3 4 5 6");
  EXPECT_EQ(ResultOf(OpKind::kReduceMean, {x}, axes({0, 1})), "f32[] 3.5");
  EXPECT_EQ(ResultOf(OpKind::kReduceMean, {I({1, 2})}, axes({0})), "i64[] 1");
  EXPECT_EQ(ResultOf(OpKind::kReduceMax, {x}, axes({0})), "f32[3] 4 5 6");
  EXPECT_EQ(ResultOf(OpKind::kReduceMin, {x}, axes({1})), "f32[2] 1 4");
  EXPECT_EQ(ResultOf(OpKind::kReduceMax, {B({0, 1})}, axes({0})), "bool[] 1");
  EXPECT_EQ(ResultOf(OpKind::kReduceMin, {I({-1, 5}, DType::kU64)}, axes({0})), "u64[] 5");
  EXPECT_EQ(ResultOf(OpKind::kReduceProd, {x}, axes({1})), "f32[2] 6 120");
  EXPECT_EQ(ResultOf(OpKind::kReduceLogSumExp, {F({1000, 1000})}, axes({0})), "f32[] 1000.69");
}

TEST(Reductions, OfNothing) {
  const AttributeSet rows = {{"axes", std::vector<int64_t>{0}}};
  const Tensor none = F({0, 2}, {});
  EXPECT_EQ(ResultOf(OpKind::kReduceSum, {none}, rows), "f32[2] 0 0");
  EXPECT_EQ(ResultOf(OpKind::kReduceProd, {none}, rows), "f32[2] 1 1");
  EXPECT_EQ(ResultOf(OpKind::kReduceMax, {none}, rows), "f32[2] -inf -inf");
  EXPECT_EQ(ResultOf(OpKind::kReduceLogSumExp, {none}, rows), "f32[2] -inf -inf");
  EXPECT_EQ(ResultOf(OpKind::kSoftmax, {none}, {{"axis", int64_t{0}}}), "f32[0,2]");
  EXPECT_EQ(ResultOf(OpKind::kArgMax, {none}, {{"axis", int64_t{0}}}),
            "dimension 0 of [0,2] is empty; wanted at least 1");
  EXPECT_EQ(ResultOf(OpKind::kAdd, {none, F({1, 2})}), "f32[0,2]");
}

TEST(Reductions, OfPlaces) {
  const Tensor x = F({2, 3}, {2, 1, 2, 3, 3, 10});
  EXPECT_EQ(ResultOf(OpKind::kArgMax, {x}, {{"axis", int64_t{1}}}), "i64[2] 0 2");
  EXPECT_EQ(
      ResultOf(OpKind::kArgMax, {x}, {{"axis", int64_t{1}}, {"select_last_index", int64_t{1}}}),
      "i64[2] 2 2");
  EXPECT_EQ(ResultOf(OpKind::kArgMin, {x}, {{"axis", int64_t{0}}, {"keepdims", int64_t{1}}}),
            "i64[1,3] 0 0 0");
  EXPECT_EQ(ResultOf(OpKind::kHardmax, {x}, {{"axis", int64_t{1}}}), "f32[2,3] 1 0 0 0 0 1");
}

TEST(Softmax, OfLines) {
  EXPECT_EQ(ResultOf(OpKind::kSoftmax, {F({2, 2}, {1000, 1000, 0, 800})}), "f32[2,2] 0.5 0.5 0 1");
  EXPECT_EQ(ResultOf(OpKind::kSoftmax, {F({2, 2}, {7, 1, 7, 1})}, {{"axis", int64_t{0}}}),
            "f32[2,2] 0.5 0.5 0.5 0.5");
  EXPECT_EQ(ResultOf(OpKind::kLogSoftmax, {F({1000, 1000})}), "f32[2] -0.693147 -0.693147");
  EXPECT_EQ(ResultOf(OpKind::kSoftmaxGrad, {F({0.5, 0.5}), F({1, 0})}, {{"scale", 2.0}}),
            "f32[2] 0.5 -0.5");
  EXPECT_EQ(ResultOf(OpKind::kLogSoftmaxGrad, {F({0, 0}), F({1, 0})}), "f32[2] 0 -1");
}

TEST(Quantization, OfTensorsDimensionsAndBlocks) {
  const AttributeSet to_u8 = {{"to", std::string("u8")}};
  EXPECT_EQ(ResultOf(OpKind::kQuantizeLinear,
                     {F({0, 1, 3, -300, 1000}), F({}, {2}), I({128}, DType::kU8)}, to_u8),
            "u8[5] 128 128 130 0 255");
  EXPECT_EQ(ResultOf(OpKind::kQuantizeLinear, {F({1, 2}, {3, -9}), F({2, 0.05})},
                     {{"axis", int64_t{-1}}, {"to", std::string("i8")}}),
            "i8[1,2] 2 -128");
  EXPECT_EQ(ResultOf(OpKind::kQuantizeLinear, {F({500, 3.1}), F({1})}, {{"to", std::string("f8")}}),
            "f8[2] 448 3");
  EXPECT_EQ(
      ResultOf(OpKind::kDequantizeLinear, {I({1, 3}, DType::kU8), F({0.5}), I({2}, DType::kU8)}),
      "f32[2] -0.5 0.5");
  const Tensor x = Tensor::OfInts(DType::kI8, {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(ResultOf(OpKind::kDequantizeLinear, {x, F({1, 2}, {1, 10})},
                     {{"axis", int64_t{1}}, {"block_size", int64_t{2}}}),
            "f32[1,4] 1 2 30 40");
}

TEST(PointwiseErrors, SayWhatWasWanted) {
  EXPECT_EQ(ResultOf(OpKind::kSub, {B({0}), B({1})}), "operand 0 is of bool; wanted numbers");
  EXPECT_EQ(ResultOf(OpKind::kAnd, {F({0}), F({1})}),
            "operand 0 is of f32; wanted bool or whole numbers");
  EXPECT_EQ(ResultOf(OpKind::kEqual, {F({0}), I({1})}), "element types differ; got f32 and i64");
  EXPECT_EQ(ResultOf(OpKind::kNot, {F({0})}), "operand 0 is of f32; wanted bool or whole numbers");
  EXPECT_EQ(ResultOf(OpKind::kIsNaN, {I({0})}), "operand 0 is of i64; wanted floating point");
  EXPECT_EQ(ResultOf(OpKind::kBitShift, {I({0}), I({1})}),
            "direction=\"\"; wanted \"left\" or \"right\"");
  EXPECT_EQ(ResultOf(OpKind::kWhere, {I({0}), F({1}), F({1})}),
            "the condition is of i64; wanted bool");
  EXPECT_EQ(ResultOf(OpKind::kWhere, {B({0, 1}), F({1, 2, 3}), F({1})}),
            "shapes [2] and [3] do not broadcast");
  EXPECT_EQ(ResultOf(OpKind::kCast, {F({1})}, {{"to", std::string("f12")}}),
            "to=\"f12\" is no element type; wanted one such as \"f16\"");
  EXPECT_EQ(ResultOf(OpKind::kPow, {B({1}), F({1})}), "operand 0 is of bool; wanted numbers");
  EXPECT_EQ(ResultOf(OpKind::kPowGrad, {F({1, 2}), F({1}), F({1})}),
            "operand 2 is f32[1]; wanted the type and shape of the result of [2] and [1]");
  EXPECT_EQ(ResultOf(OpKind::kPRelu, {F({1}), F({1, 2})}),
            "the slope has shape [2]; wanted one that broadcasts to [1]");
  EXPECT_EQ(ResultOf(OpKind::kReduceMean, {B({1})}), "operand 0 is of bool; wanted numbers");
  EXPECT_EQ(ResultOf(OpKind::kReduceLogSumExp, {I({1})}),
            "operand 0 is of i64; wanted floating point");
  EXPECT_EQ(ResultOf(OpKind::kSoftmax, {F({1})}, {{"axis", int64_t{1}}}),
            "axis 1 is none of the 1 dimensions");
  EXPECT_EQ(ResultOf(OpKind::kSoftmax, {F({}, {1})}), "axis -1 is none of the 0 dimensions");
  EXPECT_EQ(ResultOf(OpKind::kArgMin, {B({1})}), "operand 0 is of bool; wanted numbers");
  EXPECT_EQ(ResultOf(OpKind::kQuantizeLinear, {F({1, 2}), F({1})}, {{"to", std::string("f16")}}),
            "to=\"f16\"; wanted u8, i8, u16, i16 or f8");
  EXPECT_EQ(ResultOf(OpKind::kQuantizeLinear, {F({1, 2}), F({1, 2, 3})}, {{"axis", int64_t{0}}}),
            "the scale has shape [3]; wanted one number or [2]");
  EXPECT_EQ(ResultOf(OpKind::kDequantizeLinear, {I({1}), F({1}), I({1}, DType::kI8)}),
            "the zero point is of i8; wanted i64");
  EXPECT_EQ(
      ResultOf(OpKind::kDequantizeLinear, {I({1, 2}), F({1, 2}), I({1})}, {{"axis", int64_t{0}}}),
      "the zero point has shape [1]; wanted that of the scale, [2]");
}

}  // namespace
}  // namespace pointwise_test_cc
}  // namespace orrery::ir
