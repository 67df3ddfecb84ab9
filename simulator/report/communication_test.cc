#include "simulator/report/communication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"
#include "simulator/program/program_text.h"
#include "simulator/report/report.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace communication_test_cc {
namespace {

using testing::ElementsAre;

Report ReportOf(const Program& program) { return Summarize(program, RunLongestPath(program)); }

// A line for each kind and level, in picoseconds.
std::vector<std::string> Lines(const Report& report) {
  std::vector<std::string> lines;
  for (const CommunicationReport& row : report.communication) {
    lines.push_back(absl::StrCat(row.kind, " on '", row.level, "': ", row.bytes, " bytes, ",
                                 row.total_s * 1e12, " = ", row.exposed_s * 1e12, " + ",
                                 row.hidden_s * 1e12));
  }
  return lines;
}

// Two streams communicate beside compute.
constexpr absl::string_view kOverlapping = R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 data
stream2 rank0 horizontal
label0 "MatMul" compute forward stage 0
label1 "AllReduce" collective backward stage 0 bytes 5 communication "all-reduce dp" level "nic"
label2 "AllGather" collective backward stage 0 bytes 7 communication "all-gather hp" level "port"
)";

std::vector<std::string> LinesOf(absl::string_view tasks) {
  return Lines(ReportOf(Parse(absl::StrCat(kOverlapping, tasks))));
}

TEST(Communication, IsHiddenWhileItsRankComputes) {
  // compute 0-10; all-reduce 0-14, all-gather 14-20
  EXPECT_THAT(LinesOf("task0 stream0 label0 takes 10 ps\n"
                      "task1 stream1 label1 takes 14 ps\n"
                      "task2 stream2 label2 takes 6 ps after task1\n"),
              ElementsAre("all-reduce dp on 'nic': 5 bytes, 14 = 4 + 10",
                          "all-gather hp on 'port': 7 bytes, 6 = 6 + 0"));
}

