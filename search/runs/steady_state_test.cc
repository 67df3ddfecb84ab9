#include "search/runs/steady_state.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/engine/play.h"
#include "simulator/program/program_test_util.h"

namespace orrery::search {
namespace steady_state_test_cc {
namespace {

using simulator::RankClassId;
using simulator::Report;

transforms::PipelineShape Shape(int32_t ranks, int32_t microbatches) {
  return {.ranks = ranks, .microbatches = microbatches};
}

transforms::PipelineSchedule Asynchronous(
    int32_t (*microbatches_an_update)(const transforms::PipelineShape&) = nullptr) {
  transforms::PipelineSchedule schedule;
  schedule.asynchronous = true;
  schedule.microbatches_an_update = microbatches_an_update;
  return schedule;
}

int32_t EachBatch(const transforms::PipelineShape& shape) { return shape.microbatches; }

TEST(RoundsFor, IsOneWhereThePipelineDrains) {
  const transforms::PipelineSchedule schedule;
  EXPECT_EQ(RoundsFor(schedule, Shape(4, 8)), 1);
  EXPECT_EQ(RoundsFor(schedule, Shape(16, 1)), 1);
}

// Twice as many microbatches as there are ranks fill it.
TEST(RoundsFor, FillsThePipelineAndRunsOne) {
  const transforms::PipelineSchedule schedule = Asynchronous();
  EXPECT_EQ(RoundsFor(schedule, Shape(4, 8)), 2);
  EXPECT_EQ(RoundsFor(schedule, Shape(4, 7)), 3);
  EXPECT_EQ(RoundsFor(schedule, Shape(4, 9)), 2);
  EXPECT_EQ(RoundsFor(schedule, Shape(4, 1)), 9);
  EXPECT_EQ(RoundsFor(schedule, Shape(1, 1)), 3);
  for (int32_t ranks = 1; ranks <= 9; ++ranks) {
    for (int32_t microbatches = 1; microbatches <= 20; ++microbatches) {
      const int32_t filling = RoundsFor(schedule, Shape(ranks, microbatches)) - 1;
      EXPECT_GE(filling * microbatches, 2 * ranks);
      EXPECT_LT((filling - 1) * microbatches, 2 * ranks);
    }
  }
}

TEST(RoundsOfAPeriod, ComesBackToTheSameVersion) {
  const transforms::PipelineSchedule schedule = Asynchronous();
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(4, 8)), 1);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(4, 6)), 2);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(4, 3)), 4);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(1, 5)), 1);
}

TEST(RoundsOfAPeriod, CountsUpdatesOfSeveralMicrobatches) {
  const transforms::PipelineSchedule schedule = Asynchronous(EachBatch);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(4, 6)), 2);  // 12 microbatches: 2 updates, 3 times 4
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(4, 8)), 1);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(4, 3)), 4);
}

// Whole rounds of all replicas, in both runs.
TEST(RoundsFor, AreWholeRoundsOfReplicas) {
  const transforms::PipelineSchedule schedule = Asynchronous();
  EXPECT_EQ(RoundsFor(schedule, Shape(2, 8), {3, 1}), 3);  // 24 microbatches, 8 fill it
  EXPECT_EQ(RoundsFor(schedule, Shape(2, 1), {15, 1}), 45);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(2, 1), {15, 1}), 30);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(2, 8), {3, 1}), 3);
  EXPECT_EQ(RoundsFor(transforms::PipelineSchedule(), Shape(2, 8), {3, 1}), 1);
  for (const std::vector<int64_t>& replicas :
       {std::vector<int64_t>{1, 1}, {2, 2}, {3, 1}, {2, 3, 1}, {5, 4, 3}, {7}}) {
    const int64_t round = std::accumulate(replicas.begin(), replicas.end(), int64_t{1},
                                          [](int64_t a, int64_t b) { return std::lcm(a, b); });
    const int64_t all = std::accumulate(replicas.begin(), replicas.end(), int64_t{0});
    for (int32_t microbatches = 1; microbatches <= 30; ++microbatches) {
      const transforms::PipelineShape shape =
          Shape(static_cast<int32_t>(replicas.size()), microbatches);
      const int64_t few = int64_t{microbatches} * RoundsFor(schedule, shape, replicas);
      const int64_t more = int64_t{microbatches} * RoundsOfAPeriod(schedule, shape, replicas);
      EXPECT_EQ(few % round, 0);
      EXPECT_GT(few, 2 * all);
      EXPECT_EQ(more % round, 0);
      EXPECT_GE(more, all);
    }
  }
}

