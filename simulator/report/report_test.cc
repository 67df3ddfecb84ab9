#include "simulator/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_text.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace report_test_cc {
namespace {

Program Parse(absl::string_view text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->Verify().ok()) << program->Verify();
  return *std::move(program);
}

Report ReportOf(const Program& program) { return Summarize(program, RunLongestPath(program)); }

// Two stages of four ranks each; everything on the compute stream.
constexpr absl::string_view kBlocking = R"(program
rank0 "pp0" members 0-3 stage 0 capacity 1000 bytes
rank1 "pp1" members 4-7 stage 1 capacity 1000 bytes
resident rank1 parameters 900 bytes
stream0 rank0 compute
stream1 rank1 compute
label0 "MatMul" compute forward stage 0 flops 10 bytes 77
label1 "Send" send forward stage 0 bytes 64
label2 "AllReduce" collective backward stage 1 bytes 32 collectives 2
task0 stream0 label0 takes 10 ps
task1 stream0 stream1 label1 takes 4 ps
task2 stream1 label0 takes 16 ps
task3 stream1 label2 takes 10 ps
memory task2 rank1 activations +200 bytes
)";

TEST(Report, BlockingCommunicationIsAllExposed) {
  // rank 0: compute 0-10, send 10-14.  rank 1: send 10-14, compute 14-30, all-reduce 30-40.
  const Report report = ReportOf(Parse(kBlocking));
  EXPECT_EQ(report.step_time, Duration(40));
  const RankReport& first = report.ranks[RankClassId(0)];
  EXPECT_EQ(first.finish, Time(14));
  EXPECT_EQ(first.busy, Duration(14));
  EXPECT_EQ(first.communication, Duration(4));
  EXPECT_EQ(first.exposed_communication, Duration(4));
  EXPECT_EQ(first.idle, Duration(26));
  const RankReport& second = report.ranks[RankClassId(1)];
  EXPECT_EQ(second.finish, Time(40));
  EXPECT_EQ(second.busy, Duration(30));
  EXPECT_EQ(second.communication, Duration(14));
  EXPECT_EQ(second.exposed_communication, Duration(14));
  EXPECT_EQ(second.idle, Duration(10));
  EXPECT_DOUBLE_EQ(report.communication_overhead, 18.0 / 44.0);
  EXPECT_DOUBLE_EQ(report.exposed_communication_s, 9e-12);
  EXPECT_DOUBLE_EQ(report.bubble_fraction, 36.0 / 80.0);
}

TEST(Report, CountsBytesAndFlopsOfAllMembers) {
  const Report report = ReportOf(Parse(kBlocking));
  EXPECT_EQ(report.bytes_sent, Bytes(64 * 4));     // once a send, for each of the senders
  EXPECT_EQ(report.bytes_reduced, Bytes(32 * 2));  // once a collective
  EXPECT_EQ(report.flops, Flops(2 * 10 * 4));
  EXPECT_EQ(report.rank_count, 8);
  EXPECT_EQ(report.simulated_tasks, 4);
}

// A reduce-scatter and an all-gather of one tensor move what its all-reduce does, and count as
// much.
TEST(Report, HalvesOfAnAllReduceCountHalf) {
  const auto reduced = [](const std::vector<absl::string_view>& kinds) {
    Program program;
    const RankClassId rank = program.AddRank({.members = {0, 1}});
    const StreamId stream = program.AddStream(rank, StreamKind::kData);
    for (const absl::string_view kind : kinds) {
      program.AddTask(stream, {.duration = Duration(1),
                               .label = program.AddLabel({.kind = TaskKind::kCollective,
                                                          .bytes = Bytes(7),
                                                          .collectives = 3,
                                                          .communication = kind})});
    }
    return ReportOf(program).bytes_reduced;
  };
  EXPECT_EQ(reduced({"all-reduce dp"}), Bytes(21));
  EXPECT_EQ(reduced({"reduce-scatter dp", "all-gather dp"}), Bytes(21));
  EXPECT_EQ(reduced({"all-gather dp.hp", "all-gather dp", "reduce-scatter dp"}), Bytes(32));
  EXPECT_EQ(reduced({"all-to-all ep"}), Bytes(21));
}

TEST(Report, MemoryFitsOrNot) {
  const Report report = ReportOf(Parse(kBlocking));
  EXPECT_EQ(report.peak_memory, Bytes(1100));
  EXPECT_TRUE(report.ranks[RankClassId(0)].fits);
  EXPECT_FALSE(report.ranks[RankClassId(1)].fits);
  EXPECT_FALSE(report.fits);
  std::string exact(kBlocking);
  exact.replace(exact.find("+200"), 4, "+100");
  EXPECT_TRUE(ReportOf(Parse(exact)).fits);  // to the last byte
  std::string unlimited(kBlocking);
  unlimited.replace(unlimited.find(" capacity 1000 bytes\nresident"), 20, "");
  EXPECT_TRUE(ReportOf(Parse(unlimited)).fits);
}