// What a second compute stream does within the task of the first covers no less of it.
TEST(Communication, IsHiddenWhileAnyStreamComputes) {
  // compute 0-10 and 3-5; all-reduce 0-14
  EXPECT_THAT(Lines(ReportOf(Parse(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 compute
stream2 rank0 data
label0 "MatMul" compute forward stage 0
label1 "AllReduce" collective backward stage 0 bytes 5 communication "all-reduce dp" level "nic"
label2 "Send" send forward stage 0
task0 stream0 label0 takes 10 ps
task1 stream1 label2 takes 3 ps
task2 stream1 label0 takes 2 ps
task3 stream2 label1 takes 14 ps
)"))),
              ElementsAre("all-reduce dp on 'nic': 5 bytes, 14 = 4 + 10",
                          "send on '': 0 bytes, 3 = 0 + 3"));
}

TEST(Communication, ThatStartedFirstIsTheOneThatIsExposed) {
  // all-gather 0-8, compute 0-2 and 10-12, all-reduce 2-15: what is left of it from 8 on.
  EXPECT_THAT(LinesOf("task0 stream0 label0 takes 2 ps\n"
                      "task1 stream2 label2 takes 8 ps\n"
                      "task2 stream1 label1 takes 13 ps after task0\n"
                      "task3 stream2 label0 takes 2 ps after task1\n"
                      "task4 stream0 label0 takes 2 ps after task3\n"),
              ElementsAre("all-reduce dp on 'nic': 5 bytes, 13 = 5 + 8",
                          "all-gather hp on 'port': 7 bytes, 8 = 6 + 2"));
}

TEST(Communication, OfOneStartIsExposedByTheLowerTask) {
  const std::string compute = "task0 stream0 label0 takes 1 ps\n";
  EXPECT_THAT(LinesOf(absl::StrCat(compute, "task1 stream1 label1 takes 4 ps after task0\n",
                                   "task2 stream2 label2 takes 9 ps after task0\n")),
              ElementsAre("all-reduce dp on 'nic': 5 bytes, 4 = 4 + 0",
                          "all-gather hp on 'port': 7 bytes, 9 = 5 + 4"));
  EXPECT_THAT(LinesOf(absl::StrCat(compute, "task1 stream2 label2 takes 9 ps after task0\n",
                                   "task2 stream1 label1 takes 4 ps after task0\n")),
              ElementsAre("all-reduce dp on 'nic': 5 bytes, 4 = 0 + 4",
                          "all-gather hp on 'port': 7 bytes, 9 = 9 + 0"));
}

// On the compute stream nothing hides it. Kinds without a name are called after their tasks; a
// level is a row of its own; labels that no task has are left out.
TEST(Communication, OnOneStreamIsAllExposed) {
  const Report report = ReportOf(Parse(R"(program
rank0 "" members 0-2 stage 0
rank1 "" members 3 stage 0
stream0 rank0 compute
stream1 rank1 compute
label0 "MatMul" compute forward stage 0
label1 "Send" send forward stage 0 bytes 8
label2 "Send" send forward stage 0 bytes 8 level "uplink"
label3 "AllReduce" collective forward stage 0 bytes 100
task0 stream0 label0 takes 3 ps
task1 stream0 stream1 label1 takes 8 ps
task2 stream1 label2 takes 4 ps
)"));
  EXPECT_THAT(Lines(report), ElementsAre("send on '': 8 bytes, 8 = 8 + 0",
                                         "send on 'uplink': 2 bytes, 1 = 1 + 0"));
}

TEST(Communication, OfNothingIsNothing) {
  EXPECT_TRUE(ReportOf(Program()).communication.empty());
  EXPECT_TRUE(ReportOf(Parse("program\nrank0 \"\" members 0 stage 0\n")).communication.empty());
}

TEST(Communication, SharesOfAShorterRunAreTakenAway) {
  const auto text = [](int tasks) {
    std::string text(kOverlapping);
    for (int t = 0; t < tasks; ++t) {
      absl::StrAppend(&text, "task", t, " stream", t % 3, " label", t % 3, " takes ", t, " ps\n");
    }
    return text;
  };
  const Report shorter = ReportOf(Parse(text(5)));
  CommunicationShares shares = ReportOf(Parse(text(8))).shares;
  const CommunicationShares longer = shares;
  shares.Subtract(shorter.shares);
  for (int32_t column = 0; column < 2; ++column) {
    CommunicationShare sum = shares.at(RankClassId(0), column);
    sum += shorter.shares.at(RankClassId(0), column);
    EXPECT_EQ(sum, longer.at(RankClassId(0), column));
    EXPECT_GT(shares.at(RankClassId(0), column).total, Duration(0));
  }
}

// The level of a label can be told later, when its links are known.
TEST(Communication, LevelsAreSetLater) {
  Program program = Parse(kOverlapping);
  program.SetLevel(LabelId(2), "uplink");
  program.SetLevel(LabelId(1), "uplink");
  EXPECT_EQ(program.label(LabelId(1)).level, "uplink");
  EXPECT_EQ(program.label(LabelId(1)).communication, "all-reduce dp");
  EXPECT_EQ(program.label(LabelId(0)).level, "");
  const Program copy = program;
  program = Program();
  EXPECT_EQ(copy.label(LabelId(2)).level, "uplink");
}

// The task that exposes the picosecond that begins at `time` on `rank`; none if it computes or
// does not communicate.
TaskId ExposedAt(const Program& program, const Trace& trace, RankClassId rank, Time time) {
  TaskId first;
  for (int32_t i = 0; i < program.task_count(); ++i) {
    const TaskId task(i);
    if (time < trace.start_of(task) || time >= trace.finish_of(task)) continue;
    const bool computes = program.label(program.label_of(task)).kind == TaskKind::kCompute;
    for (const StreamId stream : program.streams_of(task)) {
      if (program.stream(stream).rank != rank) continue;
      if (computes && program.stream(stream).kind == StreamKind::kCompute) return TaskId();
      if (computes) continue;
      if (!first.valid() || trace.start_of(task) < trace.start_of(first)) first = task;
    }
  }
  return first;
}

TEST(Communication, AgreesWithLookingAtEachPicosecond) {
  Duration hidden;
  for (uint32_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    const Program program =
        RandomProgram({.seed = seed, .ordered = seed % 3 != 0, .one_stream = seed % 5 == 0});
    const Trace trace = RunByRelaxation(program);
    const Report report = Summarize(program, trace);
    for (int32_t r = 0; r < program.rank_count(); ++r) {
      const RankClassId rank(r);
      std::vector<Duration> exposed(static_cast<size_t>(report.shares.column_count()));
      for (Time time; time < trace.makespan; time += Duration(1)) {
        const TaskId task = ExposedAt(program, trace, rank, time);
        if (!task.valid()) continue;
        const int32_t column = report.shares.column_of(program.label_of(task));
        exposed[static_cast<size_t>(column)] += Duration(1);
      }
      Duration all, total;
      for (int32_t column = 0; column < report.shares.column_count(); ++column) {
        const CommunicationShare& share = report.shares.at(rank, column);
        EXPECT_EQ(share.exposed, exposed[static_cast<size_t>(column)]);
        EXPECT_LE(share.exposed, share.total);
        all += share.exposed;
        total += share.total;
      }
      EXPECT_EQ(all, report.ranks[rank].exposed_communication);
      EXPECT_EQ(total, report.ranks[rank].communication);
      hidden += total - all;
    }
  }
  EXPECT_GT(hidden, Duration(1000));
}

TEST(Communication, MeansAddUpToTheExposedCommunicationOfTheReport) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Report report = ReportOf(RandomProgram({.seed = seed}));
    double exposed = 0;
    for (const CommunicationReport& row : report.communication) {
      exposed += row.exposed_s;
      EXPECT_NEAR(row.exposed_s + row.hidden_s, row.total_s, 1e-24);
    }
    EXPECT_NEAR(exposed, report.exposed_communication_s, 1e-24);
  }
}

}  // namespace
}  // namespace communication_test_cc
}  // namespace orrery::simulator
