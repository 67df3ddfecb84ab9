#include "lowering/twin_stage.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "lowering/lower.h"
#include "simulator/program_text.h"
#include "transforms/parallel.h"
#include "transforms/training_step.h"

namespace orrery::lowering {
namespace {

constexpr absl::string_view kMark = "~";

struct TwoWay {
  std::string schedule;
  int64_t dp = 1;
  int zero = 0;
  bool fuse = true;
};

class TwoPipelines {
 public:
  explicit TwoPipelines(const TwoWay& test) : test_(test) {
    ir::Function one = ir::BuildModel("gpt", "layers=4,hidden=32,heads=4,seq=8,vocab=64", 16);
    EXPECT_TRUE(transforms::MakeTrainingStep(one, {.optimizer = "adam"}).ok());
    const transforms::PipelineSchedule& schedule = *transforms::FindSchedule(test.schedule).value();
    const transforms::SpreadOptions options = {
        .stages = {.chunks = schedule.ShapeOf(4, 8, 0).chunks, .placement = schedule.placement},
        .zero = {.stage = test.zero}};
    step_ =
        transforms::ParallelTransform3d(one, {.dp = test.dp, .pp = 4, .microbatches = 8}, options)
            .value();
  }

  // Another name in each part of the second pipeline: no stage is like its twin.
  void MarkSecond() {
    for (size_t s = step_.stages.size() / 2; s < step_.stages.size(); ++s) {
      transforms::PipelineStage& stage = step_.stages[s];
      for (transforms::StageFunction* part : {&stage.forward, &stage.backward, &stage.update}) {
        ir::Function& function = part->function;
        const ir::ValueId value = function.outputs().front().value;
        function.SetName(value, absl::StrCat(function.value_name(value), kMark));
      }
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
  const TwoWay test_;
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
  return absl::StrReplaceAll(text, {{kMark, ""}});
}

// What is copied is what would have been made.
TEST(CopyOfTwin, IsWhatIsLoweredByItself) {
  for (const TwoWay& test : {TwoWay{.schedule = "dualpipe"}, TwoWay{.schedule = "chimera"},
                             TwoWay{.schedule = "chimera", .dp = 2, .zero = 2},
                             TwoWay{.schedule = "dualpipe", .dp = 2, .zero = 3},
                             TwoWay{.schedule = "dualpipe", .fuse = false}}) {
    TwoPipelines two(test);
    const simulator::Program copied = two.Lowered();
    two.MarkSecond();
    const simulator::Program made = two.Lowered();
    EXPECT_TRUE(absl::StrContains(simulator::Print(made), kMark));
    EXPECT_TRUE(WithLabels(copied) == WithLabels(made)) << test.schedule << " zero " << test.zero;
    // Only what is made by itself has had labels for kernels that are part of a run.
    EXPECT_EQ(copied.label_count() < made.label_count(), test.fuse) << test.schedule;
  }
}

}  // namespace
}  // namespace orrery::lowering
