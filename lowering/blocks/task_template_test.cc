#include "lowering/blocks/task_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cluster/cluster.h"
#include "transforms/sharding/ring_attention.h"

// The tasks of one function, written down.

namespace orrery::lowering {
namespace task_template_test_cc {
namespace {

using testing::ElementsAre;

// Of each task its stream, its label and what it moves, and of collectives what for.
std::vector<std::string> Tasks(const ir::Function& function) {
  transforms::StageFunction part = {.function = function, .origins = {}};
  for (int32_t v = 0; v < function.value_limit(); ++v) part.origins.push_back(ir::ValueId(v));
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const auto cluster = cluster::ParseCluster("uniform:4@200Gbps").value();
  simulator::Program program;
  const TaskTemplate task_template =
      LowerPhase(part, {.cost_model = *cost_model, .device = &cluster.device}, program);
  std::vector<std::string> lines;
  for (const TemplateTask& task : task_template.tasks) {
    const simulator::TaskLabel label = program.label(task.label);
    std::string line =
        absl::StrCat(simulator::ToString(task.stream), ": ", absl::StripSuffix(label.name, " "));
    if (!task.group.empty()) {
      absl::StrAppend(&line, " ", label.communication, " ", task.bytes.count());
    }
    for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
      const TemplateDependency& after = task_template.dependencies[d];
      if (!after.external) absl::StrAppend(&line, " after ", after.index);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// Rows of q, k and v on four ranks: [1,8,16] of f32 are 128 bytes of each a rank. The rotation for
// the next turn waits for no attention, so that both run at once.
TEST(TaskTemplate, ARingSendsAndReceivesWhileItAttends) {
  ir::Builder b("ring", ir::Mesh({{"cp", 4}}));
  ir::TensorType type{ir::DType::kF32, {1, 8, 16}, {}};
  type.sharding.Set(1, 3, ir::AxisList(0));
  const transforms::AttentionRing ring = {
      .attributes = {{"flash", int64_t{1}}, {"heads", int64_t{2}}}, .axes = "cp"};
  const auto results =
      transforms::EmitRing(ring, {b.Data("q", type), b.Data("k", type), b.Data("v", type)}, {}, b);
  b.Return(results.y);
  const auto function = std::move(b).Finalize();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_THAT(Tasks(*function), ElementsAre("context: Rotate send-receive cp 128",  //
                                            "context: Rotate send-receive cp 128",  //
                                            "compute: Attention",                   //
                                            "context: Rotate send-receive cp 128",  //
                                            "context: Rotate send-receive cp 128",  //
                                            "compute: Attention after 0 after 1",   //
                                            "compute: MergeAttention",              //
                                            "context: Rotate send-receive cp 128",  //
                                            "context: Rotate send-receive cp 128",  //
                                            "compute: Attention after 3 after 4",   //
                                            "compute: MergeAttention",              //
                                            "compute: Attention after 7 after 8",   //
                                            "compute: MergeAttention"));
}

}  // namespace
}  // namespace task_template_test_cc
}  // namespace orrery::lowering
