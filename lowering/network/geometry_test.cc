#include "lowering/network/geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transforms/plan/mesh.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {
namespace geometry_test_cc {
namespace {

using ::testing::ElementsAre;

using Places = std::vector<int32_t>;

transforms::PipelinedStep Step(const transforms::ParallelPlan& plan,
                               std::vector<int32_t> devices = {}) {
  transforms::PipelinedStep step;
  step.mesh = transforms::MakeMesh(plan).value();
  step.stages.resize(static_cast<size_t>(plan.pp));
  step.devices = std::move(devices);
  return step;
}

ir::AxisList Axes(const ir::Mesh& mesh, std::initializer_list<absl::string_view> names) {
  ir::AxisList axes;
  for (const absl::string_view name : names) axes.push_back(*mesh.Find(name));
  return axes;
}

// Rank numbers of mesh(pp=2, dp=2, hp=3), as hp,dp,pp orders them:
//   stage 0 | dp0: 0 1 2   dp1: 3 4 5
//   stage 1 | dp0: 6 7 8   dp1: 9 10 11
TEST(Geometry, NumbersTheFastestAxisFirst) {
  const auto step = Step({.dp = 2, .hp = 3, .pp = 2, .order = "hp,dp,pp"});
  const Geometry geometry(step);
  EXPECT_EQ(geometry.stages(), 2);
  EXPECT_THAT(geometry.ranks_of_stage(0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(geometry.ranks_of_stage(1), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(geometry.Groups(0, Axes(step.mesh, {"hp"})),
              ElementsAre(Places{0, 1, 2}, Places{3, 4, 5}));
  EXPECT_THAT(geometry.Groups(0, Axes(step.mesh, {"dp"})),
              ElementsAre(Places{0, 3}, Places{1, 4}, Places{2, 5}));
  EXPECT_EQ(geometry.Name(10), "pp1 dp1 hp1");
}

// The other way round, as DistIR has it: rank = dp * 6 + hp * 2 + pp.
TEST(Geometry, StagesMayBeNeighbours) {
  const auto step = Step({.dp = 2, .hp = 3, .pp = 2, .order = "pp,hp,dp"});
  const Geometry geometry(step);
  EXPECT_THAT(geometry.ranks_of_stage(0), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(geometry.ranks_of_stage(1), ElementsAre(1, 3, 5, 7, 9, 11));
  // Positions within a stage, not ranks: ranks 0 2 4, and 6 8 10.
  EXPECT_THAT(geometry.Groups(0, Axes(step.mesh, {"hp"})),
              ElementsAre(Places{0, 1, 2}, Places{3, 4, 5}));
  EXPECT_THAT(geometry.Devices(1, {0, 3}), ElementsAre(cluster::DeviceId(1), cluster::DeviceId(7)));
  EXPECT_EQ(geometry.Name(9), "dp1 hp1 pp1");
}

TEST(Geometry, GroupsAlongSeveralAxesHoldAllTheirRanks) {
  const auto step = Step({.dp = 2, .hp = 3, .pp = 2});
  EXPECT_THAT(Geometry(step).Groups(0, Axes(step.mesh, {"dp", "hp"})),
              ElementsAre(Places{0, 1, 2, 3, 4, 5}));
}

TEST(Geometry, DevicesAreThoseThatWereAskedFor) {
  const auto step = Step({.dp = 2, .hp = 1, .pp = 2}, {8, 9, 0, 1});
  const Geometry geometry(step);
  EXPECT_EQ(geometry.device(0), cluster::DeviceId(8));
  EXPECT_THAT(geometry.Devices(1, {0, 1}), ElementsAre(cluster::DeviceId(0), cluster::DeviceId(1)));
}

TEST(Geometry, WithoutAMeshThereIsOneRank) {
  transforms::PipelinedStep step;
  step.stages.resize(1);
  const Geometry geometry(step);
  EXPECT_THAT(geometry.ranks_of_stage(0), ElementsAre(0));
}

}  // namespace
}  // namespace geometry_test_cc
}  // namespace orrery::lowering
