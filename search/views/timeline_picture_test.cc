#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/views/timeline.h"
#include "simulator/program/program_text.h"

// Pictures of steps that are made by hand, so that each letter has its place.

namespace orrery::search {
namespace timeline_picture_test_cc {
namespace {

using transforms::StepKind;

// A task: its streams, label and moments in picoseconds.
struct Piece {
  std::string streams;
  int label = 0;
  int64_t start = 0, finish = 0;
};

// A run of those tasks on ranks 0, 10 and 3, of which the last two are both in position 1.
Run RunOf(const std::vector<Piece>& pieces, std::vector<lowering::LoweredStep> steps) {
  std::string text = R"(program
rank0 "" members 0 stage 0
rank1 "" members 10 stage 1
rank2 "" members 3 stage 1
stream0 rank0 compute
stream1 rank1 compute
stream2 rank2 compute
label0 "F" compute forward stage 0
label1 "B" compute backward stage 0
label2 "F" compute forward stage 1
label3 "B" compute backward stage 1
label4 "U" compute update stage 0
label5 "Send" send forward stage 0
)";
  Run run;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    absl::StrAppend(&text, "task", i, " ", piece.streams, " label", piece.label, " takes 0 ps\n");
    run.trace.start.emplace_back(piece.start);
    run.trace.finish.emplace_back(piece.finish);
    run.trace.makespan = std::max(run.trace.makespan, Time(piece.finish));
  }
  absl::StatusOr<simulator::Program> program = simulator::ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status();
  run.program = *std::move(program);
  run.steps = std::move(steps);
  return run;
}

lowering::LoweredStep Placed(StepKind kind, int32_t stage, int32_t microbatch, int32_t begin,
                             int32_t end) {
  return {.step = {.kind = kind, .stage = stage, .microbatch = microbatch},
          .begin = simulator::TaskId(begin),
          .end = simulator::TaskId(end)};
}

std::string Draw(const Run& run, int64_t begin, int64_t end, int32_t columns) {
  return DrawRun(run, {.begin = Time(begin), .end = Time(end)}, columns);
}

// Two stages, a microbatch. The sends are no part of the forward; two kernels are one update.
Run OneMicrobatch() {
  return RunOf({{"stream0", 0, 0, 20},
                {"stream0 stream2", 5, 20, 50},
                {"stream0", 0, 30, 40},
                {"stream0 stream1", 5, 40, 60},
                {"stream1", 2, 40, 80},
                {"stream1", 3, 80, 120},
                {"stream0", 1, 120, 180},
                {"stream0", 4, 180, 190},
                {"stream0", 4, 190, 200}},
               {Placed(StepKind::kForward, 0, 0, 0, 4), Placed(StepKind::kForward, 1, 0, 4, 5),
                Placed(StepKind::kBackward, 1, 0, 5, 6), Placed(StepKind::kBackward, 0, 0, 6, 7)});
}

TEST(TimelinePicture, IsToScaleAndOfOneRankOfEachPosition) {
  EXPECT_EQ(Draw(OneMicrobatch(), 0, 200, 20),
            "rank 0  | F0--........B0====Uu\n"
            "rank 10 | ....F0--B0==........\n"
            "a column: 10 ps; F- forward, B= backward, U update, . waits\n");
  EXPECT_EQ(Draw(OneMicrobatch(), 0, 200, 10),
            "rank 0  | F0....B0=U\n"
            "rank 10 | ..F0B0....\n"
            "a column: 20 ps; F- forward, B= backward, U update, . waits\n");
}

// What began before the window has no name.
TEST(TimelinePicture, GoesFromTheBeginOfTheWindowToItsEnd) {
  EXPECT_EQ(Draw(OneMicrobatch(), 20, 160, 14),
            "rank 0  | --........B0==\n"
            "rank 10 | ..F0--B0==....\n"
            "a column: 10 ps; F- forward, B= backward, U update, . waits\n");
  EXPECT_EQ(Draw(OneMicrobatch(), 40, 80, 10),
            "rank 0  | ..........\n"
            "rank 10 | F0--------\n"
            "a column: 4 ps; F- forward, B= backward, U update, . waits\n");
  EXPECT_EQ(Draw(OneMicrobatch(), 80, 80, 10), "nothing takes any time\n");
}

// From 0 to 1.4 columns, 1.5 to 2.5, and 9.6 to 9.9: a column is drawn where most of it is taken.
TEST(TimelinePicture, HasALetterWhereThereIsNoRoomForTheName) {
  const auto run =
      RunOf({{"stream0", 0, 0, 14}, {"stream0", 1, 15, 25}, {"stream0", 4, 96, 99}},
            {Placed(StepKind::kForward, 0, 0, 0, 1), Placed(StepKind::kBackward, 0, 0, 1, 2)});
  EXPECT_EQ(Draw(run, 0, 100, 10),
            "rank 0  | F.B.......\n"
            "rank 10 | ..........\n"
            "a column: 10 ps; F- forward, B= backward, U update, . waits\n");
}

// Forward from 30 to 50 and backward from 40 to 70; a third update begins after the second ended.
// Another rank has an update of its own.
TEST(TimelinePicture, OfStepsAtOnceIsOneCell) {
  auto run = RunOf({{"stream0", 0, 0, 20},
                    {"stream0", 0, 30, 50},
                    {"stream0", 1, 40, 70},
                    {"stream1", 4, 80, 100},
                    {"stream0", 4, 80, 85},
                    {"stream0", 4, 85, 90},
                    {"stream0", 4, 95, 100}},
                   {Placed(StepKind::kForward, 0, 0, 0, 1), Placed(StepKind::kForward, 0, 1, 1, 2),
                    Placed(StepKind::kBackward, 0, 0, 2, 3)});
  run.steps[1].step.with_next = true;
  EXPECT_EQ(Draw(run, 0, 100, 20),
            "rank 0  | F0--..F1&B0&&&..Uu.U\n"
            "rank 10 | ................Uuuu\n"
            "a column: 5 ps; F- forward, B= backward, F&B both at once, U update, . waits\n");
  const std::vector<StepSpan> spans = SpansOf(run, simulator::RankClassId(0));
  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans[0].finish, Time(20));
  for (const size_t i : {1U, 2U}) {
    EXPECT_EQ(spans[i].start, Time(30));
    EXPECT_EQ(spans[i].finish, Time(70));
  }
  EXPECT_EQ(spans[3].start, Time(80));
  EXPECT_EQ(spans[3].finish, Time(90));
  EXPECT_TRUE(spans[4].update);
}

