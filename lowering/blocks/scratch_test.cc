#include "lowering/blocks/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/text/text.h"

namespace orrery::lowering {
namespace scratch_test_cc {
namespace {

// Of each op of a step, in their order.
std::vector<double> ScratchOf(const StackMemory& memory) {
  const ir::Function function = ir::ParseFunction(R"(
func @step (
  %x: f16[2,3] data, %w: f16[3,8] parameter, %u: f16[4] parameter, %m: f32[3,8] state,
  %n: f32[4] state, %dw: f16[3,8] data, %du: f16[4] data, %z: i32[2] data
) {
  %y: f16[2,8] = MatMul(%x, %w)
  %l: f16[2] = CrossEntropy(%y, %z) {batch=2}
  %dy: f16[2,8] = CrossEntropyGrad(%y, %z) {batch=2}
  %w1: f16[3,8], %u1: f16[4], %m1: f32[3,8], %n1: f32[4] = Momentum(%w, %u, %m, %n, %dw, %du) {lr=0.5, mu=0.25, parameters=2}
  return %l: result, %dy: result, %w1: updated(%w), %u1: updated(%u), %m1: updated(%m), %n1: updated(%n)
})")
                                    .value();
  IdTable<ir::TypeId, ir::TensorType> local;
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    const ir::TypeId type = function.type_id(ir::ValueId(v));
    local.resize(std::max(local.size(), type.index() + 1));
    local[type] = function.type(ir::ValueId(v));
  }
  std::vector<double> bytes;
  for (const ir::OpId op : function.order()) {
    bytes.push_back(ScratchBytes(op, function, local, memory));
  }
  return bytes;
}

TEST(ScratchBytes, AreNothingUnlessAskedFor) {
  EXPECT_EQ(ScratchOf({}), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(ScratchOf({.gradient = 3, .sent = 5}), (std::vector<double>{0, 0, 0, 0}));
}

TEST(ScratchBytes, OfALossAreOfEachLogit) {
  EXPECT_EQ(ScratchOf({.loss = 6}), (std::vector<double>{0, 6 * 16, 6 * 16, 0}));
}

// These logits are whole.
TEST(ScratchBytes, OfASplitLossAreWhereLogitsAreSplit) {
  EXPECT_EQ(ScratchOf({.split_loss = 6}), (std::vector<double>{0, 0, 0, 0}));
}

TEST(ScratchBytes, OfAnUpdateAreOfEachElementOfTheParameters) {
  EXPECT_EQ(ScratchOf({.update = 2}), (std::vector<double>{0, 0, 0, 2 * (24 + 4)}));
  EXPECT_EQ(ScratchOf({.loss = 1, .update = 0.5}), (std::vector<double>{0, 16, 16, 14}));
}

}  // namespace
}  // namespace scratch_test_cc
}  // namespace orrery::lowering
