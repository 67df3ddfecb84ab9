#include "lowering/placement/find_stretches.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
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

// Of templates of which nothing is known: their collectives may overlap.
constexpr TemplateEnds kAnyEnds = {.left_running = ~0U, .asked_early = ~0U};

std::string Stretches(const Tasks& tasks, const TemplateEnds& ends = kAnyEnds) {
  std::string text;
  for (const TaskSpan& span : FindStretches(tasks.priced, {}, ends, false)) {
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

TEST(FindStretches, TakesWholeTemplatesWhereKernelsWaitForTheirLastCollectives) {
  EXPECT_EQ(Stretches(Layers(), {}), "0-12 ");
  const TemplateEnds running = {.left_running = ~0U}, early = {.asked_early = ~0U};
  EXPECT_EQ(Stretches(Layers(), running), "2-12 ");
  EXPECT_EQ(Stretches(Layers(), early), "0-10 ");
}

TEST(FindTemplateEnds, LooksAtTheFirstAndTheLastCollective) {
  const auto ends = [](Tasks tasks) {
    std::vector<Stage> stages(1);
    stages[0].forward.first = std::move(tasks.priced);
    const TemplateEnds found = FindTemplateEnds(stages);
    return std::pair(found.left_running != 0, found.asked_early != 0);
  };
  EXPECT_EQ(ends(Layers()), std::pair(false, false));
  Tasks runs = Layers();
  runs.Collective({12});
  EXPECT_EQ(ends(runs), std::pair(true, false));
  Tasks asks;
  asks.Collective({});
  asks.Kernel({0});
  EXPECT_EQ(ends(asks), std::pair(false, true));
}

TEST(FindStretches, WaitsForOtherStreams) {
  Tasks waits = Layers();
  TaskTemplate& of = waits.priced.task_template;
  of.inputs.push_back({});
  of.dependencies.push_back({.external = true, .index = 0});
  of.tasks[6].dependency_begin = static_cast<uint32_t>(of.dependencies.size()) - 1;
  of.tasks[6].dependency_end = static_cast<uint32_t>(of.dependencies.size());
  EXPECT_EQ(Stretches(waits), "2-4 8-10 ");  // nor has task 6 waited for the stream
}

// What the stage has made, and a kernel has waited for, is there.
TEST(FindStretches, DoNotWaitForWhatTheStageHasMade) {
  Tasks waits = Layers();
  TaskTemplate& of = waits.priced.task_template;
  of.inputs.push_back({.origin = ir::ValueId(7)});
  of.dependencies.push_back({.external = false, .index = 5});
  of.dependencies.push_back({.external = true, .index = 0});
  of.tasks[6].dependency_begin = static_cast<uint32_t>(of.dependencies.size()) - 2;
  of.tasks[6].dependency_end = static_cast<uint32_t>(of.dependencies.size());
  const auto with = [&](const HandedValues& handed) {
    return FindStretches(waits.priced, handed, {}, false).size();
  };
  EXPECT_EQ(with({.late = {}, .made = {ir::ValueId(7)}, .wanted = {}, .by_update = {}}), 1U);
  EXPECT_GT(
      with({.late = {ir::ValueId(7)}, .made = {ir::ValueId(7)}, .wanted = {}, .by_update = {}}),
      1U);
  EXPECT_GT(with({}), 1U);
}

Tasks WithFlows(Tasks tasks) {
  for (size_t t = 0; t < tasks.priced.flows.size(); ++t) {
    if (!IsKernel(tasks.priced.task_template.tasks[t])) {
      tasks.priced.flows[t] = simulator::FlowId(0);
    }
  }
  return tasks;
}

TEST(FindStretches, TakesFlowsOneAtATime) {
  EXPECT_EQ(Stretches(WithFlows(Layers())), "2-10 ");
  Tasks some = Layers();
  some.priced.flows[5] = simulator::FlowId(0);
  EXPECT_EQ(Stretches(some), "2-10 ");
}

// Kernel 3 runs beside the first flow; the second begins once kernel 4 has waited for that.
TEST(FindStretches, TakesKernelsBesideAFlow) {
  Tasks tasks;
  tasks.Kernel({});
  tasks.Kernel({});
  tasks.Collective({1});
  tasks.Kernel({});
  tasks.Kernel({2});
  tasks.Collective({4});
  tasks.Kernel({5});
  EXPECT_EQ(Stretches(WithFlows(tasks), {}), "0-6 ");
}

// Collective 3 begins when collective 2 has ended, and that may be before kernel 5 has waited.
TEST(FindStretches, LeavesFlowsThatWaitForKernelsBesideAFlow) {
  Tasks tasks;
  tasks.Kernel({});
  tasks.Kernel({});
  tasks.Collective({1});
  tasks.Kernel({});
  tasks.Collective({3});
  tasks.Kernel({2, 4});
  EXPECT_EQ(Stretches(tasks, {}), "0-5 ");
  EXPECT_EQ(Stretches(WithFlows(tasks), {}), "");
}

// With nothing beside them they are a row, and so is what begins when the last has ended.
TEST(FindStretches, TakesFlowsBehindOneAnother) {
  Tasks tasks;
  tasks.Kernel({});
  tasks.Collective({0});
  tasks.Collective({0});
  tasks.Kernel({1, 2});
  tasks.Collective({0});
  tasks.Kernel({4});
  EXPECT_EQ(Stretches(WithFlows(tasks), {}), "0-5 ");
  Tasks beside;
  beside.Kernel({});
  beside.Kernel({});
  beside.Collective({0});
  beside.Collective({0});
  beside.Kernel({2, 3});
  for (TemplateTask& task : beside.priced.task_template.tasks) task.duration = Duration(1);
  EXPECT_EQ(Stretches(WithFlows(beside), {}), "");
  Tasks late;
  late.Kernel({});
  late.Collective({0});
  late.Collective({0});
  late.Kernel({});
  late.Kernel({1, 2});
  EXPECT_EQ(Stretches(WithFlows(late), {}), "0-4 ");
  late.priced.task_template.tasks[3].duration = Duration(1);  // beside both
  EXPECT_EQ(Stretches(WithFlows(late), {}), "");
}

// Kernel 4 waits for the first of two alone.
TEST(FindStretches, LeavesFlowsThatAreWaitedForOneByOne) {
  Tasks tasks;
  tasks.Kernel({});
  tasks.Collective({0});
  tasks.Collective({0});
  tasks.Kernel({1});
  tasks.Kernel({2});
  EXPECT_EQ(Stretches(tasks, {}), "0-4 ");
  EXPECT_EQ(Stretches(WithFlows(tasks), {}), "");
}

}  // namespace
}  // namespace find_stretches_test_cc
}  // namespace orrery::lowering
