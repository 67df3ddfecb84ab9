#include "lowering/blocks/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lowering/blocks/template_test_util.h"

namespace orrery::lowering {
namespace units_test_cc {
namespace {

using cost_models::CollectiveKind;
using simulator::StreamKind;
using testing::ElementsAre;

// A template of named tasks. Dependencies go to tasks before, by number, or to an input.
class TestTemplate {
 public:
  TestTemplate& Kernel(const std::string& name, const std::vector<int32_t>& after = {}) {
    return Add({}, name, after);
  }
  TestTemplate& Collective(CollectiveKind kind, int32_t unit, const std::string& name,
                           const std::vector<int32_t>& after, ir::AxisIndex axis = 0) {
    TemplateTask task;
    task.stream = StreamKind::kData;
    task.collective = kind;
    task.unit = unit;
    task.bytes = Bytes(100);
    task.group = ir::AxisList(axis);
    return Add(task, name, after);
  }
  TestTemplate& Gather(int32_t unit, const std::string& name, ir::AxisIndex axis = 0) {
    return Collective(CollectiveKind::kAllGather, unit, name, {kInput}, axis);
  }
  TestTemplate& Scatter(int32_t unit, const std::string& name, int32_t after) {
    return Collective(CollectiveKind::kReduceScatter, unit, name, {after});
  }

  TaskTemplate& task_template() { return template_; }

  // Formed, one line a task: its name, its bytes, what it waits for, and its gate.
  std::vector<std::string> Formed(bool blocking = false, Bytes most = {}) {
    FormUnits(blocking, most, template_, program_);
    std::vector<std::string> lines;
    for (const TemplateTask& task : template_.tasks) {
      std::string line(program_.label(task.label).name);
      if (!task.group.empty()) absl::StrAppend(&line, " ", task.bytes.count());
      line += After(template_, task);
      if (task.gate > 0) absl::StrAppend(&line, " gate ", task.gate);
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  TestTemplate& Add(TemplateTask task, const std::string& name, const std::vector<int32_t>& after) {
    AddTask(task, {.name = name, .bytes = task.bytes}, after, template_, program_);
    return *this;
  }

  simulator::Program program_;
  TaskTemplate template_;
};

TEST(FormUnits, GathersOfAUnitAreOneThatWaitsForTheKernelBeforeIt) {
  TestTemplate task_template;
  task_template.Gather(0, "a")
      .Gather(0, "b")
      .Gather(1, "c")
      .Kernel("use a", {0})
      .Kernel("use b", {1});
  task_template.Gather(2, "d").Kernel("use c", {2}).Kernel("use d", {5});
  task_template.task_template().outputs = {{.origin = ir::ValueId(7), .task = 7}};
  task_template.task_template().memory = {{.task = 5, .bytes = 100}, {.task = 7, .bytes = -100}};
  task_template.task_template().releases = {3, 4, 6, 7};
  EXPECT_THAT(task_template.Formed(),
              ElementsAre("a and 1 more 200 after input gate 2", "c 100 after input gate 1",
                          "use a after 0", "use b after 0", "d 100 after input after 3",
                          "use c after 1", "use d after 4"));
  EXPECT_EQ(task_template.task_template().outputs[0].task, 6);
  EXPECT_EQ(task_template.task_template().memory[0].task, 4);
  EXPECT_EQ(task_template.task_template().memory[1].task, 6);
  // When a and b, c and d are dropped.
  EXPECT_THAT(task_template.task_template().releases, ElementsAre(3, 5, 6));
}

TEST(FormUnits, WhatIsNotAlikeStaysApart) {
  TestTemplate task_template;
  task_template.Gather(0, "a", 0).Gather(0, "b", 1).Gather(TemplateTask::kNoUnit, "c", 1);
  task_template.Gather(TemplateTask::kNoUnit, "d", 1).Kernel("use", {0, 1, 2, 3});
  EXPECT_THAT(
      task_template.Formed(),
      ElementsAre("a 100 after input gate 2", "b 100 after input gate 1", "c 100 after input",
                  "d 100 after input", "use after 0 after 1 after 2 after 3"));
}

// What is gathered after an update waits for the update, and for nothing else.
TEST(FormUnits, UpdatedParametersAreGatheredAtOnce) {
  TestTemplate task_template;
  task_template.Kernel("update").Kernel("other");
  task_template.Collective(CollectiveKind::kAllGather, 0, "a", {0});
  task_template.Collective(CollectiveKind::kAllGather, 0, "b", {0});
  EXPECT_THAT(task_template.Formed(), ElementsAre("update", "other", "a and 1 more 200 after 0"));
}

// No more than a bucket at once, unless one is larger by itself.
TEST(FormUnits, GathersNoMoreAtOnceThanAsked) {
  TestTemplate task_template;
  task_template.Kernel("update");
  for (const std::string name : {"a", "b", "c"}) {
    task_template.Collective(CollectiveKind::kAllGather, 0, name, {0});
  }
  TestTemplate by_one = task_template;
  EXPECT_THAT(task_template.Formed(false, Bytes(200)),
              ElementsAre("update", "a and 1 more 200 after 0", "c 100 after 0"));
  EXPECT_THAT(by_one.Formed(false, Bytes(1)),
              ElementsAre("update", "a 100 after 0", "b 100 after 0", "c 100 after 0"));
}

// The second scatter may begin while the first is under way; the kernels behind it may not.
TEST(FormUnits, KernelsWaitForTheScatterBeforeTheLast) {
  TestTemplate task_template;
  task_template.Kernel("grad 2").Scatter(2, "s", 0).Kernel("grad 1").Kernel("grad 1'");
  task_template.Scatter(1, "t", 2).Scatter(1, "u", 3).Kernel("grad 0").Scatter(0, "v", 6).Kernel(
      "end");
  EXPECT_THAT(task_template.Formed(),
              ElementsAre("grad 2", "s 100 after 0", "grad 1", "grad 1'",
                          "t and 1 more 200 after 2 after 3", "grad 0 after 1", "v 100 after 5",
                          "end after 4"));
}

TEST(FormUnits, OnOneStreamOrderIsEnough) {
  TestTemplate task_template;
  task_template.Gather(0, "a").Gather(0, "b").Kernel("use").Gather(1, "c").Kernel("use c");
  task_template.task_template().releases = {2, 4};
  EXPECT_THAT(task_template.Formed(true),
              ElementsAre("a and 1 more 200 after input", "use", "c 100 after input", "use c"));
}

TEST(FormUnits, LeavesOthersAlone) {
  TestTemplate task_template;
  task_template.Kernel("a").Collective(CollectiveKind::kAllReduce, TemplateTask::kNoUnit, "b", {0});
  EXPECT_THAT(task_template.Formed(), ElementsAre("a", "b 100 after 0"));
}

}  // namespace
}  // namespace units_test_cc
}  // namespace orrery::lowering
