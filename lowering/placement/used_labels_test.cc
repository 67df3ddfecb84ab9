#include "lowering/placement/used_labels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "ir/models/model_test_util.h"
#include "lowering/placement/same_figures_test_util.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace used_labels_test_cc {
namespace {

using simulator::LabelId;

simulator::Program LowerGpt(const LoweringOptions& options) {
  ir::Function step = ir::BuildModel("gpt", "layers=8,hidden=32,heads=4,seq=16,vocab=64", 16);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
  const auto pipelined = transforms::ParallelTransform3d(
      step, transforms::ByFlops({.dp = 2, .hp = 2, .pp = 2, .microbatches = 4}), {});
  return Lowered(*pipelined, *transforms::FindSchedule("1f1b").value(),
                 cluster::ParseCluster("dgx-a100:1").value(), options);
}

std::set<int32_t> LabelsInUse(const simulator::Program& program) {
  std::set<int32_t> used;
  for (const LabelId label : program.task_labels()) {
    used.insert(label.index());
    for (const auto& part : program.parts_of(label)) used.insert(part.label.index());
  }
  return used;
}

TEST(KeepUsedLabels, LeavesKernelsThatAreTasksAndCommunication) {
  const simulator::Program fused = LowerGpt({.fuse_runs = true, .fuse_stretches = true});
  const std::set<int32_t> used = LabelsInUse(fused);
  for (int32_t l = 0; l < fused.label_count(); ++l) {
    const bool kernel = fused.label(LabelId(l)).kind == simulator::TaskKind::kCompute;
    EXPECT_TRUE(used.contains(l) || !kernel) << fused.label(LabelId(l)).name;
  }
  EXPECT_LT(fused.label_count(), LowerGpt({}).label_count() / 2);
}

// Reports have a row of each kind of communication, in the order in which labels name them first.
TEST(KeepUsedLabels, LeavesTheOrderOfCommunication) {
  simulator::Program program;
  const auto add = [&](absl::string_view kind) {
    return program.AddLabel({.kind = simulator::TaskKind::kCollective, .communication = kind});
  };
  add("all-reduce dp");  // of a gradient that is in a bucket now
  add("all-reduce dp");
  std::vector<Stage> stages(1);
  std::vector<TemplateTask>& tasks = stages[0].update.task_template.tasks;
  tasks.emplace_back().label = add("all-gather dp");
  tasks.emplace_back().label = add("all-reduce dp");
  KeepUsedLabels(stages, program);
  ASSERT_EQ(program.label_count(), 3);
  EXPECT_EQ(program.label(LabelId(0)).communication, "all-reduce dp");
  EXPECT_EQ(tasks[0].label, LabelId(1));
  EXPECT_EQ(program.label(LabelId(1)).communication, "all-gather dp");
  EXPECT_EQ(tasks[1].label, LabelId(2));
}

}  // namespace
}  // namespace used_labels_test_cc
}  // namespace orrery::lowering
