#include "search/runs/skip_ahead.h"

#include <gtest/gtest.h>

#include <vector>

#include "simulator/engine/play.h"

// What a period is, on programs that are written down: one rank, a forward and a backward of each
// microbatch, and an update behind them.

namespace orrery::search {
namespace skip_ahead_test_cc {
namespace {

using simulator::TaskId;

class Pipeline {
 public:
  Pipeline()
      : rank_(run_.program.AddRank({.name = "r", .members = {0}})),
        stream_(run_.program.AddStream(rank_, simulator::StreamKind::kCompute)),
        other_(run_.program.AddStream(rank_, simulator::StreamKind::kData)),
        label_(run_.program.AddLabel({.name = "kernel"})) {}

  TaskId Add(int64_t picoseconds, std::vector<TaskId> after = {}, bool beside = false) {
    return run_.program.AddTask(
        beside ? other_ : stream_,
        {.duration = Duration(picoseconds), .label = label_, .microbatch = microbatch_}, after);
  }

  // A forward of `forward` and a backward of 5; the forward's task.
  // `other_way`: and another microbatch with it, that begins on another stage.
  TaskId Microbatch(int64_t forward, std::vector<TaskId> after = {}, int64_t leaves = 0,
                    bool other_way = false) {
    microbatch_ = next_++;
    const TaskId task = Add(forward, std::move(after));
    Step(transforms::StepKind::kForward, task);
    if (leaves != 0) run_.program.AddMemoryEvent({.task = task, .rank = rank_, .bytes = leaves});
    Step(transforms::StepKind::kBackward, Add(5));
    if (other_way) {
      microbatch_ += 100;
      Step(transforms::StepKind::kForward, Add(forward), /*stage=*/1);
      Step(transforms::StepKind::kBackward, Add(5), /*stage=*/1);
    }
    microbatch_ = -1;
    return task;
  }

  std::optional<Period> Find(int64_t microbatches = 1, int64_t behind = 0) {
    return FindPeriodOf(Played(), microbatches, behind);
  }
  Run& Played() {
    run_.trace = simulator::Play(run_.program, nullptr).value();
    run_.report = simulator::SummarizeBriefly(run_.program, run_.trace);
    return run_;
  }
  const simulator::Report& Told() const { return run_.report; }
  simulator::RankClassId rank() const { return rank_; }
  // Of two microbatches, and the backward of the first.
  void TwoForwards() {
    for (int i = 0; i < 2; ++i) {
      microbatch_ = next_++;
      Step(transforms::StepKind::kForward, Add(10));
    }
    BackwardOf(next_ - 2);
  }
  void BackwardOf(int32_t microbatch) {
    microbatch_ = microbatch;
    Step(transforms::StepKind::kBackward, Add(5));
    microbatch_ = -1;
  }

  // What the first microbatch takes, once it has run.
  void GiveBack(int64_t bytes) {
    run_.program.AddMemoryEvent({.task = run_.steps.front().begin, .rank = rank_, .bytes = -bytes});
  }

 private:
  void Step(transforms::StepKind kind, TaskId task, int32_t stage = 0) {
    const auto slot = static_cast<int32_t>(run_.steps.size());
    run_.steps.push_back(
        {.step = {.kind = kind, .stage = stage, .microbatch = microbatch_, .slot = slot},
         .begin = task,
         .end = TaskId(task.index() + 1)});
  }

  Run run_;
  simulator::RankClassId rank_;
  simulator::StreamId stream_, other_;
  simulator::LabelId label_;
  int32_t microbatch_ = -1, next_ = 0;
};

TEST(FindPeriod, IsAForwardAndABackward) {
  Pipeline pipeline;
  for (int m = 0; m < 6; ++m) pipeline.Microbatch(10, {}, /*leaves=*/3);
  pipeline.Add(7);
  const auto one = pipeline.Find(1), two = pipeline.Find(2);
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(one->time, Duration(15));
  EXPECT_EQ(two->time, Duration(30));
  const auto kind = static_cast<size_t>(simulator::MemoryKind::kOther);
  EXPECT_EQ(one->growth[pipeline.rank()][kind], Bytes(3));
  EXPECT_EQ(two->growth[pipeline.rank()][kind], Bytes(6));
}

TEST(FindPeriod, WantsTwo) {
  Pipeline pipeline;
  for (int m = 0; m < 2; ++m) pipeline.Microbatch(10);
  EXPECT_FALSE(pipeline.Find().has_value());
}

// Of three, with four ranks.
TEST(FindPeriod, NeedNotDivideTheRanks) {
  Pipeline pipeline;
  for (int m = 0; m < 12; ++m) pipeline.Microbatch(10 + 2 * (m % 3));
  const auto period = FindPeriod(pipeline.Played(), /*ranks=*/4);
  ASSERT_TRUE(period.has_value());
  EXPECT_EQ(period->microbatches, 3);
  EXPECT_EQ(period->time, Duration(51));
  EXPECT_FALSE(FindPeriod(pipeline.Played(), /*ranks=*/2).has_value());
}

// The forwards take turns: two microbatches are a period, one is none.
TEST(FindPeriod, IsAsLongAsThePatternIs) {
  Pipeline pipeline;
  for (int m = 0; m < 8; ++m) pipeline.Microbatch(m % 2 == 0 ? 10 : 12);
  EXPECT_FALSE(pipeline.Find(1).has_value());
  const auto two = pipeline.Find(2);
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->time, Duration(32));
}

// All are equally long, but one of the last waits for something that those before do not.
TEST(FindPeriod, WantsTheSameWaits) {
  Pipeline pipeline;
  std::vector<TaskId> forwards;
  for (int m = 0; m < 6; ++m) {
    std::vector<TaskId> after;
    if (m == 4) after = {forwards[2]};
    forwards.push_back(pipeline.Microbatch(10, after));
  }
  EXPECT_FALSE(pipeline.Find().has_value());
}

// The last microbatches see that the end is near: it is so before them.
TEST(FindPeriod, LooksBeforeWhatSeesTheEnd) {
  Pipeline pipeline;
  for (int m = 0; m < 8; ++m) pipeline.Microbatch(m < 5 ? 10 : 7 - m % 2);
  EXPECT_FALSE(pipeline.Find(1, 0).has_value());
  EXPECT_FALSE(pipeline.Find(1, 1).has_value());
  ASSERT_TRUE(pipeline.Find(1, 2).has_value());
  EXPECT_EQ(pipeline.Find(1, 2)->time, Duration(15));
  EXPECT_FALSE(pipeline.Find(1, 7).has_value());
  EXPECT_FALSE(FindPeriod(pipeline.Played(), 1).has_value());
  const auto found = FindPeriod(pipeline.Played(), 2);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->microbatches, 1);
}

// Those that begin on another stage count, too.
TEST(FindPeriod, HasTheMicrobatchesOfBothPipelines) {
  Pipeline pipeline;
  for (int m = 0; m < 6; ++m) pipeline.Microbatch(10, {}, 0, /*other_way=*/true);
  const auto one = pipeline.Find(1);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->microbatches, 2);
  EXPECT_EQ(one->time, Duration(30));
}

