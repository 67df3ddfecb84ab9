#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/builtin_models.h"
#include "ir/execute.h"
#include "ir/verifier.h"
#include "tests/semantics/spread.h"
#include "transforms/parallel.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training_step.h"

// Models of the library, executed: their gradients are slopes of their losses, and however they are
// spread they compute the same.

namespace orrery {
namespace {

using semantics::Named;
using transforms::ParallelDegrees;

constexpr double kTolerance = 1e-9;
constexpr int64_t kBatch = 4;

const std::string kModels[] = {
    "gpt:layers=2,hidden=8,heads=2,seq=4,vocab=10,tied_embeddings=0",
    "gpt:layers=2,hidden=8,heads=2,seq=4,vocab=10,tied_embeddings=0,qkv=packed,flash=1",
    "gpt:layers=2,hidden=8,heads=4,kv_heads=2,seq=4,vocab=10,ffn=12,mlp=swiglu",
    "gpt:layers=2,hidden=8,heads=2,seq=4,vocab=10,ffn=6,mlp=swiglu,experts=4,topk=2",
    "gpt:layers=1,hidden=8,heads=2,seq=4,vocab=10,experts=2,topk=1,tied_embeddings=0",
    "bert:layers=2,hidden=8,heads=2,seq=4,vocab=10",
    "lstm:layers=2,hidden=6,input=4,seq=3,vocab=10",
};

ir::Function Step(const std::string& model) {
  auto step = importer::BuildBuiltinModel(model, kBatch, ir::DType::kF64);
  EXPECT_TRUE(step.ok()) << step.status();
  const absl::Status status =
      transforms::MakeTrainingStep(*step, {.optimizer = "none", .simplify = false});
  EXPECT_TRUE(status.ok()) << status;
  return *std::move(step);
}

Named Inputs(const ir::Function& step) {
  std::mt19937 random(11);
  Named inputs;
  for (const ir::Input& input : step.inputs()) {
    const std::string name = ir::ExecutionName(step, input.value);
    ir::Tensor tensor(step.type(input.value).dtype, step.type(input.value).dims);
    for (double& x : tensor.floats()) x = static_cast<double>(random() % 2001) / 1000 - 1;
    for (int64_t& i : tensor.ints())
      i = static_cast<int64_t>(random() % (name == "input_ids" ? 10 : 2));
    inputs[name] = std::move(tensor);
  }
  return inputs;
}

double Sum(const ir::Tensor& tensor) {
  double sum = 0;
  for (const double x : tensor.floats()) sum += x;
  return sum;
}

// Along a random direction through all parameters.
TEST(LibraryModels, HaveTheGradientsOfTheirLosses) {
  for (const std::string& model : kModels) {
    const ir::Function step = Step(model);
    const Named inputs = Inputs(step);
    std::mt19937 random(13);
    Named ahead = inputs, behind = inputs;
    double slope = 0;
    constexpr double kStep = 1e-5;
    const auto run = ir::Execute(step, inputs, {.round = false});
    ASSERT_TRUE(run.ok()) << model << ": " << run.status();
    for (size_t i = 0; i < step.outputs().size(); ++i) {
      const ir::Output& output = step.outputs()[i];
      if (output.role != ir::OutputRole::kGradient) continue;
      const std::string name = ir::ExecutionName(step, output.of);
      for (size_t j = 0; j < inputs.at(name).floats().size(); ++j) {
        const double direction = static_cast<double>(random() % 2001) / 1000 - 1;
        slope += direction * run->outputs[i].floats()[j];
        ahead[name].floats()[j] += kStep * direction;
        behind[name].floats()[j] -= kStep * direction;
      }
    }
    const double up = Sum(ir::Execute(step, ahead, {.round = false})->outputs[0]);
    const double down = Sum(ir::Execute(step, behind, {.round = false})->outputs[0]);
    EXPECT_NEAR((up - down) / (2 * kStep), slope, 1e-5 * std::max(1.0, std::abs(slope))) << model;
  }
}

void ExpectSame(const Named& ours, const Named& expected) {
  for (const auto& [name, tensor] : expected) {
    auto mine = ours.find(name);
    if (mine == ours.end()) mine = ours.find(absl::StrCat(name, ".partial"));
    ASSERT_NE(mine, ours.end()) << name << " is missing";
    EXPECT_LE(ir::Distance(mine->second, tensor), kTolerance) << name;
  }
}

TEST(LibraryModels, ComputeTheSameHoweverTheyAreSpread) {
  for (const std::string& model : kModels) {
    const ir::Function step = Step(model);
    const Named inputs = Inputs(step), expected = semantics::RunAll(step, inputs).outputs;
    for (const ParallelDegrees& degrees :
         std::vector<ParallelDegrees>{{.dp = 2},
                                      {.hp = 2},
                                      {.dp = 2, .hp = 2},
                                      {.dp = 4},
                                      {.microbatches = 2},
                                      {.dp = 2, .pp = 2, .microbatches = 2},
                                      {.hp = 2, .pp = 2, .microbatches = 4}}) {
      if (degrees.pp > 1 && model.find("layers=1") != std::string::npos) continue;
      SCOPED_TRACE(absl::StrCat(model, " dp=", degrees.dp, " hp=", degrees.hp, " pp=", degrees.pp,
                                " K=", degrees.microbatches));
      const auto spread = transforms::ParallelTransform3d(step, degrees);
      ASSERT_TRUE(spread.ok()) << spread.status();
      for (const ir::Function& function : spread->Functions()) {
        ASSERT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
      }
      const auto orders = transforms::FindSchedule("1f1b").value()->orders(
          {.stages = static_cast<int32_t>(degrees.pp),
           .microbatches = static_cast<int32_t>(degrees.microbatches)});
      const auto outcome = semantics::RunPipelined(*spread, orders, inputs);
      ExpectSame(outcome.outputs, expected);
      EXPECT_LE(outcome.disagreement, kTolerance);
      EXPECT_EQ(outcome.lost, 0);
    }
  }
}

}  // namespace
}  // namespace orrery