// Of updates of a batch, whole ones: of 8 microbatches those are of 9 for 3 replicas.
TEST(RoundsOfAPeriod, OfReplicasCountsUpdatesOfSeveralMicrobatches) {
  const transforms::PipelineSchedule schedule = Asynchronous(EachBatch);
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(2, 8), {3, 1}), 9);  // 72: 8 updates, 12 times 6
  EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(2, 12), {3, 1}), 1);
}

// Of stages of one replica as of stages that share microbatches.
TEST(RoundsOfAPeriod, OfOneReplicaEachAreThoseOfRanks) {
  const transforms::PipelineSchedule schedule = Asynchronous();
  for (int32_t ranks = 1; ranks <= 5; ++ranks) {
    for (int32_t microbatches = 1; microbatches <= 12; ++microbatches) {
      const std::vector<int64_t> ones(static_cast<size_t>(ranks), 1);
      const transforms::PipelineShape shape = Shape(ranks, microbatches);
      EXPECT_EQ(RoundsOfAPeriod(schedule, shape, ones), RoundsOfAPeriod(schedule, shape));
      EXPECT_EQ(RoundsFor(schedule, shape, ones), RoundsFor(schedule, shape));
    }
  }
}

// The fewest batches whose microbatches are whole updates and whole rounds of the stages.
TEST(RoundsOfAPeriod, IsTheLeast) {
  for (const bool batches : {false, true}) {
    const transforms::PipelineSchedule schedule = Asynchronous(batches ? EachBatch : nullptr);
    for (int32_t ranks = 1; ranks <= 8; ++ranks) {
      for (int32_t microbatches = 1; microbatches <= 12; ++microbatches) {
        const int32_t every = batches ? microbatches : 1;
        int32_t least = 1;
        while (least * microbatches % std::lcm(every, ranks) != 0) ++least;
        EXPECT_EQ(RoundsOfAPeriod(schedule, Shape(ranks, microbatches)), least)
            << ranks << " " << microbatches << " " << batches;
      }
    }
  }
}

// Two ranks in a row: of each batch the first takes 10 ps, then the second 6 ps. n batches take
// 10 n + 6.
struct Batches {
  explicit Batches(int32_t count) {
    std::string text = R"(program
rank0 "pp0" members 0 stage 0
rank1 "pp1" members 1 stage 1
stream0 rank0 compute
stream1 rank1 compute
label0 "a" compute forward stage 0 flops 7
label1 "b" compute forward stage 1 flops 5
)";
    for (int32_t i = 0; i < count; ++i) {
      absl::StrAppend(&text, "task", 2 * i, " stream0 label0 takes 10 ps\n");
      absl::StrAppend(&text, "task", 2 * i + 1, " stream1 label1 takes 6 ps after task", 2 * i,
                      "\n");
    }
    program = simulator::Parse(text);
    report = simulator::Summarize(program, simulator::Play(program).value());
  }

  simulator::Program program;
  Report report;
};

