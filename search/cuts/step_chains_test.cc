#include "search/cuts/step_chains.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/models/model_test_util.h"
#include "ir/op_info.h"
#include "transforms/parallel.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace step_chains_test_cc {
namespace {

using Names = std::vector<std::string>;

transforms::PipelinedStep StepOf(const char* model, const char* keys) {
  ir::Function step = ir::BuildModel(model, keys, 8);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "sgd"}).ok());
  return transforms::ParallelTransform3d(step, {}).value();
}

double One(ir::OpId) { return 1; }

Names NamesOf(const ir::Function& function, const std::vector<size_t>& positions) {
  Names names;
  for (const size_t at : positions) {
    names.emplace_back(function.info(function.order()[at]).name);
  }
  return names;
}

// One op after another, there and back: nothing is beside the chain.
TEST(StepChains, AreAllOfAnMlp) {
  const transforms::PipelinedStep step = StepOf("mlp", "layers=2,dim=4");
  const transforms::PipelineStage& stage = step.stages[0];
  const StepChains chains = FindChains(stage, One);
  EXPECT_EQ(chains.forward, std::vector<char>(stage.forward.function.order().size(), 1));
  EXPECT_EQ(chains.backward.size(), stage.backward.function.order().size());
  for (const PositionRange& range : chains.outside_backward) {
    EXPECT_LE(range.end - range.begin, 1);  // between products there are activations
  }
  EXPECT_EQ(chains.outside_backward.size(), 3);
  EXPECT_EQ(chains.outside_forward.size(), 3);
}

// The gradient of a gate is beside that of what it is multiplied by; the longer one counts.
TEST(StepChains, TakeTheLongestWayBack) {
  const transforms::PipelinedStep step =
      StepOf("gpt", "layers=1,hidden=8,heads=2,seq=4,vocab=16,flash=1");
  const transforms::PipelineStage& stage = step.stages[0];
  const StepChains chains = FindChains(stage, One);
  const Names names = NamesOf(stage.backward.function, chains.backward);
  EXPECT_GT(std::ranges::count(names, "AttentionGrad"), 0);
  EXPECT_LE(chains.backward.size(), stage.backward.function.order().size());
  for (size_t i = 1; i < chains.backward.size(); ++i) {
    EXPECT_LT(chains.backward[i - 1], chains.backward[i]);
  }
  size_t end = 0;
  for (const PositionRange& gap : chains.gaps) {  // disjoint, in order
    EXPECT_GE(gap.begin, end);
    EXPECT_GE(gap.end, gap.begin);
    end = gap.end;
  }
}

}  // namespace
}  // namespace step_chains_test_cc
}  // namespace orrery::search
