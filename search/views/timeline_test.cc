#include "search/views/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"

namespace orrery::search {
namespace timeline_test_cc {
namespace {

using simulator::RankClassId;
using transforms::StepKind;

Run PlayOn(const char* schedule, const ParallelPlan& shape) {
  ParallelPlan plan = transforms::ByFlops(shape);
  plan.schedule = schedule;
  Setting setting = MlpSetting();
  absl::StatusOr<Run> run = Play(setting, plan);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *std::move(run) : Run();
}

constexpr const char* kSynchronous[] = {"gpipe",      "1f1b",     "interleaved",
                                        "looped-bfs", "zbv",      "interleaved-zero-bubble",
                                        "chimera",    "dualpipe", "dualpipe-v"};

// Every step of the schedule has a span on its rank, and spans of one rank do not overlap but where
// two steps run at once.
TEST(Timeline, HasEveryStepOnceAndOneAtATime) {
  for (const char* schedule : kSynchronous) {
    SCOPED_TRACE(schedule);
    const auto run = PlayOn(schedule, {.pp = 2, .microbatches = 4});
    std::map<std::string, int> seen;
    for (int32_t r = 0; r < run.program.rank_count(); ++r) {
      Time until;
      bool together = false;  // with the span before
      for (const StepSpan& span : SpansOf(run, RankClassId(r))) {
        if (!span.update) {
          ++seen[absl::StrCat(static_cast<int>(span.step.kind), " ", span.step.stage, " ",
                              span.step.microbatch)];
        }
        EXPECT_LE(span.start, span.finish);
        if (!together) {
          EXPECT_GE(span.start, until);
        }
        until = std::max(until, span.finish);
        together = span.step.with_next;
      }
      EXPECT_LE(until, run.trace.makespan);
    }
    EXPECT_EQ(seen.size(), run.steps.size());
    for (const auto& [step, count] : seen) EXPECT_EQ(count, 1) << step;
  }
}

// The kernels of a rank are those of its spans: what is drawn is all that it computes.
TEST(Timeline, SpansCoverWhatARankComputes) {
  for (const char* schedule : kSynchronous) {
    SCOPED_TRACE(schedule);
    const auto run = PlayOn(schedule, {.dp = 2, .pp = 2, .microbatches = 4});
    for (int32_t t = 0; t < run.program.task_count(); ++t) {
      const simulator::TaskId task(t);
      if (run.program.label(run.program.label_of(task)).kind != simulator::TaskKind::kCompute) {
        continue;
      }
      const RankClassId rank = run.program.stream(run.program.streams_of(task)[0]).rank;
      const std::vector<StepSpan> spans = SpansOf(run, rank);
      EXPECT_TRUE(std::any_of(spans.begin(), spans.end(), [&](const StepSpan& span) {
        return span.start <= run.trace.start_of(task) && run.trace.finish_of(task) <= span.finish;
      })) << t;
    }
  }
}

TEST(Timeline, IsThisPicture) {
  const auto run = PlayOn("1f1b", {.pp = 2, .microbatches = 2});
  const std::string picture = DrawRun(run, {.begin = {}, .end = run.trace.makespan}, 40);
  const std::vector<std::string> lines = absl::StrSplit(picture, '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], testing::MatchesRegex(R"(rank 0 \| F0?-*F1?-*\.+B0=+\.*B1=+\.*Uu*\.*)"));
  EXPECT_THAT(lines[1], testing::MatchesRegex(R"(rank 1 \| \.+F0?-*B0=+\.*F1?-*B1=+\.*Uu*\.*)"));
  EXPECT_THAT(lines[2],
              testing::MatchesRegex("a column: .*; F- forward, B= backward, U update, . waits"));
}

TEST(Timeline, NamesStagesWhereARankHasSeveralAndBothKindsOfGradients) {
  const auto run = PlayOn("zbv", {.pp = 2, .microbatches = 4});
  const std::string picture = DrawRun(run, {.begin = {}, .end = run.trace.makespan}, 300);
  EXPECT_THAT(picture, testing::HasSubstr("| 0F0"));
  EXPECT_THAT(picture, testing::HasSubstr("3I0"));
  EXPECT_THAT(picture, testing::HasSubstr("I~ gradients of inputs, W+ gradients of weights"));
}

TEST(Timeline, StepsThatRunAtOnceAreOneCell) {
  const auto run = PlayOn("dualpipe", {.pp = 2, .microbatches = 4});
  const std::string picture = DrawRun(run, {.begin = {}, .end = run.trace.makespan}, 300);
  EXPECT_THAT(picture, testing::ContainsRegex("[0-9]F[0-9]&[0-9]B[0-9]&*"));
  EXPECT_THAT(picture, testing::HasSubstr("F&B both at once"));
}

// Columns that a rank does not wait, against the time for which it computes.
TEST(Timeline, IsToScale) {
  for (const char* schedule : {"gpipe", "1f1b", "zbv"}) {
    const auto run = PlayOn(schedule, {.pp = 2, .microbatches = 3});
    const std::string picture = DrawRun(run, {.begin = {}, .end = run.trace.makespan}, 1000);
    const std::vector<std::string> lines = absl::StrSplit(picture, '\n');
    for (int32_t r = 0; r < 2; ++r) {
      Duration busy;
      for (const StepSpan& span : SpansOf(run, RankClassId(r))) busy += span.finish - span.start;
      std::string line = lines[static_cast<size_t>(r)];
      line = line.substr(line.find('|') + 2);
      const auto drawn = std::count_if(line.begin(), line.end(), [](char c) { return c != '.'; });
      const double share = busy.seconds() / run.trace.makespan.seconds();
      EXPECT_NEAR(static_cast<double>(drawn), 1000 * share, 20) << schedule << " " << r;
    }
  }
}

// Of an asynchronous schedule, as many microbatches as a period has, with nobody filling or
// draining.
TEST(Timeline, OfAnAsynchronousScheduleIsOfTheFullPipeline) {
  for (const char* name : {"pipedream", "pipedream-2bw", "pipemare", "ampnet"}) {
    SCOPED_TRACE(name);
    const ParallelPlan plan = {.pp = 2, .microbatches = 4, .schedule = name};
    const auto run = PlayOn(name, plan);
    const TimeWindow window = WindowOf(run, *plan.schedule, ShapeOf(*plan.schedule, plan));
    EXPECT_GT(window.begin, Time(0));
    EXPECT_LT(window.end, run.trace.makespan);
    for (int32_t r = 0; r < 2; ++r) {
      int forwards = 0, backwards = 0;
      for (const StepSpan& span : SpansOf(run, RankClassId(r))) {
        if (span.update || span.start < window.begin || span.start >= window.end) continue;
        ++(span.step.kind == StepKind::kForward ? forwards : backwards);
      }
      EXPECT_GE(forwards, 4);
      EXPECT_NEAR(forwards, backwards, 1);
    }
    EXPECT_THAT(DrawRun(run, window), testing::HasSubstr("Uu"));
  }
}

TEST(Timeline, OfNothing) {
  EXPECT_EQ(DrawRun(search::Run(), {.begin = {}, .end = {}}), "nothing takes any time\n");
}

}  // namespace
}  // namespace timeline_test_cc
}  // namespace orrery::search
