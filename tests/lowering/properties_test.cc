#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "simulator/engine/event_queue.h"
#include "simulator/program/program_text.h"
#include "simulator/report/memory.h"
#include "simulator/testing/independent_flows.h"
#include "support/sanitized_test_util.h"
#include "tests/lowering/played.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace properties_test_cc {
namespace {

using simulator::RankClassId;

template <typename Check>
void ForRandomCases(uint32_t count, Check check) {
  for (uint32_t seed = 0; seed < CasesToWalk(count) && !testing::Test::HasFailure(); ++seed) {
    const RandomCase random = MakeRandomCase(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", ToString(random.configuration)));
    check(random);
  }
}

std::vector<Time> FinishOf(const Played& played) {
  return ByRank(played, [&](RankClassId id) { return played.report.ranks[id].finish; });
}
std::vector<int64_t> PeakOf(const Played& played) {
  return ByRank(played,
                [&](RankClassId id) { return played.report.ranks[id].memory.total.count(); });
}

TEST(Folding, ChangesNoPicosecondAndNoByte) {
  int folded = 0, kept = 0;
  ForRandomCases(120, [&](const RandomCase& random) {
    Configuration all = random.configuration;
    all.fold = false;
    const Played one = Play(random.step, random.configuration), every = Play(random.step, all);
    EXPECT_EQ(every.program.rank_count(), random.configuration.plan.ranks());
    EXPECT_EQ(one.report.step_time, every.report.step_time);
    EXPECT_EQ(FinishOf(one), FinishOf(every));
    EXPECT_EQ(PeakOf(one), PeakOf(every));
    EXPECT_EQ(one.report.bytes_sent, every.report.bytes_sent);
    EXPECT_EQ(one.report.bytes_reduced, every.report.bytes_reduced);
    EXPECT_NEAR(one.report.communication_overhead, every.report.communication_overhead, 1e-9);
    EXPECT_NEAR(one.report.bubble_fraction, every.report.bubble_fraction, 1e-9);
    EXPECT_NEAR(one.report.flops.count(), every.report.flops.count(),
                1e-9 * every.report.flops.count());
    ASSERT_EQ(one.report.communication.size(), every.report.communication.size());
    for (size_t i = 0; i < one.report.communication.size(); ++i) {
      const auto& row = one.report.communication[i];
      const auto& other = every.report.communication[i];
      EXPECT_EQ(row.kind, other.kind);
      EXPECT_NEAR(row.bytes, other.bytes, 1e-9 * other.bytes);
      EXPECT_NEAR(row.exposed_s, other.exposed_s, 1e-9 * other.total_s);
      EXPECT_NEAR(row.hidden_s, other.hidden_s, 1e-9 * other.total_s);
    }
    if (random.configuration.plan.dp * random.configuration.plan.hp == 1) return;
    ++(one.program.rank_count() == random.configuration.plan.pp ? folded : kept);
  });
  EXPECT_GT(folded, CasesToWalk(20));
  EXPECT_GT(kept, CasesToWalk(10));  // groups that straddle nodes
}

// Where no link is shared; where one is, flows by themselves are never later.
TEST(Engines, AgreeOnEveryTask) {
  int alone = 0, shared = 0;
  ForRandomCases(120, [&](const RandomCase& random) {
    const Played played = Play(random.step, random.configuration);
    ASSERT_TRUE(played.program.Verify().ok()) << played.program.Verify();
    EXPECT_TRUE(played.program.ordered());
    simulator::IndependentFlows network(played.program);
    const auto events = simulator::RunEvents(played.program, network);
    ASSERT_TRUE(events.ok()) << events.status();
    if (played.program.has_flows()) {
      EXPECT_LE(events->makespan, played.trace.makespan);
      ++shared;
      return;
    }
    EXPECT_TRUE(*events == played.trace);
    ++alone;
  });
  EXPECT_GT(alone, CasesToWalk(10));
  EXPECT_GT(shared, CasesToWalk(10));
}

// Where ranks are not alike and are folded all the same, the slowest sets the pace. All wait for it
// sooner or later, so the step hardly changes.
TEST(Folding, OfUnlikeRanksIsClose) {
  int unlike = 0;
  double sum = 0;
  ForRandomCases(150, [&](const RandomCase& random) {
    Configuration folded = random.configuration;
    folded.most_unfolded_tasks = 0;
    const Played one = Play(random.step, folded), exact = Play(random.step, random.configuration);
    EXPECT_EQ(one.program.rank_count(), random.configuration.plan.pp);
    if (one.program.rank_count() == exact.program.rank_count()) return;
    const double ratio = one.report.step_time.seconds() / exact.report.step_time.seconds();
    EXPECT_NEAR(ratio, 1, 0.1);
    sum += ratio;
    ++unlike;
  });
  EXPECT_GT(unlike, CasesToWalk(5));
  EXPECT_NEAR(sum / unlike, 1, 0.01);
}

// Four groups gather over NICs of their own and a bridge that they share: what they take in step is
// what each takes that is simulated by itself. They are folded by force: with other traffic on a
// bridge that would not be exact.
TEST(Folding, OfGroupsOnABridgeIsInStep) {
  ir::Function step =
      ir::Mlp({.layers = 4, .dim = 256, .batch = 64, .dtype = ir::DType::kBF16}).value();
  ASSERT_TRUE(transforms::AppendOptimizer(step, "sgd").value());
  Configuration all{.plan = {.dp = 4, .hp = 4, .zero = 3},
                    .cluster = "dgx-a100:2,boards=2,bridge=126GB/s",
                    .fold = false};
  Configuration forced = all, asked = all;
  forced.fold = asked.fold = true;
  forced.most_unfolded_tasks = 0;
  const Played each = Play(step, all), one = Play(step, forced);
  EXPECT_EQ(one.program.rank_count(), 1);
  EXPECT_EQ(one.report.step_time, each.report.step_time);
  EXPECT_EQ(Play(step, asked).program.rank_count(), 16);
}

TEST(Programs, AreTheSameEveryTimeAndReadBack) {
  ForRandomCases(20, [](const RandomCase& random) {
    const std::string text = simulator::Print(Play(random.step, random.configuration).program);
    EXPECT_EQ(text, simulator::Print(Play(random.step, random.configuration).program));
    const auto read = simulator::ParseProgram(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(simulator::Print(*read), text);
  });
}

// Bytes of what a stage returns: losses and results, and gradients where nothing updates.
int64_t ReturnedBytes(const transforms::PipelineStage& stage) {
  int64_t bytes = 0;
  const auto add = [&](const ir::Function& function, ir::ValueId value) {
    bytes += ir::SizeOf(ir::LocalType(function.type(value), function.mesh())).count();
  };
  for (const auto* part : stage.parts()) {
    for (const ir::Output& output : part->function.outputs()) {
      const bool returned = output.role == ir::OutputRole::kResult ||
                            output.role == ir::OutputRole::kLoss ||
                            output.role == ir::OutputRole::kGradient;
      if (returned) add(part->function, output.value);
    }
  }
  return bytes;
}

// Sums that nobody takes further: collected losses, and gradients that stay sums.
int64_t SummedBytes(const transforms::PipelineStage& stage) {
  int64_t bytes = 0;
  for (const auto* part : {&stage.forward, &stage.backward, &stage.weights}) {
    const ir::Function& function = part->function;
    for (const ir::Output& output : function.outputs()) {
      if (output.role != ir::OutputRole::kAccumulator) continue;
      const ir::ValueId summand = function.operands(function.producer(output.value))[1];
      const ir::ValueId origin = part->origins[static_cast<size_t>(summand.index())];
      bool taken = false;
      for (const ir::Input& input : stage.update.function.inputs()) {
        taken = taken || (input.role == ir::InputRole::kAccumulator &&
                          stage.update.origins[static_cast<size_t>(input.value.index())] == origin);
      }
      const ir::TensorType& type = function.type(output.value);
      if (!taken) bytes += ir::SizeOf(ir::LocalType(type, function.mesh())).count();
    }
  }
  return bytes;
}

bool IsTwoWay(const Configuration& configuration) {
  return configuration.plan.schedule->placement == transforms::StagePlacement::kTwoWay;
}

TEST(Memory, IsNeverNegativeAndEndsAtWhatIsReturned) {
  ForRandomCases(120, [](const RandomCase& random) {
    Configuration configuration = random.configuration;
    configuration.cost_model = "roofline";
    const Played played = Play(random.step, configuration);
    const auto timelines = simulator::MemoryTimeline(played.program, played.trace);
    for (int32_t r = 0; r < played.program.rank_count(); ++r) {
      const RankClassId id(r);
      for (const simulator::MemoryUse& use : timelines[id]) {
        for (const Bytes bytes : use.by_kind) ASSERT_GE(bytes, Bytes(0)) << r;
      }
      if (IsTwoWay(configuration)) continue;  // each pipeline returns what its microbatches make
      int64_t returned = 0;
      for (size_t s = 0; s < played.step.stages.size(); ++s) {
        if (played.step.ranks[s] != played.program.rank(id).stage) continue;
        returned += ReturnedBytes(played.step.stages[s]) + SummedBytes(played.step.stages[s]);
      }
      const Bytes left = timelines[id].back().total - timelines[id].front().total;
      EXPECT_EQ(left.count(), returned) << "rank " << r;
    }
  });
}

TEST(Memory, OfDistirIsNeverNegative) {
  ForRandomCases(60, [](const RandomCase& random) {
    Configuration configuration = random.configuration;
    configuration.cost_model = "distir";
    const Played played = Play(random.step, configuration);
    const auto timelines = simulator::MemoryTimeline(played.program, played.trace);
    for (int32_t r = 0; r < played.program.rank_count(); ++r) {
      for (const simulator::MemoryUse& use : timelines[RankClassId(r)]) {
        for (const Bytes bytes : use.by_kind) ASSERT_GE(bytes, Bytes(0)) << r;
      }
    }
  });
}

// The compute of one rank, summed.
Duration BusiestCompute(const Played& played) {
  std::vector<Duration> busy(static_cast<size_t>(played.program.rank_count()));
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const auto kind = played.program.label(played.program.label_of(task)).kind;
    if (kind != simulator::TaskKind::kCompute) continue;
    const auto rank = played.program.stream(played.program.streams_of(task)[0]).rank;
    busy[static_cast<size_t>(rank.index())] += played.program.duration(task);
  }
  return *std::max_element(busy.begin(), busy.end());
}

TEST(Makespan, IsAtLeastTheComputeOfTheBusiestRank) {
  ForRandomCases(60, [](const RandomCase& random) {
    const Played played = Play(random.step, random.configuration);
    EXPECT_GE(played.report.step_time, BusiestCompute(played));
  });
}

TEST(Makespan, IsNotShortenedByBlocking) {
  ForRandomCases(60, [](const RandomCase& random) {
    Configuration blocking = random.configuration, overlapped = random.configuration;
    blocking.plan.blocking = true;
    overlapped.plan.blocking = false;
    EXPECT_GE(Play(random.step, blocking).report.step_time,
              Play(random.step, overlapped).report.step_time);
  });
}

TEST(Makespan, IsNotLengthenedByBandwidth) {
  ForRandomCases(60, [](const RandomCase& random) {
    Configuration configuration = random.configuration;
    Time before(INT64_MAX);
    for (const char* rate : {"10", "25", "100", "200", "1600"}) {
      configuration.cluster = absl::StrCat("uniform:128@", rate, "Gbps");
      const Time now = Play(random.step, configuration).report.step_time;
      EXPECT_LE(now, before) << rate;
      before = now;
    }
  });
}

}  // namespace
}  // namespace properties_test_cc
}  // namespace orrery::lowering
