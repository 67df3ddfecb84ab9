#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/run.h"

namespace orrery::cli {
namespace schedule_test_cc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Schedule, PrintsOrdersAndFigures) {
  EXPECT_EQ(Execute("schedule --name interleaved --stages 2 --micro-batches 4").out,
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n"
            "makespan 27\n"
            "idle 6\n"
            "idle of rank 3 3\n"
            "peak live 5 3\n"
            "bubble 11.1 %\n");
}

TEST(Schedule, DrawsTheTimelineInTrueTime) {
  EXPECT_EQ(Execute("schedule --name zbv --stages 2 --micro-batches 3 --timeline").out,
            "rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2 .\n"
            "rank 1 | .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2\n"
            "makespan 19\nidle 2\nidle of rank 1 1\npeak live 4 4\nbubble 5.3 %\n");
  EXPECT_EQ(Execute("schedule --name 1f1b --stages 2 --micro-batches 1 --durations W=3,F=2,S=1 "
                    "--timeline")
                .out,
            "rank 0 | 0F0 . . . . . . . . 0B0----\n"
            "rank 1 | . . . 1F0 1B0---- . . . . .\n"
            "makespan 14\nidle 16\nidle of rank 8 8\npeak live 1 1\nbubble 57.1 %\n");
}

// Orders that are searched are made for the durations, and for the memory.
TEST(Schedule, SearchesOrders) {
  EXPECT_EQ(Execute("schedule --name zb-h1 --stages 2 --micro-batches 3 --timeline").out,
            "rank 0 | 0F0 0F1 .   0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
            "rank 1 | .   1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n"
            "makespan 10\nidle 2\nidle of rank 1 1\npeak live 2 2\nbubble 10.0 %\n");
  const std::string shape = " --stages 4 --micro-batches 8";
  const auto makespan = [&](const std::string& flags) {
    const std::string out = Execute("schedule" + shape + " --name " + flags).out;
    const size_t at = out.find("makespan ");
    return out.substr(at, out.find('\n', at) - at);
  };
  EXPECT_EQ(makespan("v-min"), "makespan 59");
  EXPECT_EQ(makespan("v-min --durations F=10,I=12,W=8"), "makespan 648");
  EXPECT_EQ(makespan("zb-1p --memory-limit 2"), "makespan 41");
  EXPECT_EQ(makespan("zb-1p"), "makespan 27");
}

// What fills and drains in so many microbatches is no bubble of a schedule that never drains.
TEST(Schedule, HasNoBubbleOfFillingWhereItNeverDrains) {
  Clear();
  const std::string rest =
      " once full: it never drains, as makespan and idle of these microbatches alone do\n";
  const std::string shape = " --stages 2 --micro-batches 3 ";
  EXPECT_EQ(Execute("schedule --name pipedream --json s.json" + shape).out,
            "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\nmakespan 12\nidle 6\n"
            "idle of rank 3 3\npeak live 2 1\nbubble 0.0 %" +
                rest);
  const json schedule = json::parse(Contents("s.json"));
  EXPECT_EQ(schedule["bubble_fraction"], 0);
  EXPECT_EQ(schedule["drains"], false);
  EXPECT_EQ(schedule["makespan"], 12);
  EXPECT_THAT(Execute("schedule --name pipedream-2bw --durations S=3" + shape).out,
              HasSubstr("bubble 50.0 %" + rest));
  EXPECT_THAT(Execute("schedule --name ampnet --durations S=1" + shape).out,
              HasSubstr("bubble 0.0 %" + rest));
  EXPECT_THAT(Execute("schedule --name 1f1b --json s.json" + shape).out,
              testing::EndsWith("bubble 25.0 %\n"));
  EXPECT_EQ(json::parse(Contents("s.json"))["bubble_fraction"], 0.25);
  EXPECT_EQ(json::parse(Contents("s.json"))["drains"], true);
}

TEST(Schedule, WritesJson) {
  Clear();
  ASSERT_EQ(Execute("schedule --name dualpipe-v --stages 2 --micro-batches 4 --json s.json").code,
            0);
  const json schedule = json::parse(Contents("s.json"));
  EXPECT_EQ(schedule["ranks"][0][7], "(0F3;3B1)OVERLAP_F_B");
  EXPECT_EQ(schedule["makespan"], 25);
  EXPECT_EQ(schedule["idle"], 2);
  EXPECT_EQ(schedule["idle_of_rank"], json({1, 1}));
  EXPECT_EQ(schedule["idle_inside_rank"], json({1, 0}));
  EXPECT_EQ(schedule["peak_live"], json({5, 5}));
}

// What it prints can be read again: with its figures or without, with bubbles and sends.
TEST(Schedule, ReadsOrdersFromAFile) {
  Clear();
  const std::string printed = Execute("schedule --name dualpipe --stages 4 --micro-batches 8").out;
  const size_t figures = printed.find("makespan");
  Write("orders.csv", printed.substr(0, figures));
  EXPECT_EQ(Execute("schedule --from orders.csv").out, printed);
  Write("all.csv", printed);
  EXPECT_EQ(Execute("schedule --from all.csv").out, printed);
  Write("torch.csv", "0F0,0SEND_F0,,,0RECV_B0,0B0\n,1RECV_F0,1F0,1B0,1SEND_B0,\n");
  EXPECT_EQ(Execute("schedule --from torch.csv --durations S=2 --timeline").out,
            "rank 0 | 0F0 .   .   .   .   .   .   .   0B0----\n"
            "rank 1 | .   .   .   1F0 1B0---- .   .   .   .\n"
            "makespan 10\nidle 14\nidle of rank 7 7\npeak live 1 1\nbubble 70.0 %\n");
}

