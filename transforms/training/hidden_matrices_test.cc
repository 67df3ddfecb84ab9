#include "transforms/training/hidden_matrices.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace hidden_matrices_test_cc {
namespace {

std::string Hidden(ir::Function step) {
  const absl::Status status = MakeTrainingStep(step, {.optimizer = "none"});
  EXPECT_TRUE(status.ok()) << status;
  const IdTable<ir::ValueId, char> hidden = FindHiddenMatrices(step);
  std::string names;
  for (const ir::Input& input : step.inputs()) {
    if (hidden[input.value] != 0) absl::StrAppend(&names, step.value_name(input.value), " ");
  }
  return names;
}

// No tables, no biases, no norms, and not the last product, tied or not.
TEST(FindHiddenMatrices, AreThoseBetweenHiddenLayers) {
  const std::string layer =
      "h.0.attn.q.weight h.0.attn.k.weight h.0.attn.v.weight h.0.attn.proj.weight ";
  for (const char* tied : {"0", "1"}) {
    const std::string keys =
        absl::StrCat("layers=1,hidden=8,heads=2,seq=4,vocab=16,tied_embeddings=", tied);
    EXPECT_EQ(Hidden(ir::BuildModel("gpt", keys, 2)),
              layer + "h.0.mlp.up.weight h.0.mlp.down.weight ");
  }
}

// A residual before the loss leads to no head: all products of hidden layers are hidden.
TEST(FindHeads, EndAtSums) {
  const std::string lines =
      R"(%x: f32[4,6] data, %w: f32[6,6] parameter, %v: f32[6,6] parameter, %t: f32[4,6] data
%a: f32[4,6] = MatMul(%x, %w)
%b: f32[4,6] = MatMul(%a, %v)
%y: f32[4,6] = Add(%a, %b)
return %y: result)";
  EXPECT_EQ(Hidden(ParseLines(lines)), "w v ");
}

}  // namespace
}  // namespace hidden_matrices_test_cc
}  // namespace orrery::transforms
