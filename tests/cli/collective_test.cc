#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// The program `collective`: what it prints, and one line for each impossible question. The cluster
// is uniform: a link of 25 GB/s for every pair, without latency, so that figures are plain.

namespace orrery::cli {
namespace collective_test_cc {
namespace {

Finished Ask(const std::string& flags) { return Execute(absl::StrCat("collective ", flags)); }

TEST(Collective, PrintsTimeBoundBandwidthAndLink) {
  const Finished finished =
      Ask("--kind all-reduce --bytes 100MB --cluster uniform:4@200Gbps --algorithm ring");
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out,
            "all-reduce of 95.4 MiB over 4 devices of uniform:4@200Gbps by ring\n"
            "time             6.00 ms (0.006000000 s)\n"
            "bandwidth bound  2.00 ms (0.002000000 s)\n"
            "bus bandwidth    25.000 GB/s\n"
            "busiest link     device0 -> device1 (pair), busy for 6.00 ms\n");
}

TEST(Collective, SweepsSizes) {
  EXPECT_EQ(Ask("--kind all-gather --sizes 100MB:400MB --cluster uniform:4@200Gbps "
                "--algorithm all-gather=direct")
                .out,
            "bytes,algorithm,time_s,bound_s,bus_bandwidth_GBps\n"
            "100000000,direct,0.001000000,0.001000000,75.000\n"
            "200000000,direct,0.002000000,0.002000000,75.000\n"
            "400000000,direct,0.004000000,0.004000000,75.000\n");
}

TEST(Collective, PlaysEveryTransferWithTheSameOutcome) {
  const std::string flags =
      "--bytes 64MB --cluster dgx-a100:2,ideal-collectives --group 0,8 --algorithm ring";
  EXPECT_EQ(Ask(flags).out, Ask(flags + " --every-transfer").out);
}

TEST(Collective, StoresAndForwardsWhenAware) {
  const std::string flags = "--kind send-receive --bytes 25MB --cluster dgx-a100:1 --group 0,1";
  EXPECT_THAT(Ask(flags + " --network astra-unaware").out, testing::HasSubstr("(0.000085333 s)"));
  EXPECT_THAT(Ask(flags + " --network astra-aware").out, testing::HasSubstr("(0.000168666 s)"));
}

// On a grid of rings all links are busy all the time, and between linked devices as well: the
// bound, but for latencies.
TEST(Collective, MeetsTheBoundWhereEachDeviceHasItsNeighbours) {
  EXPECT_EQ(Ask("--bytes 1GB --cluster torus:4x4@50GB/s,latency=1us").out,
            "all-reduce of 954 MiB over 16 devices of torus:4x4@50GB/s,latency=1us by "
            "multidimensional-ring\n"
            "time             9.39 ms (0.009387000 s)\n"
            "bandwidth bound  9.38 ms (0.009375000 s)\n"
            "bus bandwidth    199.744 GB/s\n"
            "busiest link     device0 -> device1 (ring), busy for 9.38 ms\n");
  EXPECT_EQ(Ask("--bytes 1GB --cluster mi300x:1,ideal-collectives").out,
            "all-reduce of 954 MiB over 8 devices of mi300x:1,ideal-collectives by direct\n"
            "time             3.91 ms (0.003908250 s)\n"
            "bandwidth bound  3.91 ms (0.003906250 s)\n"
            "bus bandwidth    447.771 GB/s\n"
            "busiest link     device0 -> device1 (pair), busy for 3.91 ms\n");
}

// A torus with four shortcuts as a file: trees are laid along its links, for short messages the one
// of shortest paths. Rings follow links as well, where there is one between neighbours.
TEST(Collective, LaysTreesAlongTheLinksOfAGraph) {
  const std::string graph =
      absl::StrCat("--cluster ", SourceDir(), "/examples/clusters/torus_with_shortcuts.textproto ");
  EXPECT_EQ(Ask(graph + "--bytes 256MiB").out,
            "all-reduce of 256 MiB over 16 devices of torus with shortcuts by packed-trees\n"
            "time             2.51 ms (0.002514093 s)\n"
            "bandwidth bound  2.24 ms (0.002236962 s)\n"
            "bus bandwidth    200.198 GB/s\n"
            "busiest link     gpu3 -> gpu0 (torus), busy for 2.26 ms\n");
  EXPECT_THAT(Ask(graph + "--bytes 256MiB --algorithm ring").out,
              testing::HasSubstr("time             10.1 ms (0.010096330 s)\n"));
  EXPECT_EQ(Ask(graph + "--bytes 1KiB").out,
            "all-reduce of 1.00 KiB over 16 devices of torus with shortcuts by shortest-path-tree\n"
            "time             2.08 us (0.000002082 s)\n"
            "bandwidth bound  8.53 ns (0.000000009 s)\n"
            "bus bandwidth    0.922 GB/s\n"
            "busiest link     gpu2 -> gpu1 (torus), busy for 20.5 ns\n");
  EXPECT_THAT(Ask(graph + "--kind all-gather --bytes 256MiB").out,
              testing::HasSubstr("by packed-trees\ntime             1.36 ms (0.001360623 s)\n"
                                 "bandwidth bound  1.26 ms (0.001258291 s)\n"));
  EXPECT_EQ(Ask("--algorithm packed-trees --cluster ring:8@50GB/s").err,
            "collective: algorithm 'packed-trees' cannot serve this group of 8, 1 a node; wanted "
            "devices of an explicit graph, few enough to lay trees over\n");
}

TEST(Collective, ListsClusters) {
  const Finished finished = Ask("--list-clusters");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, testing::StartsWith("uniform:16@200Gbps          Equal devices, "));
  EXPECT_THAT(finished.out, testing::HasSubstr("\ndgx-h100:4                  Nodes of 8 H100"));
  EXPECT_THAT(finished.out, testing::HasSubstr("\ntorus:4x4x4@50GB/s          A ring along each"));
  for (const std::string program : {"simulate", "grid_search"}) {
    EXPECT_EQ(Execute(program + " --list-clusters").out, finished.out) << program;
  }
  EXPECT_EQ(Execute("schedule --list-clusters").code, 2) << "it has no cluster";
}

TEST(Collective, PlaysCases) {
  Clear();
  Write("cases.json", "[{\"collective\": \"all_reduce\"}, 7]");
  EXPECT_THAT(Ask("--cases cases.json").out,
              testing::MatchesRegex("index,expected_ns,found_ns,ratio,note\n0,,,,.*system.*\n"
                                    "1,,,,.*\n"));
}

struct Bad {
  std::string flags, err;
};

TEST(Collective, RefusesImpossibleQuestionsInOneLine) {
  const std::string two = "--cluster dgx-a100:2,ideal-collectives ";
  const Bad questions[] = {
      {two + "--group 0,3,3", "--group: device 3 stands twice in the group; wanted each once"},
      {two + "--group 0-16", "--group: device 16 is not of the cluster; wanted 0 to 15"},
      {two + "--group 5",
       "--group: the group has 1 device; wanted at least two, as in 0-7 or 0,8,16"},
      {two + "--group 7-0", "--group: '7-0' is no device or range; wanted such as 0-7 or 0,8,16"},
      {two + "--group a", "--group: 'a' is no device or range; wanted such as 0-7 or 0,8,16"},
      {two + "--sizes 1GiB:1MiB",
       "--sizes '1GiB:1MiB': wanted the smaller first, more than 0 and at most 1024TiB"},
      {two + "--sizes 1GiB", "--sizes '1GiB': wanted FIRST:LAST, as in 64KiB:1GiB"},
      {two + "--network token-ring",
       "--network 'token-ring': wanted fluid, astra-unaware or astra-aware"},
      {two + "--kind scatter --algorithm scatter=ring",
       "--algorithm: algorithm 'ring' is not for scatter; try minimum-spanning-tree, direct"},
      {two + "--group 0-7 --algorithm hierarchical",
       "algorithm 'hierarchical' cannot serve this group of 8, 8 a node; wanted several nodes of "
       "several ranks, equally many of each node, node by node"},
      {"", "--cluster is missing; wanted one, such as dgx-h100:2"},
      {"--cases nowhere.json", "nowhere.json: no such file"}};
  for (const Bad& question : questions) {
    const Finished finished = Ask(question.flags);
    EXPECT_EQ(finished.code, 1) << question.flags;
    EXPECT_EQ(finished.err, absl::StrCat("collective: ", question.err, "\n")) << question.flags;
    EXPECT_EQ(finished.out, "") << question.flags;
  }
}

}  // namespace
}  // namespace collective_test_cc
}  // namespace orrery::cli
