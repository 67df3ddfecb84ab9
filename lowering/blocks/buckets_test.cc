#include "lowering/blocks/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace orrery::lowering {
namespace buckets_test_cc {
namespace {

using simulator::Program;
using simulator::StreamKind;
using testing::ElementsAre;

constexpr ir::AxisIndex kDp = 1, kHp = 2;

// A backward and its update, written down gradient by gradient.
class Fixture {
 public:
  // Backward makes input `input` of update by task number `task`.
  void Make(int32_t input, int32_t task) {
    while (std::ssize(update.inputs) <= input) {
      update.inputs.push_back(
          {.origin = ir::ValueId(100 + static_cast<int>(update.inputs.size()))});
    }
    backward.outputs.push_back({.origin = ir::ValueId(100 + input), .task = task});
  }

  int32_t Add(TemplateTask task, const std::string& name, std::vector<TemplateDependency> after) {
    task.label = program.AddLabel({.name = name,
                                   .kind = task.group.empty() ? simulator::TaskKind::kCompute
                                                              : simulator::TaskKind::kCollective,
                                   .phase = simulator::Phase::kUpdate,
                                   .bytes = task.bytes});
    task.dependency_begin = static_cast<uint32_t>(update.dependencies.size());
    update.dependencies.insert(update.dependencies.end(), after.begin(), after.end());
    task.dependency_end = static_cast<uint32_t>(update.dependencies.size());
    update.tasks.push_back(task);
    return static_cast<int32_t>(update.tasks.size()) - 1;
  }

  // The reduction of an input, of so many bytes.
  int32_t Reduce(int32_t input, int64_t bytes, ir::DType dtype = ir::DType::kF32) {
    return Add({.stream = StreamKind::kData,
                .label = {},
                .duration = {},
                .bytes = Bytes(bytes),
                .dtype = dtype,
                .group = ir::AxisList(kDp)},
               absl::StrCat("g", input), {{.external = true, .index = input}});
  }

  int32_t Kernel(const std::string& name, const std::vector<int32_t>& tasks) {
    std::vector<TemplateDependency> after;
    for (const int32_t task : tasks) after.push_back({.external = false, .index = task});
    return Add({.label = {}, .duration = Duration(1), .bytes = {}, .group = {}}, name, after);
  }

  // A line a task: its stream, name and bytes, then what it waits for.
  std::vector<std::string> Form(int64_t bucket_size) {
    FormBuckets(backward, Bytes(bucket_size), update, program);
    std::vector<std::string> lines;
    for (const TemplateTask& task : update.tasks) {
      const simulator::TaskLabel label = program.label(task.label);
      std::string line =
          absl::StrCat(ToString(task.stream), " ", label.name, " ", task.bytes.count(), " after");
      for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
        const TemplateDependency& on = update.dependencies[d];
        absl::StrAppend(&line, on.external ? " input" : " task", on.index);
      }
      lines.push_back(line);
      EXPECT_EQ(label.bytes, task.bytes) << line;
    }
    return lines;
  }