TEST(Report, OverlappedCommunicationIsExposedWhereNothingComputes) {
  const Report report = ReportOf(Parse(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 data
stream2 rank0 horizontal
stream3 rank0 host
label0 "MatMul" compute forward stage 0
label1 "AllReduce" collective backward stage 0
task0 stream0 label0 takes 10 ps
task1 stream1 label1 takes 14 ps
task2 stream2 label1 takes 12 ps
task3 stream0 label0 takes 3 ps after task1
task4 stream3 label0 takes 20 ps
)"));
  // compute 0-10 and 14-17, communication 0-14 and 0-12, a copy to the host 0-20.
  const RankReport& rank = report.ranks[RankClassId(0)];
  EXPECT_EQ(rank.communication, Duration(26));
  EXPECT_EQ(rank.exposed_communication, Duration(4));
  EXPECT_EQ(rank.idle, Duration(3));
  EXPECT_EQ(rank.busy, Duration(59));
}

TEST(Report, OfNothingIsNothing) {
  const Report empty = ReportOf(Program());
  EXPECT_EQ(empty.step_time, Duration(0));
  EXPECT_EQ(empty.communication_overhead, 0);
  EXPECT_EQ(empty.bubble_fraction, 0);
  EXPECT_TRUE(empty.fits);
  const Report idle = ReportOf(Parse("program\nrank0 \"\" members 0 stage 0\n"));
  EXPECT_EQ(idle.bubble_fraction, 0);
  EXPECT_EQ(idle.rank_count, 1);
}

// Whether `rank` computes, or communicates, during the picosecond that begins at `time`.
struct Doing {
  bool computes = false;
  bool communicates = false;
};

Doing DoingAt(const Program& program, const Trace& trace, RankClassId rank, Time time) {
  Doing doing;
  for (int32_t i = 0; i < program.task_count(); ++i) {
    if (time < trace.start_of(TaskId(i)) || time >= trace.finish_of(TaskId(i))) continue;
    const bool computes = program.label(program.label_of(TaskId(i))).kind == TaskKind::kCompute;
    for (const StreamId id : program.streams_of(TaskId(i))) {
      if (program.stream(id).rank != rank) continue;
      doing.computes |= computes && program.stream(id).kind == StreamKind::kCompute;
      doing.communicates |= !computes;
    }
  }
  return doing;
}

TEST(Report, AgreesWithLookingAtEachPicosecond) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Program program = RandomProgram({.seed = seed, .one_stream = seed % 4 == 0});
    const Trace trace = RunLongestPath(program);
    const Report report = Summarize(program, trace);
    for (int32_t i = 0; i < program.rank_count(); ++i) {
      Duration exposed;
      Duration idle;
      for (Time time; time < trace.makespan; time += Duration(1)) {
        const Doing doing = DoingAt(program, trace, RankClassId(i), time);
        exposed += Duration(doing.communicates && !doing.computes);
        idle += Duration(!doing.communicates && !doing.computes);
      }
      EXPECT_EQ(report.ranks[RankClassId(i)].exposed_communication, exposed);
      EXPECT_EQ(report.ranks[RankClassId(i)].idle, idle);
    }
  }
}

TEST(Report, ParentsAreNoLessThanTheirParts) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Report report = ReportOf(RandomProgram({.seed = seed}));
    EXPECT_GE(report.bubble_fraction, 0);
    EXPECT_LE(report.bubble_fraction, 1);
    EXPECT_GE(report.communication_overhead, 0);
    EXPECT_LE(report.communication_overhead, 1);
    for (const RankReport& rank : report.ranks.rows()) {
      EXPECT_LE(rank.finish, report.step_time);
      EXPECT_LE(rank.communication, rank.busy);
      EXPECT_LE(rank.exposed_communication, rank.communication);
      EXPECT_GE(rank.idle, Duration(0));
      EXPECT_LE(rank.memory.total, report.peak_memory);
    }
  }
}

