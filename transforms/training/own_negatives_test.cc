#include "transforms/training/own_negatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/batch.h"
#include "ir/execution/execute.h"
#include "ir/text/text.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms {
namespace own_negatives_test_cc {
namespace {

using testing::HasSubstr;

ir::Function Parse(const std::string& text) {
  auto function = ir::ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// Logits of two sides, their transposition, likelihoods of the own sample both ways, and gradients
// of the sides.
constexpr char kContrast[] = R"(func @f (
  %u: f32[6,2] data,
  %v: f32[6,2] data,
  %one: i64[1] buffer
) {
  %l: f32[6,6] = MatMul(%u, %v) {transpose_w=1}
  %ones: i64[6] = Expand(%one) {batch_dim=0, shape=[6]}
  %own: i64[6] = CumSum(%ones) {axis=0, exclusive=1}
  %p: f32[6,6] = LogSoftmax(%l) {axis=1}
  %a: f32[6], %m: f32[6] = NegativeLikelihood(%p, %own)
  %t: f32[6,6] = Transpose(%l) {perm=[1, 0]}
  %q: f32[6,6] = LogSoftmax(%t) {axis=1}
  %b: f32[6], %n: f32[6] = NegativeLikelihood(%q, %own)
  %g: f32[6,6] = NegativeLikelihoodGrad(%a, %own) {batch_classes=1}
  %du: f32[6,2], %dv: f32[6,2] = MatMulGrad(%u, %v, %g) {transpose_w=1}
  %s: f32[6] = ReduceSum(%l) {axes=[1]}
  return %a: result, %b: result, %du: result, %dv: result, %s: result
}
)";

ir::Tensor Rows(const ir::Tensor& whole, int64_t begin, int64_t rows) {
  ir::Dims dims = whole.dims();
  const int64_t width = whole.size() / dims[0];
  dims[0] = rows;
  ir::Tensor part(whole.dtype(), dims);
  for (int64_t i = 0; i < part.size(); ++i) part.CopyElement(i, whole, begin * width + i);
  return part;
}

// Groups know nothing of each other: each computes what the function of its batch does.
TEST(OwnNegatives, AreThoseOfTheGroup) {
  const ir::Function whole = Parse(kContrast);
  const auto part = ir::ChangeBatch(whole, 2, ir::LossBatch::kStays);
  ASSERT_TRUE(part.ok()) << part.status();
  const auto grouped = OwnNegatives(whole, 3);
  ASSERT_TRUE(grouped.ok()) << grouped.status();
  ir::NamedTensors inputs;
  for (const char* name : {"u", "v"}) {
    ir::Tensor tensor(ir::DType::kF32, {6, 2});
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.SetNumber(i, 0.3 * static_cast<double>((i * 7 + name[0]) % 5) - 0.5);
    }
    inputs.emplace(name, tensor);
  }
  ir::Tensor one(ir::DType::kI64, {1});
  one.SetNumber(0, 1);
  inputs.emplace("one", one);
  const auto all = ir::Execute(*grouped, inputs, {.round = false});
  ASSERT_TRUE(all.ok()) << all.status();
  for (int64_t group = 0; group < 3; ++group) {
    ir::NamedTensors own = inputs;
    for (const char* name : {"u", "v"}) own.at(name) = Rows(inputs.at(name), 2 * group, 2);
    const auto expected = ir::Execute(*part, own, {.round = false});
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (size_t o = 0; o < expected->outputs.size(); ++o) {
      const ir::Tensor got = Rows(all->outputs[o], 2 * group, 2);
      for (int64_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got.Number(i), expected->outputs[o].Number(i), 1e-9) << o << " " << group;
      }
    }
  }
}

TEST(OwnNegatives, AreOfModelsWhoseSamplesMeet) {
  EXPECT_TRUE(SamplesMeet(Parse(kContrast)));
  EXPECT_FALSE(SamplesMeet(Parse(R"(func @f (
  %x: f32[4,4] data,
  %w: f32[4,4] parameter
) {
  %y: f32[4,4] = MatMul(%x, %w)
  return %y: result
}
)")));
}

TEST(OwnNegatives, RefusesWhatDoesNotDivide) {
  const auto grouped = OwnNegatives(Parse(kContrast), 4);
  ASSERT_TRUE(AsInfeasible(grouped.status()).has_value());
  EXPECT_EQ(AsInfeasible(grouped.status())->detail,
            "a batch of 6 does not divide into 4 ranks with negatives of their own");
}

// Down the columns go the samples of all ranks.
TEST(OwnNegatives, RefusesWhatGoesAlongColumns) {
  const auto grouped = OwnNegatives(Parse(R"(func @f (
  %u: f32[6,2] data,
  %v: f32[6,2] data
) {
  %l: f32[6,6] = MatMul(%u, %v) {transpose_w=1}
  %p: f32[6,6] = Softmax(%l) {axis=0}
  return %p: result
}
)"),
                                    2);
  EXPECT_THAT(grouped.status().message(),
              HasSubstr("f: Softmax %p cannot hold samples against those of their rank: its rows "
                        "are no samples"));
}

}  // namespace
}  // namespace own_negatives_test_cc
}  // namespace orrery::transforms
