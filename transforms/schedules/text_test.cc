#include "transforms/schedules/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "transforms/schedules/testing/slots.h"

namespace orrery::transforms {
namespace text_test_cc {
namespace {

using ::testing::HasSubstr;

constexpr StepKind kForward = StepKind::kForward;
constexpr StepKind kBackward = StepKind::kBackward;

std::string Draw(absl::string_view name, int32_t ranks, int32_t microbatches,
                 const StepDurations& durations = {}, int64_t unit = 0) {
  const PipelineSchedule& schedule = *FindSchedule(name).value();
  PipelineShape shape = schedule.ShapeOf(ranks, microbatches);
  shape.durations = durations;
  const RankOrders orders = schedule.OrdersOf(shape);
  const Timing timing = TimeOrders(orders, schedule.placement, shape, durations);
  return absl::StrCat("\n", DrawTimeline(orders, timing, unit));
}

// All steps of one length.
constexpr StepDurations kEven = {.forward = 1, .input_gradient = 1, .weight_gradient = 0};

TEST(Timeline, Gpipe) {
  EXPECT_EQ(Draw("gpipe", 3, 3, kEven), R"(
rank 0 | 0F0 0F1 0F2 .   .   .   .   0B0 0B1 0B2
rank 1 | .   1F0 1F1 1F2 .   .   1B0 1B1 1B2 .
rank 2 | .   .   2F0 2F1 2F2 2B0 2B1 2B2 .   .
)");
}

TEST(Timeline, Terapipe) {
  EXPECT_EQ(Draw("terapipe", 2, 3, kEven), R"(
rank 0 | 0F0 0F1 0F2 .   .   0B2 0B1 0B0
rank 1 | .   1F0 1F1 1F2 1B2 1B1 1B0 .
)");
}

TEST(Timeline, DistirRunsAheadOfOneForwardOneBackward) {
  EXPECT_EQ(Draw("distir", 3, 4, kEven), R"(
rank 0 | 0F0 0F1 0F2 0F3 .   0B0 .   0B1 .   0B2 .   0B3
rank 1 | .   1F0 1F1 1F2 1B0 1F3 1B1 .   1B2 .   1B3 .
rank 2 | .   .   2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 .   .
)");
  EXPECT_EQ(Draw("1f1b", 3, 4, kEven), R"(
rank 0 | 0F0 0F1 0F2 .   .   0B0 0F3 0B1 .   0B2 .   0B3
rank 1 | .   1F0 1F1 .   1B0 1F2 1B1 1F3 1B2 .   1B3 .
rank 2 | .   .   2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 .   .
)");
}

TEST(Timeline, Chimera) {
  EXPECT_EQ(Draw("chimera", 4, 4, kEven), R"(
rank 0 | 0F0 0F1 .   7F2 7B2 7F3 7B3 0B0 .   0B1
rank 1 | .   1F0 6F2 1F1 6F3 6B2 1B0 6B3 1B1 .
rank 2 | .   5F2 2F0 5F3 2F1 2B0 5B2 2B1 5B3 .
rank 3 | 4F2 4F3 .   3F0 3B0 3F1 3B1 4B2 .   4B3
)");
}

TEST(Timeline, AmpnetRunsWhateverHasArrived) {
  EXPECT_EQ(Draw("ampnet", 2, 5, kEven), R"(
rank 0 | 0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 .   0B3 .   0B4
rank 1 | .   1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 .
)");
}

TEST(Timeline, StepsAreAsWideAsTheyAreLong) {
  EXPECT_EQ(Draw("1f1b", 2, 2), R"(
rank 0 | 0F0 0F1 .   .   0B0---- .   0B1----
rank 1 | .   1F0 1B0---- 1F1 1B1---- .   .
)");
  EXPECT_EQ(Draw("1f1b", 2, 2, {.forward = 2, .input_gradient = 2, .weight_gradient = 2}),
            Draw("1f1b", 2, 2));
  EXPECT_EQ(Draw("1f1b", 2, 2, {.forward = 3, .input_gradient = 2, .weight_gradient = 3}), R"(
rank 0 | 0F0-- 0F1-- . . . . . 0B0------ . . . 0B1------
rank 1 | . . . 1F0-- 1B0------ 1F1-- 1B1------ . . . . .
)");
}

TEST(Timeline, ColumnsStayInLineWhenNumbersGrow) {
  RankOrders orders(11);
  orders[0] = {{kForward, 0, 0}, {kForward, 0, 10}, {kBackward, 0, 0}};
  const std::string text = DrawTimeline(
      orders, {.steps = {{{0, 1}, {1, 2}, {3, 4}}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}},
               .makespan = 4,
               .idle = {},
               .idle_inside = {}});
  EXPECT_THAT(text, testing::StartsWith("rank 0  | 0F0  0F10 .    0B0\n"
                                        "rank 1  | .    .    .    .\n"));
  EXPECT_THAT(text, testing::EndsWith("rank 10 | .    .    .    .\n"));
}

// A line stays one that can be looked at; what is too short for a column is drawn over.
TEST(Timeline, LongTimesShareColumns) {
  const StepDurations long_times = {
      .forward = 999'983, .input_gradient = 999'979, .weight_gradient = 3};
  const std::string text = Draw("1f1b", 2, 4, long_times);
  EXPECT_LT(text.size(), 4000u);
  EXPECT_THAT(text, HasSubstr("0F0-"));
  EXPECT_THAT(text, HasSubstr("1B3-"));
  EXPECT_LT(
      Draw("zbv", 2, 4, {.forward = 100'003, .input_gradient = 1, .weight_gradient = 0}).size(),
      4000u);
}

TEST(PrintOrders, IsTorchsTextForm) {
  EXPECT_EQ(PrintOrders(FindSchedule("1f1b").value()->orders({.ranks = 2, .microbatches = 2})),
            "0F0,0F1,0B0,0B1\n"
            "1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(PrintOrders({{{StepKind::kInputGradient, 10, 2},
                          {kForward, 0, 3, 0, true},
                          {kBackward, 7, 1},
                          {StepKind::kWeightGradient, 10, 2}}}),
            "10I2,(0F3;7B1)OVERLAP_F_B,10W2\n");
}

std::string Reread(absl::string_view text) {
  const absl::StatusOr<ParsedOrders> parsed = ParseOrders(text, "f");
  return parsed.ok() ? PrintOrders(parsed->orders) : std::string(parsed.status().message());
}

TEST(ParseOrders, SkipsBubblesBlanksAndWhatDoesNotCompute) {
  EXPECT_EQ(Reread(" 0F0 ,0SEND_F0,,0F1,0SEND_F1,, 0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\r\n"
                   "\n"
                   "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,,1RESHARD,1SEND_B1"),
            "0F0,0F1,0B0,0B1\n"
            "1F0,1B0,1F1,1B1\n");
}

TEST(ParseOrders, FindsThePipeline) {
  const auto find = [](absl::string_view text) {
    const ParsedOrders parsed = ParseOrders(text).value();
    return std::tuple(parsed.placement, parsed.shape.chunks, parsed.shape.microbatches);
  };
  EXPECT_EQ(find("0F0,0B0\n1F0,1B0\n"), std::tuple(StagePlacement::kLoop, 1, 1));
  EXPECT_EQ(find("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n"), std::tuple(StagePlacement::kLoop, 2, 1));
  EXPECT_EQ(find("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n"), std::tuple(StagePlacement::kV, 2, 1));
  EXPECT_EQ(find("0F0,3F1,3B1,0B0\n2F1,1F0,1B0,2B1\n"), std::tuple(StagePlacement::kTwoWay, 2, 2));
}

TEST(ParseOrders, GivesSlots) {
  EXPECT_EQ(ParseOrders("0F0,0B0\n1F0,1B0\n")->orders[0][1].slot, 3);
}

TEST(ParseOrders, SaysWhereWhatIsNoStepStands) {
  EXPECT_EQ(Reread("0F0,0B0\n1F0, 1X0\n"),
            "f:2:6: found '1X0'; wanted a stage, F, B, I or W, and a microbatch, as in 0F3");
  for (const char* bad : {"F0", "0F", "0F0 1F0", "0f0", "-1F0", "0F-1", "0F99999999999", "SEND_F0",
                          "0SEND_F0x", "0F0;0B0", "x"}) {
    EXPECT_THAT(Reread(absl::StrCat("0F0,", bad)),
                testing::StartsWith(absl::StrCat("f:1:5: found '", bad, "'; wanted a stage")));
  }
  EXPECT_EQ(Reread("(0F0;0B0"), "f:1:1: found '(0F0;0B0'; wanted a ')' after the steps");
  EXPECT_EQ(Reread("(0F0;0B0)AT_ONCE"),
            "f:1:1: found '(0F0;0B0)AT_ONCE'; wanted OVERLAP_F_B after the ')'");
  EXPECT_EQ(Reread("(0F0)OVERLAP_F_B"),
            "f:1:1: found '(0F0)OVERLAP_F_B'; wanted two steps that run at once");
  EXPECT_THAT(Reread("0F0,0F1,(0F2;0B0;0B1)OVERLAP_F_B"),
              testing::EndsWith("wanted two steps that run at once"));
}

// Two steps that run at once wait for each other where one of them makes what the other needs.
TEST(ParseOrders, NamesAPairThatCannotRunAtOnce) {
  EXPECT_EQ(Reread("(0F0;0B0)OVERLAP_F_B\n"), "f: deadlock: rank 0 waits in 0B0 for 0F0");
  EXPECT_EQ(Reread("(0F0;0B0)OVERLAP_F_B\n1F0,1B0\n"),
            "f: deadlock: rank 0 waits in 0B0 for 1B0; rank 1 waits in 1F0 for 0F0");
}

// Both start when the later of the two could.
TEST(ParseOrders, PairsStartTogether) {
  const auto read = ParseOrders("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->orders[1][1].slot, 2);  // 1B0, for which 0B0 waits
  EXPECT_EQ(read->orders[0][1].slot, 3);
  EXPECT_EQ(read->orders[0][2].slot, 4);
  EXPECT_EQ(read->orders[1][2].slot, 4);  // 1F1, behind 0F1
}

TEST(ParseOrders, NamesWhatTheOrdersLack) {
  EXPECT_EQ(Reread(""), "f: found no steps; wanted a rank a line");
  EXPECT_EQ(Reread("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"), "f: rank 1: 1B1 never runs");
  EXPECT_EQ(Reread("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1B0\n"), "f: rank 1: 1B0 runs twice");
  EXPECT_EQ(Reread("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"),
            "f: deadlock: rank 0 waits in 0B0 for 1B0; rank 1 waits in 1F1 for 0F1");
  EXPECT_EQ(Reread("0F0,0B0\n1F0,1B0\n0F0\n"), "f: rank 2: 0F0 is of a stage that rank 0 holds");
  EXPECT_EQ(Reread("0F0,0B0,1F0,1B0\n1F0,1B0\n"), "f: rank 1: 1F0 is of a stage that rank 0 holds");
  EXPECT_EQ(Reread("0F0,0B0,2F0,2B0,2W0,2I0\n"),
            "f: stage 1 has no steps; wanted some of each stage up to 2");
  EXPECT_EQ(Reread("0F0,0B0\n2F0,2B0\n"),
            "f: stage 1 has no steps; wanted some of each stage up to 2");
  EXPECT_EQ(Reread("0F0,0B0,2F0,2B0\n1F0,1B0\n"),
            "f: found 2 ranks and 3 stages; wanted as many stages on each rank");
  EXPECT_EQ(Reread("0F0,0B0\n0F1,0B1\n"), "f: rank 1: 0F1 is of a stage that rank 0 holds");
  EXPECT_EQ(
      Reread("1F0,1B0\n0F0,0B0\n"),
      "f: found stages 0, 1, 2 and so on on ranks 1, 0; wanted stage s on rank s mod p, or two "
      "stages a rank, r and 2p-1-r");
}

// Numbers out of all proportion are refused before there is a table of them.
TEST(ParseOrders, DoesNotBelieveHugeNumbers) {
  EXPECT_EQ(Reread("0F0,0B2147483647"),
            "f: found 2 steps, too few for 1 stages and 2147483648 microbatches, as the largest "
            "numbers say there are");
  EXPECT_THAT(Reread("2147483647F2147483647"), HasSubstr("too few for 2147483648 stages"));
}

// Whatever comes, there is an answer, and what is read is written so that it is read again.
TEST(ParseOrders, SurvivesAnyText) {
  std::mt19937 random(11);
  const std::string good = PrintOrders(
      FindSchedule("dualpipe-v").value()->orders({.ranks = 2, .microbatches = 4, .chunks = 2}));
  constexpr absl::string_view kLetters = "0123FBIW,;()\n _ZOVERLAP";
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int change = i % 3; change >= 0; --change) {
      text[random() % text.size()] = kLetters[random() % kLetters.size()];
    }
    const absl::StatusOr<ParsedOrders> parsed = ParseOrders(text);
    if (!parsed.ok()) continue;
    ++read;
    EXPECT_TRUE(VerifyOrders(parsed->orders, parsed->placement, parsed->shape).ok());
    EXPECT_EQ(Reread(PrintOrders(parsed->orders)), PrintOrders(parsed->orders));
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace text_test_cc
}  // namespace orrery::transforms