// A brief report of few microbatches is that of all.
TEST(AddPeriods, AreWhatIsNotPlayed) {
  const auto make = [](int microbatches, int64_t early) {
    Pipeline pipeline;
    pipeline.Add(3);
    for (int m = 0; m < microbatches; ++m) {
      pipeline.Microbatch(10, {}, m == 0 ? early : 4);
    }
    pipeline.Add(7);
    return pipeline;
  };
  Pipeline few = make(6, 4), all = make(20, 4);
  const std::optional<Period> period = few.Find();
  ASSERT_TRUE(period.has_value());
  ASSERT_TRUE(AddPeriods({*period, 14}, few.Played()));
  const simulator::Report &fast = few.Told(), &whole = all.Played().report;
  const simulator::RankReport &rank = fast.ranks[few.rank()], &expected = whole.ranks[all.rank()];
  EXPECT_EQ(fast.step_time, whole.step_time);
  EXPECT_EQ(rank.busy, expected.busy);
  EXPECT_EQ(rank.finish, expected.finish);
  EXPECT_EQ(rank.memory.total, expected.memory.total);
  EXPECT_EQ(rank.memory.by_kind, expected.memory.by_kind);
  // Of a peak that comes first it does not tell when it is no longer the peak.
  Pipeline early = make(6, 1000);
  early.GiveBack(1000);
  const std::optional<Period> of_early = early.Find();
  ASSERT_TRUE(of_early.has_value());
  EXPECT_FALSE(AddPeriods({*of_early, 14}, early.Played()));
}

// Backwards of every other microbatch come at the end: with more microbatches more of them would.
TEST(FindPeriod, WantsAsManyBackwardsAsForwards) {
  Pipeline pipeline;
  for (int turn = 0; turn < 8; ++turn) pipeline.TwoForwards();
  for (int turn = 0; turn < 8; ++turn) pipeline.BackwardOf(2 * turn + 1);
  EXPECT_FALSE(pipeline.Find(2, 0).has_value());
  EXPECT_FALSE(pipeline.Find(2, 2).has_value());
}

// What a rank holds less from period to period was there at the start: it ends.
TEST(FindPeriod, WantsMemoryThatDoesNotShrink) {
  Pipeline pipeline;
  for (int m = 0; m < 6; ++m) pipeline.Microbatch(10, {}, /*leaves=*/-1);
  EXPECT_FALSE(pipeline.Find().has_value());
}

// The last forward waits for the one before, which was not yet steady: the third was longer.
TEST(FindPeriod, WantsThatAllItWaitsForIsSteady) {
  Pipeline pipeline;
  std::vector<TaskId> forwards;
  for (int m = 0; m < 6; ++m) {
    std::vector<TaskId> after;
    if (m > 0) after = {forwards.back()};
    forwards.push_back(pipeline.Microbatch(m < 3 ? 20 : 10, after));
  }
  EXPECT_FALSE(pipeline.Find().has_value());
}

// An update that waits for what began before the first microbatch is no later for more of them.
TEST(FindPeriod, WantsATailThatWaitsForThePipeline) {
  for (const int64_t early : {1, 1000}) {
    Pipeline pipeline;
    const TaskId gather = pipeline.Add(early, {}, /*beside=*/true);
    for (int m = 0; m < 6; ++m) pipeline.Microbatch(10);
    pipeline.Add(7, {gather});
    EXPECT_EQ(pipeline.Find().has_value(), early == 1) << early;
  }
}

// What goes on beside the pipeline from before it may share links with the last period.
TEST(FindPeriod, WantsThatWhatCameBeforeHasEnded) {
  for (const int64_t early : {1, 80}) {
    Pipeline pipeline;
    pipeline.Add(early, {}, /*beside=*/true);
    for (int m = 0; m < 6; ++m) pipeline.Microbatch(10);
    EXPECT_EQ(pipeline.Find().has_value(), early == 1) << early;
  }
}

}  // namespace
}  // namespace skip_ahead_test_cc
}  // namespace orrery::search