// One pair of ranks that sends, `copies` times over: either as so many classes or folded.
Program Pairs(int32_t copies, bool folded) {
  Program program;
  const LabelId compute = program.AddLabel({.name = "MatMul", .flops = Flops(3)});
  const LabelId send =
      program.AddLabel({.name = "Send", .kind = TaskKind::kSend, .bytes = Bytes(5)});
  const LabelId reduce = program.AddLabel({.name = "AllReduce",
                                           .kind = TaskKind::kCollective,
                                           .bytes = Bytes(7),
                                           .collectives = folded ? copies : 1});
  for (int32_t copy = 0; copy < (folded ? 1 : copies); ++copy) {
    RankClass first{.name = "pp0", .members = {copy}};
    RankClass second{.name = "pp1", .members = {100 + copy}};
    for (int32_t other = 1; folded && other < copies; ++other) {
      first.members.push_back(other);
      second.members.push_back(100 + other);
    }
    const StreamId left = program.AddStream(program.AddRank(first), StreamKind::kCompute);
    const StreamId right = program.AddStream(program.AddRank(second), StreamKind::kCompute);
    program.AddTask(left, {.duration = Duration(7), .label = compute});
    program.AddRendezvous(std::array{left, right}, {.duration = Duration(2), .label = send});
    program.AddTask(right, {.duration = Duration(4), .label = compute});
    program.AddTask(right, {.duration = Duration(1), .label = reduce});
  }
  return program;
}

TEST(Report, BrieflyIsTheSameWithoutWhatIsBesideEachOther) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Program program = RandomProgram({.seed = seed, .one_stream = seed % 4 == 0});
    const Trace trace = RunLongestPath(program);
    const Report whole = Summarize(program, trace), brief = SummarizeBriefly(program, trace);
    EXPECT_EQ(brief.step_time, whole.step_time);
    EXPECT_EQ(brief.communication_overhead, whole.communication_overhead);
    EXPECT_EQ(brief.peak_memory, whole.peak_memory);
    EXPECT_EQ(brief.fits, whole.fits);
    EXPECT_EQ(brief.simulated_tasks, whole.simulated_tasks);
    for (int32_t r = 0; r < program.rank_count(); ++r) {
      const RankReport &a = brief.ranks[RankClassId(r)], &b = whole.ranks[RankClassId(r)];
      EXPECT_EQ(a.busy, b.busy);
      EXPECT_EQ(a.communication, b.communication);
      EXPECT_EQ(a.finish, b.finish);
      EXPECT_EQ(a.memory, b.memory);
      EXPECT_EQ(a.idle, Duration(0));
    }
  }
}

// A rank computes and sends by turns.
TEST(Report, RepeatedTasksAreAsIfTheyWereThere) {
  const auto turns = [](int count) {
    std::string text = R"(program
rank0 "a" members 0-1 stage 0
stream0 rank0 compute
label0 "MatMul" compute forward stage 0 flops 10
label1 "Send" send forward stage 0 bytes 64
)";
    for (int turn = 0; turn < count; ++turn) {
      absl::StrAppend(&text, "task", 2 * turn, " stream0 label0 takes 10 ps\ntask", 2 * turn + 1,
                      " stream0 label1 takes 4 ps\n");
    }
    return Parse(text);
  };
  const Program few = turns(3), all = turns(8);
  const Trace trace = RunLongestPath(few);
  Report report = SummarizeBriefly(few, trace);
  Repeat(few, trace, {.begin = TaskId(2), .end = TaskId(4), .time = Duration(14), .times = 5},
         report);
  const Report expected = SummarizeBriefly(all, RunLongestPath(all));
  EXPECT_EQ(report.step_time, expected.step_time);
  EXPECT_EQ(report.communication_overhead, expected.communication_overhead);
  EXPECT_EQ(report.ranks[RankClassId(0)].busy, Duration(8 * 14));
  EXPECT_EQ(report.ranks[RankClassId(0)].communication, Duration(8 * 4));
}

TEST(Report, FoldingChangesNothing) {
  const Report folded = ReportOf(Pairs(6, true));
  const Report unfolded = ReportOf(Pairs(6, false));
  EXPECT_EQ(folded.step_time, unfolded.step_time);
  EXPECT_EQ(folded.rank_count, unfolded.rank_count);
  EXPECT_EQ(folded.bytes_sent, unfolded.bytes_sent);
  EXPECT_EQ(folded.bytes_reduced, unfolded.bytes_reduced);
  EXPECT_EQ(folded.flops, unfolded.flops);
  EXPECT_DOUBLE_EQ(folded.communication_overhead, unfolded.communication_overhead);
  EXPECT_DOUBLE_EQ(folded.exposed_communication_s, unfolded.exposed_communication_s);
  EXPECT_DOUBLE_EQ(folded.bubble_fraction, unfolded.bubble_fraction);
}

}  // namespace
}  // namespace report_test_cc
}  // namespace orrery::simulator