// Tasks of a template that are of another step are no part of it.
TEST(TimelinePicture, HasOfAStepWhatIsOfItsStageAndPhase) {
  const auto run = RunOf({{"stream0", 0, 0, 10},
                          {"stream0", 1, 10, 40},
                          {"stream0", 2, 40, 50},
                          {"stream0", 0, 50, 60}},
                         {Placed(StepKind::kForward, 0, 0, 0, 4)});
  const std::vector<StepSpan> spans = SpansOf(run, simulator::RankClassId(0));
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].start, Time(0));
  EXPECT_EQ(spans[0].finish, Time(60));
  EXPECT_TRUE(SpansOf(run, simulator::RankClassId(1)).empty());
}

// Two ranks and batches of 3: a period is 2 batches. Of 5, the first that finds the pipeline full
// is the one that is followed by 3, and its first microbatch is 6.
TEST(TimelineWindow, OfAnAsynchronousScheduleIsAPeriodBeforeTheLastBatch) {
  auto run = RunOf({{"stream0", 0, 10, 15},
                    {"stream0", 0, 20, 25},
                    {"stream0", 2, 25, 30},
                    {"stream0", 0, 30, 35},
                    {"stream0", 1, 40, 50},
                    {"stream0", 4, 60, 70}},
                   {Placed(StepKind::kForward, 0, 5, 0, 1), Placed(StepKind::kForward, 0, 6, 1, 2),
                    Placed(StepKind::kForward, 1, 6, 2, 3), Placed(StepKind::kForward, 0, 7, 3, 4),
                    Placed(StepKind::kBackward, 0, 6, 4, 5)});
  run.rounds = 5;
  run.report.step_time = Duration(20);
  transforms::PipelineSchedule schedule;
  const transforms::PipelineShape shape{.ranks = 2, .microbatches = 3};
  EXPECT_EQ(WindowOf(run, schedule, shape).begin, Time(0));
  EXPECT_EQ(WindowOf(run, schedule, shape).end, Time(70));
  schedule.asynchronous = true;
  EXPECT_EQ(WindowOf(run, schedule, shape).begin, Time(20));
  EXPECT_EQ(WindowOf(run, schedule, shape).end, Time(60));
  run.report.step_time = Duration(26);
  EXPECT_EQ(WindowOf(run, schedule, shape).end, Time(70)) << "no longer than the run";
}

// Three stages on two positions; gradients of inputs and of weights by themselves.
TEST(TimelinePicture, NamesStagesWhereThereAreMoreThanRanks) {
  const auto run = RunOf(
      {{"stream1", 2, 0, 40}, {"stream1", 3, 40, 80}, {"stream1", 3, 80, 100}},
      {Placed(StepKind::kForward, 1, 0, 0, 1), Placed(StepKind::kInputGradient, 1, 12, 1, 2),
       Placed(StepKind::kWeightGradient, 1, 12, 2, 3), Placed(StepKind::kForward, 2, 0, 3, 3)});
  EXPECT_EQ(
      Draw(run, 0, 100, 20),
      "rank 0  | ....................\n"
      "rank 10 | 1F0-----1I12~~~~1W12\n"
      "a column: 5 ps; F- forward, I~ gradients of inputs, W+ gradients of weights, U update, "
      ". waits\n");
}

TEST(TimelinePictureDeathTest, HasTenColumnsAtLeast) {
  EXPECT_DEATH(Draw(OneMicrobatch(), 0, 200, 9), "9");
}

}  // namespace
}  // namespace timeline_picture_test_cc
}  // namespace orrery::search
