#include "lowering/placement/find_stretches.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::lowering {
namespace find_stretches_test_cc {
namespace {

// A template, task by task: kernels, and collectives of hp.
class Tasks {
 public:
  void Kernel(std::initializer_list<int32_t> after) { Add({}, after); }
  void Collective(std::initializer_list<int32_t> after) {
    Add(ir::AxisList(ir::AxisIndex(0)), after);
  }
  PricedTemplate priced;

 private:
  void Add(const ir::AxisList& group, std::initializer_list<int32_t> after) {
    TaskTemplate& of = priced.task_template;
    TemplateTask task;
    task.group = group;
    task.stream =
        group.empty() ? simulator::StreamKind::kCompute : simulator::StreamKind::kHorizontal;
    task.dependency_begin = static_cast<uint32_t>(of.dependencies.size());
    for (const int32_t on : after) of.dependencies.push_back({.external = false, .index = on});
    task.dependency_end = static_cast<uint32_t>(of.dependencies.size());
    of.tasks.push_back(task);
    priced.flows.emplace_back();
  }
};

std::string Stretches(const Tasks& tasks) {
  std::string text;
  for (const TaskSpan& span : FindStretches(tasks.priced, {}, false)) {
    if (span.end - span.begin > 1) absl::StrAppend(&text, span.begin, "-", span.end - 1, " ");
  }
  return text;
}

// Six layers: before the first collective its stream may be busy with the template before, and the
// last one may be under way when the next template begins.
Tasks Layers() {
  Tasks tasks;
  tasks.Kernel({});
  for (int32_t layer = 0; layer < 6; ++layer) {
    tasks.Collective({2 * layer});
    tasks.Kernel({2 * layer + 1});
  }
  return tasks;
}

TEST(FindStretches, LeavesTheFirstCollectiveAndTheLast) { EXPECT_EQ(Stretches(Layers()), "2-10 "); }

// Task 3 may start before task 2 does, so that no time of it is fixed with that.
TEST(FindStretches, DoesNotBeginBeforeWhatCollectivesWaitFor) {
  Tasks tasks;
  tasks.Kernel({});
  tasks.Collective({0});
  tasks.Kernel({1});
  tasks.Collective({0});
  tasks.Kernel({3});
  tasks.Collective({4});
  tasks.Kernel({5});
  tasks.Collective({6});
  tasks.Kernel({7});
  EXPECT_EQ(Stretches(tasks), "4-6 ");
}

TEST(FindStretches, EndsWhereSomethingElseWaits) {
  Tasks sends = Layers();
  TemplateSend& send = sends.priced.task_template.sends.emplace_back();
  send.made_by.index = 6;
  send.has_maker = true;
  EXPECT_EQ(Stretches(sends), "2-6 8-10 ");
  Tasks releases = Layers();
  releases.priced.task_template.releases = {4};
  EXPECT_EQ(Stretches(releases), "2-4 6-10 ");
}

TEST(FindStretches, LeavesFlowsAndWaitsForOtherStreams) {
  Tasks flows = Layers();
  flows.priced.flows[5] = simulator::FlowId(0);
  EXPECT_EQ(Stretches(flows), "2-4 6-10 ");
  Tasks waits = Layers();
  TaskTemplate& of = waits.priced.task_template;
  of.inputs.push_back({});
  of.dependencies.push_back({.external = true, .index = 0});
  of.tasks[6].dependency_begin = static_cast<uint32_t>(of.dependencies.size()) - 1;
  of.tasks[6].dependency_end = static_cast<uint32_t>(of.dependencies.size());
  EXPECT_EQ(Stretches(waits), "2-4 8-10 ");  // nor has task 6 waited for the stream
}

}  // namespace
}  // namespace find_stretches_test_cc
}  // namespace orrery::lowering
