#include "simulator/jitter/step_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "simulator/engine/longest_path.h"
#include "simulator/jitter/distribution.h"
#include "simulator/jitter/disturbances.h"
#include "simulator/jitter/disturbed_program.h"
#include "simulator/jitter/replica_test_util.h"

namespace orrery::simulator {
namespace step_series_test_cc {
namespace {

Spread Of(absl::string_view name, double spread) { return {FindJitterDistribution(name), spread}; }

StepSeries Played(const Replicas& replicas, const Disturbances& disturbances, int32_t steps,
                  size_t threads = 1) {
  const Program program = ReplicaProgram(replicas);
  const Trace undisturbed = RunLongestPath(program);
  const auto series =
      PlaySeries(DisturbedProgram(program, undisturbed, disturbances),
                 {.steps = steps, .threads = threads, .waits = true, .bounds = true});
  EXPECT_TRUE(series.ok()) << series.status();
  return *series;
}

bool IsExact(const Replicas& replicas, const Disturbances& disturbances) {
  const Program program = ReplicaProgram(replicas);
  const Trace undisturbed = RunLongestPath(program);
  return DisturbedProgram(program, undisturbed, disturbances).exact();
}

Duration Undisturbed(const Replicas& replicas) {
  return RunLongestPath(ReplicaProgram(replicas)).makespan;
}

TEST(StepSeries, OfNothingIsTheStepAsItShouldBe) {
  for (const bool folded : {false, true}) {
    const Replicas replicas{.replicas = 3, .stages = 2, .folded = folded};
    const StepSeries series = Played(replicas, {}, 3);
    EXPECT_THAT(series.times, testing::Each(Undisturbed(replicas)));
    EXPECT_THAT(series.at_least, testing::IsEmpty());
  }
}

// Whatever is folded by what DisturbedProgram::exact promises takes the same picosecond where each
// rank is simulated: a step is at the pace of one position.
TEST(StepSeries, FoldsWhatIsExactToThePicosecond) {
  const std::vector<Disturbances> one_stage = {
      {.rank = Of("normal", 0.02)},
      {.rank = Of("lognormal", 0.1),
       .device = Of("exponential", 0.03),
       .step = Of("uniform", 0.01)},
      {.rank = Of("normal", 0.02), .slow = {{3, 1.05}, {6, 0.8}}, .seed = 9}};
  const std::vector<Disturbances> stages = {
      {.step = Of("normal", 0.02)},
      {.pauses =
           Pauses{.length = Duration(300'000), .every = Duration(7'000'000), .together = true}},
      {.slow = {{9, 1.5}}},
      {.step = Of("normal", 0.02), .slow = {{9, 1.5}, {1, 1.2}}}};  // both at position 1
  for (const int32_t pipeline : {1, 2, 4}) {
    for (const Disturbances& of : pipeline == 1 ? one_stage : stages) {
      Replicas replicas{.replicas = 8, .stages = pipeline};
      const StepSeries each = Played(replicas, of, 20);
      EXPECT_TRUE(IsExact(replicas, of));
      replicas.folded = true;
      EXPECT_TRUE(IsExact(replicas, of));
      EXPECT_EQ(Played(replicas, of, 20).times, each.times);
    }
  }
}

// Where it is not, the two figures are on the two sides of what each rank by itself takes: of what
// ranks draw, step by step.
TEST(StepSeries, BoundsWhatItCannotFold) {
  const std::vector<Disturbances> disturbances = {
      {.rank = Of("normal", 0.05)},
      {.device = Of("lognormal", 0.2)},
      {.slow = {{1, 1.2}, {10, 1.3}}},
      {.pauses = Pauses{.length = Duration(300'000), .every = Duration(40'000'000)}}};
  for (const Disturbances& of : disturbances) {
    Replicas replicas{.replicas = 8, .stages = 3};
    const StepSeries each = Played(replicas, of, 50);
    EXPECT_THAT(each.at_least, testing::IsEmpty());
    replicas.folded = true;
    EXPECT_FALSE(IsExact(replicas, of));
    const StepSeries bounds = Played(replicas, of, 50);
    ASSERT_EQ(bounds.at_least.size(), 50);
    for (size_t step = 0; step < 50; ++step) {
      EXPECT_LE(bounds.at_least[step], each.times[step]) << step;
      EXPECT_GE(bounds.times[step], each.times[step]) << step;
    }
  }
}

// Draws of each kernel, likewise, but that the largest of a class is drawn at once: in the mean.
TEST(StepSeries, BoundsWhatKernelsDraw) {
  const Disturbances of{.kernel = Of("normal", 0.05)};
  Replicas replicas{.replicas = 8, .stages = 2, .kernels = 8};
  const StepFigures each = FiguresOf(Played(replicas, of, 400).times);
  replicas.folded = true;
  const StepSeries bounds = Played(replicas, of, 400);
  EXPECT_GT(FiguresOf(bounds.times).mean_s, each.mean_s);
  EXPECT_LT(FiguresOf(bounds.at_least).mean_s, each.mean_s);
}

// One stage: kernels of n ranks, then all wait for the slowest. So the mean of the step grows as
// the expected largest of n draws.
TEST(StepSeries, GrowsAsOrderStatisticsSay) {
  for (const JitterDistribution& of : AllJitterDistributions()) {
    const Disturbances disturbances{.rank = Spread{&of, 0.02}};
    for (const int32_t n : {1, 2, 8, 64, 512}) {
      const Replicas replicas{.replicas = n, .folded = true};
      const double reduce_s = 70e-9, kernels_s = Undisturbed(replicas).seconds() - reduce_s;
      const double expected = reduce_s + kernels_s * ExpectedLargest(*disturbances.rank, n);
      constexpr int32_t kSteps = 2000;  // off by 0.02 / √2000 = 0.0005 of the kernels, at one rank
      EXPECT_NEAR(FiguresOf(Played(replicas, disturbances, kSteps).times).mean_s, expected,
                  0.0015 * kernels_s)
          << of.name << " of " << n;
    }
  }
}

TEST(StepSeries, IsTheSameOnAnyNumberOfThreads) {
  const Replicas replicas{.replicas = 4, .stages = 2};
  const Disturbances of{
      .kernel = Of("normal", 0.05),
      .rank = Of("lognormal", 0.02),
      .pauses = Pauses{.length = Duration(300'000), .every = Duration(40'000'000)}};
  const StepSeries one = Played(replicas, of, 37, 1);
  for (const size_t threads : {2u, 3u, 8u, 64u}) {
    const StepSeries more = Played(replicas, of, 37, threads);
    EXPECT_EQ(more.times, one.times) << threads;
    EXPECT_EQ(more.waits, one.waits) << threads;
  }
  Disturbances other = of;
  other.seed = 2;
  EXPECT_NE(Played(replicas, other, 37).times, one.times);
}

// What is taken away leaves the draws of all else as they are.
TEST(StepSeries, DrawsTheSameWithoutASource) {
  const Replicas replicas{.replicas = 4};
  const Disturbances both{.rank = Of("normal", 0.02), .slow = {{0, 1.0}}};
  EXPECT_EQ(Played(replicas, both, 10).times,
            Played(replicas, {.rank = Of("normal", 0.02)}, 10).times);
}

// Pauses of all ranks at once come as often as they should: 3 rounds of the period fit 2 steps.
TEST(StepSeries, PausesComeBackByTheClock) {
  const Replicas replicas{.replicas = 2, .folded = true};
  const Duration step = Undisturbed(replicas);
  const Duration every(step.picoseconds() * 2 / 3);
  const Duration length(100'000);
  const StepSeries series =
      Played(replicas, {.pauses = Pauses{.length = length, .every = every, .together = true}}, 200);
  Duration sum;
  for (const Duration time : series.times) sum += time - step;
  EXPECT_NEAR(sum.seconds() / length.seconds(), 300, 2);
}

TEST(StepSeries, ThatNeverEndsIsAnError) {
  Program program;
  const RankClassId rank = program.AddRank({.members = {0}});
  program.AddTask(program.AddStream(rank, StreamKind::kCompute),
                  {.duration = Duration(int64_t{1} << 60), .label = program.AddLabel({})});
  const Trace undisturbed = RunLongestPath(program);
  const auto series = PlaySeries(DisturbedProgram(program, undisturbed, {.slow = {{0, 100}}}),
                                 {.steps = 3, .threads = 2});
  EXPECT_EQ(series.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(series.status().message(), testing::HasSubstr("step 0"));
}

TEST(StepFigures, AreNumpysPercentiles) {
  std::vector<Duration> times;
  for (int i = 100; i >= 0; --i) times.push_back(Duration(i * 1'000'000'000'000));
  const StepFigures figures = FiguresOf(times);
  EXPECT_DOUBLE_EQ(figures.mean_s, 50);
  EXPECT_DOUBLE_EQ(figures.p5_s, 5);
  EXPECT_DOUBLE_EQ(figures.p50_s, 50);
  EXPECT_DOUBLE_EQ(figures.p95_s, 95);
  EXPECT_DOUBLE_EQ(figures.p99_s, 99);
  const StepFigures one = FiguresOf(std::vector{Duration(7)});
  EXPECT_EQ(one.p5_s, one.p99_s);
  EXPECT_DOUBLE_EQ(FiguresOf(std::vector{Duration(0), Duration(1'000'000'000'000)}).p95_s, 0.95);
}

}  // namespace
}  // namespace step_series_test_cc
}  // namespace orrery::simulator
