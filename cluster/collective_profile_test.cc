#include "cluster/collective_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cluster/cluster.h"
#include "cluster/cluster_file.h"

namespace orrery::cluster {
namespace collective_profile_test_cc {
namespace {

using testing::HasSubstr;

TEST(CollectiveProfile, EveryNameIsFoundAndPossible) {
  EXPECT_EQ(CollectiveProfileNames().front(), "ideal");
  for (const absl::string_view name : CollectiveProfileNames()) {
    const auto profile = FindCollectiveProfile(name);
    ASSERT_TRUE(profile.ok()) << name;
    EXPECT_TRUE(CheckCollectiveProfile(*profile).ok()) << name;
    EXPECT_EQ(profile->ideal(), name == "ideal");
    EXPECT_EQ(profile->ideal() ? "ideal" : profile->name, name);
  }
}

TEST(CollectiveProfile, AnUnknownNameIsToldTheNames) {
  EXPECT_THAT(std::string(FindCollectiveProfile("nccl").status().message()),
              HasSubstr("collectives 'nccl' are unknown; wanted one of ideal, nccl-ampere, "));
}

// Seconds that a byte of an all-reduce of eight takes, or of an all-to-all, on links of 100 GB/s.
double SecondsAByte(const CollectiveProtocol& protocol) {
  const double part_rate = static_cast<double>(protocol.part_rate.bytes_per_second());
  return (protocol.sends ? 7 : 14) / 8.0 / (protocol.rate * 1e11) + 1 / 8.0 / part_rate;
}

// A protocol that is slower to start is there because it is faster when it runs.
TEST(CollectiveProfile, ProtocolsAreEachGoodForSomething) {
  for (const absl::string_view name : CollectiveProfileNames()) {
    const CollectiveProfile profile = *FindCollectiveProfile(name);
    for (size_t i = 1; i < profile.protocols.size(); ++i) {
      const CollectiveProtocol &a = profile.protocols[i - 1], &b = profile.protocols[i];
      if (b.in_network || b.sends != a.sends || a.in_network) continue;
      EXPECT_LT(SecondsAByte(b), SecondsAByte(a)) << name << " " << b.name;
      EXPECT_GT(b.start_up + b.step_in_node * 14, a.start_up + a.step_in_node * 14)
          << name << " " << b.name;
      EXPECT_GE(b.step_between_nodes, a.step_between_nodes) << name << " " << b.name;
    }
  }
}

std::string ErrorOf(const CollectiveProtocol& protocol) {
  const absl::Status status = CheckCollectiveProfile({.name = "p", .protocols = {protocol}});
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(CheckCollectiveProfile, SaysWhatIsImpossible) {
  const CollectiveProtocol sound = {.name = "simple", .rate = 0.9};
  EXPECT_TRUE(CheckCollectiveProfile({.protocols = {sound}}).ok());
  EXPECT_TRUE(CheckCollectiveProfile({}).ok());
  EXPECT_EQ(ErrorOf({}), "got a protocol without a name; wanted one, as in simple");
  const auto with = [&](auto change) {
    CollectiveProtocol protocol = sound;
    change(protocol);
    return ErrorOf(protocol);
  };
  const std::string rate = "wanted more than 0, at most 1";
  EXPECT_EQ(with([](auto& p) { p.rate = 1.5; }), "protocol simple: got a rate of 1.5; " + rate);
  EXPECT_EQ(with([](auto& p) { p.rate = 0; }), "protocol simple: got a rate of 0; " + rate);
  EXPECT_THAT(with([](auto& p) { p.rate_between_nodes = -1; }), HasSubstr(rate));
  EXPECT_THAT(with([](auto& p) { p.rate = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr(rate));
  const std::string time = "wanted 0 to 100 ms";
  EXPECT_THAT(with([](auto& p) { p.start_up = Duration(-1); }), HasSubstr(time));
  EXPECT_THAT(with([](auto& p) { p.step_in_node = Duration(1'000'000'000'000); }), HasSubstr(time));
  EXPECT_THAT(with([](auto& p) { p.step_between_nodes = Duration(-5); }), HasSubstr(time));
  EXPECT_THAT(with([](auto& p) { p.part_rate = Bandwidth(-5); }), HasSubstr("wanted none below 0"));
  const std::string only =
      "got protocols for reductions in switches or sends only; wanted one for other algorithms";
  EXPECT_EQ(with([](auto& p) { p.in_network = true; }), only);
  EXPECT_EQ(with([](auto& p) { p.sends = true; }), only);
  EXPECT_THAT(with([](auto& p) { p.in_network = p.sends = true; }),
              HasSubstr("wanted one of the two"));
}

TEST(Topology, CopiesKeepTheProfile) {
  Topology topology = ParseCluster("switch:8@50GB/s")->topology;
  EXPECT_TRUE(topology.collective_profile().ideal());
  topology.SetCollectiveProfile(*FindCollectiveProfile("nccl-hopper"));
  const Topology copy = topology;
  topology.SetCollectiveProfile({});
  EXPECT_TRUE(topology.collective_profile().ideal());
  EXPECT_EQ(copy.collective_profile().name, "nccl-hopper");
}

constexpr absl::string_view kFile = R"(devices { count: 8 kind: "h100-80gb" }
topology { kind: "switch" port { rate: "450GB/s" latency: "1us" } }
)";

absl::StatusOr<Cluster> WithProfile(const std::string& text) {
  return ParseClusterText(std::string(kFile) + text, ClusterFormat::kText, "c.textproto");
}

TEST(ClusterFile, GivesAProfileByNameOrInFull) {
  EXPECT_TRUE(WithProfile("")->topology.collective_profile().ideal());
  EXPECT_EQ(WithProfile("collectives { name: \"nccl-hopper-efa\" }")->topology.collective_profile(),
            *FindCollectiveProfile("nccl-hopper-efa"));
  const auto own = WithProfile(
      "collectives { name: \"mine\" protocols { name: \"slow\" rate: 0.25 start_up: \"3us\" "
      "step_in_node: \"100ns\" step_between_nodes: \"2us\" part_rate: \"700GB/s\" "
      "rate_between_nodes: 0.5 } }");
  ASSERT_TRUE(own.ok()) << own.status();
  const CollectiveProtocol expected = {.name = "slow",
                                       .rate = 0.25,
                                       .rate_between_nodes = 0.5,
                                       .start_up = Duration(3'000'000),
                                       .step_in_node = Duration(100'000),
                                       .step_between_nodes = Duration(2'000'000),
                                       .part_rate = Bandwidth(700'000'000'000)};
  EXPECT_EQ(own->topology.collective_profile(),
            (CollectiveProfile{.name = "mine", .protocols = {expected}}));
}

TEST(ClusterFile, SaysWhatIsWrongWithAProfile) {
  EXPECT_THAT(std::string(WithProfile("collectives { name: \"nccl\" }").status().message()),
              HasSubstr("c.textproto:3: collectives.name: collectives 'nccl' are unknown; wanted"));
  EXPECT_THAT(
      std::string(WithProfile("collectives { protocols { name: \"p\" start_up: \"soon\" } }")
                      .status()
                      .message()),
      HasSubstr("c.textproto:3: collectives.protocols[0].start_up: "));
  EXPECT_THAT(
      std::string(
          WithProfile("collectives { protocols { name: \"p\" rate: 2 } }").status().message()),
      HasSubstr("collectives: protocol p: got a rate of 2; wanted more than 0, at most 1"));
}

TEST(ClusterFile, PrintsWhatItReads) {
  for (const absl::string_view name : CollectiveProfileNames()) {
    Cluster cluster = *ParseCluster("dgx-h100:2");
    cluster.topology.SetCollectiveProfile(*FindCollectiveProfile(name));
    for (const ClusterFormat format : {ClusterFormat::kText, ClusterFormat::kJson}) {
      const auto again = ParseClusterText(PrintCluster(cluster, format), format, "printed");
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->topology.collective_profile(), cluster.topology.collective_profile());
    }
  }
}

}  // namespace
}  // namespace collective_profile_test_cc
}  // namespace orrery::cluster
