#include "search/parameter_server/worker_step.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "importer/load_model.h"
#include "ir/text/text.h"
#include "search/bounds/least_memory.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace worker_step_test_cc {
namespace {

namespace ps = simulator::parameter_server;

WorkerStep StepOf(Setting& setting, const ParallelPlan& plan, search::Run* played = nullptr) {
  setting.lowering.every_link = true;
  absl::StatusOr<search::Run> run = Play(setting, plan);
  EXPECT_TRUE(run.ok()) << run.status();
  absl::StatusOr<WorkerStep> step = WorkerStepOf(setting, *run);
  EXPECT_TRUE(step.ok()) << step.status();
  if (played != nullptr) *played = *std::move(run);
  return *std::move(step);
}

// The time of the kernels of a run but its update.
Duration BeforeUpdate(const search::Run& run) {
  Duration time(0);
  for (int32_t t = 0; t < run.program.task_count(); ++t) {
    const simulator::TaskId task(t);
    if (run.program.label(run.program.label_of(task)).phase == simulator::Phase::kUpdate) continue;
    time += run.program.duration(task);
  }
  return time;
}

double Sum(const WorkerStep& step, Bytes ps::Key::*size) {
  double sum = 0;
  for (const ps::Key& key : step.keys) sum += static_cast<double>((key.*size).count());
  return sum;
}

// By key: the segments that need it and that complete it.
void CheckOrder(const WorkerStep& step) {
  std::map<int32_t, size_t> needed, completed;
  for (size_t s = 0; s < step.segments.size(); ++s) {
    const ps::Segment& segment = step.segments[s];
    EXPECT_GE(segment.time, Duration(0));
    for (const int32_t key : segment.needs) EXPECT_TRUE(needed.emplace(key, s).second);
    for (const int32_t key : segment.completes) EXPECT_TRUE(completed.emplace(key, s).second);
  }
  EXPECT_EQ(needed.size(), step.keys.size());
  EXPECT_EQ(completed.size(), step.keys.size());
  size_t before = 0;
  for (const auto& [key, segment] : needed) {
    EXPECT_GE(segment, before) << "keys stand in the order in which they are needed";
    before = segment;
    EXPECT_EQ(step.segments[segment].phase, simulator::Phase::kForward);
    EXPECT_EQ(step.segments[completed[key]].phase, simulator::Phase::kBackward);
  }
}

// An MLP of 4 layers: each product needs its weight, and backward completes the last first.
TEST(WorkerStep, OfAnMlpIsItsLayersThereAndBack) {
  Setting setting = MlpSetting();
  const WorkerStep step = StepOf(setting, {});
  std::string text;
  for (const ps::Segment& segment : step.segments) {
    text += segment.phase == simulator::Phase::kForward ? "F" : "B";
    for (const int32_t key : segment.needs) text += absl::StrCat(" needs ", key);
    for (const int32_t key : segment.completes) text += absl::StrCat(" completes ", key);
    text += "\n";
  }
  EXPECT_EQ(text,
            "F needs 0\nF needs 1\nF needs 2\nF needs 3\n"
            "B completes 3\nB completes 2\nB completes 1\nB completes 0\n");
  EXPECT_EQ(step.keys[0].parameter, Bytes(64 * 64 * 4));
  EXPECT_EQ(step.keys[0].state, Bytes(2 * 64 * 64 * 4));
}

TEST(WorkerStep, IsTheStepThatIsPlayedButForItsUpdate) {
  for (const int64_t microbatches : {1, 2, 4}) {
    Setting setting = MlpSetting();
    search::Run run;
    const WorkerStep step = StepOf(setting, {.microbatches = microbatches}, &run);
    EXPECT_EQ(step.time, BeforeUpdate(run));
    CheckOrder(step);
    const WeightBytes weights = SumWeights(setting);
    EXPECT_EQ(Sum(step, &ps::Key::parameter), weights.parameters);
    EXPECT_EQ(Sum(step, &ps::Key::gradient), weights.parameters);
    EXPECT_EQ(Sum(step, &ps::Key::state), weights.states);
    EXPECT_LT(step.memory, run.report.peak_memory);
    EXPECT_EQ(run.report.peak_memory - step.memory, Bytes(static_cast<int64_t>(weights.states)));
  }
}

// Real models: tied embeddings, biases, norms, convolutions, with what a framework recomputes.
TEST(WorkerStep, OfModelsHasAllTheirParametersInOrder) {
  for (const std::string name :
       {"gpt2-small:layers=2", "gpt2-small:layers=2,tied_embeddings=0",
        "llama3-8b:layers=2,seq=128", "resnet-18:image=64", "bert-base:layers=2,seq=64"}) {
    const absl::StatusOr<ir::Function> model =
        importer::LoadModel({.model = name, .batch_size = 4});
    ASSERT_TRUE(model.ok()) << model.status();
    for (const ParallelPlan& plan :
         {ParallelPlan{},
          {.microbatches = 2},
          {.recompute = transforms::ParseRecomputePolicy("full").value()}}) {
      Setting setting = MlpSetting("switch:2@25gbe,device=a100-80gb");
      setting.step = *model;
      ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {}).ok());
      setting.model_name = name;
      setting.batch_size = 4;
      search::Run run;
      const WorkerStep step = StepOf(setting, plan, &run);
      EXPECT_EQ(step.time, BeforeUpdate(run)) << name;
      EXPECT_EQ(Sum(step, &ps::Key::parameter), SumWeights(setting).parameters) << name;
      CheckOrder(step);
    }
  }
}

// A weight that is looked at in another shape is needed where that is read, and its gradient is
// there when what it looks at is.
TEST(WorkerStep, LooksThroughViews) {
  Setting setting = MlpSetting();
  setting.step = ir::ParseFunction(R"(func @views (
  %x: f32[48,16] data,
  %first: f32[16,16] parameter,
  %flat: f32[256] parameter
) {
  %second: f32[16,16] = Reshape(%flat) {shape=[16, 16]}
  %y: f32[48,16] = MatMul(%x, %first)
  %a: f32[48,16] = Relu(%y)
  %z: f32[48,16] = MatMul(%a, %second)
  %b: f32[48,16] = Relu(%z)
  return %b: result
}
)")
                     .value();
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {}).ok());
  const WorkerStep step = StepOf(setting, {});
  std::string text;
  for (const ps::Segment& segment : step.segments) {
    text += segment.phase == simulator::Phase::kForward ? "F" : "B";
    for (const int32_t key : segment.needs) {
      text += absl::StrCat(" needs ", step.keys[static_cast<size_t>(key)].name);
    }
    for (const int32_t key : segment.completes) {
      text += absl::StrCat(" completes ", step.keys[static_cast<size_t>(key)].name);
    }
    text += "\n";
  }
  EXPECT_EQ(text, "F needs first\nF needs flat\nB completes flat\nB completes first\n");
}

TEST(WorkerStep, WithoutAnOptimizerNothingIsPushed) {
  Setting setting = MlpSetting("uniform:8@200Gbps", "none");
  setting.lowering.every_link = true;
  const absl::StatusOr<search::Run> run = Play(setting, {});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(WorkerStepOf(setting, *run).status().message(),
            "nothing of the model is updated in a step");
}

}  // namespace
}  // namespace worker_step_test_cc
}  // namespace orrery::search
