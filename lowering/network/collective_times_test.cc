#include "lowering/network/collective_times.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace orrery::lowering {
namespace collective_times_test_cc {
namespace {

using cost_models::CollectiveKind;
using redistribution::MoveKind;

constexpr Bytes kSize(int64_t{64} << 20);

// Two nodes of eight, or any other cluster, by the roofline model.
class Machine {
 public:
  explicit Machine(const char* spec = "dgx-a100:2")
      : cluster_(cluster::ParseCluster(spec).value()) {}

  CollectiveTimes On(const ir::Mesh& mesh, std::vector<int32_t> devices = {}) const {
    return CollectiveTimes(mesh, std::move(devices), cluster_, *cost_model_, {});
  }
  // Of those devices by themselves, as the cost model has it.
  Duration Alone(CollectiveKind kind, Bytes size, const std::vector<int32_t>& devices) const {
    std::vector<cluster::DeviceId> group;
    for (const int32_t device : devices) group.emplace_back(device);
    return cost_model_->Collective(kind, size, group, cluster_.topology);
  }

 private:
  const cluster::Cluster cluster_;
  const std::unique_ptr<const cost_models::CostModel> cost_model_ =
      cost_models::MakeCostModel("roofline").value();
};

std::vector<int32_t> First(int32_t count) {
  std::vector<int32_t> devices(static_cast<size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

ir::AxisList Axis(const ir::Mesh& mesh, absl::string_view name) {
  return ir::AxisList(*mesh.Find(name));
}

// Picoseconds are rounded up once a step of a collective.
void ExpectAbout(Duration found, Duration wanted) {
  EXPECT_NEAR(found.seconds(), wanted.seconds(), 1e-6 * wanted.seconds());
}

TEST(CollectiveOf, IsNoneWhereNothingMoves) {
  EXPECT_EQ(CollectiveOf(MoveKind::kAllGather), CollectiveKind::kAllGather);
  EXPECT_EQ(CollectiveOf(MoveKind::kReduceScatter), CollectiveKind::kReduceScatter);
  EXPECT_EQ(CollectiveOf(MoveKind::kAllReduce), CollectiveKind::kAllReduce);
  EXPECT_EQ(CollectiveOf(MoveKind::kAllToAll), CollectiveKind::kAllToAll);
  EXPECT_EQ(CollectiveOf(MoveKind::kReblock), CollectiveKind::kAllToAll);
  EXPECT_EQ(CollectiveOf(MoveKind::kPermute), CollectiveKind::kSendReceive);
  for (const MoveKind kind : {MoveKind::kSlice, MoveKind::kAllGather, MoveKind::kReduceScatter,
                              MoveKind::kAllReduce, MoveKind::kAllToAll, MoveKind::kPermute,
                              MoveKind::kReblock, MoveKind::kLocalCopy, MoveKind::kMakePartial}) {
    EXPECT_EQ(CollectiveOf(kind).has_value(), redistribution::Communicates(kind))
        << redistribution::ToString(kind);
  }
}

TEST(CollectiveTimes, OfOneGroupAreThoseOfTheCostModel) {
  const Machine machine;
  const ir::Mesh mesh({{"hp", 8}});
  const CollectiveTimes times = machine.On(mesh);
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    ExpectAbout(times.Of(kind, Axis(mesh, "hp"), kSize), machine.Alone(kind, kSize, First(8)));
  }
}

TEST(CollectiveTimes, AreRemembered) {
  const Machine machine;
  const ir::Mesh mesh({{"dp", 2}, {"hp", 8}});
  const CollectiveTimes times = machine.On(mesh);
  const Duration once = times.Of(CollectiveKind::kAllReduce, Axis(mesh, "hp"), kSize);
  const Duration other = times.Of(CollectiveKind::kAllReduce, Axis(mesh, "dp"), kSize);
  const Duration gather = times.Of(CollectiveKind::kAllGather, Axis(mesh, "hp"), kSize);
  const Duration half = times.Of(CollectiveKind::kAllReduce, Axis(mesh, "hp"), Bytes(32 << 20));
  EXPECT_NE(once, other);   // each by its axes,
  EXPECT_NE(once, gather);  // its kind
  EXPECT_NE(once, half);    // and its size
  EXPECT_EQ(times.Of(CollectiveKind::kAllReduce, Axis(mesh, "hp"), kSize), once);
  EXPECT_EQ(times.Of(CollectiveKind::kAllReduce, Axis(mesh, "dp"), kSize), other);
  const CollectiveTimes fresh = machine.On(mesh);
  EXPECT_EQ(fresh.Of(CollectiveKind::kAllReduce, Axis(mesh, "dp"), kSize), other);
}

TEST(CollectiveTimes, GrowWithTheSize) {
  const Machine machine;
  const ir::Mesh mesh({{"hp", 16}});
  const CollectiveTimes times = machine.On(mesh);
  Duration last;
  for (int64_t size = 1024; size <= int64_t{1} << 30; size *= 8) {
    const Duration time = times.Of(CollectiveKind::kAllReduce, Axis(mesh, "hp"), Bytes(size));
    EXPECT_GT(time, last) << size;
    last = time;
  }
}

// The groups of a stage are under way at once: never faster than one of them alone.
TEST(CollectiveTimes, OfManyGroupsAreNoFasterThanOfOne) {
  const Machine machine;
  const ir::Mesh mesh({{"dp", 2}, {"hp", 8}});  // hp within nodes, dp across
  const CollectiveTimes times = machine.On(mesh);
  const Duration across = machine.Alone(CollectiveKind::kAllReduce, kSize, {0, 8});
  EXPECT_GE(times.Of(CollectiveKind::kAllReduce, Axis(mesh, "dp"), kSize), across);
  const Duration within = machine.Alone(CollectiveKind::kAllReduce, kSize, First(8));
  EXPECT_GE(times.Of(CollectiveKind::kAllReduce, Axis(mesh, "hp"), kSize), within);
}

// The other way round dp is within nodes.
TEST(CollectiveTimes, FollowTheDevicesOfRanks) {
  const Machine machine;
  const ir::Mesh mesh({{"dp", 2}, {"hp", 8}});
  std::vector<int32_t> devices;  // rank dp * 8 + hp on device 2 hp + dp
  for (int32_t rank = 0; rank < 16; ++rank) devices.push_back(2 * (rank % 8) + rank / 8);
  const CollectiveTimes plain = machine.On(mesh), turned = machine.On(mesh, devices);
  const auto dp = Axis(mesh, "dp"), hp = Axis(mesh, "hp");
  EXPECT_LT(turned.Of(CollectiveKind::kAllReduce, dp, kSize),
            plain.Of(CollectiveKind::kAllReduce, dp, kSize));
  EXPECT_GT(turned.Of(CollectiveKind::kAllReduce, hp, kSize),
            plain.Of(CollectiveKind::kAllReduce, hp, kSize));
  EXPECT_EQ(machine.On(mesh, First(16)).Of(CollectiveKind::kAllReduce, dp, kSize),
            plain.Of(CollectiveKind::kAllReduce, dp, kSize));
}

// Ranks along pp are of other stages: a group has those of one.
TEST(CollectiveTimes, AreOfTheGroupsOfAStage) {
  const Machine machine;
  const ir::Mesh mesh({{"pp", 2}, {"hp", 8}}), stage({{"hp", 8}});
  EXPECT_EQ(machine.On(mesh).Of(CollectiveKind::kAllReduce, Axis(mesh, "hp"), kSize),
            machine.On(stage).Of(CollectiveKind::kAllReduce, Axis(stage, "hp"), kSize));
}

}  // namespace
}  // namespace collective_times_test_cc
}  // namespace orrery::lowering
