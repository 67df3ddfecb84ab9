#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/infer_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

// Types, shardings and errors of losses, experts, optimizers and transforms of matrices. Over
// mesh(dp=2, hp=4); 99 stands for 0.

namespace orrery::ir {
namespace loss_types_test_cc {
namespace {

TEST(LossTypes, OfCrossEntropy) {
  Expect({
      {"CrossEntropy {batch=8}", "f16[8@dp,3,5]; i32[8@dp,3]", "f16[8@dp,3]"},
      {"CrossEntropy {batch=1}", "f32[5]; i64[]", "f32[]"},
      {"CrossEntropyGrad {batch=8}", "f16[8@dp,5]; i32[8@dp]", "f16[8@dp,5]"},
      {"CrossEntropy {batch=8}", "f32[2,8@hp]; i32[2]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"CrossEntropy {batch=8}", "f32[]; i32[]", "operand 0 has shape []; wanted [..,classes]"},
      {"CrossEntropy {batch=8}", "i32[8,5]; i32[8]", "operand 0 is of i32; wanted floating point"},
      {"CrossEntropy {batch=8}", "f32[8,5]; f32[8]",
       "operand 1 is of f32; wanted a type of whole numbers"},
      {"CrossEntropy {batch=8}", "f32[8,5]; i32[8,5]",
       "operand 1 has shape [8,5]; wanted [8] (a label a row)"},
      {"CrossEntropy", "f32[8,5]; i32[8]",
       "the attribute batch is missing; wanted the global number of rows"},
      {"CrossEntropyGrad {batch=-1}", "f32[8,5]; i32[8]",
       "the attribute batch is missing; wanted the global number of rows"},
  });
}

TEST(LossTypes, OfLikelihoods) {
  Expect({
      {"NegativeLikelihood", "f16[2@dp,5,4@hp]; i32[2@dp,4@hp]; f32[5]",
       "f16[2@dp,4@hp]; f16[2@dp,4@hp]"},
      {"NegativeLikelihood", "f32[2,4@hp]; i32[2]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"NegativeLikelihood", "f32[5]; i32[5]",
       "operand 0 has shape [5]; wanted [batch,classes,..]"},
      {"NegativeLikelihood", "i32[2,5]; i32[2]", "operand 0 is of i32; wanted floating point"},
      {"NegativeLikelihood", "f32[2,5]; f32[2]",
       "operand 1 is of f32; wanted a type of whole numbers"},
      {"NegativeLikelihood", "f32[2,5,3]; i32[2,5]",
       "operand 1 has shape [2,5]; wanted [2,3] (a label a row)"},
      {"NegativeLikelihood", "f32[2,5]; i32[2]; f32[2]",
       "operand 2 has shape [2]; wanted [5] (a weight a class)"},
      {"NegativeLikelihood", "f32[2,5]; i32[2]; i32[5]",
       "operand 2 is of i32; wanted floating point"},
      {"NegativeLikelihoodGrad {classes=5}", "f16[2@dp,3]; i32[2@dp,3]; f32[5]", "f16[2@dp,5,3]"},
      {"NegativeLikelihoodGrad", "f32[2]; i32[2]", "f32[2,0]"},
      {"NegativeLikelihoodGrad {classes=-1}", "f32[2]; i32[2]", "classes=-1; wanted at least 0"},
      {"NegativeLikelihoodGrad {classes=5}", "f32[]; i32[]",
       "operand 0 has shape []; wanted [batch,..]"},
      {"NegativeLikelihoodGrad {classes=5}", "f32[2]; i32[3]",
       "operand 1 has shape [3]; wanted [2] (a label a row)"},
      {"NegativeLikelihoodGrad {classes=5}", "f32[2]; i32[2]; f32[4]",
       "operand 2 has shape [4]; wanted [5] (a weight a class)"},
  });
}

TEST(LossTypes, OfOtherLosses) {
  Expect({
      {"Loss {batch=8}", "f32[8@dp,4@hp]; f32[8@dp,4@hp]", "f32[8@dp,4@hp]"},
      {"LossGrad {batch=8}", "f32[8@dp]; f32[8@dp]", "f32[8@dp]"},
      {"Loss {batch=8}", "f32[8,4]; f32[8]",
       "prediction and target differ in shape; got [8,4] and [8]"},
      {"Loss {batch=8}", "f32[8]; f16[8]", "element types differ; got f32 and f16"},
      {"LossGrad {batch=8}", "f16[8]; f32[8]", "element types differ; got f16 and f32"},
      {"Loss {batch=0}", "f32[8]; f32[8]",
       "the attribute batch is missing; wanted the global batch size"},
      {"SumLoss", "f32[8@dp]", "f32[8@dp]"},
      {"SumLoss {batch=1}", "f32[8]", "f32[8]"},
      {"SumLoss {batch=0}", "f32[8]", "batch=0; wanted at least 1"},
      {"SumLossGrad {batch=-3}", "f32[8]", "batch=-3; wanted at least 1"},
      {"DropoutGrad", "bool[8@dp]; f16[8@dp]", "f16[8@dp]"},
      {"Dropout {ratio=1.0}", "f16[8@dp]", "f16[8@dp]; bool[8@dp]"},
      {"Dropout {ratio=1.5}", "f32[8]", "ratio=1.5; wanted 0 to 1"},
      {"Dropout {ratio=-0.5}", "f32[8]", "ratio=-0.5; wanted 0 to 1"},
      {"Dropout", "i32[8]", "operand 0 is of i32; wanted floating point"},
      {"DropoutGrad", "bool[8]; f32[4]", "operand 1 has shape [4]; wanted [8] as the mask"},
      {"DropoutGrad", "bool[8]; bool[8]", "operand 1 is of bool; wanted floating point"},
  });
}

// Nobody trains the target of a loss, even where it is a parameter.
TEST(LossTypes, GiveNoGradientToTheTarget) {
  Builder b("f");
  const ValueId x = b.Parameter("x", {DType::kF32, {2}, {}});
  const ValueId z = b.Parameter("z", {DType::kF32, {2}, {}});
  const ValueId operands[] = {x, z};
  const OpId op = b.Ops(OpKind::kLoss, operands, {}, {{"batch", int64_t{2}}});
  const IdTable<ValueId, char> needed(b.function().value_limit(), 1);
  const std::vector<ValueId> seeds(1);
  GradientContext context(b, op, seeds, needed);
  ASSERT_TRUE(GetOpInfo(OpKind::kLoss).gradient(context).ok());
  EXPECT_TRUE(context.operand_gradients()[0].valid());
  EXPECT_FALSE(context.operand_gradients()[1].valid());
}

// Slots of two experts for the four tokens of each of three samples, each of which goes to both.
TEST(ExpertTypes, OfCapacity) {
  const auto slots = [](const std::string& attributes, const std::string& choices = "[3,4,2]") {
    return Infer(absl::StrCat("Route {", attributes, "}"),
                 absl::StrCat("f16", choices, "; i64", choices));
  };
  EXPECT_EQ(slots("experts=2"), "i32[2,3,4]; f16[2,3,4]");
  EXPECT_EQ(slots("experts=3"), "i32[3,3,3]; f16[3,3,3]");  // 8 / 3, rounded up
  EXPECT_EQ(slots("experts=2, capacity_factor=0.5"), "i32[2,3,2]; f16[2,3,2]");
  EXPECT_EQ(slots("experts=2, capacity_factor=0.6"), "i32[2,3,3]; f16[2,3,3]");
  EXPECT_EQ(slots("experts=99, capacity_factor=0.01"), "i32[99,3,1]; f16[99,3,1]");
  EXPECT_EQ(slots("experts=2, capacity_factor=1000000.0"), "i32[2,3,4]; f16[2,3,4]");  // each once
  EXPECT_EQ(slots("experts=1, capacity_factor=2.0", "[3,1,1]"), "i32[1,3,1]; f16[1,3,1]");
  EXPECT_EQ(slots("experts=2", "[3,99,2]"), "i32[2,3,1]; f16[2,3,1]");
  const std::string wanted = "; wanted both to be positive";
  EXPECT_EQ(slots("experts=0"), "experts=0, capacity_factor=1" + wanted);
  EXPECT_EQ(slots("experts=2, capacity_factor=0.0"), "experts=2, capacity_factor=0" + wanted);
  EXPECT_EQ(slots("experts=2, capacity_factor=1000001.0"),
            "experts=2, capacity_factor=1e+06" + wanted);
}

TEST(ExpertTypes, OfTokensAndSlots) {
  Expect({
      {"Route {experts=4}", "f32[2@dp,3,2]; i64[2@dp,3,2]", "i32[4,2@dp,2]; f32[4,2@dp,2]"},
      {"Route {experts=4}", "f32[3,2]; i64[3,2]",
       "operand 0 is f32[3,2]; wanted 3 dimensions of floating-point numbers"},
      {"Route {experts=4}", "f32[2,3,2]; f32[2,3,2]",
       "operand 1 is f32[2,3,2]; wanted 3 dimensions of whole numbers"},
      {"Route {experts=4}", "f32[2,3,2]; i64[2,3,1]",
       "weights and choices differ; got [2,3,2] and [2,3,1]"},
      {"RouteGrad", "i64[2@dp,3,2]; f16[4,2@dp,5]", "f16[2@dp,3,2]"},
      {"RouteGrad", "f32[2,3,2]; f16[4,2,5]",
       "operand 0 is f32[2,3,2]; wanted 3 dimensions of whole numbers"},
      {"RouteGrad", "i64[2,3,2]; f16[4,3,5]", "batches differ; got [2,3,2] and [4,3,5]"},
      {"Dispatch", "f32[2@dp,6,8]; i32[4@hp,2@dp,3]", "f32[4@hp,2@dp,3,8]"},
      {"Dispatch", "f32[2,6,8@hp]; i32[4,2,3]", "f32[4,2,3,8@hp]"},
      {"Dispatch", "f32[4,6,8]; i32[4,2,3]", "batches differ; got [4,6,8] and [4,2,3]"},
      // Experts that other ranks have give the rest of the sum.
      {"Combine {size=6}", "f32[4@hp,2@dp,3,8]; i32[4@hp,2@dp,3]", "f32[2@dp,6,8] partial(hp)"},
      {"Combine {size=6}", "f32[4,2,3,8@hp]; i32[4,2,3]; f32[4,2,3]", "f32[2,6,8@hp]"},
      {"Combine {size=6}", "f32[4,2,3]; i32[4,2,3]",
       "operand 0 is f32[4,2,3]; wanted 4 dimensions of floating-point numbers"},
      {"Combine {size=6}", "f32[4,2,5,8]; i32[4,2,3]", "slots differ; got [4,2,5,8] and [4,2,3]"},
      {"Combine {size=6}", "f32[4,2,3,8]; i32[4,2,3]; f32[4,2,5]",
       "gates differ; got [4,2,5] and [4,2,3]"},
      {"Combine", "f32[4,2,3,8]; i32[4,2,3]", "size=0; wanted the number of tokens of a sample"},
      {"CombineGrad", "f32[4@hp,2,3,8]; i32[4@hp,2,3]; f16[4@hp,2,3]; f32[2,6,8]",
       "f32[4@hp,2,3,8]; f16[4@hp,2,3]"},
      {"CombineGrad", "f32[4,2,3,8]; i32[4,2,3]; f32[4,2,3]; f32[2,6,7]",
       "the gradient and what was combined differ; got [2,6,7] and [4,2,3,8]"},
      {"CombineGrad", "f32[4,2,3,8]; i32[4,2,3]; f32[4,2,3]; f32[3,6,8]",
       "the gradient and what was combined differ; got [3,6,8] and [4,2,3,8]"},
  });
}

TEST(OptimizerTypes, OfParametersAndState) {
  const std::string wanted =
      "; wanted as many gradients as parameters, and whole groups of state between";
  Expect({
      {"Adam {parameters=1}", "f16[8@dp]; f32[8@dp]; f32[8@dp]; f16[8@dp]",
       "f16[8@dp]; f32[8@dp]; f32[8@dp]"},
      {"Sgd {parameters=2}", "f32[3]; f32[2,2]; f16[3]; f16[2,2]", "f32[3]; f32[2,2]"},
      {"Sgd", "f32[3]; f32[3]", "got 2 operands and parameters=0" + wanted},
      {"Sgd {parameters=2}", "f32[3]; f32[3]", "got 2 operands and parameters=2" + wanted},
      {"Sgd {parameters=2}", "f32[3]; f32[3]; f32[3]", "got 3 operands and parameters=2" + wanted},
      {"Sgd {parameters=2}", "f32[3]; f32[2]; f32[3]; f32[3]",
       "operand 3 differs in shape from its parameter, operand 1"},
      {"Sgd {parameters=1}", "f32[8]; f32[8] partial(dp)",
       "operand 1 is partial over dp; it must be reduced first"},
      {"Sgd {parameters=1}", "f32[8@dp]; f32[8]",
       "operand 1 is not split as its parameter, operand 0, is"},
  });
}

// Each optimizer has as many moments as its name says, and may have a master copy besides.
TEST(OptimizerErrors, OfMomentsThatItHasNot) {
  const Tensor one(DType::kF32, {1});
  const auto error = [&](OpKind kind, size_t tensors) {
    const std::vector<const Tensor*> operands(tensors, &one);
    const std::vector<TensorType> results(tensors - 1, one.type());
    return std::string(
        Evaluate(kind, {{"parameters", int64_t{1}}}, operands, results).status().message());
  };
  const auto wanted = [](size_t found, int least) {
    return absl::StrCat("got ", found, " tensors a parameter; wanted ", least,
                        " or, with a master copy, ", least + 1);
  };
  EXPECT_EQ(error(OpKind::kSgd, 2), "");
  EXPECT_EQ(error(OpKind::kSgd, 3), "");
  EXPECT_EQ(error(OpKind::kSgd, 4), wanted(4, 2));
  EXPECT_EQ(error(OpKind::kMomentum, 2), wanted(2, 3));
  EXPECT_EQ(error(OpKind::kMomentum, 4), "");
  EXPECT_EQ(error(OpKind::kAdam, 3), wanted(3, 4));
  EXPECT_EQ(error(OpKind::kAdam, 5), "");
  EXPECT_EQ(error(OpKind::kAdam, 6), wanted(6, 4));
}

TEST(TransformTypes, OfFourierAndDeterminants) {
  Expect({
      {"Dft {axis=1}", "f32[2@dp,8,1]", "f32[2@dp,8,2]"},
      {"Dft", "f16[2@dp,8,2]", "f16[2@dp,8,2]"},
      {"Dft {axis=-2, length=5}", "f32[2,8,1]", "f32[2,5,2]"},
      {"Dft {axis=1, onesided=1}", "f32[2,8,1]", "f32[2,5,2]"},
      {"Dft {axis=1, onesided=1}", "f32[2,7,1]", "f32[2,4,2]"},
      {"Dft {axis=0, length=1099511627776}", "f32[1,1]", "f32[1099511627776,2]"},
      {"Dft {axis=0, length=1099511627777}", "f32[1,1]", "length=1099511627777; wanted at least 1"},
      {"Dft {axis=1, length=0}", "f32[2,8,1]", "length=0; wanted at least 1"},
      {"Dft {axis=1}", "f32[2,8@hp,1]",
       "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"Dft {axis=0}", "f32[8]", "got shape [8]; wanted [..,1] or [..,2]"},
      {"Dft {axis=0}", "f32[8,3]", "got shape [8,3]; wanted [..,1] or [..,2]"},
      {"Dft {axis=2}", "f32[2,8,1]", "axis is that of real and imaginary part"},
      {"Dft {axis=-1}", "f32[2,8,1]", "axis is that of real and imaginary part"},
      {"Dft {axis=3}", "f32[2,8,1]", "axis 3 is none of the 3 dimensions"},
      {"Dft {axis=0}", "i32[8,1]", "operand 0 is of i32; wanted floating point"},
      {"Det", "f16[8@hp,3,3]", "f16[8@hp]"},
      {"Det", "f32[3,3]", "f32[]"},
      {"Det", "f32[2,4@hp,4]", "dimension 1 of operand 0 is split over hp; it must be whole"},
      {"Det", "f32[3]", "got shape [3]; wanted [..,n,n]"},
      {"Det", "f32[3,2]", "got shape [3,2]; wanted [..,n,n]"},
      {"Det", "i32[3,3]", "operand 0 is of i32; wanted floating point"},
      {"DetGrad", "f32[2@dp,3,3]; f32[2@dp]", "f32[2@dp,3,3]"},
      {"DetGrad", "f32[2,3,3]; f32[3]", "operand 1 has shape [3]; wanted [2] as the result"},
      {"DetGrad", "f32[2,3,3]; f16[2]", "element types differ; got f32 and f16"},
  });
}

}  // namespace
}  // namespace loss_types_test_cc
}  // namespace orrery::ir
