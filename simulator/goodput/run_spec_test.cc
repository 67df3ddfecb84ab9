#include "simulator/goodput/run_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::simulator::goodput {
namespace run_spec_test_cc {
namespace {

using testing::HasSubstr;

TEST(RunSpec, TiersBecomeMultiplesOfEachOther) {
  std::vector<CheckpointTier> tiers = {{.name = "pfs", .every_steps = 100},
                                       {.name = "host", .every_steps = 7},
                                       {.name = "disk", .every_steps = 7}};
  constexpr double kStep = 10;
  OrderTiers(tiers, kStep);
  EXPECT_EQ(tiers[0].name, "host");
  EXPECT_EQ(tiers[0].every_steps, 7);
  EXPECT_EQ(tiers[1].every_steps, 7);
  EXPECT_EQ(tiers[2].name, "pfs");
  EXPECT_EQ(tiers[2].every_steps, 98);
  // Not before the last one is written.
  tiers[2].write_s = 99 * kStep;
  OrderTiers(tiers, kStep);
  EXPECT_EQ(tiers[2].every_steps, 105);
}

TEST(RunSpec, CountsWhatFails) {
  const JobShape job{.hosts = 10, .devices_per_host = 8, .hosts_per_rack = 4};
  std::vector<int64_t> counts;
  for (const Component& component : AllComponents()) counts.push_back(component.count(job));
  EXPECT_THAT(counts, testing::ElementsAre(80, 10, 80, 3, 3, 80));
  const JobShape partly{.hosts = 2, .devices_per_host = 8, .idle_places = 7};
  EXPECT_EQ(AllComponents()[0].count(partly), 9);
  const RunSpec spec{.job = job,
                     .failures = {{&AllComponents()[0], 160}, {&AllComponents()[1], 20}}};
  EXPECT_DOUBLE_EQ(FailuresPerSecond(spec), 80.0 / 160 + 10.0 / 20);
}

TEST(RunSpec, ShrinksByReplicas) {
  const JobShape job{.hosts = 16, .replicas = 4, .microbatches = 8, .stages = 3};
  EXPECT_EQ(ReplicasOn(job, 20), 4);
  EXPECT_EQ(ReplicasOn(job, 15), 3);
  EXPECT_EQ(ReplicasOn(job, 3), 0);
  EXPECT_DOUBLE_EQ(StepStretch(job, WhenShort::kShrink, 3), 1);
  EXPECT_DOUBLE_EQ(StepWorth(job, WhenShort::kShrink, 3), 0.75);
  // 32 microbatches on 3 replicas: 11 on the fullest, and ramps of two.
  EXPECT_DOUBLE_EQ(StepStretch(job, WhenShort::kKeepBatch, 3), 13.0 / 10);
  EXPECT_DOUBLE_EQ(StepWorth(job, WhenShort::kKeepBatch, 3), 1);
}

TEST(RunSpec, SaysWhatCannotBe) {
  const RunSpec sound{.length_s = 1e6, .step_s = 10};
  EXPECT_TRUE(CheckRun(sound).ok());
  RunSpec spec = sound;
  spec.step_s = 0;
  EXPECT_THAT(CheckRun(spec).message(), HasSubstr("more than 0 s"));
  spec = sound;
  spec.failures = {{&AllComponents()[0], 0}};
  EXPECT_THAT(CheckRun(spec).message(), HasSubstr("failures of device: wanted more than 0 s"));
  spec = sound;
  spec.failures = {{&AllComponents()[0], 1}};
  EXPECT_THAT(CheckRun(spec).message(), HasSubstr("at most a million"));
  spec = sound;
  spec.tiers = {{.name = "pfs", .every_steps = 2, .write_s = 21}};
  EXPECT_THAT(CheckRun(spec).message(), HasSubstr("checkpoints to pfs: one every 2 steps"));
  spec.tiers = {{.name = "pfs", .every_steps = 2, .write_s = 20}};
  EXPECT_TRUE(CheckRun(spec).ok());
  spec = sound;
  spec.stops = {{.name = "maintenance", .every_s = 0}};
  EXPECT_THAT(CheckRun(spec).message(), HasSubstr("maintenance"));
  spec = sound;
  spec.recovery.detect = {.low_s = 5, .high_s = 2};
  EXPECT_THAT(CheckRun(spec).message(), HasSubstr("low before high"));
}

}  // namespace
}  // namespace run_spec_test_cc
}  // namespace orrery::simulator::goodput
