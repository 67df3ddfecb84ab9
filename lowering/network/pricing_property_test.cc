#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cluster/random_graph_test_util.h"
#include "cost_models/cost_model.h"
#include "lowering/network/pricing.h"
#include "simulator/program/time_alone.h"
#include "transforms/plan/mesh.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {
namespace pricing_property_test_cc {
namespace {

using cluster::Topology;
using cost_models::CollectiveKind;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                     CollectiveKind::kAllToAll};

constexpr const char* kClusters[] = {"uniform:16@400Gbps",
                                     "switch:16@50GB/s",
                                     "ring:16@50GB/s",
                                     "torus:4x4@50GB/s",
                                     "nodes:4x4@300GB/s,nic=25GB/s",
                                     "nodes:4x4@300GB/s,nic=25GB/s,nics=2",
                                     "dgx-a100:2",
                                     "dgx-h100:2",
                                     "dgx-v100:2",
                                     "dgx-h100:2,oversubscription=2",
                                     "rails:4x4@450GB/s,nic=50GB/s,oversubscription=2",
                                     "fat-tree:16@50GB/s,radix=4",
                                     "fat-tree:16@50GB/s,radix=8,oversubscription=2",
                                     "dragonfly:2x2x4@25GB/s"};

// The same topology of a kind that declares no rotation, so that each group is in a place of its
// own and is priced by itself. What an added kind of topology is that says nothing of rotations.
Topology WithoutRotations(const Topology& topology) {
  static auto& kinds = *new std::deque<cluster::TopologyKind>;
  kinds.push_back(topology.kind());
  kinds.back().rotations = nullptr;
  Topology plain = *Topology::Create(kinds.back(), topology.shape());
  plain.SetCollectiveProfile(topology.collective_profile());
  return plain;
}

int32_t Draw(std::mt19937& random, int32_t most) {
  return static_cast<int32_t>(random() % static_cast<uint32_t>(most + 1));
}

transforms::ParallelPlan RandomPlan(std::mt19937& random) {
  constexpr int64_t kSplits[][3] = {{16, 1, 1}, {2, 4, 2}, {4, 2, 2}, {2, 2, 4}, {8, 2, 1},
                                    {1, 8, 2},  {3, 2, 2}, {4, 4, 1}, {2, 8, 1}, {5, 1, 3}};
  const auto& [dp, hp, pp] = kSplits[Draw(random, 9)];
  transforms::ParallelPlan plan{.dp = dp, .hp = hp, .pp = pp};
  constexpr const char* kOrders[] = {"hp,dp,pp", "pp,dp,hp", "hp,pp,dp", "dp,hp,pp"};
  plan.order = kOrders[Draw(random, 3)];
  return plan;
}

// Where ranks are, mostly in a row, sometimes turned or with two that changed places.
std::vector<int32_t> RandomDevices(int64_t ranks, int32_t devices, std::mt19937& random) {
  std::vector<int32_t> of_rank;
  if (Draw(random, 1) == 0) return of_rank;
  const int32_t first = Draw(random, devices - 1);
  for (int32_t r = 0; r < ranks; ++r) of_rank.push_back((first + r) % devices);
  if (Draw(random, 1) == 0) {
    std::swap(of_rank[static_cast<size_t>(Draw(random, static_cast<int32_t>(ranks) - 1))],
              of_rank.front());
  }
  return of_rank;
}

// All that was announced of a step.
class Priced {
 public:
  Priced(const transforms::PipelinedStep& step, const Topology& topology,
         const PricingOptions& options, std::span<const cost_models::CollectiveKind> kinds = kKinds)
      : geometry_(step),
        cost_model_(cost_models::MakeCostModel("roofline").value()),
        pricing_(geometry_, *cost_model_, topology, options) {
    for (int32_t stage = 0; stage < geometry_.stages(); ++stage) {
      for (const char* axis : {"hp", "dp"}) {
        for (const CollectiveKind kind : kinds) {
          for (const int64_t size : {40'000, 25'000'000, 160'000'000}) {
            CollectiveRequest task;
            task.stream =
                *axis == 'h' ? simulator::StreamKind::kHorizontal : simulator::StreamKind::kData;
            task.collective = kind;
            task.group = ir::AxisList(*step.mesh.Find(axis));
            task.bytes = Bytes(size);
            movements_.push_back(pricing_.Expect(stage, task));
            groups_.push_back(pricing_.GroupsOf(stage, task.group).size());
          }
        }
      }
      for (const int32_t to : {stage - 1, stage + 1}) {
        if (to < 0 || to >= geometry_.stages()) continue;
        SendRequest send;
        send.to = to;
        send.bytes = Bytes(5'000'000);
        movements_.push_back(pricing_.Expect(stage, send));
        groups_.push_back(geometry_.ranks_of_stage(stage).size());
      }
    }
    alike = pricing_.AllGroupsAlike();
  }

  // Times, what bounds them, resources and loads, as text.
  std::string Figures(bool fold) {
    simulator::Program program;
    pricing_.Prepare(fold, program);
    std::string text;
    for (int32_t r = 0; r < program.resource_count(); ++r) {
      const simulator::Resource& resource = program.resource(simulator::ResourceId(r));
      absl::StrAppend(&text, resource.name, " ", resource.kind, " ",
                      resource.capacity.bytes_per_second(), "\n");
    }
    for (size_t m = 0; m < movements_.size(); ++m) {
      absl::StrAppend(&text, m, " ", pricing_.LevelOf(movements_[m]), ":");
      for (size_t g = 0; g < (fold ? 1 : groups_[m]); ++g) {
        const TaskTime time = pricing_.TimeOf(movements_[m], g);
        absl::StrAppend(&text, " ", time.duration.picoseconds());
        if (!time.flow.valid()) continue;
        const simulator::Flow flow = program.flow(time.flow);
        absl::StrAppend(&text, "+", simulator::TimeAlone(flow, program).picoseconds(), "(");
        for (const simulator::Load& load : flow.loads) {
          absl::StrAppend(&text, " ", load.resource.index(), "*", absl::StrCat(load.load));
        }
        absl::StrAppend(&text, ")");
      }
      absl::StrAppend(&text, "\n");
    }
    return text;
  }

  bool alike = false;

 private:
  Geometry geometry_;
  std::unique_ptr<const cost_models::CostModel> cost_model_;
  Pricing pricing_;
  std::vector<MovementId> movements_;
  std::vector<size_t> groups_;
};

// Whether groups are found alike, and all figures, folded or not, are the same whether a topology
// declares rotations or each group is priced.
TEST(PricingProperty, RotationsChangeNoFigure) {
  std::mt19937 random(17);
  int32_t alike = 0, unlike = 0;
  for (const char* name : kClusters) {
    const Topology topology = cluster::ParseCluster(name).value().topology;
    ASSERT_FALSE(topology.Rotations().empty()) << name;
    const Topology plain = WithoutRotations(topology);
    for (int32_t i = 0; i < 10; ++i) {
      const transforms::ParallelPlan plan = RandomPlan(random);
      transforms::PipelinedStep step;
      step.mesh = transforms::MakeMesh(plan).value();
      step.devices = RandomDevices(step.mesh.size(), topology.devices(), random);
      step.stages.resize(static_cast<size_t>(plan.pp));
      SCOPED_TRACE(absl::StrCat(name, " ", i, " ", ir::ToString(step.mesh)));
      const PricingOptions options = {.every_link = Draw(random, 1) == 0};
      Priced found(step, topology, options), each(step, plain, options);
      EXPECT_EQ(found.alike, each.alike);
      ++(each.alike ? alike : unlike);
      for (const bool fold : {true, false}) EXPECT_EQ(found.Figures(fold), each.Figures(fold));
    }
  }
  EXPECT_GT(alike, 20);
  EXPECT_GT(unlike, 20);
}

// What a step pays is the same whatever other steps have asked of the store that they share: on a
// graph, groups look different to one kind of collective that look the same to another.
TEST(PricingProperty, WhatAStoreWasAskedBeforeChangesNoFigure) {
  std::mt19937 random(19);
  int32_t unlike = 0;
  for (int32_t i = 0; i < 24; ++i) {
    const Topology topology = cluster::RandomGraph(12, 8, random);
    transforms::PipelinedStep step;
    step.mesh = transforms::MakeMesh({.dp = 3, .hp = 4, .pp = 1}).value();
    step.stages.resize(1);
    SCOPED_TRACE(i);
    ExchangeStore store(topology);
    for (const auto& [first, count] :
         {std::pair<size_t, size_t>(0, 3), {0, 1}, {1, 2}, {1, 1}, {2, 1}, {0, 2}}) {
      const auto kinds = std::span(kKinds).subspan(first, count);
      Priced of_all(step, topology, {.exchanges = &store}, kinds);
      Priced by_itself(step, topology, {}, kinds);
      unlike += !by_itself.alike;
      EXPECT_EQ(of_all.alike, by_itself.alike);
      for (const bool fold : {true, false}) {
        EXPECT_EQ(of_all.Figures(fold), by_itself.Figures(fold));
      }
    }
  }
  EXPECT_GT(unlike, 20);
}

}  // namespace
}  // namespace pricing_property_test_cc
}  // namespace orrery::lowering
