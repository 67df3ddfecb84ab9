#include "lowering/stage_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "lowering/lower.h"
#include "simulator/program_text.h"
#include "transforms/parallel.h"
#include "transforms/training_step.h"

namespace orrery::lowering {
namespace {

struct Pipelines {
  std::string schedule;
  int64_t dp = 1;
  int zero = 0;
  bool fuse = true;
};

class Lowerings {
 public:
  explicit Lowerings(const Pipelines& test) : test_(test) {
    ir::Function one = ir::BuildModel("gpt", "layers=8,hidden=32,heads=4,seq=8,vocab=64", 16);
    EXPECT_TRUE(transforms::MakeTrainingStep(one, {.optimizer = "adam"}).ok());
    const transforms::PipelineSchedule& schedule = *transforms::FindSchedule(test.schedule).value();
    const transforms::SpreadOptions options = {
        .stages = {.chunks = schedule.ShapeOf(4, 8, 0).chunks, .placement = schedule.placement},
        .zero = {.stage = test.zero}};
    step_ =
        transforms::ParallelTransform3d(one, {.dp = test.dp, .pp = 4, .microbatches = 8}, options)
            .value();
  }

  // What no other stage has, in each: none is made from another one.
  void TellApart() {
    for (size_t s = 0; s < step_.stages.size(); ++s) {
      ir::Function& function = step_.stages[s].forward.function;
      const ir::OpId op = *std::ranges::find_if(function.order(), [&](ir::OpId each) {
        return function.info(each).op_class == ir::OpClass::kCompute;
      });
      ir::AttributeSet attributes = function.attributes(op);
      attributes.Set("mark", static_cast<int64_t>(s));
      function.SetAttributes(op, function.InternAttributes(attributes));
    }
  }

  simulator::Program Lowered() const {
    const auto cost_model = cost_models::MakeCostModel("roofline").value();
    return Lower({.step = step_,
                  .schedule = *transforms::FindSchedule(test_.schedule).value(),
                  .cluster = cluster::ParseCluster("dgx-a100:1").value(),
                  .cost_model = *cost_model,
                  .options = {.fuse_runs = test_.fuse}})
        .value();
  }

 private:
  const Pipelines test_;
  transforms::PipelinedStep step_;
};

// The program, each label written out where it is used: their numbers say nothing.
std::string WithLabels(const simulator::Program& program) {
  absl::flat_hash_map<std::string, std::string> labels;
  std::string text;
  for (const absl::string_view line : absl::StrSplit(simulator::Print(program), '\n')) {
    const std::pair<std::string, std::string> first = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (absl::StartsWith(first.first, "label")) {
      labels.insert(first);
      continue;
    }
    for (const absl::string_view word : absl::StrSplit(line, ' ')) {
      const auto label = labels.find(word);
      absl::StrAppend(&text, label == labels.end() ? word : label->second, " ");
    }
    text += "\n";
  }
  return text;
}

// What is copied is what would have been made.
TEST(StageCopier, IsWhatIsLoweredByItself) {
  const std::vector<Pipelines> tests = {
      {.schedule = "1f1b"},
      {.schedule = "1f1b", .dp = 2, .zero = 2},
      {.schedule = "zb-h1"},
      {.schedule = "interleaved"},
      {.schedule = "1f1b", .fuse = false},
      {.schedule = "dualpipe"},
      {.schedule = "chimera"},
      {.schedule = "chimera", .dp = 2, .zero = 2},
      {.schedule = "dualpipe", .dp = 2, .zero = 3},
      {.schedule = "dualpipe", .fuse = false},
  };
  for (const Pipelines& test : tests) {
    Lowerings step(test);
    const simulator::Program copied = step.Lowered();
    step.TellApart();
    const simulator::Program made = step.Lowered();
    EXPECT_TRUE(WithLabels(copied) == WithLabels(made)) << test.schedule << " zero " << test.zero;
    // Only what is made by itself has had labels for kernels that are part of a run.
    EXPECT_EQ(copied.label_count() < made.label_count(), test.fuse) << test.schedule;
  }
}

}  // namespace
}  // namespace orrery::lowering
