#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lowering/lower.h"
#include "search/details.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "search/unequal/unequal_steps.h"
#include "simulator/report/memory.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"
#include "transforms/stages/dealt_chain_test_util.h"
#include "transforms/stages/dealt_rounds.h"

// Whole plans whose replicas run microbatches in turn and never drain.

namespace orrery::search {
namespace on_and_on_test_cc {
namespace {

using ::testing::HasSubstr;

// Microbatches of 2 samples, on a network that takes next to no time.
constexpr const char* kFast = "uniform:8@10000000Gbps,device=a100-80gb";

// 6 layers.
Setting SixLayers(const std::string& cluster, int64_t batch, bool tied = false) {
  return ModelSetting(
      "gpt",
      absl::StrCat("layers=6,hidden=256,heads=8,seq=128,vocab=512,tied_embeddings=", tied ? 1 : 0),
      batch, cluster);
}

ParallelPlan Parse(const std::string& text) {
  ParallelPlan plan = transforms::ParsePlan(absl::StrCat(text, " --sharding megatron")).value();
  if (!plan.stage_meshes.empty()) plan.pp = std::ssize(plan.stage_meshes.stages);
  EXPECT_TRUE(transforms::CheckPlan(plan).ok()) << transforms::CheckPlan(plan);
  return plan;
}

Run PlayOnce(const Setting& setting, const std::string& text) {
  absl::StatusOr<Run> run = Play(setting, Parse(text));
  EXPECT_TRUE(run.ok()) << text << ": " << run.status();
  return *std::move(run);
}

struct Plan {
  std::vector<int64_t> replicas, layers;

