#include "simulator/report/report_details.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "nlohmann/json.hpp"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"
#include "simulator/report/report_json.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace report_details_test_cc {
namespace {

constexpr absl::string_view kProgram = R"(program
rank0 "pp0" members 0,2 stage 0
rank1 "pp1" members 1,3 stage 1
resident rank0 parameters 100 bytes
resident rank1 parameters 300 bytes
resident rank1 other 50 bytes
stream0 rank0 compute
stream1 rank1 compute
label0 "MatMul h" compute forward stage 0
label1 "Grad \"h\"" compute backward stage 1
task0 stream0 label0 microbatch 3 takes 1000000000000 ps
task1 stream0 label1 takes 1000000000000 ps
task2 stream1 label0 takes 1000000000000 ps after task0
memory task0 rank0 activations +20 bytes
memory task1 rank0 gradients +70 bytes
memory task1 rank0 activations -20 bytes
)";

TEST(ReportDetails, AreThisJson) {
  const Program program = Parse(kProgram);
  const Trace trace = RunLongestPath(program);
  const Report report = Summarize(program, trace);
  ReportDetails details = DetailsOf(program, trace, report, /*steady=*/false);
  details.versions = {{.stage = 0, .rank = 0, .staleness = 1, .weight_versions = 2}};
  details.stages = {{.stage = 0, .rank = 1, .layers = 3, .parameters = 40}};
  const std::string text = ReportJson(program, report, {}, &details);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["bubble"].dump(),
            R"({"cool_down_s":0,"imbalance_s":0.5,"steady_s":0,"warm_up_s":0})");
  EXPECT_EQ(json["memory_timeline"].dump(),
            R"([{"bytes":[120,190,170],"ranks":[0,2],"time_s":[0,1,2]},)"
            R"({"bytes":[350],"ranks":[1,3],"time_s":[0]}])");
  EXPECT_EQ(json["weight_versions"].dump(),
            R"([{"pipeline_rank":0,"stage":0,"staleness":1,"weight_versions":2}])");
  EXPECT_EQ(json["stages"].dump(), R"([{"layers":3,"parameters":40,"pipeline_rank":1,"stage":0}])");
  EXPECT_EQ(json["devices"][2]["peak_task"], "Grad \"h\", backward on stage 1");
  EXPECT_EQ(json["devices"][2]["peak_time_s"], 1.0);
  EXPECT_EQ(json["devices"][2]["memory"]["gradients"], 70);
  EXPECT_EQ(json["devices"][3]["peak_task"], "resident");
  EXPECT_EQ(json["devices"][3]["bubble"]["imbalance_s"], 1.0);
}

TEST(ReportDetails, PeakTaskNamesTheMicrobatch) {
  const Program program = Parse(kProgram);
  MemoryUse use = {};
  use.task = TaskId(0);
  EXPECT_EQ(PeakTaskText(program, use), "MatMul h, forward of microbatch 3 on stage 0");
}

TEST(ReportDetails, CompositionIsLargestFirst) {
  MemoryUse use = {};
  EXPECT_EQ(CompositionText(use), "");
  use.by_kind[static_cast<size_t>(MemoryKind::kOptimizer)] = Bytes(10);
  use.by_kind[static_cast<size_t>(MemoryKind::kParameters)] = Bytes(10);
  use.by_kind[static_cast<size_t>(MemoryKind::kOther)] = Bytes(2048);
  EXPECT_EQ(CompositionText(use), "other 2.00 KiB, parameters 10 B, optimizer 10 B");
}

TEST(Fragmentation, IsOfTensorsOnly) {
  const Program program = Parse(kProgram);
  Report report = Summarize(program, RunLongestPath(program));
  AddFragmentation(program, 0.1, report);
  EXPECT_EQ(report.ranks[RankClassId(0)].memory.total, Bytes(209));  // 190 and 19
  EXPECT_EQ(report.ranks[RankClassId(0)].memory.of(MemoryKind::kOther), Bytes(19));
  EXPECT_EQ(report.ranks[RankClassId(1)].memory.total, Bytes(380));  // 300 and 50, and 30
  EXPECT_EQ(report.peak_memory, Bytes(380));
  EXPECT_TRUE(report.fits);
}

TEST(Fragmentation, CanMakeWhatFitsTooLarge) {
  Program program;
  const RankClassId rank = program.AddRank({.members = {0}, .capacity = Bytes(105)});
  program.AddResident(rank, MemoryKind::kParameters, Bytes(100));
  Report report = Summarize(program, RunLongestPath(program));
  AddFragmentation(program, 0.05, report);
  EXPECT_TRUE(report.fits);
  AddFragmentation(program, 0.05, report);
  EXPECT_FALSE(report.fits);
  EXPECT_FALSE(report.ranks[rank].fits);
}

// What is left of a timeline has its peak and its end, and each point is of the timeline.
TEST(ThinTimeline, KeepsThePeakAndTheEnd) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = RandomProgram({.seed = seed, .tasks = 80});
    const Trace trace = RunLongestPath(program);
    const auto timelines = MemoryTimeline(program, trace);
    const auto peaks = PeakMemory(program, trace);
    for (int32_t r = 0; r < program.rank_count(); ++r) {
      const std::vector<MemoryUse>& timeline = timelines[RankClassId(r)];
      for (const size_t points : {2U, 3U, 10U, 1000U}) {
        const std::vector<MemoryUse> thin = ThinTimeline(timeline, points);
        ASSERT_FALSE(thin.empty());
        EXPECT_LE(thin.size(), points);
        EXPECT_EQ(thin.back().time, timeline.back().time);
        Bytes most;
        for (size_t i = 0; i < thin.size(); ++i) {
          most = std::max(most, thin[i].total);
          EXPECT_NE(std::find(timeline.begin(), timeline.end(), thin[i]), timeline.end());
          if (i > 0) {
            EXPECT_LT(thin[i - 1].time, thin[i].time);
          }
        }
        EXPECT_EQ(most, peaks[RankClassId(r)].total);
      }
    }
  }
}

// Whoever led to the peak took memory there.
TEST(PeakMemory, IsReachedByATaskThatTakes) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Program program = RandomProgram({.seed = seed});
    const Trace trace = RunLongestPath(program);
    const auto peaks = PeakMemory(program, trace);
    for (int32_t r = 0; r < program.rank_count(); ++r) {
      const MemoryUse& peak = peaks[RankClassId(r)];
      if (!peak.task.valid()) continue;
      EXPECT_TRUE(trace.start_of(peak.task) == peak.time || trace.finish_of(peak.task) == peak.time)
          << seed;
      const auto& events = program.memory_events();
      EXPECT_TRUE(std::any_of(events.begin(), events.end(), [&](const MemoryEvent& event) {
        return event.task == peak.task && event.rank == RankClassId(r) && event.bytes > 0;
      }));
    }
  }
}

}  // namespace
}  // namespace report_details_test_cc
}  // namespace orrery::simulator
