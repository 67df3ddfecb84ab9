#include "lowering/pricing.h"

#include <gtest/gtest.h>

#include "cluster/cluster.h"
#include "transforms/parallel.h"

namespace orrery::lowering {
namespace {

// A mesh on a cluster, priced.
class Fixture {
 public:
  Fixture(const transforms::ParallelDegrees& degrees, absl::string_view cluster,
          absl::string_view cost_model = "roofline")
      : step_(Step(degrees)),
        geometry_(step_),
        cluster_(cluster::ParseCluster(cluster).value()),
        cost_model_(cost_models::MakeCostModel(cost_model).value()),
        pricing(geometry_, *cost_model_, cluster_.topology) {}

  BlockTask AllReduce(absl::string_view axis, int64_t bytes) const {
    BlockTask task;
    task.bytes = Bytes(bytes);
    task.group = ir::AxisList(*step_.mesh.Find(axis));
    return task;
  }
  static BlockSend Send(int32_t to, int64_t bytes) {
    BlockSend send;
    send.to = to;
    send.bytes = Bytes(bytes);
    return send;
  }

 private:
  static transforms::PipelinedStep Step(const transforms::ParallelDegrees& degrees) {
    transforms::PipelinedStep step;
    step.mesh = transforms::MakeMesh(degrees).value();
    step.stages.resize(static_cast<size_t>(degrees.pp));
    return step;
  }

  transforms::PipelinedStep step_;
  Geometry geometry_;
  cluster::Cluster cluster_;
  std::unique_ptr<const cost_models::CostModel> cost_model_;

 public:
  Pricing pricing;
};

constexpr int64_t kBytes = 25'000'000;  // 1 ms at 200 Gb/s

TEST(Pricing, OfAUniformClusterIsTheClosedForm) {
  Fixture f({.dp = 4, .hp = 1, .pp = 2}, "uniform:8@200Gbps", "distir");
  const BlockTask all_reduce = f.AllReduce("dp", kBytes);
  const BlockSend send = f.Send(1, kBytes);
  f.pricing.Expect(0, all_reduce);
  f.pricing.Expect(0, send);
  EXPECT_TRUE(f.pricing.AllGroupsAlike());
  EXPECT_EQ(f.pricing.Collective(0, all_reduce, 0), Duration(1'500'000'000));  // 2 * 3/4 ms
  EXPECT_EQ(f.pricing.Send(0, send, 3), Duration(1'000'000'000));
}

// Nodes of eight: with hp=6, ranks 0-5 are on one node and 6-11 on two.
TEST(Pricing, TellsGroupsThatStraddleNodes) {
  Fixture f({.dp = 2, .hp = 6, .pp = 1}, "dgx-a100:2");
  const BlockTask all_reduce = f.AllReduce("hp", kBytes);
  f.pricing.Expect(0, all_reduce);
  EXPECT_FALSE(f.pricing.AllGroupsAlike());
  EXPECT_LT(f.pricing.Collective(0, all_reduce, 0), f.pricing.Collective(0, all_reduce, 1));
}

TEST(Pricing, TellsSendsThatLeaveTheNode) {
  Fixture f({.dp = 6, .hp = 1, .pp = 2}, "dgx-a100:2");
  const BlockSend send = f.Send(1, kBytes);
  f.pricing.Expect(0, send);
  EXPECT_FALSE(f.pricing.AllGroupsAlike());
  EXPECT_LT(f.pricing.Send(0, send, 0), f.pricing.Send(0, send, 2));  // 0 to 6; 2 to 8
}

// hp=8 fills a node: all its groups are inside one, and all groups along dp cross nodes.
TEST(Pricing, FindsGroupsThatFillNodesAlike) {
  Fixture f({.dp = 2, .hp = 8, .pp = 1}, "dgx-a100:2");
  const BlockTask inside = f.AllReduce("hp", kBytes), across = f.AllReduce("dp", kBytes);
  f.pricing.Expect(0, inside);
  f.pricing.Expect(0, across);
  EXPECT_TRUE(f.pricing.AllGroupsAlike());
  EXPECT_LT(f.pricing.Collective(0, inside, 1), f.pricing.Collective(0, across, 7));
}

TEST(Pricing, AGroupOfOnePaysNothing) {
  Fixture f({.dp = 1, .hp = 2, .pp = 1}, "uniform:2@200Gbps");
  const BlockTask alone = f.AllReduce("dp", kBytes);
  f.pricing.Expect(0, alone);
  EXPECT_EQ(f.pricing.Collective(0, alone, 0), Duration(0));
}

TEST(Pricing, DoesNotDependOnWhetherItWasAskedForBefore) {
  Fixture asked({.dp = 2, .hp = 6, .pp = 1}, "dgx-a100:2"),
      fresh({.dp = 2, .hp = 6, .pp = 1}, "dgx-a100:2");
  const BlockTask task = asked.AllReduce("hp", kBytes);
  asked.pricing.Expect(0, task);
  fresh.pricing.Expect(0, task);
  asked.pricing.AllGroupsAlike();
  for (size_t group = 0; group < 2; ++group) {
    EXPECT_EQ(asked.pricing.Collective(0, task, group), fresh.pricing.Collective(0, task, group));
  }
}

}  // namespace
}  // namespace orrery::lowering
