#include "lowering/blocks/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::lowering {
namespace units_test_cc {
namespace {

using cost_models::CollectiveKind;
using simulator::StreamKind;
using testing::ElementsAre;

// A block of named tasks. Dependencies go to tasks before, by number, or to an input.
class TestBlock {
 public:
  static constexpr int32_t kInput = -1;

  TestBlock& Kernel(const std::string& name, const std::vector<int32_t>& after = {}) {
    return Add({}, name, after);
  }
  TestBlock& Collective(CollectiveKind kind, int32_t unit, const std::string& name,
                        const std::vector<int32_t>& after, ir::AxisIndex axis = 0) {
    BlockTask task;
    task.stream = StreamKind::kData;
    task.collective = kind;
    task.unit = unit;
    task.bytes = Bytes(100);
    task.group = ir::AxisList(axis);
    return Add(task, name, after);
  }
  TestBlock& Gather(int32_t unit, const std::string& name, ir::AxisIndex axis = 0) {
    return Collective(CollectiveKind::kAllGather, unit, name, {kInput}, axis);
  }
  TestBlock& Scatter(int32_t unit, const std::string& name, int32_t after) {
    return Collective(CollectiveKind::kReduceScatter, unit, name, {after});
  }

  Block& block() { return block_; }

  // Formed, one line a task: its name, its bytes, what it waits for, and its gate.
  std::vector<std::string> Formed(bool blocking = false) {
    FormUnits(blocking, block_, program_);
    std::vector<std::string> lines;
    for (const BlockTask& task : block_.tasks) {
      std::string line(program_.label(task.label).name);
      if (!task.group.empty()) absl::StrAppend(&line, " ", task.bytes.count());
      for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
        const BlockDependency& on = block_.dependencies[d];
        absl::StrAppend(&line, " after ", on.external ? "input" : absl::StrCat(on.index));
      }
      if (task.gate > 0) absl::StrAppend(&line, " gate ", task.gate);
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  TestBlock& Add(BlockTask task, const std::string& name, const std::vector<int32_t>& after) {
    task.label = program_.AddLabel({.name = name, .bytes = task.bytes});
    task.dependency_begin = static_cast<uint32_t>(block_.dependencies.size());
    for (const int32_t on : after) {
      block_.dependencies.push_back({.external = on == kInput, .index = std::max(on, 0)});
    }
    task.dependency_end = static_cast<uint32_t>(block_.dependencies.size());
    block_.tasks.push_back(task);
    return *this;
  }

  simulator::Program program_;
  Block block_;
};

TEST(FormUnits, GathersOfAUnitAreOneThatWaitsForTheKernelBeforeIt) {
  TestBlock block;
  block.Gather(0, "a").Gather(0, "b").Gather(1, "c").Kernel("use a", {0}).Kernel("use b", {1});
  block.Gather(2, "d").Kernel("use c", {2}).Kernel("use d", {5});
  block.block().outputs = {{.origin = ir::ValueId(7), .task = 7}};
  block.block().memory = {{.task = 5, .bytes = 100}, {.task = 7, .bytes = -100}};
  block.block().releases = {3, 4, 6, 7};
  EXPECT_THAT(block.Formed(),
              ElementsAre("a and 1 more 200 after input gate 2", "c 100 after input gate 1",
                          "use a after 0", "use b after 0", "d 100 after input after 3",
                          "use c after 1", "use d after 4"));
  EXPECT_EQ(block.block().outputs[0].task, 6);
  EXPECT_EQ(block.block().memory[0].task, 4);
  EXPECT_EQ(block.block().memory[1].task, 6);
  // When a and b, c and d are dropped.
  EXPECT_THAT(block.block().releases, ElementsAre(3, 5, 6));
}

TEST(FormUnits, WhatIsNotAlikeStaysApart) {
  TestBlock block;
  block.Gather(0, "a", 0).Gather(0, "b", 1).Gather(BlockTask::kNoUnit, "c", 1);
  block.Gather(BlockTask::kNoUnit, "d", 1).Kernel("use", {0, 1, 2, 3});
  EXPECT_THAT(block.Formed(), ElementsAre("a 100 after input gate 2", "b 100 after input gate 1",
                                          "c 100 after input", "d 100 after input",
                                          "use after 0 after 1 after 2 after 3"));
}

// What is gathered after an update waits for the update, and for nothing else.
TEST(FormUnits, UpdatedParametersAreGatheredAtOnce) {
  TestBlock block;
  block.Kernel("update").Kernel("other");
  block.Collective(CollectiveKind::kAllGather, 0, "a", {0});
  block.Collective(CollectiveKind::kAllGather, 0, "b", {0});
  EXPECT_THAT(block.Formed(), ElementsAre("update", "other", "a and 1 more 200 after 0"));
}

// The second scatter may begin while the first is under way; the kernels behind it may not.
TEST(FormUnits, KernelsWaitForTheScatterBeforeTheLast) {
  TestBlock block;
  block.Kernel("grad 2").Scatter(2, "s", 0).Kernel("grad 1").Kernel("grad 1'");
  block.Scatter(1, "t", 2).Scatter(1, "u", 3).Kernel("grad 0").Scatter(0, "v", 6).Kernel("end");
  EXPECT_THAT(block.Formed(), ElementsAre("grad 2", "s 100 after 0", "grad 1", "grad 1'",
                                          "t and 1 more 200 after 2 after 3", "grad 0 after 1",
                                          "v 100 after 5", "end after 4"));
}

TEST(FormUnits, OnOneStreamOrderIsEnough) {
  TestBlock block;
  block.Gather(0, "a").Gather(0, "b").Kernel("use").Gather(1, "c").Kernel("use c");
  block.block().releases = {2, 4};
  EXPECT_THAT(block.Formed(true),
              ElementsAre("a and 1 more 200 after input", "use", "c 100 after input", "use c"));
}

TEST(FormUnits, LeavesOthersAlone) {
  TestBlock block;
  block.Kernel("a").Collective(CollectiveKind::kAllReduce, BlockTask::kNoUnit, "b", {0});
  EXPECT_THAT(block.Formed(), ElementsAre("a", "b 100 after 0"));
}

}  // namespace
}  // namespace units_test_cc
}  // namespace orrery::lowering
