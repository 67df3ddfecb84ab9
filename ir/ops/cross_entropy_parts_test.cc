#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/infer_test_util.h"
#include "ir/op_kind.h"
#include "ir/ops/results_test_util.h"
#include "ir/tensor.h"

// The loss in parts against the loss in one, and what it says when it cannot be.

namespace orrery::ir {
namespace cross_entropy_parts_test_cc {
namespace {

// Loss and gradient.
struct Losses {
  Tensor loss, gradient;
};

AttributeSet With(AttributeSet attributes, absl::string_view name, Attribute value) {
  attributes.Set(name, std::move(value));
  return attributes;
}

Losses InOne(const Tensor& logits, const Tensor& labels, const AttributeSet& attributes) {
  const AttributeSet all = With(attributes, "batch", int64_t{5});
  return {Results(OpKind::kCrossEntropy, {logits, labels}, all)[0],
          Results(OpKind::kCrossEntropyGrad, {logits, labels}, all)[0]};
}

Losses InParts(const Tensor& logits, const Tensor& labels, const AttributeSet& attributes,
               int64_t count) {
  const Tensor parts =
      Results(OpKind::kCrossEntropyParts, {logits, labels}, With(attributes, "parts", count))[0];
  AttributeSet all = With(attributes, "batch", int64_t{5});
  const Tensor gradient = Results(OpKind::kCrossEntropyPartsGrad, {logits, labels, parts}, all)[0];
  all.Set("to", std::string(ToString(logits.dtype())));
  return {Results(OpKind::kCrossEntropyOfParts, {parts, labels}, all)[0], gradient};
}

void ExpectNear(const Tensor& ours, const Tensor& expected, double tolerance) {
  ASSERT_EQ(ours.type(), expected.type());
  for (int64_t i = 0; i < ours.size(); ++i) {
    const double wanted = expected.Number(i);
    if (std::isfinite(wanted)) {
      EXPECT_NEAR(ours.Number(i), wanted, tolerance) << i;
    } else {
      EXPECT_EQ(std::isnan(ours.Number(i)), std::isnan(wanted)) << i;
      EXPECT_EQ(std::isinf(ours.Number(i)), std::isinf(wanted)) << i;
    }
  }
}

void ExpectSame(const Tensor& logits, const Tensor& labels, const AttributeSet& attributes = {}) {
  const Losses expected = InOne(logits, labels, attributes);
  for (const int64_t count : {1, 2, 3, 4, 6, 12}) {
    SCOPED_TRACE(absl::StrCat(count, " parts"));
    const Losses ours = InParts(logits, labels, attributes, count);
    // What two roundings of a loss of this size differ by.
    const double tolerance = logits.dtype() == DType::kF16   ? 4e-3
                             : logits.dtype() == DType::kF32 ? 2e-6
                                                             : 1e-12;
    ExpectNear(ours.loss, expected.loss, tolerance);
    ExpectNear(ours.gradient, expected.gradient, tolerance);
  }
}

Tensor RandomLogits(DType dtype, Dims dims, std::mt19937& random) {
  Tensor logits(dtype, std::move(dims));
  for (double& x : logits.floats()) x = static_cast<double>(random() % 2000) / 200 - 5;
  logits.RoundToDType();
  return logits;
}

TEST(CrossEntropyParts, AreCrossEntropy) {
  std::mt19937 random(23);
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kF64}) {
    for (const Dims& rows : {Dims{}, Dims{12}, Dims{4, 3}}) {
      Dims dims = rows;
      dims.push_back(12);
      const Tensor logits = RandomLogits(dtype, dims, random);
      Tensor labels(DType::kI64, rows);
      for (size_t i = 0; i < labels.ints().size(); ++i) {
        labels.ints()[i] = static_cast<int64_t>(i);
      }
      ExpectSame(logits, labels);
      labels.ints()[0] = -100;
      ExpectSame(logits, labels, {{"ignore_index", int64_t{-100}}});
    }
  }
}

// Classes that are masked fill whole parts: the logarithm of a sum of nothing.
TEST(CrossEntropyParts, MayBeMasked) {
  std::mt19937 random(29);
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  Tensor logits = RandomLogits(DType::kF64, {3, 12}, random);
  for (size_t i = 5; i < 24; ++i) logits.floats()[i] = kHidden;  // of row 0 all but 5, of row 1 all
  const Tensor labels = Tensor::OfInts(DType::kI64, {3}, {7, 0, 11});
  ExpectSame(logits, labels);
  ExpectSame(logits, Tensor::OfInts(DType::kI64, {3}, {4, 11, 0}));
  for (double& x : logits.floats()) x += 1e3;  // and no overflow
  for (size_t i = 24; i < 36; ++i) logits.floats()[i] = 1e6 * static_cast<double>(i);
  ExpectSame(logits, labels);
}

TEST(CrossEntropyParts, TypesAndSplits) {
  Expect({
      {"CrossEntropyParts {parts=8}", "bf16[4@dp,16@hp]; i32[4@dp]", "f32[4@dp,8@hp,2]"},
      {"CrossEntropyParts {parts=2}", "f64[16]; i32[]", "f64[2,2]"},
      {"CrossEntropyParts {parts=2}", "f32[4,16@hp]; i32[4]",
       "dimension 1 of the result, of 2, does not divide into the 4 parts of the operand's "
       "dimension of 16"},
      {"CrossEntropyParts {parts=3}", "f32[4,16]; i32[4]",
       "got parts=3 of 16 classes; wanted parts of equally many classes"},
      {"CrossEntropyParts", "f32[4,16]; i32[4]",
       "got parts=0 of 16 classes; wanted parts of equally many classes"},
      {"CrossEntropyParts {parts=2}", "f32[4,99]; i32[4]",
       "got parts=2 of 0 classes; wanted parts of equally many classes"},
      {"CrossEntropyParts {parts=2}", "f32[4,16]; i32[3]",
       "operand 1 has shape [3]; wanted [4] (a label a row)"},
      {"CrossEntropyOfParts {batch=4}", "f32[4@dp,8,2]; i32[4@dp]", "f32[4@dp]"},
      {"CrossEntropyOfParts {batch=4, to=\"f16\"}", "f32[4@dp,8,2]; i32[4@dp]", "f16[4@dp]"},
      {"CrossEntropyOfParts {batch=4, to=\"i32\"}", "f32[4,8,2]; i32[4]",
       "to=\"i32\"; wanted a type of floating point such as \"f16\""},
      {"CrossEntropyOfParts {batch=4}", "f32[4,8@hp,2]; i32[4]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"CrossEntropyOfParts {batch=4}", "f32[4,8,3]; i32[4]",
       "operand 0 has shape [4,8,3]; wanted [4,8,2] (a logarithm and a logit for each label and "
       "part)"},
      {"CrossEntropyOfParts {batch=4}", "f32[2]; i32[]",
       "operand 0 has shape [2]; wanted [..,parts,2]"},
      {"CrossEntropyOfParts", "f32[4,8,2]; i32[4]",
       "the attribute batch is missing; wanted the global number of rows"},
      {"CrossEntropyPartsGrad {batch=4}", "f16[4@dp,16@hp]; i32[4@dp]; f32[4@dp,8,2]",
       "f16[4@dp,16@hp]"},
      {"CrossEntropyPartsGrad {batch=4}", "f16[4,16]; i32[4]; f32[4,99,2]",
       "operand 2 has shape [4,0,2]; wanted [4,1,2] (a logarithm and a logit for each label and "
       "part)"},
  });
}

TEST(CrossEntropyParts, SayWhatIsNoLabel) {
  const Tensor logits(DType::kF32, {1, 4}), parts(DType::kF32, {1, 2, 2});
  for (const int64_t label : {-1, 4}) {
    const Tensor labels = Tensor::OfInts(DType::kI64, {1}, {label});
    const std::string message = absl::StrCat("label ", label, " is none of the 4 classes");
    EXPECT_EQ(Evaluate(OpKind::kCrossEntropyParts, {{"parts", int64_t{2}}},
                       std::vector<const Tensor*>{&logits, &labels},
                       std::vector<TensorType>{parts.type()})
                  .status()
                  .message(),
              message);
    EXPECT_EQ(Evaluate(OpKind::kCrossEntropyPartsGrad, {{"batch", int64_t{1}}},
                       std::vector<const Tensor*>{&logits, &labels, &parts},
                       std::vector<TensorType>{logits.type()})
                  .status()
                  .message(),
              message);
  }
}

}  // namespace
}  // namespace cross_entropy_parts_test_cc
}  // namespace orrery::ir