TEST(Difference, IsOneBatchOfAFullPipeline) {
  const Batches shorter(3), longer(5);
  ASSERT_EQ(shorter.report.step_time, Duration(36));
  ASSERT_EQ(longer.report.step_time, Duration(56));
  const Report step = Difference(longer.program, longer.report, shorter.report, 2);
  EXPECT_EQ(step.step_time, Duration(10));
  EXPECT_EQ(step.flops.count(), 12);
  EXPECT_EQ(step.ranks[RankClassId(0)].busy, Duration(10));
  EXPECT_EQ(step.ranks[RankClassId(0)].idle, Duration(0));
  EXPECT_EQ(step.ranks[RankClassId(1)].busy, Duration(6));
  EXPECT_EQ(step.ranks[RankClassId(1)].idle, Duration(4));
  EXPECT_EQ(step.ranks[RankClassId(1)].finish, Duration(10));
  EXPECT_DOUBLE_EQ(step.bubble_fraction, 0.2);
}

// A step is rounded up, what ranks do in it down.
TEST(Difference, RoundsTheStepUp) {
  const Batches shorter(3), longer(5);
  Report uneven = longer.report;
  uneven.step_time += Duration(1);
  const Report step = Difference(longer.program, uneven, shorter.report, 2);
  EXPECT_EQ(step.step_time, Duration(11));
  EXPECT_EQ(step.ranks[RankClassId(1)].idle, Duration(4));
  EXPECT_EQ(Difference(longer.program, longer.report, shorter.report, 1).step_time, Duration(20));
}

// A rank that has less idle time in the longer run than in the shorter one works on beyond the
// difference of both: the step is as long as that takes.
TEST(Difference, LastsUntilTheBusiestRankIsDone) {
  const Batches shorter(3), longer(5);
  Report unsettled = longer.report;
  unsettled.ranks[RankClassId(0)].idle -= Duration(3);
  const Report step = Difference(longer.program, unsettled, shorter.report, 2);
  EXPECT_EQ(step.step_time, Duration(12));  // 23 ps of two
  EXPECT_EQ(step.ranks[RankClassId(0)].idle, Duration(0));
  EXPECT_EQ(step.ranks[RankClassId(1)].idle, Duration(5));  // 8 and 3 ps of two
  EXPECT_EQ(step.ranks[RankClassId(0)].finish, Duration(10));
}

// What is sent, reduced and exposed, of one of two batches.
TEST(Difference, OfCommunicationIsThatOfOneBatch) {
  const Batches shorter_run(3), longer_run(5);
  Report shorter = shorter_run.report, longer = longer_run.report;
  shorter.bytes_sent = Bytes(30);
  longer.bytes_sent = Bytes(51);
  shorter.bytes_reduced = Bytes(300);
  longer.bytes_reduced = Bytes(500);
  simulator::RankReport& before = shorter.ranks[RankClassId(1)];
  simulator::RankReport& after = longer.ranks[RankClassId(1)];
  before.communication = Duration(9);
  after.communication = Duration(15);
  before.exposed_communication = Duration(4);
  after.exposed_communication = Duration(8);
  const Report step = Difference(longer_run.program, longer, shorter, 2);
  EXPECT_EQ(step.bytes_sent, Bytes(10));
  EXPECT_EQ(step.bytes_reduced, Bytes(100));
  EXPECT_EQ(step.ranks[RankClassId(1)].communication, Duration(3));
  EXPECT_EQ(step.ranks[RankClassId(1)].exposed_communication, Duration(2));
  EXPECT_DOUBLE_EQ(step.communication_overhead, 3.0 / 16);
  EXPECT_DOUBLE_EQ(step.exposed_communication_s, 1e-12);
}

TEST(Difference, KeepsTheMemoryOfTheLongerRun) {
  const Batches shorter(1);
  Batches longer(2);
  longer.report.peak_memory = Bytes(100);
  longer.report.fits = false;
  longer.report.bytes_sent = Bytes(70);
  const Report step = Difference(longer.program, longer.report, shorter.report, 1);
  EXPECT_EQ(step.peak_memory, Bytes(100));
  EXPECT_FALSE(step.fits);
  EXPECT_EQ(step.bytes_sent, Bytes(70));
}

}  // namespace
}  // namespace steady_state_test_cc
}  // namespace orrery::search