  TaskTemplate backward, update;
  Program program;
};

TEST(FormBuckets, ReducesInTheOrderOfBackward) {
  Fixture fixture;
  for (int32_t g = 0; g < 3; ++g) fixture.Make(g, 9 - g);
  fixture.Kernel("Adam", {fixture.Reduce(0, 4), fixture.Reduce(1, 4), fixture.Reduce(2, 4)});
  EXPECT_THAT(fixture.Form(0),
              ElementsAre("data g2 4 after input2", "data g1 4 after input1",
                          "data g0 4 after input0", "compute Adam 0 after task0 task1 task2"));
}

// What stands behind a sum over hp, whose stream has all of backward's before it, would wait for
// the end of backward, too.
TEST(FormBuckets, ReducesOverHpAndWhatWaitsForItLast) {
  for (const StreamKind stream : {StreamKind::kHorizontal, StreamKind::kCompute}) {
    Fixture fixture;
    for (int32_t g = 0; g < 3; ++g) fixture.Make(g, g);
    const int32_t over_hp = fixture.Add({.stream = stream,
                                         .label = {},
                                         .duration = {},
                                         .bytes = Bytes(4),
                                         .group = ir::AxisList(kHp)},
                                        "norm", {{.external = true, .index = 0}});
    const int32_t after = fixture.Add({.stream = StreamKind::kData,
                                       .label = {},
                                       .duration = {},
                                       .bytes = Bytes(4),
                                       .group = ir::AxisList(kDp)},
                                      "g0", {{.external = false, .index = over_hp}});
    fixture.Kernel("Adam", {after, fixture.Reduce(1, 4), fixture.Reduce(2, 4)});
    EXPECT_THAT(fixture.Form(0),
                ElementsAre("data g1 4 after input1", "data g2 4 after input2",
                            absl::StrCat(ToString(stream), " norm 4 after input0"),
                            "data g0 4 after task2", "compute Adam 0 after task0 task1 task3"));
  }
}

TEST(FormBuckets, FillsBucketsUpToTheirSize) {
  Fixture fixture;
  for (int32_t g = 0; g < 5; ++g) fixture.Make(g, 9 - g);
  std::vector<int32_t> reduced;
  for (const int64_t bytes : {4, 4, 100, 5, 5}) {
    reduced.push_back(fixture.Reduce(static_cast<int32_t>(reduced.size()), bytes));
  }
  fixture.Kernel("Adam", reduced);
  EXPECT_THAT(fixture.Form(10),
              ElementsAre("data g4 and 1 more 10 after input3 input4", "data g2 100 after input2",
                          "data g1 and 1 more 8 after input0 input1",
                          "compute Adam 0 after task0 task1 task2"));
}

// A bucket stands where its last gradient is made; others may be made and reduced in between.
TEST(FormBuckets, MixesNoDataTypes) {
  Fixture fixture;
  for (int32_t g = 0; g < 4; ++g) fixture.Make(g, g);
  fixture.Reduce(0, 2, ir::DType::kBF16);
  fixture.Reduce(1, 4, ir::DType::kF32);
  fixture.Reduce(2, 4, ir::DType::kF32);
  fixture.Reduce(3, 2, ir::DType::kBF16);
  EXPECT_THAT(fixture.Form(100), ElementsAre("data g1 and 1 more 8 after input1 input2",
                                             "data g0 and 1 more 4 after input0 input3"));
}

TEST(FormBuckets, MixesNoGroupsStreamsOrKinds) {
  Fixture fixture;
  fixture.Make(0, 0);
  for (const StreamKind stream : {StreamKind::kData, StreamKind::kHorizontal}) {
    for (const ir::AxisIndex axis : {kDp, kHp}) {
      for (const auto kind :
           {cost_models::CollectiveKind::kAllReduce, cost_models::CollectiveKind::kAllGather}) {
        fixture.Add({.stream = stream,
                     .label = {},
                     .duration = {},
                     .bytes = Bytes(1),
                     .collective = kind,
                     .group = ir::AxisList(axis)},
                    "g", {{.external = true, .index = 0}});
      }
    }
  }
  EXPECT_EQ(fixture.Form(100).size(), 8u);
}

// What was reduced over hp is then reduced over dp: never in one bucket, even on one stream.
TEST(FormBuckets, KeepsChainsInOrder) {
  Fixture fixture;
  for (int32_t g = 0; g < 2; ++g) fixture.Make(g, 9 - g);
  const auto reduce_again = [&](int32_t task) {
    fixture.Add({.stream = StreamKind::kData,
                 .label = {},
                 .duration = {},
                 .bytes = Bytes(4),
                 .group = ir::AxisList(kDp)},
                "again", {{.external = false, .index = task}});
  };
  reduce_again(fixture.Reduce(0, 4));
  reduce_again(fixture.Reduce(1, 4));
  EXPECT_THAT(fixture.Form(100), ElementsAre("data g1 and 1 more 8 after input0 input1",
                                             "data again and 1 more 8 after"));
}

// A kernel of the update runs after all of backward: what waits for it stays behind it.
TEST(FormBuckets, LeavesWhatWaitsForAKernel) {
  Fixture fixture;
  for (int32_t g = 0; g < 2; ++g) fixture.Make(g, 9 - g);
  const int32_t sum = fixture.Kernel("Add", {fixture.Reduce(0, 4)});
  fixture.Add({.stream = StreamKind::kData,
               .label = {},
               .duration = {},
               .bytes = Bytes(8),
               .group = ir::AxisList(kDp)},
              "late", {{.external = false, .index = sum}});
  fixture.Reduce(1, 4);
  EXPECT_THAT(fixture.Form(100),
              ElementsAre("data g1 and 1 more 8 after input0 input1", "compute Add 0 after task0",
                          "data late 8 after task1"));
}

TEST(FormBuckets, GradientsThatForwardMadeAreFirst) {
  Fixture fixture;
  fixture.Make(1, 0);
  fixture.Reduce(1, 4);
  fixture.Reduce(0, 4);
  EXPECT_THAT(fixture.Form(0), ElementsAre("data g0 4 after input0", "data g1 4 after input1"));
}

TEST(FormBuckets, MemoryAndOutputsMoveWithTheirTasks) {
  Fixture fixture;
  for (int32_t g = 0; g < 2; ++g) fixture.Make(g, 9 - g);
  const int32_t first = fixture.Reduce(0, 40), second = fixture.Reduce(1, 4);
  const int32_t adam = fixture.Kernel("Adam", {first, second});
  for (const int32_t task : {first, second}) {
    fixture.update.memory.push_back({.task = task, .bytes = task + 10});
    fixture.update.outputs.push_back({.origin = ir::ValueId(task), .task = task});
  }
  fixture.update.memory.push_back({.task = adam, .bytes = -21});
  fixture.update.outputs.push_back({.origin = ir::ValueId(7), .task = -1});
  fixture.Form(10);
  std::vector<std::string> memory, outputs;
  for (const TemplateMemory& m : fixture.update.memory) {
    memory.push_back(absl::StrCat("task", m.task, " ", m.bytes));
  }
  for (const TemplateValue& output : fixture.update.outputs) {
    outputs.push_back(absl::StrCat(ir::ValueId(output.origin).index(), " by ", output.task));
  }
  EXPECT_THAT(memory, ElementsAre("task0 11", "task1 10", "task2 -21"));
  EXPECT_THAT(outputs, ElementsAre("0 by 1", "1 by 0", "7 by -1"));
}

TEST(FormBuckets, AnEmptyUpdateStaysEmpty) {
  Fixture fixture;
  EXPECT_THAT(fixture.Form(10), ElementsAre());
}

// Random updates: kernels and collectives that wait for inputs and for tasks before them.
class RandomUpdate {
 public:
  explicit RandomUpdate(uint32_t seed) : random_(seed) {
    const int inputs = Below(8) + 1;
    for (int i = 0; i < inputs; ++i) fixture.Make(i, Below(40) - 1);
    const int tasks = Below(30);
    for (int t = 0; t < tasks; ++t) AddTask(t);
  }

