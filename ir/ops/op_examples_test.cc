#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "ir/op_info.h"
#include "tests/ir_text/examples.h"

// What `evaluate` of every op kind must keep to, on the examples of its texts.

namespace orrery::ir {
namespace op_examples_test_cc {
namespace {

using examples::Example;

void ExpectInferredTypes(const Example& example, const std::vector<Tensor>& operands,
                         const std::vector<Tensor>& results) {
  std::vector<TensorType> types;
  for (const Tensor& operand : operands) types.push_back(operand.type());
  const auto inferred = examples::ResultTypes(example, types);
  ASSERT_TRUE(inferred.has_value());
  ASSERT_EQ(results.size(), inferred->size()) << example.name;
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].dtype(), (*inferred)[i].dtype) << example.name;
    EXPECT_EQ(results[i].dims(), (*inferred)[i].dims) << example.name;
    EXPECT_EQ(results[i].size(), ElementCount(results[i].dims())) << example.name;
  }
}

// Results are of the types that are inferred, finite on decent operands, and the same when computed
// again.
TEST(OpExamples, EvaluateToTheInferredTypes) {
  for (const Example& example : examples::All()) {
    SCOPED_TRACE(example.name);
    std::mt19937 random(3);
    const std::vector<Tensor> operands = examples::Operands(example, random);
    const auto results = examples::EvaluateExactly(example, operands);
    ASSERT_TRUE(results.ok()) << results.status();
    ExpectInferredTypes(example, operands, *results);
    EXPECT_TRUE(examples::AllFinite(*results));
    EXPECT_EQ(*examples::EvaluateExactly(example, operands), *results);
  }
}

// Every op that could be has an `evaluate`: the rest work among ranks and microbatches.
TEST(OpExamples, EveryOpOnOneRankIsEvaluated) {
  for (int k = 0; k < OpKindCount(); ++k) {
    const OpInfo& info = GetOpInfo(static_cast<OpKind>(k));
    const bool apart = info.op_class == OpClass::kCollective || info.op_class == OpClass::kSend ||
                       info.op_class == OpClass::kReceive || info.name == "AllSlice" ||
                       info.name == "Collect" || info.name == "ExtendRows" ||
                       info.name == "ExtendRowsGrad" || info.name == "MakePartial";
    EXPECT_EQ(info.evaluate == nullptr, apart) << info.name;
  }
}

double AnyFloat(std::mt19937& random) {
  using Limits = std::numeric_limits<double>;
  constexpr double kOdd[] = {
      0,       -0.0, 1,     -1, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 1e300,
      -1e-300, 0.5,  65504, 1e9};
  if (random() % 4 == 0) return kOdd[random() % std::size(kOdd)];
  return static_cast<double>(random() % 2001) / 100 - 10;
}

int64_t AnyInt(std::mt19937& random) {
  using Limits = std::numeric_limits<int64_t>;
  constexpr int64_t kOdd[] = {Limits::max(), Limits::min(), -1, 255, -129, int64_t{1} << 40};
  if (random() % 8 == 0) return kOdd[random() % std::size(kOdd)];
  return static_cast<int64_t>(random() % 12) - 3;
}

Tensor AnyTensor(const TensorType& type, std::mt19937& random) {
  Tensor tensor(type.dtype, type.dims);
  for (double& value : tensor.floats()) value = AnyFloat(random);
  for (int64_t& value : tensor.ints()) value = AnyInt(random);
  tensor.RoundToDType();
  return tensor;
}

// The example's operand types with other sizes: alike ones stay alike mostly.
std::vector<TensorType> OtherSizes(const Example& example, std::mt19937& random) {
  constexpr int64_t kSizes[] = {0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12};
  std::map<int64_t, int64_t> renamed;
  std::vector<TensorType> types = example.operands;
  for (TensorType& type : types) {
    for (int64_t& dim : type.dims) {
      const auto [found, fresh] = renamed.try_emplace(dim, dim);
      if (fresh && random() % 2 == 0) found->second = kSizes[random() % std::size(kSizes)];
      dim = random() % 24 == 0 ? kSizes[random() % std::size(kSizes)] : found->second;
    }
  }
  return types;
}

// The operand types with other types of elements: of all that have one type, or of one operand.
void ChangeDTypes(std::vector<TensorType>& types, std::mt19937& random) {
  constexpr DType kOthers[] = {DType::kF32, DType::kF16,  DType::kF8, DType::kI64,
                               DType::kI32, DType::kBool, DType::kU8, DType::kF64};
  const DType other = kOthers[random() % std::size(kOthers)];
  const size_t chosen = random() % types.size();
  const DType before = types[chosen].dtype;
  const bool all = random() % 2 == 0;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i == chosen || (all && types[i].dtype == before)) types[i].dtype = other;
  }
}

// Whatever the values, sizes and types, it is an error or results of the inferred types, and no
// crash.
TEST(OpExamples, NoOperandsCrash) {
  int evaluated = 0;
  for (const Example& example : examples::All()) {
    SCOPED_TRACE(example.name);
    std::mt19937 random(17);
    for (int round = 0; round < 120; ++round) {
      std::vector<TensorType> types =
          round % 4 == 0 ? example.operands : OtherSizes(example, random);
      if (round % 3 == 0 && !types.empty()) ChangeDTypes(types, random);
      const auto inferred = examples::ResultTypes(example, types);
      if (!inferred.has_value()) continue;
      int64_t elements = 0;
      for (const TensorType& type : *inferred) elements += ElementCount(type.dims);
      if (elements > 20000) continue;
      std::vector<Tensor> operands;
      for (size_t i = 0; i < types.size(); ++i) {
        const bool keep = example.known[i].has_value() && types[i] == example.operands[i];
        operands.push_back(keep ? *example.known[i] : AnyTensor(types[i], random));
      }
      const auto results = examples::EvaluateExactly(example, operands);
      if (!results.ok()) continue;
      ++evaluated;
      ExpectInferredTypes(example, operands, *results);
    }
  }
  EXPECT_GT(evaluated, 200);
}

}  // namespace
}  // namespace op_examples_test_cc
}  // namespace orrery::ir
