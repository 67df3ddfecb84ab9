#include "lowering/network/pricing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "cluster/switched_nodes_test_util.h"
#include "simulator/program/time_alone.h"
#include "transforms/plan/mesh.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {
namespace pricing_test_cc {
namespace {

// As --cluster spells it, or the text of a file.
cluster::Cluster ParseCluster(absl::string_view cluster) {
  if (!absl::StrContains(cluster, '{')) return cluster::ParseCluster(cluster).value();
  return ParseClusterText(cluster, cluster::ClusterFormat::kText, "test.textproto").value();
}

using Devices = std::vector<int32_t>;  // of the ranks; empty: rank r is on device r

// A mesh on a cluster, priced.
// So many parameters: it is what tests vary.
class Fixture {
 public:
  Fixture(const transforms::ParallelPlan& plan, absl::string_view cluster,
          absl::string_view cost_model = "roofline", const PricingOptions& options = {})
      : Fixture(plan, Devices(), cluster, cost_model, options) {}
  Fixture(const transforms::ParallelPlan& plan, Devices devices, absl::string_view cluster,
          absl::string_view cost_model = "roofline", const PricingOptions& options = {})
      : step_(Step(plan, std::move(devices))),
        geometry_(step_),
        cluster_(ParseCluster(cluster)),
        cost_model_(cost_models::MakeCostModel(cost_model).value()),
        pricing(geometry_, *cost_model_, cluster_.topology, options) {}

  CollectiveRequest AllReduce(absl::string_view axis, int64_t bytes) const {
    CollectiveRequest task;
    task.bytes = Bytes(bytes);
    task.stream = axis == "hp" ? simulator::StreamKind::kHorizontal : simulator::StreamKind::kData;
    task.group = ir::AxisList(*step_.mesh.Find(axis));
    return task;
  }
  Duration TimeOf(const CollectiveRequest& task, size_t group) const {
    return Alone(pricing.Collective(0, task, group));
  }
  Duration TimeOf(const SendRequest& send, size_t position, int32_t stage = 0) const {
    return Alone(pricing.Send(stage, send, position));
  }
  static SendRequest Send(int32_t to, int64_t bytes) {
    SendRequest send;
    send.to = to;
    send.bytes = Bytes(bytes);
    return send;
  }

 private:
  Duration Alone(const TaskTime& time) const {
    if (!time.flow.valid()) return time.duration;
    return simulator::TimeAlone(program.flow(time.flow), program);
  }
  static transforms::PipelinedStep Step(const transforms::ParallelPlan& plan, Devices devices) {
    transforms::PipelinedStep step;
    step.mesh = transforms::MakeMesh(plan).value();
    step.devices = std::move(devices);
    step.stages.resize(static_cast<size_t>(plan.pp));
    return step;
  }

  transforms::PipelinedStep step_;
  Geometry geometry_;
  cluster::Cluster cluster_;
  std::unique_ptr<const cost_models::CostModel> cost_model_;