TEST(Schedule, ListsAllWithASentenceAndASource) {
  const Finished finished = Execute("schedule --list");
  EXPECT_EQ(finished.code, 0);
  for (const char* name : {"gpipe",    "1f1b",      "interleaved",   "looped-bfs",
                           "zb-h1",    "zb-h2",     "zb-1p",         "interleaved-zero-bubble",
                           "zbv",      "zbv-auto",  "v-half",        "v-min",
                           "1f1b-v",   "dualpipe",  "dualpipe-v",    "chimera",
                           "terapipe", "pipedream", "pipedream-2bw", "ampnet",
                           "distir"}) {
    EXPECT_THAT("\n" + finished.out, HasSubstr(absl::StrCat("\n", name, " ")));
  }
  for (const absl::string_view line : absl::StrSplit(finished.out, '\n', absl::SkipEmpty())) {
    EXPECT_THAT(std::string(line), testing::MatchesRegex("[a-z0-9-]+ +[A-Z0-9].*\\. \\(.*\\)"));
  }
}

TEST(Schedule, NamesWhatIsWrongWithAnOrder) {
  Clear();
  const auto error = [](const std::string& orders) {
    Write("bad.csv", orders);
    const Finished finished = Execute("schedule --from bad.csv --json out.json");
    EXPECT_EQ(finished.code, 1);
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(Left(), testing::IsEmpty());
    return finished.err;
  };
  EXPECT_EQ(error("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"), "schedule: bad.csv: rank 1: 1B1 never runs\n");
  EXPECT_EQ(error("0F0,0F1,0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n"),
            "schedule: bad.csv: rank 0: 0F0 runs twice\n");
  EXPECT_EQ(error("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"),
            "schedule: bad.csv: deadlock: rank 0 waits in 0B0 for 1B0; rank 1 waits in 1F1 for "
            "0F1\n");
  EXPECT_EQ(error("0F0,0X0\n"),
            "schedule: bad.csv:1:5: found '0X0'; wanted a stage, F, B, I or W, and a microbatch, "
            "as in 0F3\n");
  EXPECT_EQ(error(""), "schedule: bad.csv: found no steps; wanted a rank a line\n");
}

TEST(Schedule, RefusesWhatItCannotOrder) {
  const auto error = [](const std::string& flags) {
    const Finished finished = Execute("schedule " + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_EQ(error("--name dualpipe-v --stages 4 --micro-batches 7"),
            "schedule: schedule dualpipe-v: 4 ranks, 7 microbatches, 2 chunks; wanted at least "
            "twice as many microbatches as ranks\n");
  EXPECT_EQ(error("--name 1f1b --chunks 2"),
            "schedule: schedule 1f1b: 4 ranks, 8 microbatches, 2 chunks; wanted 1 chunk a rank\n");
  EXPECT_EQ(error("--name interleaved --chunks 0"),
            "schedule: schedule interleaved: 4 ranks, 8 microbatches, 0 chunks; wanted at least "
            "one of each\n");
  EXPECT_EQ(error("--name 1f1b --stages 0"),
            "schedule: --stages 0 --micro-batches 8: wanted all at least 1, and at most 10000000 "
            "steps\n");
  EXPECT_THAT(error("--name 1f1b --stages 9223372036854775807"), HasSubstr("10000000 steps"));
  EXPECT_THAT(error("--name interleaved --chunks 9223372036854775807"), HasSubstr("10000000"));
  EXPECT_EQ(error("--name gpipe --memory-limit 7"),
            "schedule: rank 0 has 8 live activations; --memory-limit is 7\n");
  EXPECT_EQ(error("--name gpipe --memory-limit 0"),
            "schedule: --memory-limit 0: wanted at least 1 activation\n");
  EXPECT_EQ(error(""), "schedule: wanted --name, --from or --list; see --help\n");
  EXPECT_EQ(error("--name gpipe --from x.csv"),
            "schedule: --name and --from: wanted one of them\n");
  EXPECT_EQ(error("--from x.csv"), "schedule: x.csv: no such file\n");
  for (const char* durations : {"F=-1", "B=2", "F", "F=", "F=1.5", "F=99999999999", "W=3,I:4"}) {
    EXPECT_THAT(error(absl::StrCat("--name gpipe --durations ", durations)),
                HasSubstr("': wanted F=, I=, W= or S= and a whole number from 0 to 1000000000"));
  }
}

TEST(Schedule, ObeysALimitOfMemory) {
  EXPECT_THAT(Execute("schedule --name ampnet --memory-limit 3").out,
              HasSubstr("peak live 3 3 3 1\n"));
  EXPECT_THAT(Execute("schedule --name 1f1b --memory-limit 4").out,
              HasSubstr("peak live 4 3 2 1\n"));
}

TEST(Schedule, TakesLargeShapes) {
  for (const char* name : {"interleaved", "ampnet"}) {
    const Finished finished =
        Execute(absl::StrCat("schedule --stages 64 --micro-batches 1000 --name ", name));
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
}

}  // namespace
}  // namespace schedule_test_cc
}  // namespace orrery::cli
