#include "lowering/placement/late_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "lowering/blocks/template_test_util.h"

namespace orrery::lowering {
namespace late_update_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Stage 2 has a weight of its own, %a, and one that stage 0 has, too, whose gradient both put
// together; it adds up what its own part needs before.
transforms::PipelineStage Parts(const std::string& from = "0") {
  transforms::PipelineStage parts;
  parts.update.function = ir::ParseFunction(absl::StrCat(R"(
func @update (%a: f32[4] parameter, %b: f32[4] parameter, %da: f32[4] saved, %db: f32[4] saved) {
  %own: f32[4] = Relu(%db)
  Send(%own) {tag="own", to=0}
  %other: f32[4] = Receive() {from=)",
                                                         from, R"(, tag="other"}
  %sum: f32[4] = Add(%own, %other)
  %a': f32[4] = Sgd(%a, %da) {parameters=1}
  %b': f32[4] = Sgd(%b, %sum) {parameters=1}
  return %a': updated(%a), %b': updated(%b)
})"))
                              .value();
  for (int32_t v = 0; v < parts.update.function.value_limit(); ++v) {
    parts.update.origins.push_back(ir::ValueId(10 + v));
  }
  return parts;
}

struct Update {
  simulator::Program program;
  PricedTemplate priced;

  Update() {
    TaskTemplate& of = priced.task_template;
    of.inputs = {{.origin = ir::ValueId(12)},
                 {.origin = ir::ValueId(13)},
                 {.origin = ir::ValueId(15), .received = true}};
    const auto add = [&](const std::string& name, int32_t op, const std::vector<int32_t>& after) {
      TemplateTask task;
      task.first_op = task.last_op = op;
      AddTask(task, {.name = name}, after, of, program);
    };
    add("own", 0, {kInput});
    add("sum", 3, {0, kInput});
    add("a'", 4, {kInput});
    add("b'", 5, {1});
    of.dependencies[2].index = 2;  // the sum waits for what is received
    for (int32_t t = 0; t < 4; ++t) of.memory.push_back({.task = t, .bytes = 1 << t});
    of.outputs = {{.origin = ir::ValueId(17), .task = 2}, {.origin = ir::ValueId(18), .task = 3}};
    of.sends.emplace_back();
    of.sends[0].has_maker = true;
    priced.other_durations = {{Duration(10), Duration(40), Duration(50), Duration(60)}};
  }

  // "own 10 after input; …": what tasks there are, how long they take on other devices, and what
  // they wait for.
  std::string Text(const PricedTemplate& part) const {
    std::string text;
    for (size_t t = 0; t < part.task_template.tasks.size(); ++t) {
      const TemplateTask& task = part.task_template.tasks[t];
      absl::StrAppend(&text, program.label(task.label).name, " ",
                      part.other_durations[0][t].picoseconds(), After(part.task_template, task),
                      "; ");
    }
    return text;
  }
};

std::vector<int64_t> BytesOf(const PricedTemplate& part) {
  std::vector<int64_t> bytes;
  for (const TemplateMemory& memory : part.task_template.memory) bytes.push_back(memory.bytes);
  return bytes;
}

TEST(TakeLate, TakesWhatWaitsForAnEarlierStage) {
  Update update;
  const PricedTemplate late = TakeLate(Parts(), /*stage=*/2, update.priced);
  EXPECT_EQ(update.Text(update.priced), "own 10 after input; a' 50 after input; ");
  EXPECT_EQ(update.Text(late), "sum 40 after input after input; b' 60 after 0; ");
  EXPECT_THAT(BytesOf(update.priced), ElementsAre(1, 4));
  EXPECT_THAT(BytesOf(late), ElementsAre(2, 8));
  EXPECT_EQ(late.task_template.memory[1].task, 1);
}

// The one hands the other what no value of the stage is called.
TEST(TakeLate, WaitsForTheRestOfTheUpdate) {
  Update update;
  const PricedTemplate late = TakeLate(Parts(), /*stage=*/2, update.priced);
  const auto& inputs = late.task_template.inputs;
  const TemplateTask& sum = late.task_template.tasks[0];
  const ir::ValueId handed =
      inputs[static_cast<size_t>(late.task_template.DependenciesOf(sum)[0].index)].origin;
  EXPECT_GT(handed.index(), 10 + Parts().update.function.value_limit() - 1);
  const auto& outputs = update.priced.task_template.outputs;
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].origin, handed);
  EXPECT_EQ(outputs[0].task, 0);
  EXPECT_EQ(outputs[1].origin, ir::ValueId(17));
  EXPECT_EQ(outputs[1].task, 1);
}

TEST(TakeLate, SendsWithTheTaskThatMakesIt) {
  Update update;
  const PricedTemplate late = TakeLate(Parts(), /*stage=*/2, update.priced);
  ASSERT_EQ(update.priced.task_template.sends.size(), 1u);
  EXPECT_THAT(late.task_template.sends, IsEmpty());
  EXPECT_EQ(late.task_template.outputs.at(0).task, 1);
}

// What a later stage makes is there before.
TEST(TakeLate, LeavesWhatComesFromLaterStages) {
  Update update;
  const std::string before = update.Text(update.priced);
  EXPECT_THAT(TakeLate(Parts("3"), /*stage=*/2, update.priced).task_template.tasks, IsEmpty());
  EXPECT_EQ(update.Text(update.priced), before);
}

TEST(AwaitedStages, AreTheEarlierOnes) {
  EXPECT_THAT(AwaitedStages(Parts().update, 2), ElementsAre(0));
  EXPECT_THAT(AwaitedStages(Parts("3").update, 2), IsEmpty());
}

}  // namespace
}  // namespace late_update_test_cc
}  // namespace orrery::lowering