 public:
  simulator::Program program;
  Pricing pricing;
};

constexpr int64_t kBytes = 25'000'000;  // 1 ms at 200 Gb/s

TEST(Pricing, OfAUniformClusterIsTheClosedForm) {
  Fixture f({.dp = 4, .hp = 1, .pp = 2}, "uniform:8@200Gbps", "distir");
  const CollectiveRequest all_reduce = f.AllReduce("dp", kBytes);
  const SendRequest send = f.Send(1, kBytes);
  f.pricing.Expect(0, all_reduce);
  f.pricing.Expect(0, send);
  EXPECT_TRUE(f.pricing.AllGroupsAlike());
  f.pricing.Prepare(/*fold=*/false, f.program);
  EXPECT_EQ(f.pricing.Collective(0, all_reduce, 0).duration,
            Duration(1'500'000'000));  // 2 * 3/4 ms
  EXPECT_EQ(f.pricing.Send(0, send, 3).duration, Duration(1'000'000'000));
  EXPECT_EQ(f.program.flow_count(), 0);
}

// Nodes of eight: with hp=6, ranks 0-5 are on one node and 6-11 on two.
TEST(Pricing, TellsGroupsThatStraddleNodes) {
  Fixture f({.dp = 2, .hp = 6, .pp = 1}, "dgx-a100:2");
  const CollectiveRequest all_reduce = f.AllReduce("hp", kBytes);
  f.pricing.Expect(0, all_reduce);
  EXPECT_FALSE(f.pricing.AllGroupsAlike());
  f.pricing.Prepare(/*fold=*/false, f.program);
  EXPECT_LT(f.TimeOf(all_reduce, 0), f.TimeOf(all_reduce, 1));
}

// Folded all the same, the slowest sets the pace; whether links are shared or not.
TEST(Pricing, OfUnlikeGroupsTogetherIsThatOfTheSlowest) {
  for (const char* cost_model : {"roofline", "distir"}) {
    SCOPED_TRACE(cost_model);
    const transforms::ParallelPlan plan = {.dp = 6, .hp = 1, .pp = 2};
    Fixture folded(plan, "dgx-a100:2", cost_model), each(plan, "dgx-a100:2", cost_model);
    const SendRequest send = Fixture::Send(1, kBytes);
    folded.pricing.Expect(0, send);
    each.pricing.Expect(0, send);
    folded.pricing.Prepare(/*fold=*/true, folded.program);
    each.pricing.Prepare(/*fold=*/false, each.program);
    EXPECT_LT(each.TimeOf(send, 0), each.TimeOf(send, 2));
    EXPECT_EQ(folded.TimeOf(send, 0), each.TimeOf(send, 2));
  }
}

TEST(Pricing, TellsSendsThatLeaveTheNode) {
  Fixture f({.dp = 6, .hp = 1, .pp = 2}, "dgx-a100:2");
  const SendRequest send = f.Send(1, kBytes);
  f.pricing.Expect(0, send);
  EXPECT_FALSE(f.pricing.AllGroupsAlike());
  f.pricing.Prepare(/*fold=*/false, f.program);
  EXPECT_LT(f.TimeOf(send, 0), f.TimeOf(send, 2));  // 0 to 6; 2 to 8
}

// The level is that of the group that is held up most, whether it is the first one or not.
TEST(Pricing, LevelsAreThoseOfTheBusiestGroup) {
  const auto level = [](const transforms::ParallelPlan& plan, const char* cluster, bool sends,
                        bool fold, const Devices& devices = {}) {
    Fixture f(plan, devices, cluster);
    const SendRequest send = Fixture::Send(1, kBytes);
    const CollectiveRequest all_reduce = f.AllReduce(plan.dp > 1 ? "dp" : "hp", kBytes);
    sends ? f.pricing.Expect(0, send) : f.pricing.Expect(0, all_reduce);
    f.pricing.Prepare(fold, f.program);
    return std::string(sends ? f.pricing.LevelOf(0, send) : f.pricing.LevelOf(0, all_reduce));
  };
  for (const bool fold : {true, false}) {
    SCOPED_TRACE(fold ? "folded" : "unfolded");
    EXPECT_EQ(level({.dp = 6, .pp = 2}, "dgx-a100:2", true, fold), "nic");  // 0 to 6, but 2 to 8
    EXPECT_EQ(level({.dp = 2, .pp = 2}, "dgx-a100:2", true, fold, {0, 1, 9, 2}), "nic");
  }
  for (const char* cluster :
       {"dgx-a100:2", "dragonfly:2x4x3@25GB/s", "rails:4x4@450GB/s,nic=50GB/s,oversubscription=2",
        "nodes:3x4@450GB/s,nic=50GB/s", "fat-tree:16@50GB/s,radix=8", "torus:4x4@50GB/s"}) {
    SCOPED_TRACE(cluster);
    for (int32_t dp = 1; dp <= 6; ++dp) {
      const transforms::ParallelPlan pipeline = {.dp = dp, .pp = 2};
      EXPECT_EQ(level(pipeline, cluster, true, true), level(pipeline, cluster, true, false)) << dp;
      const transforms::ParallelPlan data = {.dp = dp, .hp = 2};
      EXPECT_EQ(level(data, cluster, false, true), level(data, cluster, false, false)) << dp;
    }
  }
}

// On a ring of one direction the next device is one hop away, and the one before it all others.
TEST(Pricing, SendsGoFromTheirStageToTheOther) {
  Fixture f({.pp = 2}, Devices{0, 1}, "ring:4@50GB/s,latency=1us,one-way");
  const SendRequest next = Fixture::Send(1, kBytes), back = Fixture::Send(0, kBytes);
  f.pricing.Expect(0, next);
  f.pricing.Expect(1, back);
  f.pricing.Prepare(/*fold=*/true, f.program);
  EXPECT_EQ(f.TimeOf(next, 0), Duration(501'000'000));
  EXPECT_EQ(f.TimeOf(back, 0, 1), Duration(503'000'000));
}

// Links of equal load that tell nothing apart; but some groups have more of them on the way.
TEST(Pricing, TellsGroupsOfUnlikeLatencies) {
  constexpr absl::string_view kRing = "ring:8@50GB/s,latency=1us";
  const auto alike = [&](const Devices& devices, bool sends) {
    Fixture f({.dp = 2, .hp = sends ? 1 : 2, .pp = sends ? 2 : 1}, devices, kRing);
    sends ? f.pricing.Expect(0, Fixture::Send(1, kBytes))
          : f.pricing.Expect(0, f.AllReduce("hp", kBytes));
    return f.pricing.AllGroupsAlike();
  };
  EXPECT_TRUE(alike({0, 1, 2, 3}, false));
  EXPECT_FALSE(alike({0, 1, 2, 4}, false));
  EXPECT_TRUE(alike({0, 2, 1, 3}, true));
  EXPECT_FALSE(alike({0, 2, 1, 4}, true));
}

// Only one of two switches reduces: what a library does behind it, it cannot do behind the other.
TEST(Pricing, TellsGroupsWhoseSwitchReduces) {
  const std::string cluster = cluster::SwitchedNodes({true, false});
  const transforms::ParallelPlan plan = {.dp = 2, .hp = 4};
  Fixture folded(plan, cluster), each(plan, cluster);
  const CollectiveRequest within = folded.AllReduce("hp", kBytes);
  for (Fixture* f : {&folded, &each}) {
    f->pricing.Expect(0, within);
    EXPECT_FALSE(f->pricing.AllGroupsAlike());
    f->pricing.Prepare(/*fold=*/f == &folded, f->program);
  }
  EXPECT_LT(each.TimeOf(within, 0), each.TimeOf(within, 1));
  EXPECT_EQ(folded.TimeOf(within, 0), each.TimeOf(within, 1));
}

// hp=8 fills a node: all its groups are inside one, and all groups along dp cross nodes.
TEST(Pricing, FindsGroupsThatFillNodesAlike) {
  Fixture f({.dp = 2, .hp = 8, .pp = 1}, "dgx-a100:2");
  const CollectiveRequest inside = f.AllReduce("hp", kBytes), across = f.AllReduce("dp", kBytes);
  f.pricing.Expect(0, inside);
  f.pricing.Expect(0, across);
  EXPECT_TRUE(f.pricing.AllGroupsAlike());
  f.pricing.Prepare(/*fold=*/false, f.program);
  EXPECT_LT(f.TimeOf(inside, 1), f.TimeOf(across, 7));
  EXPECT_EQ(f.pricing.LevelOf(0, inside), "port");
  EXPECT_EQ(f.pricing.LevelOf(0, across), "nic");
}

TEST(Pricing, AGroupOfOnePaysNothing) {
  Fixture f({.dp = 1, .hp = 2, .pp = 1}, "uniform:2@200Gbps");
  const CollectiveRequest alone = f.AllReduce("dp", kBytes);
  f.pricing.Expect(0, alone);
  f.pricing.Prepare(/*fold=*/true, f.program);
  EXPECT_EQ(f.TimeOf(alone, 0), Duration(0));
  EXPECT_EQ(f.pricing.LevelOf(0, alone), "");
}

TEST(Pricing, AGroupOfOneHidesNoOther) {
  for (const auto& [one, two] : {std::pair("dp", "hp"), std::pair("hp", "dp")}) {
    Fixture f({.dp = *two == 'd' ? 2 : 1, .hp = *two == 'h' ? 2 : 1, .pp = 1}, "ring:2@25GB/s");
    for (const char* axis : {one, two}) f.pricing.Expect(0, f.AllReduce(axis, kBytes));
    f.pricing.Prepare(/*fold=*/true, f.program);
    EXPECT_EQ(f.TimeOf(f.AllReduce(two, kBytes), 0), Duration(1'000'000'000)) << two;  // 2 * 1/2 ms
    EXPECT_EQ(f.pricing.LevelOf(0, f.AllReduce(two, kBytes)), "ring") << two;
  }
}

// Two devices share each NIC of a V100 node: groups across two nodes halve it among them, which
// each alone does not see.
TEST(Pricing, GroupsThatShareALinkSlowEachOther) {
  const char* cluster = "nodes:2x8@300GB/s,nic=25GB/s,nics=4";
  Fixture folded({.dp = 2, .hp = 8, .pp = 1}, cluster), each({.dp = 2, .hp = 8, .pp = 1}, cluster);
  const CollectiveRequest across = folded.AllReduce("dp", 100 * kBytes);
  folded.pricing.Expect(0, across);
  each.pricing.Expect(0, across);
  EXPECT_TRUE(folded.pricing.AllGroupsAlike());
  folded.pricing.Prepare(/*fold=*/true, folded.program);
  each.pricing.Prepare(/*fold=*/false, each.program);
  EXPECT_NEAR(folded.TimeOf(across, 0).seconds(), 2 * each.TimeOf(across, 0).seconds(), 1e-4);
  // Unfolded, the network finds out: groups are flows on shared NICs.
  EXPECT_TRUE(each.pricing.Collective(0, across, 0).flow.valid());
  EXPECT_GT(each.program.resource_count(), 0);
  // Folded, one flow is left and nothing to share.
  EXPECT_FALSE(folded.pricing.Collective(0, across, 0).flow.valid());
  EXPECT_EQ(folded.program.resource_count(), 0);
}

// On a ring the dp groups {0, 2} and {1, 3} share the link from 1 to 2, and each meets an hp group
// on another one. Folded, they are one flow that must get the share of one group there, not half of
// it.
TEST(Pricing, GroupsThatShareALinkGetTheShareOfOne) {
  constexpr absl::string_view kCluster = "ring:6@50GB/s,latency=1us";
  const transforms::ParallelPlan plan{.dp = 2, .hp = 2, .pp = 1};
  Fixture folded(plan, kCluster), each(plan, kCluster);
  const CollectiveRequest across = folded.AllReduce("dp", kBytes),
                          within = folded.AllReduce("hp", kBytes);
  for (Fixture* f : {&folded, &each}) {
    f->pricing.Expect(0, across);
    f->pricing.Expect(0, within);
    EXPECT_TRUE(f->pricing.AllGroupsAlike());
    f->pricing.Prepare(/*fold=*/f == &folded, f->program);
  }
  const auto largest_load = [&](const Fixture& f) {
    double largest = 0;
    const simulator::FlowId flow = f.pricing.Collective(0, across, 0).flow;
    for (const simulator::Load& load : f.program.flow(flow).loads) {
      largest = std::max(largest, load.load);
    }
    return largest;
  };
  EXPECT_DOUBLE_EQ(largest_load(each), 1);
  EXPECT_DOUBLE_EQ(largest_load(folded), 1);  // where it meets hp; nothing else is on the other one
  EXPECT_NEAR(folded.TimeOf(across, 0).seconds(), 2 * each.TimeOf(across, 0).seconds(), 1e-5);
}

// Nodes of four, of which three are used: two groups on one NIC, one on another by itself.
TEST(Pricing, TellsGroupsThatMeetOthersFromThoseThatDoNot) {
  Fixture f({.dp = 2, .hp = 3, .pp = 1}, Devices{0, 1, 2, 4, 5, 6},
            "nodes:2x4@300GB/s,nic=25GB/s,nics=2");
  const CollectiveRequest across = f.AllReduce("dp", kBytes);
  f.pricing.Expect(0, across);
  EXPECT_FALSE(f.pricing.AllGroupsAlike());
}

// What runs on one stream never meets; what runs on two and over the same links does.
TEST(Pricing, FlowsAreForWhatCanMeet) {
  for (const bool blocking : {false, true}) {
    Fixture f({.dp = 4, .hp = 2, .pp = 1}, "dgx-a100:1", "roofline", {.blocking = blocking});
    const CollectiveRequest hp = f.AllReduce("hp", kBytes), dp = f.AllReduce("dp", kBytes);
    f.pricing.Expect(0, hp);
    f.pricing.Expect(0, dp);
    f.pricing.Prepare(/*fold=*/true, f.program);
    EXPECT_EQ(f.pricing.Collective(0, hp, 0).flow.valid(), !blocking);
    EXPECT_EQ(f.pricing.Collective(0, dp, 0).flow.valid(), !blocking);
  }
}

// By hand, where it can serve the group; the fastest elsewhere.
TEST(Pricing, TakesTheAlgorithmAskedFor) {
  const auto time = [](const char* algorithms, const char* axis) {
    Fixture f({.dp = 2, .hp = 8, .pp = 1}, "dgx-a100:2", "roofline",
              {.algorithms = cost_models::CollectiveChoice::Parse(algorithms).value()});
    const CollectiveRequest task = f.AllReduce(axis, kBytes);
    f.pricing.Expect(0, task);
    f.pricing.Prepare(/*fold=*/true, f.program);
    return f.TimeOf(task, 0);
  };
  EXPECT_GT(time("all-reduce=minimum-spanning-tree", "hp"), time("auto", "hp"));
  EXPECT_EQ(time("all-gather=direct", "hp"), time("auto", "hp"));
  EXPECT_EQ(time("in-network", "hp"), time("auto", "hp"));  // no switch of an A100 reduces
}

// Unfolded, the sends of two ranks of a stage run on streams of their own, and share a NIC.
TEST(Pricing, SendsOfOneStageCanMeet) {
  const auto has_flows = [](const char* cluster) {
    Fixture f({.dp = 4, .hp = 1, .pp = 2}, cluster);
    const SendRequest send = Fixture::Send(1, kBytes);
    f.pricing.Expect(0, send);
    f.pricing.Prepare(/*fold=*/false, f.program);
    EXPECT_EQ(f.pricing.Send(0, send, 0).flow.valid(), f.pricing.Send(0, send, 3).flow.valid());
    return f.pricing.Send(0, send, 0).flow.valid();
  };
  EXPECT_TRUE(has_flows("nodes:2x4@300GB/s,nic=25GB/s,nics=2"));
  EXPECT_FALSE(has_flows("nodes:2x4@300GB/s,nic=25GB/s"));
}

// Collectives that are alike but for their size have the links of their own algorithm and rounds,
// whatever else is priced.
TEST(Pricing, SizesDoNotMix) {
  constexpr int64_t kSizes[] = {1000, 30'000, 1'000'000, 30'000'000, 1'000'000'000};
  for (const char* cluster : {"dgx-a100:2", "dgx-h100:2", "fat-tree:16@50GB/s,radix=8",
                              "nodes:4x4@300GB/s,nic=25GB/s,nics=2", "torus:4x4@50GB/s"}) {
    SCOPED_TRACE(cluster);
    const PricingOptions every = {.every_link = true};
    Fixture all({.dp = 16, .hp = 1, .pp = 1}, cluster, "roofline", every);
    for (const int64_t size : kSizes) all.pricing.Expect(0, all.AllReduce("dp", size));
    all.pricing.Prepare(/*fold=*/true, all.program);
    for (const int64_t size : kSizes) {
      Fixture one({.dp = 16, .hp = 1, .pp = 1}, cluster, "roofline", every);
      const CollectiveRequest task = one.AllReduce("dp", size);
      one.pricing.Expect(0, task);
      one.pricing.Prepare(/*fold=*/true, one.program);
      EXPECT_EQ(all.TimeOf(task, 0), one.TimeOf(task, 0)) << size;
      const auto bytes = [&](const Fixture& f) {
        std::map<std::string, double> sums;  // by level
        const simulator::Flow flow = f.program.flow(f.pricing.Collective(0, task, 0).flow);
        for (const simulator::Load& load : flow.loads) {
          double& most = sums[f.program.resource(load.resource).kind];
          most = std::max(most, load.load * static_cast<double>(flow.size.count()));
        }
        return sums;
      };
      EXPECT_EQ(bytes(all), bytes(one)) << size;
    }
  }
}

// With every link the times alone are the same.
TEST(Pricing, EveryLinkChangesNoTime) {
  for (const char* cluster : {"dgx-a100:2", "fat-tree:16@50GB/s,radix=8", "torus:4x4@50GB/s"}) {
    Fixture plain({.dp = 4, .hp = 2, .pp = 2}, cluster),
        links({.dp = 4, .hp = 2, .pp = 2}, cluster, "roofline", {.every_link = true});
    const auto tasks = {plain.AllReduce("hp", kBytes), plain.AllReduce("dp", 3 * kBytes)};
    for (Fixture* f : {&plain, &links}) {
      for (const CollectiveRequest& task : tasks) f->pricing.Expect(0, task);
      f->pricing.Prepare(/*fold=*/true, f->program);
    }
    for (const CollectiveRequest& task : tasks) {
      EXPECT_TRUE(links.pricing.Collective(0, task, 0).flow.valid());
      EXPECT_NEAR(plain.TimeOf(task, 0).seconds(), links.TimeOf(task, 0).seconds(), 2e-12);
    }
    EXPECT_GT(links.program.resource_count(), 0);
    EXPECT_TRUE(links.program.Verify().ok()) << links.program.Verify();
  }
}

}  // namespace
}  // namespace pricing_test_cc
}  // namespace orrery::lowering
