#include <gtest/gtest.h>

#include "ir/infer_test_util.h"
#include "ir/op_info.h"

// What InferTypes makes of operands that are sharded over mesh(dp=2, hp=4).

namespace orrery::ir {
namespace sharding_test_cc {
namespace {

TEST(Sharding, OfMatMul) {
  Expect({
      {"MatMul", "f32[8,16]; f32[16,4]", "f32[8,4]"},
      {"MatMul", "f32[8@dp,16]; f32[16,4]", "f32[8@dp,4]"},              // data parallel
      {"MatMul", "f32[8,16]; f32[16,4@hp]", "f32[8,4@hp]"},              // column parallel
      {"MatMul", "f32[8,16@hp]; f32[16@hp,4]", "f32[8,4] partial(hp)"},  // row parallel
      {"MatMul", "f32[8@dp,16]; f32[16,4@hp]", "f32[8@dp,4@hp]"},        // 2-D
      {"MatMul", "f32[8@dp,16@hp]; f32[16@hp,4]", "f32[8@dp,4] partial(hp)"},
      {"MatMul", "f32[8,16@dp.hp]; f32[16@dp.hp,4]", "f32[8,4] partial(dp.hp)"},
      {"MatMul", "f32[2@dp,8@hp,16]; f32[16,4]", "f32[2@dp,8@hp,4]"},
      {"MatMul {transpose_w=1}", "f32[8@dp,16@hp]; f32[4,16@hp]", "f32[8@dp,4] partial(hp)"},
      {"MatMul {transpose_x=1}", "f32[16@dp,8@hp]; f32[16@dp,4]", "f32[8@hp,4] partial(dp)"},
  });
}

TEST(Sharding, OfMatMulGrad) {
  Expect({
      {"MatMulGrad", "f32[8,16]; f32[16,4]; f32[8,4]", "f32[8,16]; f32[16,4]"},
      {"MatMulGrad", "f32[8@dp,16]; f32[16,4]; f32[8@dp,4]", "f32[8@dp,16]; f32[16,4] partial(dp)"},
      // Column parallel: the gradient of x is partial over hp, that of w over dp.
      {"MatMulGrad", "f32[8@dp,16]; f32[16,4@hp]; f32[8@dp,4@hp]",
       "f32[8@dp,16] partial(hp); f32[16,4@hp] partial(dp)"},
      // Row parallel: x is split over hp, and so is its gradient.
      {"MatMulGrad", "f32[8@dp,16@hp]; f32[16@hp,4]; f32[8@dp,4]",
       "f32[8@dp,16@hp]; f32[16@hp,4] partial(dp)"},
      {"MatMulGrad", "f32[2@dp,8@hp,16]; f32[16,4]; f32[2@dp,8@hp,4]",
       "f32[2@dp,8@hp,16]; f32[16,4] partial(dp.hp)"},
      {"MatMulGrad", "f32[8@dp,16]; f32[16,4]; f32[8,4]",
       "operands 0 and 2 run over one dimension that is split over 'dp' in the one and over '' in "
       "the other"},
      {"MatMulGrad", "f32[8,16]; f32[16,4]; f32[8,4] partial(hp)",
       "operand 2 is partial over hp; it must be reduced first"},
  });
}

TEST(Sharding, MustAgreeAmongOperands) {
  Expect({
      {"MatMul", "f32[8,16@hp]; f32[16,4]",
       "operands 0 and 1 run over one dimension that is split over 'hp' in the one and over '' in "
       "the other"},
      {"MatMul", "f32[8,16@dp.hp]; f32[16@hp.dp,4]",
       "operands 0 and 1 run over one dimension that is split over 'dp.hp' in the one and over "
       "'hp.dp' in the other"},
      {"Add", "f32[8@dp]; f32[8@hp]",
       "operands 0 and 1 run over one dimension that is split over 'dp' in the one and over 'hp' "
       "in "
       "the other"},
  });
}

TEST(Sharding, OfWhatIsPartial) {
  Expect({
      {"Relu", "f32[8] partial(hp)", "operand 0 is partial over hp; it must be reduced first"},
      {"MatMul", "f32[8,16] partial(hp); f32[16,4]",
       "operand 0 is partial over hp; it must be reduced first"},
      {"Mul", "f32[8] partial(hp); f32[8] partial(hp)",
       "operand 0 is partial over hp; it must be reduced first"},
      {"Loss {batch=8}", "f32[8] partial(dp.hp); f32[8]",
       "operand 0 is partial over dp.hp; it must be reduced first"},
      // Linear ops pass it on; a whole summand would be added once a rank.
      {"Add", "f32[8@dp] partial(hp); f32[8@dp] partial(hp)", "f32[8@dp] partial(hp)"},
      {"Add", "f32[8] partial(hp); f32[8]",
       "operand 0 is partial over hp; it must be reduced first"},
      {"Add", "f32[8]; f32[8] partial(hp)",
       "operand 1 is partial over hp; it must be reduced first"},
      {"Scale {factor=0.5}", "f32[8] partial(dp.hp)", "f32[8] partial(dp.hp)"},
      {"Identity", "f32[8@dp] partial(hp)", "f32[8@dp] partial(hp)"},
      {"Transpose", "f32[8@dp,4] partial(hp)", "f32[4,8@dp] partial(hp)"},
      {"Accumulate", "f32[8@dp] partial(hp); f32[8@dp] partial(hp)", "f32[8@dp] partial(hp)"},
  });
}

TEST(Sharding, OfBroadcasts) {
  Expect({
      {"Add", "f32[8@dp,16@hp]; f32[16@hp]",
       "f32[8@dp,16@hp]"},  // a bias, split as the columns are
      {"Add", "f32[8@dp,16]; f32[16]", "f32[8@dp,16]"},
      {"Add", "f32[16@hp]; f32[8@dp,16@hp]", "f32[8@dp,16@hp]"},
      {"Add", "f32[8@dp,16@hp]; f32[16]",
       "operands 0 and 1 run over one dimension that is split over 'hp' in the one and over '' in "
       "the other"},
      {"Mul", "f32[8@dp,1]; f32[1,16@hp]", "f32[8@dp,16@hp]"},
      {"Mul", "f32[8@dp,16]; f32[]", "f32[8@dp,16]"},
  });
}

TEST(Sharding, OfShapes) {
  Expect({
      {"Transpose {perm=[2, 0, 1]}", "f32[2@dp,4@hp,6]", "f32[6,2@dp,4@hp]"},
      {"Transpose", "f32[2@dp,4@hp,6]", "f32[6,4@hp,2@dp]"},
      {"ReduceSum {axes=[0]}", "f32[8@dp,4@hp]", "f32[4@hp] partial(dp)"},
      {"ReduceSum {axes=[1]}", "f32[8@dp,4@hp]", "f32[8@dp] partial(hp)"},
      {"ReduceSum {axes=[0, 1]}", "f32[8@dp,4@hp]", "f32[] partial(dp.hp)"},
      {"ReduceSum {axes=[0]}", "f32[8@dp,4] partial(hp)", "f32[4] partial(dp.hp)"},
      {"ReduceSum {axes=[0]}", "f32[8,4@hp]", "f32[4@hp]"},
  });
}

TEST(Sharding, OfCollectivesAndStages) {
  Expect({
      {"AllReduce {axes=\"hp\"}", "f32[8@dp] partial(hp)", "f32[8@dp]"},
      {"AllReduce {axes=\"dp\"}", "f32[8] partial(hp.dp)", "f32[8] partial(hp)"},
      {"AllGather {axes=\"hp\", dim=1}", "f32[8@dp,4@hp]", "f32[8@dp,4]"},
      {"AllGather {axes=\"hp\", dim=0}", "f32[8@hp] partial(dp)", "f32[8] partial(dp)"},
      {"AllGather {axes=\"hp\", dim=0}", "f32[8@dp.hp]", "f32[8@dp]"},
      {"AllGather {axes=\"dp.hp\", dim=0}", "f32[8@dp.hp]", "f32[8]"},
      {"AllSlice {axes=\"hp\", dim=0}", "f32[8@dp]", "f32[8@dp.hp]"},
      {"AllSlice {axes=\"hp.dp\", dim=1}", "f32[8,8]", "f32[8,8@hp.dp]"},
      {"ReduceScatter {axes=\"hp\", dim=1}", "f32[8@dp,4] partial(hp)", "f32[8@dp,4@hp]"},
      {"ReduceScatter {axes=\"hp\", dim=0}", "f32[8@dp,4] partial(hp)", "f32[8@dp.hp,4]"},
      {"ReduceScatter {axes=\"hp.dp\", dim=0}", "f32[8] partial(dp.hp)", "f32[8@hp.dp]"},
      {"AllToAll {axes=\"hp\", from=0, to=1}", "f32[8@dp.hp,4]", "f32[8@dp,4@hp]"},
      {"AllToAll {axes=\"dp.hp\", from=0, to=1}", "f32[8@dp.hp,8]", "f32[8,8@dp.hp]"},
      {"AllToAll {axes=\"hp\", from=1, to=0}", "f32[8@dp,4@hp]", "f32[8@dp.hp,4]"},
      {"Permute {axes=\"dp.hp\", to=\"hp.dp;\"}", "f32[8@dp.hp,4]", "f32[8@hp.dp,4]"},
      {"MakePartial {axes=\"hp\", reduction=\"max\"}", "f32[8@dp]", "f32[8@dp] partial(hp:max)"},
      {"MakePartial {axes=\"hp\"}", "f32[8] partial(dp)", "f32[8] partial(dp.hp)"},
      {"Reblock {axes=\"dp.hp\", block=2, dim=0, to=\"hp.dp\"}", "f32[16@dp.hp]",
       "f32[16@hp.dp/2]"},
      {"AllSlice {axes=\"hp\", dim=0, uneven=1}", "f32[10@dp]", "f32[10@dp.hp]"},
      {"AllSlice {axes=\"hp\", block=2, dim=0}", "f32[9]", "f32[9@hp/2]"},
      {"Collect", "f32[64@dp,4]; f32[8@dp,4]", "f32[64@dp,4]"},
      {"Send {to=1}", "f32[8@dp]", ""},
      {"Sgd {parameters=1}", "f32[8@hp]; f32[8@hp]", "f32[8@hp]"},
      {"Adam {parameters=1}", "f32[8@hp]; f32[8@hp]; f32[8@hp]; f32[8@hp]",
       "f32[8@hp]; f32[8@hp]; f32[8@hp]"},
  });
}

}  // namespace
}  // namespace sharding_test_cc
}  // namespace orrery::ir
