#include "tools/goodput/goodput_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace orrery::tools {
namespace goodput_question_test_cc {
namespace {

using simulator::goodput::CheckpointTier;
using testing::Contains;
using testing::HasSubstr;

JobFacts Facts() {
  return {.name = "a job",
          .shape = {.hosts = 100, .devices_per_host = 8, .replicas = 10},
          .devices = 800,
          .step_s = 10,
          .slow_step_s = 15,
          .checkpoint_bytes = 8e12,
          .host_copy_rate = 10e9,
          .card_rate = 100e9};
}

CheckpointTier TierOf(const std::string& checkpoint, const JobFacts& facts = Facts()) {
  GoodputFlags flags;
  flags.checkpoint = checkpoint;
  const auto question = QuestionOf(flags, facts, {});
  EXPECT_TRUE(question.ok()) << question.status();
  return question.ok() && !question->spec.tiers.empty() ? question->spec.tiers[0]
                                                        : CheckpointTier{};
}

// 80 GB a host, 10 GB a device.
TEST(GoodputQuestion, CheckpointsCostWhatTheirBytesTake) {
  const CheckpointTier host = TierOf("host:every=10m");
  EXPECT_DOUBLE_EQ(host.stall_s, 1);  // copied by each device at 10 GB/s
  EXPECT_EQ(host.write_s, 0);
  EXPECT_EQ(host.drag_s, 0);
  EXPECT_DOUBLE_EQ(host.load_s, 1);
  const CheckpointTier disk = TierOf("disk:every=10m:bandwidth=4GB/s");
  EXPECT_DOUBLE_EQ(disk.stall_s, 1 + 6);
  EXPECT_DOUBLE_EQ(disk.write_s, 20);
  EXPECT_EQ(disk.drag_s, 0);
  const CheckpointTier blocking = TierOf("disk:every=10m:bandwidth=4GB/s:blocking");
  EXPECT_DOUBLE_EQ(blocking.stall_s, 20 + 6);
  EXPECT_EQ(blocking.write_s, 0);
  const CheckpointTier measured = TierOf("disk:every=10m:write=1m:blocking");
  EXPECT_DOUBLE_EQ(measured.stall_s, 60 + 6);
  EXPECT_EQ(measured.write_s, 0);
  const CheckpointTier pfs = TierOf("pfs:every=10m:bandwidth=2TB/s");
  EXPECT_DOUBLE_EQ(pfs.write_s, 4);  // 20 GB/s a host
  EXPECT_DOUBLE_EQ(pfs.load_s, 4);
  EXPECT_EQ(TierOf("pfs:every=100steps").every_steps, 100);
  EXPECT_EQ(TierOf("pfs:every=10m").every_steps, 60);
  EXPECT_EQ(TierOf("pfs:every=10m:stall=3s:write=5s:load=7s").load_s, 7);
}

// With half of the cards, steps take half as long again.
TEST(GoodputQuestion, StepsAreSlowerBesideWhatTheirCardsCarry) {
  const CheckpointTier neighbour = TierOf("neighbour:every=10m");
  EXPECT_DOUBLE_EQ(neighbour.write_s, 80.0 / 50);  // never more than half of the cards
  EXPECT_NEAR(neighbour.drag_s, neighbour.write_s * (1 - 1 / 1.5), 1e-12);
  // 20 of 50 GB/s: two fifths of that.
  const CheckpointTier pfs = TierOf("pfs:every=10m:bandwidth=2TB/s");
  EXPECT_NEAR(pfs.drag_s, 4 * (1 - 1 / 1.2), 1e-12);
  EXPECT_NEAR(TierOf("pfs:every=10m:write=4s").drag_s, pfs.drag_s, 1e-12);
  EXPECT_EQ(TierOf("pfs:every=10m:bandwidth=2TB/s:own-network").drag_s, 0);
  EXPECT_EQ(TierOf("pfs:every=10m:blocking").drag_s, 0);
}

TEST(GoodputQuestion, ChoosesIntervalsThatNobodyNames) {
  GoodputFlags flags;
  flags.checkpoint = "neighbour,pfs";
  flags.mtbf = "device=10000h,rack=10000h";
  const GoodputQuestion question = QuestionOf(flags, Facts(), {}).value();
  ASSERT_EQ(question.spec.tiers.size(), 2u);
  EXPECT_EQ(question.spec.tiers[0].name, "neighbour");
  EXPECT_LT(question.spec.tiers[0].every_steps, question.spec.tiers[1].every_steps);
  EXPECT_EQ(question.safest_tier, "pfs");
  EXPECT_GT(question.best.seconds, 0);
}

TEST(GoodputQuestion, SpareHostsAreThoseOfTheClusterOrEnough) {
  GoodputFlags flags;
  flags.checkpoint = "1h";
  JobFacts facts = Facts();
  const GoodputQuestion enough = QuestionOf(flags, facts, {}).value();
  EXPECT_TRUE(enough.enough_spares);
  EXPECT_GT(enough.spec.recovery.spares, 1);
  facts.spare_hosts = 3;
  EXPECT_EQ(QuestionOf(flags, facts, {})->spec.recovery.spares, 3);
  flags.spares = 0;
  EXPECT_EQ(QuestionOf(flags, facts, {})->spec.recovery.spares, 0);
  // Who wants to see a job shrink gets none that nobody named.
  flags.spares = -1;
  facts.spare_hosts = 0;
  flags.when_short = "shrink";
  EXPECT_EQ(QuestionOf(flags, facts, {})->spec.recovery.spares, 0);
}

TEST(GoodputQuestion, NotesWhatNoCheckpointSurvives) {
  GoodputFlags flags;
  flags.checkpoint = "host:every=1h";
  EXPECT_THAT(QuestionOf(flags, Facts(), {})->notes, Contains(HasSubstr("begins anew")));
  flags.checkpoint = "neighbour:every=1h";
  EXPECT_TRUE(QuestionOf(flags, Facts(), {})->notes.empty());
  flags.mtbf = "rack=1000h";
  EXPECT_THAT(QuestionOf(flags, Facts(), {})->notes, Contains(HasSubstr("begins anew")));
  flags.mtbf = "none";
  EXPECT_TRUE(QuestionOf(flags, Facts(), {})->notes.empty());
  flags.maintenance = "every=24h";
  EXPECT_THAT(QuestionOf(flags, Facts(), {})->notes, Contains(HasSubstr("begins anew")));
}

TEST(GoodputQuestion, SaysWhereANamedIntervalIsRounded) {
  GoodputFlags flags;
  flags.checkpoint = "host:every=40m,pfs:every=1h";
  EXPECT_THAT(QuestionOf(flags, Facts(), {})->notes,
              Contains(HasSubstr("pfs come every 480 steps in place of 360")));
  // One that nobody named is as long as writing takes.
  flags.checkpoint = "host:every=10m,pfs:write=14m";
  const GoodputQuestion question = QuestionOf(flags, Facts(), {}).value();
  EXPECT_GE(question.spec.tiers[1].every_steps, 120);
}

TEST(GoodputQuestion, SaysWhatCannotBe) {
  const auto error = [](auto change) {
    GoodputFlags flags;
    change(flags);
    return std::string(QuestionOf(flags, Facts(), {}).status().message());
  };
  EXPECT_THAT(error([](auto& f) { f.days = 0; }), HasSubstr("--days 0: wanted more than 0"));
  EXPECT_THAT(error([](auto& f) { f.hosts_per_rack = 0; }), HasSubstr("--rack 0"));
  EXPECT_THAT(error([](auto& f) { f.mtbf = "device=0"; }), HasSubstr("--mtbf: device=0"));
  EXPECT_THAT(error([](auto& f) { f.detect = "soon"; }), HasSubstr("--detect: 'soon'"));
  EXPECT_THAT(error([](auto& f) { f.spares = -2; }), HasSubstr("--spares -2"));
  EXPECT_THAT(error([](auto& f) { f.checkpoint = "pfs:every=1s"; }),
              HasSubstr("checkpoints to pfs: one every 1 steps"));
  EXPECT_THAT(error([](auto& f) { f.maintenance = "every=0"; }), HasSubstr("--maintenance"));
}

TEST(GoodputQuestion, AGivenStepIsTakenAsItIs) {
  GoodputFlags flags;
  flags.step_time = "7s";
  flags.devices = 20;
  flags.checkpoint_bytes = "1TB";
  const JobFacts facts = FactsOf(flags).value();
  EXPECT_EQ(facts.shape.hosts, 3);
  EXPECT_EQ(facts.shape.devices(), 20);
  EXPECT_EQ(facts.step_s, 7);
  // Samples are dealt out to however many are left.
  EXPECT_NEAR(StepStretch(facts.shape, simulator::goodput::WhenShort::kKeepBatch, 2), 1.5, 1e-3);
  EXPECT_EQ(facts.checkpoint_bytes, 1e12);
  flags.devices = 0;
  EXPECT_THAT(FactsOf(flags).status().message(), HasSubstr("--devices 0"));
  flags.devices = 8;
  flags.step_time = "0";
  EXPECT_THAT(FactsOf(flags).status().message(), HasSubstr("--step-time 0"));
}

// The step, its weights and its devices are those of `simulate`; dp fills the cluster.
TEST(GoodputQuestion, AModelIsPlayed) {
  GoodputFlags flags;
  flags.model.model = "mlp:layers=8,dim=1024";
  flags.model.batch_size = 64;
  flags.model.optimizer = "adam";
  flags.model.cluster = "dgx-a100:2,nic=1GB/s";
  const JobFacts facts = FactsOf(flags).value();
  EXPECT_EQ(facts.devices, 16);
  EXPECT_EQ(facts.shape.hosts, 2);
  EXPECT_EQ(facts.shape.replicas, 16);
  EXPECT_EQ(facts.spare_hosts, 0);
  // fp32 weights, and two moments of each.
  EXPECT_NEAR(facts.checkpoint_bytes, 3 * 4.0 * 8 * 1024 * 1024, 3 * 4.0 * 8 * 2 * 1024);
  EXPECT_GT(facts.slow_step_s, facts.step_s);
  EXPECT_EQ(facts.card_rate, 8 * 1e9);
}

}  // namespace
}  // namespace goodput_question_test_cc
}  // namespace orrery::tools
