#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/load_model.h"
#include "simulator/program/program_text.h"
#include "support/sanitized_test_util.h"
#include "tests/lowering/played.h"
#include "transforms/training/training_step.h"

// What runs beside compute: reductions of gradients in buckets, and sends between stages.

namespace orrery::lowering {
namespace overlap_test_cc {
namespace {

using simulator::LabelId;
using simulator::Phase;
using simulator::Program;
using simulator::StreamId;
using simulator::TaskId;
using simulator::TaskKind;

constexpr Bytes kUnlimited(int64_t{1} << 40);  // one bucket for all

ir::Function Gpt(int64_t batch, bool tied = true) {
  const std::string model = absl::StrCat("gpt:layers=4,hidden=256,heads=4,seq=128,vocab=1000,",
                                         "tied_embeddings=", tied ? "1" : "0");
  ir::Function function = importer::LoadModel({.model = model, .batch_size = batch}).value();
  const absl::Status status = transforms::MakeTrainingStep(function, {});
  EXPECT_TRUE(status.ok()) << status;
  return function;
}

Configuration GptOn(const char* cluster, Bytes bucket_size) {
  return {.plan = {.dp = 8, .bucket_size = bucket_size}, .cluster = cluster};
}

// Tasks of the update that reduce gradients, in the order of their stream; of rank class `rank`.
std::vector<TaskId> Reductions(const Program& program, int32_t rank = 0) {
  std::vector<TaskId> tasks;
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const TaskId task(t);
    const simulator::TaskLabel label = program.label(program.label_of(task));
    if (label.kind != TaskKind::kCollective || label.phase != Phase::kUpdate) continue;
    const auto streams = program.streams_of(task);
    const bool here = std::any_of(streams.begin(), streams.end(), [&](StreamId stream) {
      return program.stream(stream).rank == simulator::RankClassId(rank);
    });
    if (here) tasks.push_back(task);
  }
  return tasks;
}

Time ReadyOf(const Played& played, TaskId task) {
  Time ready;
  for (const TaskId before : played.program.dependencies_of(task)) {
    ready = std::max(ready, played.trace.finish_of(before));
  }
  return ready;
}

Time EndOfBackward(const Played& played) {
  Time end;
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    const auto label = played.program.label(played.program.label_of(TaskId(t)));
    if (label.kind != TaskKind::kCompute || label.phase != Phase::kBackward) continue;
    end = std::max(end, played.trace.finish_of(TaskId(t)));
  }
  return end;
}

// Buckets of a moderate size expose least: without merging there are many latencies, and one bucket
// for all waits for the last gradient.
TEST(Buckets, HideReductionsBehindBackward) {
  const ir::Function step = Gpt(512);
  for (const char* cluster : {"uniform:8@25Gbps", "uniform:8@100Gbps", "dgx-a100:1"}) {
    SCOPED_TRACE(cluster);
    const Played buckets = Play(step, GptOn(cluster, Bytes(1 << 20)));
    const Played all = Play(step, GptOn(cluster, kUnlimited));
    EXPECT_LT(buckets.report.exposed_communication_s, all.report.exposed_communication_s);
    EXPECT_LT(buckets.report.step_time, all.report.step_time);
    EXPECT_EQ(Reductions(all.program).size(), 1u);
    EXPECT_GT(Reductions(buckets.program).size(), 2u);
    EXPECT_GT(Reductions(Play(step, GptOn(cluster, Bytes(0))).program).size(),
              Reductions(buckets.program).size());
  }
}

// The last bucket cannot begin before the last gradient is there, nor the update before it ends.
TEST(Buckets, NeverHideTheLastOne) {
  const ir::Function step = Gpt(512);
  for (const char* cluster : {"uniform:8@1Gbps", "uniform:8@25Gbps", "dgx-h100:1"}) {
    SCOPED_TRACE(cluster);
    const Played played = Play(step, GptOn(cluster, Bytes(1 << 20)));
    const std::vector<TaskId> reductions = Reductions(played.program);
    const TaskId last = reductions.back();
    EXPECT_EQ(ReadyOf(played, last), EndOfBackward(played));
    EXPECT_GE(played.report.exposed_communication_s,
              0.999999 * played.program.duration(last).seconds());
  }
}

// Where the network is the bottleneck, it works from the first layer's gradients on without a
// pause: the step is what comes before them, all reductions, and the update.
TEST(Buckets, KeepASlowNetworkBusy) {
  const Played played = Play(Gpt(64), GptOn("uniform:8@1Gbps", Bytes(1 << 20)));
  const std::vector<TaskId> reductions = Reductions(played.program);
  EXPECT_LT(ReadyOf(played, reductions[1]), EndOfBackward(played));
  Time now = ReadyOf(played, reductions[1]);  // [0] is small: the gradients of the last norm
  for (size_t i = 1; i < reductions.size(); ++i) {
    EXPECT_EQ(played.trace.start_of(reductions[i]), now) << i;
    now += played.program.duration(reductions[i]);
  }
}

// What communication makes, on a stream of its own, is ready when that is done: no order of the
// backward's tasks tells when.
bool IsMadeByKernels(const Program& program, TaskId task) {
  const auto makers = program.dependencies_of(task);
  return std::all_of(makers.begin(), makers.end(), [&](TaskId maker) {
    return program.label(program.label_of(maker)).kind == TaskKind::kCompute;
  });
}

// Random steps: no reduction stands in its stream before one of the stage whose gradient is ready
// earlier.
TEST(Buckets, QueueInTheOrderOfTheirGradients) {
  int reductions = 0, early = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(80u) && !testing::Test::HasFailure(); ++seed) {
    RandomCase random = MakeRandomCase(seed);
    random.configuration.plan.blocking = false;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", ToString(random.configuration)));
    const Played played = Play(random.step, random.configuration);
    for (int32_t r = 0; r < played.program.rank_count(); ++r) {
      std::map<std::pair<StreamId, int32_t>, Time> ready;
      for (const TaskId task : Reductions(played.program, r)) {
        if (!IsMadeByKernels(played.program, task)) continue;
        const Time now = ReadyOf(played, task);
        const int32_t stage = played.program.label(played.program.label_of(task)).stage;
        for (const StreamId stream : played.program.streams_of(task)) {
          EXPECT_GE(now, (ready[{stream, stage}])) << ToString(task);
          ready[{stream, stage}] = now;
        }
        ++reductions;
        early += now < EndOfBackward(played);
      }
    }
  }
  EXPECT_GT(reductions, CasesToWalk(100));
  EXPECT_GT(early, CasesToWalk(50));
}

