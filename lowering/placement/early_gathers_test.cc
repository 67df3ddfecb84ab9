#include "lowering/placement/early_gathers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "lowering/blocks/template_test_util.h"

namespace orrery::lowering {
namespace early_gathers_test_cc {
namespace {

using cost_models::CollectiveKind;
using simulator::StreamKind;
using testing::ElementsAre;
using testing::IsEmpty;

// Of parameters a, b and c: a forward that needs b first, and an update of named tasks that makes
// them, each of which waits for the tasks before it that are named, or for an input.
class Update {
 public:
  Update() {
    part_.function = ir::ParseFunction(R"(
func @update (%a: f32[4] parameter, %b: f32[4] parameter, %c: f32[4] parameter) {
  %x: f32[4] = Relu(%a)
  %y: f32[4] = Relu(%b)
  %z: f32[4] = Relu(%c)
  return %x: updated(%a), %y: updated(%b), %z: updated(%c)
})")
                         .value();
    for (int32_t v = 0; v < part_.function.value_limit(); ++v) {
      part_.origins.push_back(ir::ValueId(10 + v));
    }
    forward_.inputs.resize(3);
    for (size_t i = 0; i < 3; ++i) forward_.inputs[i].origin = OriginOf(i);
    for (const int32_t input : {1, 0}) {
      TemplateTask& task = forward_.tasks.emplace_back();
      task.dependency_begin = static_cast<uint32_t>(forward_.dependencies.size());
      forward_.dependencies.push_back({.external = true, .index = input});
      task.dependency_end = static_cast<uint32_t>(forward_.dependencies.size());
    }
    priced.task_template.outputs.resize(3);
  }

  ir::ValueId OriginOf(size_t parameter) const {
    return transforms::OriginOf(part_, part_.function.inputs()[parameter].value);
  }
  // Parameters are made by these tasks.
  Update& Make(const std::vector<int32_t>& tasks) {
    for (size_t i = 0; i < 3; ++i) priced.task_template.outputs[i].task = tasks[i];
    return *this;
  }
  PricedTemplate Take() { return TakeGathers(part_, forward_, priced); }

  Update& Kernel(const std::string& name, const std::vector<int32_t>& after) {
    return Add({}, name, after);
  }
  Update& Collective(CollectiveKind kind, const std::string& name,
                     const std::vector<int32_t>& after, StreamKind stream = StreamKind::kData) {
    TemplateTask task;
    task.stream = stream;
    task.collective = kind;
    task.group = ir::AxisList(0);
    return Add(task, name, after);
  }
  Update& Gather(const std::string& name, const std::vector<int32_t>& after,
                 StreamKind stream = StreamKind::kData) {
    return Collective(CollectiveKind::kAllGather, name, after, stream);
  }
  Update& Scatter(const std::string& name) {
    return Collective(CollectiveKind::kReduceScatter, name, {kInput});
  }

  PricedTemplate priced;

  std::vector<std::string> Lines(const PricedTemplate& of) const {
    std::vector<std::string> lines;
    for (const TemplateTask& task : of.task_template.tasks) {
      lines.push_back(absl::StrCat(program_.label(task.label).name, After(of.task_template, task)));
    }
    return lines;
  }

 private:
  Update& Add(TemplateTask task, const std::string& name, const std::vector<int32_t>& after) {
    AddTask(task, {.name = name}, after, priced.task_template, program_);
    return *this;
  }

  transforms::StageFunction part_ = {.function = ir::Function("none"), .origins = {}};
  TaskTemplate forward_;
  simulator::Program program_;
};

TEST(TakeGathers, TakesGathersInTheOrderInWhichForwardNeedsThem) {
  Update update;
  update.Scatter("scatter").Kernel("adam", {0}).Gather("a", {1}).Gather("b", {1});
  update.Kernel("copy", {3}).Kernel("norm", {1}).Make({2, 4, 5});
  update.priced.task_template.memory = {{.task = 1, .bytes = 8},
                                        {.task = 2, .bytes = 4},
                                        {.task = 4, .bytes = -4},
                                        {.task = 5, .bytes = -8}};
  const PricedTemplate gathers = update.Take();
  EXPECT_THAT(update.Lines(gathers), ElementsAre("b", "a"));
  // What forward reads first waits for them: b is a copy of what the first gathers.
  ASSERT_EQ(gathers.task_template.outputs.size(), 2);
  EXPECT_EQ(gathers.task_template.outputs[0].origin, update.OriginOf(1));
  EXPECT_EQ(gathers.task_template.outputs[0].task, 0);
  EXPECT_EQ(gathers.task_template.outputs[1].origin, update.OriginOf(0));
  EXPECT_EQ(gathers.task_template.outputs[1].task, 1);
  // The rest stays, and so does memory, with the last task before.
  EXPECT_THAT(update.Lines(update.priced),
              ElementsAre("scatter after input", "adam after 0", "copy", "norm after 1"));
  std::vector<std::pair<int32_t, int64_t>> memory;
  for (const TemplateMemory& event : update.priced.task_template.memory) {
    memory.push_back({event.task, event.bytes});
  }
  EXPECT_THAT(memory,
              ElementsAre(std::pair(1, 8), std::pair(1, 4), std::pair(2, -4), std::pair(3, -8)));
  EXPECT_THAT(gathers.task_template.memory, IsEmpty());
  const std::vector<TemplateValue>& outputs = update.priced.task_template.outputs;
  ASSERT_EQ(outputs.size(), 2);
  EXPECT_EQ(outputs[0].task, 2);
  EXPECT_EQ(outputs[1].task, 3);
}

TEST(TakeGathers, KeepsTheDurationsOfOtherDevices) {
  Update update;
  update.Scatter("scatter").Kernel("adam", {0}).Gather("w", {1}).Make({2, 1, 1});
  update.priced.other_durations = {{Duration(1), Duration(2), Duration(3)}};
  const PricedTemplate gathers = update.Take();
  EXPECT_THAT(update.priced.other_durations[0], ElementsAre(Duration(1), Duration(2)));
  EXPECT_THAT(gathers.other_durations[0], ElementsAre(Duration(3)));
}

// Before an update, over hp, or where a stage sends what is gathered.
TEST(TakeGathers, LeavesOthers) {
  Update before, over_hp, sent;
  before.Gather("w", {kInput}).Kernel("adam", {0}).Make({0, 1, 1});
  over_hp.Kernel("adam", {kInput}).Gather("w", {0}, StreamKind::kHorizontal).Make({1, 0, 0});
  sent.Kernel("adam", {kInput}).Gather("w", {0}).Make({1, 0, 0});
  TemplateSend& send = sent.priced.task_template.sends.emplace_back();
  send.has_maker = true;
  send.made_by.index = 1;
  for (Update* update : {&before, &over_hp, &sent}) {
    EXPECT_THAT(update->Take().task_template.tasks, IsEmpty());
    EXPECT_EQ(update->priced.task_template.tasks.size(), 2);
  }
}

}  // namespace
}  // namespace early_gathers_test_cc
}  // namespace orrery::lowering