  std::string Meshes() const {
    return absl::StrJoin(replicas, ",", [](std::string* text, int64_t of_stage) {
      absl::StrAppend(text, of_stage, "x1");
    });
  }
  std::string Flags(absl::string_view schedule, int64_t microbatches) const {
    return absl::StrCat("--stage-meshes ", Meshes(), " --shares round-robin --micro-batches ",
                        microbatches, " --schedule ", schedule, Cut());
  }
  std::string Cut() const {
    return replicas.size() == 1 ? ""
                                : absl::StrCat(" --layers-per-stage ", absl::StrJoin(layers, ","));
  }
};

// Nothing is rounded in ⌈Σ R_t / R_s⌉, so that the objective holds.
std::vector<Plan> EvenPlans() {
  return {{{3, 1}, {4, 2}},       {{1, 3}, {1, 5}},       {{2, 1}, {5, 1}}, {{5, 1}, {5, 1}},
          {{2, 2}, {2, 4}},       {{4, 2, 2}, {3, 2, 1}}, {{4}, {6}},       {{2, 1, 1}, {4, 1, 1}},
          {{2, 1, 1}, {2, 2, 2}}, {{1, 1, 2}, {1, 2, 3}}};
}

// What a replica of each stage computes for a microbatch, by the plan with one of each.
std::vector<double> SecondsOf(const Setting& setting, const Plan& plan, int64_t microbatches) {
  const std::string ones =
      absl::StrJoin(std::vector<std::string>(plan.replicas.size(), "1x1"), ",");
  const search::Run run =
      PlayOnce(setting, absl::StrCat("--stage-meshes ", ones, " --micro-batches ", microbatches,
                                     " --schedule pipedream", plan.Cut()));
  std::vector<double> seconds;
  for (const simulator::RankReport& rank : run.report.ranks.rows()) {
    const Duration computes = run.report.step_time - rank.idle - rank.exposed_communication;
    seconds.push_back(computes.seconds() / static_cast<double>(microbatches));
  }
  return seconds;
}

// max T_s / R_s, whether or not batches are whole rounds.
TEST(OnAndOn, AStepTakesWhatPipeDreamsObjectiveSays) {
  for (const int64_t microbatches : {12, 7}) {
    const Setting setting = SixLayers(kFast, 2 * microbatches);
    for (const Plan& plan : EvenPlans()) {
      const std::vector<double> seconds = SecondsOf(setting, plan, microbatches);
      double slowest = 0;
      for (size_t s = 0; s < seconds.size(); ++s) {
        slowest = std::max(slowest, seconds[s] / static_cast<double>(plan.replicas[s]));
      }
      const search::Run run = PlayOnce(setting, plan.Flags("pipedream", microbatches));
      EXPECT_NEAR(run.report.step_time.seconds() / (slowest * static_cast<double>(microbatches)), 1,
                  2e-4)
          << plan.Meshes() << " of " << microbatches;
    }
  }
}

// What the steps of a run last, summed over their kernels, and its updates.
transforms::DealtChain ChainOf(const search::Run& run, const std::vector<int64_t>& replicas) {
  const std::vector<int64_t> none(replicas.size(), 0);
  transforms::DealtChain chain{
      .replicas = replicas, .forward = none, .backward = none, .all_reduce = none, .update = none};
  for (int32_t t = 0; t < run.program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const simulator::TaskLabel label = run.program.label(run.program.label_of(task));
    if (label.kind != simulator::TaskKind::kCompute) continue;
    auto& of_phase = label.phase == simulator::Phase::kForward    ? chain.forward
                     : label.phase == simulator::Phase::kBackward ? chain.backward
                                                                  : chain.update;
    of_phase[static_cast<size_t>(label.stage)] += run.program.duration(task).picoseconds();
  }
  const auto microbatches = std::ssize(run.steps) / (2 * std::ssize(replicas));
  for (auto* phase : {&chain.forward, &chain.backward, &chain.update}) {
    for (int64_t& sum : *phase) sum /= microbatches;
  }
  return chain;
}

// Whole runs, from fill to drain, are those of a recurrence of a few lines, whatever the replicas.
TEST(OnAndOn, RunsAreThoseOfStepsPlayedByHand) {
  std::mt19937 random(23);
  const Setting setting = SixLayers(kFast, 24);
  for (int i = 0; i < 40; ++i) {
    Plan plan;
    const auto draw = [&](int64_t most) { return 1 + static_cast<int64_t>(random()) % most; };
    int64_t devices = 8, layers = 6;
    const int64_t stages = draw(4);
    for (int64_t s = 0; s < stages; ++s) {
      const int64_t left = stages - 1 - s;
      plan.replicas.push_back(draw(std::min<int64_t>(4, devices - left)));
      devices -= plan.replicas.back();
      plan.layers.push_back(left == 0 ? layers : draw(layers - left));
      layers -= plan.layers.back();
    }
    if (plan.replicas == std::vector<int64_t>(plan.replicas.size(), 1)) continue;  // not dealt
    const search::Run run = PlayOnce(setting, plan.Flags("pipedream", 12));
    const transforms::DealtChain chain = ChainOf(run, plan.replicas);
    const int64_t microbatches = std::ssize(run.steps) / (2 * stages);
    const int64_t by_hand = transforms::DealtChainPlayer(chain, microbatches).Makespan();
    EXPECT_NEAR(
        static_cast<double>(run.trace.makespan.picoseconds()) / static_cast<double>(by_hand), 1,
        1e-5)
        << plan.Flags("pipedream", 12);
  }
}

// The flush waits for the pipeline to fill and to drain.
TEST(OnAndOn, IsNoSlowerThanWithAFlush) {
  const Setting setting = SixLayers(kFast, 192);
  for (const Plan& plan : EvenPlans()) {
    const search::Run flushed = PlayOnce(setting, plan.Flags("1f1b", 12));
    const search::Run steady = PlayOnce(setting, plan.Flags("pipedream", 12));
    // Updates are after each round, not after each batch.
    EXPECT_LE(steady.report.step_time.seconds(), 1.01 * flushed.report.step_time.seconds())
        << plan.Meshes();
    if (plan.replicas.size() > 1) {
      EXPECT_LT(steady.report.step_time, flushed.report.step_time) << plan.Meshes();
    }
    EXPECT_EQ(steady.report.bytes_sent, flushed.report.bytes_sent) << plan.Meshes();
  }
}

// Gradients of a round are added up beside the next one: what is more of sums and compute counts.
TEST(OnAndOn, SumsOfGradientsAreBesideTheNextRound) {
  const Plan plan{{4}, {6}};
  const Setting fast = SixLayers(kFast, 8);
  const double computes = SecondsOf(fast, plan, 4)[0];
  for (const char* gbps : {"200", "40", "10", "2"}) {
    const Setting setting = SixLayers(absl::StrCat("uniform:8@", gbps, "Gbps,device=a100-80gb"), 8);
    const search::Run run = PlayOnce(setting, plan.Flags("pipedream", 4));
    ASSERT_EQ(run.report.communication.size(), 1u);
    // Of 4 microbatches there is one sum.
    const simulator::RankReport& rank = run.report.ranks.rows().front();
    const double expected = std::max(computes, rank.communication.seconds());
    EXPECT_NEAR(run.report.step_time.seconds() / expected, 1, 1e-3) << gbps;
  }
}

int64_t ParameterBytes(const Run& run, int32_t rank) {
  const auto kind = static_cast<size_t>(simulator::MemoryKind::kParameters);
  return run.report.ranks[simulator::RankClassId(rank)].memory.by_kind[kind].count();
}

TEST(OnAndOn, RanksKeepAVersionForEachMicrobatchUnderWay) {
  const Setting setting = SixLayers(kFast, 48);
  for (const Plan& plan : EvenPlans()) {
    const search::Run steady = PlayOnce(setting, plan.Flags("pipedream", 12));
    const search::Run flushed = PlayOnce(setting, plan.Flags("1f1b", 12));
    const std::vector<int64_t> under_way = transforms::UnderWay(plan.replicas);
    const auto versions =
        DetailsOf(setting, Parse(plan.Flags("pipedream", 12)), steady).value().versions;
    ASSERT_EQ(versions.size(), plan.replicas.size());
    int32_t rank = 0;
    for (size_t s = 0; s < plan.replicas.size(); ++s) {
      EXPECT_EQ(versions[s].weight_versions, under_way[s]) << plan.Meshes() << " stage " << s;
      EXPECT_EQ(versions[s].staleness, under_way[s] - (plan.replicas[s] > 1 ? 0 : 1));
      for (int64_t r = 0; r < plan.replicas[s]; ++r, ++rank) {
        EXPECT_EQ(ParameterBytes(steady, rank), under_way[s] * ParameterBytes(flushed, rank));
      }
    }
  }
}

// Each gradient that is made is added up and let go, each activation goes back.
TEST(OnAndOn, NothingIsLeftOfARun) {
  const Setting setting = SixLayers("uniform:8@200Gbps", 24);
  for (const Plan& plan : EvenPlans()) {
    const search::Run run = PlayOnce(setting, plan.Flags("pipedream", 12));
    const auto timelines = simulator::MemoryTimeline(run.program, run.trace);
    for (int32_t r = 0; r < run.program.rank_count(); ++r) {
      const auto& timeline = timelines[simulator::RankClassId(r)];
      for (const simulator::MemoryUse& use : timeline) {
        for (const Bytes bytes : use.by_kind) ASSERT_GE(bytes, Bytes(0)) << plan.Meshes();
      }
      EXPECT_EQ(timeline.back().total, timeline.front().total) << plan.Meshes() << " rank " << r;
    }
  }
}

// PipeDream-2BW: one sum and one update a batch, or of as many microbatches as are under way.
TEST(OnAndOn, UpdatesMayBeOfBatches) {
  const Setting setting = SixLayers(kFast, 48);
  for (const Plan& plan : EvenPlans()) {
    SCOPED_TRACE(plan.Meshes());
    const std::string flags = plan.Flags("pipedream-2bw", 12);
    const search::Run batches = PlayOnce(setting, flags);
    const search::Run flushed = PlayOnce(setting, plan.Flags("1f1b", 12));
    const int64_t every = transforms::DealtUpdateEvery(**transforms::FindSchedule("pipedream-2bw"),
                                                       plan.replicas, 12);
    EXPECT_EQ(batches.report.bytes_reduced.count() * every,
              flushed.report.bytes_reduced.count() * 12);
    EXPECT_EQ(batches.report.bytes_sent, flushed.report.bytes_sent);
    EXPECT_LE(batches.report.step_time.seconds(), 1.0001 * flushed.report.step_time.seconds());
    // The slowest stage hardly ever waits: where others update.
    Duration idle = batches.report.step_time;
    for (const simulator::RankReport& rank : batches.report.ranks.rows()) {
      idle = std::min(idle, rank.idle + rank.exposed_communication);
    }
    EXPECT_LT(idle.seconds(), 0.02 * batches.report.step_time.seconds());
    const size_t stages = plan.replicas.size();
    const auto versions = DetailsOf(setting, Parse(flags), batches).value().versions;
    for (const simulator::StageVersions& row : versions) {
      EXPECT_EQ(row.weight_versions, stages == 1 ? 1 : 2);
      EXPECT_EQ(row.staleness, 1);
    }
    EXPECT_EQ(ParameterBytes(batches, 0), (stages == 1 ? 1 : 2) * ParameterBytes(flushed, 0));
    const auto timelines = simulator::MemoryTimeline(batches.program, batches.trace);
    for (int32_t r = 0; r < batches.program.rank_count(); ++r) {
      const auto& timeline = timelines[simulator::RankClassId(r)];
      EXPECT_EQ(timeline.back().total, timeline.front().total) << "rank " << r;
    }
  }
  // Of 2 microbatches a batch, 3 are under way: an update is of 4, of two rounds.
  const Setting small = SixLayers(kFast, 4);
  const Plan plan{{2, 1}, {4, 2}};
  const search::Run run = PlayOnce(small, plan.Flags("pipedream-2bw", 2));
  const search::Run each = PlayOnce(small, plan.Flags("pipedream", 2));
  EXPECT_EQ(2 * run.report.bytes_reduced.count(), each.report.bytes_reduced.count());
}

// Stages that deal alike, each replica a pipeline of its own but for sums of gradients: where these
// take no time, the ordinary pipeline of one, r times as fast.
TEST(OnAndOn, LikeReplicasAreAsManyPipelines) {
  const Setting setting = SixLayers(kFast, 48);
  const search::Run one = PlayOnce(setting,
                                   "--pp 2 --micro-batches 24 --schedule pipedream "
                                   "--layers-per-stage 2,4");
  const search::Run two = PlayOnce(setting, Plan{{2, 2}, {2, 4}}.Flags("pipedream", 24));
  EXPECT_NEAR(one.report.step_time.seconds() / two.report.step_time.seconds(), 2, 1e-3);
  const search::Run of_dp = PlayOnce(setting,
                                     "--dp 2 --pp 2 --micro-batches 24 --schedule pipedream "
                                     "--shares round-robin --layers-per-stage 2,4");
  EXPECT_EQ(of_dp.report.step_time, two.report.step_time);
}

// Ranks within a replica share each microbatch, and meet in it.
TEST(OnAndOn, ReplicasMayHaveSeveralRanks) {
  const Setting setting = SixLayers("uniform:8@20000Gbps,device=a100-80gb", 48);
  const std::string rest = " --micro-batches 12 --layers-per-stage 4,2 --shares round-robin";
  const search::Run flushed =
      PlayOnce(setting, absl::StrCat("--stage-meshes 3x2,1x2 --schedule 1f1b", rest));
  const search::Run steady =
      PlayOnce(setting, absl::StrCat("--stage-meshes 3x2,1x2 --schedule pipedream", rest));
  EXPECT_LT(steady.report.step_time, flushed.report.step_time);
  EXPECT_EQ(steady.report.rank_count, 8);
  EXPECT_EQ(steady.report.bytes_sent, flushed.report.bytes_sent);
}

// Layers that are left open are about as fast as any cut: the slowest stage counts, and of its
// replicas the slowest.
TEST(OnAndOn, LayersLeftOpenAreAboutAsFastAsAnyCut) {
  Setting setting = SixLayers(kFast, 24);
  cluster::Device slow = setting.cluster.device;
  slow.name = "slow";
  for (FlopRate* rate : {&slow.fp32, &slow.fp16, &slow.tf32}) {
    *rate = FlopRate(rate->flops_per_second() / 2);
  }
  slow.memory_bandwidth = Bandwidth(slow.memory_bandwidth.bytes_per_second() / 2);
  const cluster::Cluster even = setting.cluster;
  cluster::Cluster mixed{.name = "mixed", .device = even.device, .topology = even.topology};
  mixed.AddDevices(even.device, 4);
  mixed.AddDevices(slow, 4);
  // On which sums take as long as compute, beside it.
  const cluster::Cluster far =
      cluster::ParseCluster("nodes:8x1@300GB/s,nic=10Gbps,device=a100-80gb").value();
  for (const cluster::Cluster& cluster : {even, mixed, far}) {
    setting.cluster = cluster;
    for (const char* meshes : {"3x1,1x1", "3x1,5x1", "1x1,4x1", "2x1,6x1"}) {
      const std::string plan = absl::StrCat("--stage-meshes ", meshes, " --micro-batches 12",
                                            " --shares round-robin --schedule pipedream");
      const Duration open = PlayOnce(setting, plan).report.step_time;
      for (int64_t first = 1; first < 6; ++first) {
        const search::Run given =
            PlayOnce(setting, absl::StrCat(plan, " --layers-per-stage ", first, ",", 6 - first));
        EXPECT_LE(open.seconds(), 1.001 * given.report.step_time.seconds())
            << cluster.name << " " << meshes << " " << first;
      }
    }
  }
}

// A round that nobody ends has no sums.
TEST(OnAndOn, RoundsAreWhole) {
  const Setting setting = SixLayers(kFast, 14);
  const search::Run run = PlayOnce(setting, Plan{{3, 1}, {4, 2}}.Flags("pipedream", 7));
  EXPECT_EQ(run.pipelined.microbatches, 7);
  EXPECT_EQ(std::ssize(run.steps) % (2 * 2 * 3), 0);
  lowering::LoweringInput input{.step = run.pipelined,
                                .schedule = **transforms::FindSchedule("pipedream"),
                                .cluster = setting.cluster,
                                .cost_model = *setting.cost_model};
  EXPECT_THAT(std::string(lowering::Lower(input).status().message()),
              HasSubstr("7 microbatches for 3 replicas of stage 0"));
  input.rounds = 3;
  EXPECT_TRUE(lowering::Lower(input).ok());
}

// On the compute stream nothing is hidden, and nobody waits in a circle.
TEST(OnAndOn, CommunicationMayBlock) {
  const Setting setting = SixLayers("uniform:8@200Gbps,device=a100-80gb", 48);
  for (const Plan& plan : EvenPlans()) {
    const search::Run beside = PlayOnce(setting, plan.Flags("pipedream", 12));
    const search::Run blocking = PlayOnce(setting, plan.Flags("pipedream", 12) + " --blocking");
    EXPECT_GE(blocking.report.step_time, beside.report.step_time) << plan.Meshes();
  }
}

std::string TroubleOf(const Setting& setting, const std::string& text) {
  const absl::Status status = Play(setting, Parse(text)).status();
  const auto infeasible = AsInfeasible(status);
  return infeasible.has_value() ? infeasible->detail : std::string(status.message());
}

TEST(OnAndOn, SaysWhatIsWanted) {
  const Setting setting = SixLayers("uniform:8@200Gbps", 24);
  const std::string dealt = "--dp 2 --pp 2 --micro-batches 4 --shares ";
  EXPECT_THAT(TroubleOf(setting, dealt + "round-robin --schedule ampnet"),
              HasSubstr("wanted pipedream, pipedream-2bw, or a synchronous one"));
  for (const char* shares : {"speed", "3,1"}) {
    EXPECT_THAT(TroubleOf(setting, absl::StrCat(dealt, shares, " --schedule pipedream")),
                HasSubstr("wanted round-robin, or a synchronous schedule"))
        << shares;
  }
  EXPECT_THAT(TroubleOf(setting, dealt + "round-robin --schedule pipedream --zero 1"),
              HasSubstr("wanted a synchronous one, such as 1f1b"));
  EXPECT_THAT(TroubleOf(SixLayers("uniform:8@200Gbps", 24, /*tied=*/true),
                        dealt + "round-robin --schedule pipedream"),
              HasSubstr("embeddings that are not tied"));
}

}  // namespace
}  // namespace on_and_on_test_cc
}  // namespace orrery::search