  Fixture fixture;

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

  void AddTask(int t) {
    TemplateTask task;
    if (Below(4) > 0) {
      task.stream = Below(3) > 0 ? StreamKind::kData : StreamKind::kHorizontal;
      task.group = ir::AxisList(Below(3) > 0 ? kDp : kHp);
      task.bytes = Bytes(Below(20) + 1);
      task.dtype = Below(4) > 0 ? ir::DType::kBF16 : ir::DType::kF32;
    }
    std::vector<TemplateDependency> after = {
        {.external = true, .index = Below(static_cast<int>(fixture.update.inputs.size()))}};
    while (t > 0 && Below(3) == 0) after.push_back({.external = false, .index = Below(t)});
    fixture.Add(task, absl::StrCat("t", t), after);
    fixture.update.memory.push_back({.task = t, .bytes = 1000 + t});
  }

  std::mt19937 random_;
};

// When each task starts and ends if a kernel takes one unit, a collective its bytes, and backward's
// task t is done at t: streams in order, after what is waited for. Fails where a task waits for a
// later one, which nothing could play.
std::vector<int64_t> FinishTimes(const Fixture& fixture, const TaskTemplate& update) {
  std::map<StreamKind, int64_t> free = {{StreamKind::kCompute, 40}};  // backward is on it
  std::vector<int64_t> finish;
  for (const TemplateTask& task : update.tasks) {
    int64_t start = free[task.stream];
    for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
      const TemplateDependency& on = update.dependencies[d];
      if (!on.external) {
        EXPECT_LT(on.index, std::ssize(finish));
      }
      const auto index = static_cast<size_t>(on.index);
      start = std::max<int64_t>(start,
                                on.external ? fixture.backward.outputs[index].task : finish[index]);
    }
    free[task.stream] = start + std::max<int64_t>(1, task.bytes.count());
    finish.push_back(free[task.stream]);
  }
  return finish;
}

