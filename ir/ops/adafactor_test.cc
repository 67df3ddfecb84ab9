#include "ir/ops/adafactor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ir/infer_test_util.h"
#include "ir/op_kind.h"
#include "ir/ops/cost_test_util.h"
#include "ir/optimizer_operands.h"

// Adafactor against its paper, written out once more in plain loops; what its passes cost, one by
// one and together; and what they are of parts.

namespace orrery::ir {
namespace adafactor_test_cc {
namespace {

constexpr size_t kMatrices = 2, kRows = 3, kColumns = 4;
constexpr size_t kElements = kMatrices * kRows * kColumns;
constexpr double kRate = 0.25, kBeta = 0.75, kEpsilon1 = 0.01, kEpsilon2 = 0.5, kClip = 1.5;

AttributeSet Attributes() {
  return {{"lr", kRate},           {"beta2", kBeta}, {"epsilon1", kEpsilon1},
          {"epsilon2", kEpsilon2}, {"clip", kClip},  {kParameterCount, int64_t{1}}};
}

double RootMeanSquare(const std::vector<double>& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Algorithms 4 and 5: what is left of `w` after a step u.
std::vector<double> Stepped(std::vector<double> w, const std::vector<double>& u) {
  const double alpha = kRate * std::max(kEpsilon2, RootMeanSquare(w));
  const double clip = std::max(1.0, RootMeanSquare(u) / kClip);
  for (size_t i = 0; i < w.size(); ++i) w[i] -= alpha * u[i] / clip;
  return w;
}

struct Kept {
  std::vector<double> w, r, c;
};

// One step of two matrices, algorithm 4.
Kept Next(const Kept& kept, const std::vector<double>& g) {
  Kept next = kept;
  std::vector<double> u(kElements);
  for (size_t matrix = 0; matrix < kMatrices; ++matrix) {
    const auto square = [&](size_t i, size_t j) {
      const double each = g[(matrix * kRows + i) * kColumns + j];
      return each * each + kEpsilon1;
    };
    double all = 0;
    for (size_t i = 0; i < kRows; ++i) {
      double sum = 0;
      for (size_t j = 0; j < kColumns; ++j) sum += square(i, j);
      double& r = next.r[matrix * kRows + i];
      r = kBeta * r + (1 - kBeta) * sum / kColumns;
      all += r;
    }
    for (size_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (size_t i = 0; i < kRows; ++i) sum += square(i, j);
      double& c = next.c[matrix * kColumns + j];
      c = kBeta * c + (1 - kBeta) * sum / kRows;
    }
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t j = 0; j < kColumns; ++j) {
        const double v = next.r[matrix * kRows + i] * next.c[matrix * kColumns + j] / (all / kRows);
        const size_t at = (matrix * kRows + i) * kColumns + j;
        u[at] = g[at] / std::sqrt(v);
      }
    }
  }
  next.w = Stepped(kept.w, u);
  return next;
}

std::vector<double> Numbers(size_t count, double first, double step) {
  std::vector<double> numbers;
  for (size_t i = 0; i < count; ++i) {
    numbers.push_back(std::sin(first + step * static_cast<double>(i)));
  }
  return numbers;
}

std::vector<Tensor> Evaluated(OpKind kind, const std::vector<Tensor>& operands) {
  std::vector<const Tensor*> pointers;
  std::vector<TensorType> types;
  for (const Tensor& tensor : operands) pointers.push_back(&tensor);
  for (size_t i = 0; i + 1 < operands.size(); ++i) types.push_back(operands[i].type());
  auto results = Evaluate(kind, Attributes(), pointers, types);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *std::move(results) : std::vector<Tensor>();
}

Tensor Floats(Dims dims, std::vector<double> values) {
  return Tensor::OfFloats(DType::kF64, std::move(dims), std::move(values));
}

void ExpectNear(const Tensor& ours, const std::vector<double>& expected) {
  ASSERT_EQ(static_cast<size_t>(ours.size()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(ours.floats()[i], expected[i], 1e-12);
}

// Steps that are clipped and others, weights that are smaller than epsilon2 and others.
TEST(Adafactor, FollowsItsPaper) {
  bool clipped = false, small = false, plain = false;
  for (const double size : {0.1, 3.0}) {
    Kept kept = {.w = Numbers(kElements, 1, 0.7), .r = {}, .c = {}};
    for (double& w : kept.w) w *= size;
    for (const double moment : {0.0, 4.0}) {
      kept.r.assign(kMatrices * kRows, moment);
      kept.c.assign(kMatrices * kColumns, moment);
      const std::vector<double> g = Numbers(kElements, 2 + moment, 1.3);
      const Kept next = Next(kept, g);
      const std::vector<Tensor> results =
          Evaluated(OpKind::kAdafactor, {Floats({2, 3, 4}, kept.w), Floats({2, 3, 1}, kept.r),
                                         Floats({2, 1, 4}, kept.c), Floats({2, 3, 4}, g)});
      ASSERT_EQ(results.size(), 3u);
      ExpectNear(results[0], next.w);
      ExpectNear(results[1], next.r);
      ExpectNear(results[2], next.c);
      small = small || RootMeanSquare(kept.w) < kEpsilon2;
      (moment == 0 ? clipped : plain) = true;
    }
  }
  EXPECT_TRUE(clipped && small && plain);
}

// V is whole, as Adam's; a master copy is what is updated.
TEST(Adafactor, KeepsAMomentOfVectors) {
  const std::vector<double> w = Numbers(5, 1, 0.9), g = Numbers(5, 3, 1.1);
  const std::vector<double> v = {0, 0.5, 1, 1.5, 2};
  std::vector<double> next(5), u(5);
  for (size_t i = 0; i < 5; ++i) {
    next[i] = kBeta * v[i] + (1 - kBeta) * (g[i] * g[i] + kEpsilon1);
    u[i] = g[i] / std::sqrt(next[i]);
  }
  const std::vector<Tensor> results = Evaluated(
      OpKind::kAdafactorVectors,
      {Floats({5}, std::vector<double>(5, 7)), Floats({5}, w), Floats({5}, v), Floats({5}, g)});
  ASSERT_EQ(results.size(), 3u);
  ExpectNear(results[0], Stepped(w, u));
  ExpectNear(results[1], Stepped(w, u));
  ExpectNear(results[2], next);
}

// Types of a matrix and of a vector, with a master copy or without, as operands of the whole and of
// each pass.
struct Passes {
  std::string whole, types;
  std::vector<std::pair<std::string, std::string>> passes;
};

const std::vector<Passes>& AllPasses() {
  const std::string update = "AdafactorUpdate {parameters=1}";
  static const auto& all = *new std::vector<Passes>{
      {"Adafactor {parameters=1}",
       "f32[3,4]; f32[3,1]; f32[1,4]; f32[3,4]",
       {{"AdafactorMeans", "f32[3,4]"},
        {"AdafactorRows", "f32[3,1]; f32[3,1]"},
        {"AdafactorMoment", "f32[1,4]; f32[1,4]"},
        {"AdafactorNorms", "f32[3,4]; f32[3,4]; f32[3,1]; f32[1,4]; f32[1,1]"},
        {update, "f32[3,4]; f32[3,1]; f32[1,4]; f32[1,1]; f32[2]; f32[3,4]"}}},
      {"Adafactor {parameters=1}",
       "bf16[2,3,4]; f32[2,3,4]; f32[2,3,1]; f32[2,1,4]; bf16[2,3,4]",
       {{"AdafactorMeans", "bf16[2,3,4]"},
        {"AdafactorRows", "f32[2,3,1]; f32[2,3,1]"},
        {"AdafactorMoment", "f32[2,1,4]; f32[2,1,4]"},
        {"AdafactorNorms", "f32[2,3,4]; bf16[2,3,4]; f32[2,3,1]; f32[2,1,4]; f32[2,1,1]"},
        {update,
         "bf16[2,3,4]; f32[2,3,4]; f32[2,3,1]; f32[2,1,4]; f32[2,1,1]; f32[2]; bf16[2,3,4]"}}},
      {"AdafactorVectors {parameters=1}",
       "bf16[5]; f32[5]; f32[5]; bf16[5]",
       {{"AdafactorMeans", "bf16[5]"},
        {"AdafactorMoment", "f32[5]; f32[5]"},
        {"AdafactorNorms", "f32[5]; bf16[5]; f32[5]"},
        {update, "bf16[5]; f32[5]; f32[5]; f32[2]; bf16[5]"}}}};
  return all;
}

// Bytes of all operands and results.
double Moved(const std::string& op, const std::string& types) {
  const AppliedOp made = Apply(op, types);
  EXPECT_TRUE(made.status.ok()) << op << " " << types << ": " << made.status;
  int64_t bytes = 0;
  for (const TensorType& type : made.operands) bytes += SizeOf(type).count();
  for (const TensorType& type : made.results) bytes += SizeOf(type).count();
  return static_cast<double>(bytes);
}

TEST(Adafactor, CostsWhatItsPassesCost) {
  for (const Passes& all : AllPasses()) {
    double flops = 0, bytes = 0;
    for (const auto& [op, types] : all.passes) {
      flops += FlopsOf(op, types);
      bytes += Moved(op, types);
    }
    EXPECT_EQ(FlopsOf(all.whole, all.types), flops) << all.types;
    EXPECT_EQ(BytesOf(all.whole, all.types), bytes) << all.types;
    EXPECT_EQ(GetOpInfo(Apply(all.whole, all.types).kind).kernels, std::ssize(all.passes));
  }
}

// By hand, of 3 by 4: 4 + 8 + 6 an element, 4 a row, 3 a column. Floats that are moved: g three
// times, w too (one of them written), r and c and their means six times, t three times, norms
// twice.
TEST(Adafactor, CostsThisMuch) {
  const auto& [whole, types, passes] = AllPasses()[0];
  ExpectFlops(
      {{whole, types, 18 * 12 + 4 * 3 + 3 * 4},
       {"Adafactor {parameters=2}",
        "f32[3,4]; f32[3,4]; f32[3,1]; f32[3,1]; f32[1,4]; f32[1,4]; f32[3,4]; f32[3,4]", 2 * 240},
       {"AdafactorVectors {parameters=1}", "f32[5]; f32[5]; f32[5]", 15 * 5}});
  ExpectBytes({{whole, types, 4 * (3 * 12 + 3 * 12 + 6 * 7 + 3 * 1 + 2 * 2)}});
}

TEST(Adafactor, HasStateOfOtherShapes) {
  const std::string matrix = "Adafactor {parameters=1}", vector = "AdafactorVectors {parameters=1}";
  Expect({{matrix, "f32[4,6]; f32[4,1]; f32[1,6]; f32[4,6]", "f32[4,6]; f32[4,1]; f32[1,6]"},
          {matrix, "bf16[4,6]; f32[4,6]; f32[4,1]; f32[1,6]; bf16[4,6]",
           "bf16[4,6]; f32[4,6]; f32[4,1]; f32[1,6]"},
          // Split as the parameter, where they have the dimension.
          {matrix, "f32[4@dp,8@hp]; f32[4@dp,1]; f32[1,8@hp]; f32[4@dp,8@hp]",
           "f32[4@dp,8@hp]; f32[4@dp,1]; f32[1,8@hp]"},
          {matrix, "f32[4@dp,8]; f32[4,1]; f32[1,8]; f32[4@dp,8]",
           "operand 1 is not split as its parameter, operand 0, is"},
          {matrix, "f32[4,6]; f32[4,6]; f32[1,6]; f32[4,6]",
           "operand 1 has shape [4,6]; wanted [4,1], means of its parameter, operand 0"},
          {matrix, "f32[4,6]; f32[4,1]; f32[4,6]",
           "got 3 operands and parameters=1; wanted as many gradients as parameters, and 2 or more "
           "whole groups of state between"},
          {matrix, "f32[4]; f32[1]; f32[1]; f32[4]",
           "parameter 0 has shape [4]; wanted matrices [..,m,n], or AdafactorVectors"},
          {vector, "f32[4,6]; f32[4,6]; f32[4,6]",
           "parameter 0 has shape [4,6]; wanted one dimension at most, or Adafactor"},
          {vector, "f32[8@hp]; f32[8@hp]; f32[8@hp]", "f32[8@hp]; f32[8@hp]"}});
}

// A part of the dimension that a mean is over leaves it partial.
TEST(AdafactorPasses, LeaveMeansPartial) {
  const std::string update = "AdafactorUpdate {parameters=1}";
  Expect({{"AdafactorMeans", "bf16[4@dp,8@hp]", "f32[4@dp,1] partial(hp); f32[1,8@hp] partial(dp)"},
          {"AdafactorMeans", "f32[8@hp]", "f32[8@hp]"},
          {"AdafactorRows", "f32[4@dp,1]; f32[4@dp,1]", "f32[4@dp,1]; f32[1,1] partial(dp)"},
          {"AdafactorMoment", "f32[1,8@hp]; f32[1,8@hp]", "f32[1,8@hp]"},
          {"AdafactorNorms", "f32[4@dp,8@hp]; bf16[4@dp,8@hp]; f32[4@dp,1]; f32[1,8@hp]; f32[1,1]",
           "f32[2] partial(dp.hp)"},
          {"AdafactorNorms", "f32[2@dp]; bf16[2@dp]; f32[2@dp]", "f32[2] partial(dp)"},
          {update, "f32[4@dp,8@hp]; f32[4@dp,1]; f32[1,8@hp]; f32[1,1]; f32[2]; bf16[4@dp,8@hp]",
           "f32[4@dp,8@hp]"},
          {update, "bf16[2@dp]; f32[2@dp]; f32[2@dp]; f32[2]; bf16[2@dp]", "bf16[2@dp]; f32[2@dp]"},
          {"AdafactorMeans", "i32[4,8]", "got i32; wanted a gradient of floating point"},
          {"AdafactorRows", "f32[4,8]; f32[4,8]", "got [4,8]; wanted means of rows [..,m,1]"},
          {"AdafactorMoment", "f32[1,8]; f32[1,4]", "operand 1 has shape [1,4]; wanted [1,8]"},
          {"AdafactorNorms", "f32[4,8]; f32[4,8]; f32[4,1]",
           "got 3 operands; wanted 5: w, g and its moments"},
          {"AdafactorNorms", "f32[4,8]; f32[4,8]; f32[4,1]; f32[1,8]; f32[4,1]",
           "operand 4 has shape [4,1]; wanted [1,1]"},
          {update, "f32[8]; f32[8]; f32[2]",
           "got 3 operands; wanted 4 or, with a master copy, 5: w, 1 moments, norms, g"},
          {"AdafactorUpdate {parameters=2}", "f32[8]; f32[8]; f32[2]; f32[8]",
           "wanted one parameter"}});
}

}  // namespace
}  // namespace adafactor_test_cc
}  // namespace orrery::ir