// However they are merged, what is reduced is the same, and so is what memory ends with.
TEST(Buckets, ReduceEachGradientOnce) {
  for (uint32_t seed = 0; seed < CasesToWalk(60u) && !testing::Test::HasFailure(); ++seed) {
    RandomCase random = MakeRandomCase(seed);
    Configuration& configuration = random.configuration;
    configuration.plan.blocking = true;
    configuration.cost_model = "roofline";
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", ToString(configuration)));
    const Played blocking = Play(random.step, configuration);
    configuration.plan.blocking = false;
    size_t count = 0;
    for (const Bytes size : {kUnlimited, Bytes(50'000), Bytes(0)}) {
      configuration.plan.bucket_size = size;
      const Played played = Play(random.step, configuration);
      EXPECT_EQ(played.report.bytes_reduced, blocking.report.bytes_reduced);
      EXPECT_EQ(played.report.flops, blocking.report.flops);
      EXPECT_GE(Reductions(played.program).size(), count) << size;
      count = Reductions(played.program).size();
    }
    EXPECT_EQ(count, Reductions(blocking.program).size());
  }
}

bool WaitsForTheUpdate(const Program& program, TaskId task) {
  return std::ranges::any_of(program.dependencies_of(task), [&](TaskId maker) {
    return program.label(program.label_of(maker)).phase == Phase::kUpdate;
  });
}

// Where a rank holds several chunks, gradients of the one whose backward ends later are reduced
// before parameters of the other are gathered: those wait for its whole update.
TEST(Buckets, OfALaterChunkStandBeforeWhatWaitsForTheUpdate) {
  const transforms::ParallelPlan plan = {.dp = 2,
                                         .pp = 2,
                                         .microbatches = 4,
                                         .schedule = "interleaved",
                                         .chunks = 2,
                                         .zero = 1,
                                         .bucket_size = Bytes(1 << 20)};
  const Played played = Play(Gpt(32, false), {.plan = plan, .cluster = "uniform:4@200Gbps"});
  for (int32_t r = 0; r < played.program.rank_count(); ++r) {
    std::map<StreamId, int> waiting;
    std::set<int32_t> stages;
    for (const TaskId task : Reductions(played.program, r)) {
      stages.insert(played.program.label(played.program.label_of(task)).stage);
      const bool waits = WaitsForTheUpdate(played.program, task);
      for (const StreamId stream : played.program.streams_of(task)) {
        EXPECT_TRUE(waits || waiting[stream] == 0) << "rank " << r << ": " << ToString(task);
        waiting[stream] += waits;
      }
    }
    EXPECT_EQ(stages.size(), 2u) << r;
    for (const auto& [stream, count] : waiting) EXPECT_GT(count, 0) << r;
  }
}

// A batch of an asynchronous pipeline is reduced and updated before the next forward of its stage.
TEST(Buckets, WorkInAsynchronousPipelines) {
  const ir::Function step = Gpt(32, false);
  Configuration configuration = {.plan = {.dp = 2,
                                          .pp = 2,
                                          .microbatches = 4,
                                          .schedule = "pipedream",
                                          .bucket_size = Bytes(1 << 20)},
                                 .cluster = "uniform:4@25Gbps"};
  const Played folded = Play(step, configuration);
  configuration.fold = false;
  const Played every = Play(step, configuration);
  EXPECT_EQ(folded.report.step_time, every.report.step_time);
  EXPECT_TRUE(folded.program.Verify().ok());
  configuration.fold = true;
  configuration.plan.bucket_size = kUnlimited;
  const Played all = Play(step, configuration);
  EXPECT_EQ(Reductions(all.program, 0).size(), 4u);
  EXPECT_EQ(all.report.bytes_reduced, folded.report.bytes_reduced);
  EXPECT_LT(folded.report.step_time, all.report.step_time);
}

// With one stream a rank there is nothing to overlap with: the program is what it was.
TEST(Buckets, ChangeNothingWhereCommunicationBlocks) {
  const ir::Function step = Gpt(32);
  Configuration configuration = GptOn("uniform:8@25Gbps", Bytes(0));
  configuration.plan.blocking = true;
  const std::string without = simulator::Print(Play(step, configuration).program);
  configuration.plan.bucket_size = kUnlimited;
  EXPECT_EQ(simulator::Print(Play(step, configuration).program), without);
}

// Time in which a rank sends or receives and computes as well, summed over pairs of such tasks.
Duration SendsBesideCompute(const Played& played) {
  const Program& program = played.program;
  const auto kind = [&](int32_t t) { return program.label(program.label_of(TaskId(t))).kind; };
  const auto rank = [&](StreamId stream) { return program.stream(stream).rank; };
  Duration together;
  for (int32_t s = 0; s < program.task_count(); ++s) {
    if (kind(s) != TaskKind::kSend) continue;
    for (int32_t t = 0; t < program.task_count(); ++t) {
      if (kind(t) != TaskKind::kCompute) continue;
      const auto streams = program.streams_of(TaskId(s));
      const bool same_rank = std::any_of(streams.begin(), streams.end(), [&](StreamId stream) {
        return rank(stream) == rank(program.streams_of(TaskId(t))[0]);
      });
      if (!same_rank) continue;
      const Time from =
          std::max(played.trace.start_of(TaskId(s)), played.trace.start_of(TaskId(t)));
      const Time to =
          std::min(played.trace.finish_of(TaskId(s)), played.trace.finish_of(TaskId(t)));
      together += std::max(Duration(0), to - from);
    }
  }
  return together;
}

TEST(Sends, OverlapWithComputeUnlessBlocking) {
  const ir::Function step = Gpt(64, false);
  Configuration configuration = {.plan = {.pp = 4, .microbatches = 8},
                                 .cluster = "uniform:4@25Gbps"};
  const Played overlapping = Play(step, configuration);
  configuration.plan.blocking = true;
  const Played blocking = Play(step, configuration);
  EXPECT_GT(SendsBesideCompute(overlapping), Duration(0));
  EXPECT_EQ(SendsBesideCompute(blocking), Duration(0));
  EXPECT_LT(overlapping.report.step_time, blocking.report.step_time);
  EXPECT_EQ(overlapping.report.bytes_sent, blocking.report.bytes_sent);
}

}  // namespace
}  // namespace overlap_test_cc
}  // namespace orrery::lowering