TEST(FormBuckets, OfRandomUpdatesKeepsEveryTaskAndDependency) {
  for (uint32_t seed = 0; seed < 2000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomUpdate random(seed);
    Fixture& fixture = random.fixture;
    const TaskTemplate before = fixture.update;
    const int64_t size = seed % 4 == 0 ? 0 : seed % 50;
    fixture.Form(size);
    const TaskTemplate& after = fixture.update;

    // Memory tells which task went where: each has an event of its own.
    std::vector<size_t> position(before.tasks.size());
    ASSERT_EQ(after.memory.size(), before.memory.size());
    for (const TemplateMemory& memory : after.memory) {
      position[static_cast<size_t>(memory.bytes - 1000)] = static_cast<size_t>(memory.task);
    }
    std::vector<int64_t> bytes(after.tasks.size()), members(after.tasks.size());
    for (size_t t = 0; t < position.size(); ++t) {
      ASSERT_LT(position[t], after.tasks.size());
      bytes[position[t]] += before.tasks[t].bytes.count();
      ++members[position[t]];
    }
    for (size_t t = 0; t < after.tasks.size(); ++t) {
      EXPECT_EQ(bytes[t], after.tasks[t].bytes.count());
      EXPECT_GE(members[t], 1);
      EXPECT_TRUE(members[t] == 1 || bytes[t] <= size) << bytes[t];
    }

    // Whoever waited still does, by a dependency or by the order of its stream.
    FinishTimes(fixture, after);
    for (size_t t = 0; t < position.size(); ++t) {
      const TemplateTask& now = after.tasks[position[t]];
      for (uint32_t d = before.tasks[t].dependency_begin; d < before.tasks[t].dependency_end; ++d) {
        TemplateDependency on = before.dependencies[d];
        if (!on.external) {
          on.index = static_cast<int32_t>(position[static_cast<size_t>(on.index)]);
          ASSERT_LT(on.index, position[t]);
          if (after.tasks[static_cast<size_t>(on.index)].stream == now.stream) continue;
        }
        const auto begin = after.dependencies.begin();
        EXPECT_TRUE(std::any_of(begin + now.dependency_begin, begin + now.dependency_end,
                                [&](const TemplateDependency& other) {
                                  return other.external == on.external && other.index == on.index;
                                }));
      }
    }
  }
}

// Without merging, the last collective of a stream of reductions ends no later than in any order.
TEST(FormBuckets, NoStreamWaitsForAGradientWhileAnEarlierOneIsQueued) {
  for (uint32_t seed = 0; seed < 500 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Fixture fixture;
    const int32_t count = 1 + static_cast<int32_t>(random() % 6);
    for (int32_t g = 0; g < count; ++g) fixture.Make(g, static_cast<int32_t>(random() % 40));
    for (int32_t g = 0; g < count; ++g) fixture.Reduce(g, 1 + static_cast<int64_t>(random() % 20));
    TaskTemplate update = fixture.update;
    fixture.Form(0);
    const int64_t finish = FinishTimes(fixture, fixture.update).back();
    std::sort(update.tasks.begin(), update.tasks.end(),
              [](const TemplateTask& a, const TemplateTask& b) { return a.label < b.label; });
    do {
      EXPECT_LE(finish, FinishTimes(fixture, update).back());
    } while (std::next_permutation(
        update.tasks.begin(), update.tasks.end(),
        [](const TemplateTask& a, const TemplateTask& b) { return a.label < b.label; }));
  }
}

}  // namespace
}  // namespace buckets_test_cc
}  // namespace orrery::lowering
