#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/run.h"

// What a user asks the program `collective` beside kind and algorithm: groups, sweeps, networks,
// files of cases; and each wrong question with its one line.

namespace orrery::cli {
namespace collective_questions_test_cc {
namespace {

Finished Ask(const std::string& flags) { return Execute(absl::StrCat("collective ", flags)); }

const std::string kTwo = "--cluster dgx-a100:2,ideal-collectives --bytes 64MB --algorithm ring ";

TEST(CollectiveGroups, StayOnTheLinksOfTheirDevices) {
  EXPECT_EQ(Ask(kTwo + "--group 0-7").out,
            "all-reduce of 61.0 MiB over 8 devices of dgx-a100:2,ideal-collectives by ring\n"
            "time             401 us (0.000401333 s)\n"
            "bandwidth bound  373 us (0.000373333 s)\n"
            "bus bandwidth    279.070 GB/s\n"
            "busiest link     device0 -> switch0 (port), busy for 373 us\n");
  EXPECT_EQ(Ask(kTwo + "--group 0,8").out,
            "all-reduce of 61.0 MiB over 2 devices of dgx-a100:2,ideal-collectives by ring\n"
            "time             2.57 ms (0.002567400 s)\n"
            "bandwidth bound  2.56 ms (0.002560000 s)\n"
            "bus bandwidth    24.928 GB/s\n"
            "busiest link     device0 -> switch2 (nic), busy for 2.56 ms\n");
}

TEST(CollectiveGroups, AreTheSameHoweverWritten) {
  const std::string all = Ask(kTwo).out;
  EXPECT_THAT(all, testing::HasSubstr("over 16 devices"));
  EXPECT_EQ(Ask(kTwo + "--group 0-15").out, all);
  EXPECT_EQ(Ask(kTwo + "--group 0-7,8,9-15").out, all);
}

// The second node is like the first, but for the name of the link.
TEST(CollectiveGroups, CostTheSameOnEachNode) {
  const std::vector<std::string> first = absl::StrSplit(Ask(kTwo + "--group 0-7").out, '\n');
  const std::vector<std::string> second = absl::StrSplit(Ask(kTwo + "--group 8-15").out, '\n');
  ASSERT_EQ(first.size(), 6);
  ASSERT_EQ(second.size(), 6);
  for (size_t line = 0; line < 4; ++line) EXPECT_EQ(first[line], second[line]);
  EXPECT_EQ(second[4], "busiest link     device8 -> switch1 (port), busy for 373 us");
}

TEST(CollectiveGroups, BeginWithTheRoot) {
  const std::string flags = "--kind scatter --algorithm direct --cluster uniform:8@200Gbps ";
  EXPECT_THAT(Ask(flags + "--group 5,2").out, testing::HasSubstr("device5 -> device2 (pair)"));
  EXPECT_THAT(Ask(flags + "--group 2,5").out, testing::HasSubstr("device2 -> device5 (pair)"));
}

void ExpectSweep(const std::string& cluster) {
  const Finished finished = Ask("--sizes 1KiB:1GiB --algorithm ring --cluster " + cluster);
  EXPECT_EQ(finished.code, 0) << finished.err;
  std::vector<std::string> lines = absl::StrSplit(finished.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 22);  // the header, then 2^10 to 2^30
  EXPECT_EQ(lines[0], "bytes,algorithm,time_s,bound_s,bus_bandwidth_GBps");
  double before = 0;
  for (size_t power = 10; power <= 30; ++power) {
    SCOPED_TRACE(lines[power - 9]);
    const std::vector<std::string> fields = absl::StrSplit(lines[power - 9], ',');
    ASSERT_EQ(fields.size(), 5);
    EXPECT_EQ(fields[0], absl::StrCat(int64_t{1} << power));
    EXPECT_EQ(fields[1], "ring");
    double time = 0, bound = 0;
    EXPECT_TRUE(absl::SimpleAtod(fields[2], &time) && absl::SimpleAtod(fields[3], &bound));
    EXPECT_GT(time, before);
    EXPECT_GE(time, bound);
    before = time;
  }
}

TEST(CollectiveSweeps, HaveOneRowASizeAndGrow) {
  ExpectSweep("dgx-a100:2,ideal-collectives");
  ExpectSweep("uniform:8@200Gbps");
}

TEST(CollectiveSweeps, EndAtTheLastPowerBelow) {
  const std::string head = "bytes,algorithm,time_s,bound_s,bus_bandwidth_GBps\n";
  const std::string flags = "--kind send-receive --cluster uniform:2@200Gbps --sizes ";
  EXPECT_EQ(Ask(flags + "25MB:99MB").out, head +
                                              "25000000,direct,0.001000000,0.001000000,25.000\n"
                                              "50000000,direct,0.002000000,0.002000000,25.000\n");
  EXPECT_EQ(Ask(flags + "25MB:25MB").out,
            head + "25000000,direct,0.001000000,0.001000000,25.000\n");
}

// Record 0 and record 1 of tests/data/collectives_astrasim.json.
std::string Record(const std::string& backend, int64_t size, int64_t finish) {
  return absl::StrCat(
      R"({"backend": ")", backend, R"(", "collective": "all_reduce", "size_bytes": )", size,
      R"(, "topology": ["Ring"], "npus": [4], "bandwidth_GBps": [50.0], "latency_ns": [500.0],
      "system": {"scheduling-policy": "LIFO", "endpoint-delay": 10,
      "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
      "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
      "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"],
      "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0},
      "finish_ns_min": )",
      finish, R"(, "finish_ns_max": )", finish, "}");
}

TEST(CollectiveCases, PlaysRecordsOfAFile) {
  Clear();
  Write("two.json", absl::StrCat("{\"cases\": [", Record("Aware", 1048576, 43000), ", ",
                                 Record("Unaware", 16777216, 504604), "]}"));
  const Finished finished = Ask("--cases two.json");
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out,
            "index,expected_ns,found_ns,ratio,note\n"
            "0,43000,43000,1.000000,\n"
            "1,504604,504604,1.000000,\n");
  EXPECT_THAT(Left(), testing::IsEmpty());
}

// What is found does not come from what is expected.
TEST(CollectiveCases, FindsTheSameWhateverIsExpected) {
  Clear();
  Write("wrong.json", absl::StrCat("{\"cases\": [", Record("Aware", 1048576, 86000), "]}"));
  EXPECT_EQ(Ask("--cases wrong.json").out,
            "index,expected_ns,found_ns,ratio,note\n0,86000,43000,0.500000,\n");
}

// Through a switch, the aware network sends every message over two links, one after the other.
TEST(CollectiveNetworks, DifferByStoreAndForward) {
  const std::string flags =
      "--kind send-receive --bytes 25MB --cluster dgx-a100:1 --group 0,1 --network ";
  EXPECT_THAT(Ask(flags + "astra-unaware").out, testing::HasSubstr("(0.000085333 s)"));
  EXPECT_THAT(Ask(flags + "astra-aware").out, testing::HasSubstr("(0.000168666 s)"));
  const std::string pair =
      "--kind send-receive --bytes 25MB --cluster uniform:2@200Gbps --network ";
  EXPECT_EQ(Ask(pair + "astra-unaware").out, Ask(pair + "astra-aware").out);
}

struct Wrong {
  int code;
  std::string flags, err;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.flags; }

class WrongQuestions : public testing::TestWithParam<Wrong> {};

TEST_P(WrongQuestions, EndWithOneClearLine) {
  Clear();
  Write("garbage.json", "no json");
  Write("number.json", "{\"cases\": 7}");
  Write("empty.json", "");
  const Finished finished = Ask(GetParam().flags);
  EXPECT_EQ(finished.code, GetParam().code);
  EXPECT_EQ(finished.err, absl::StrCat("collective: ", GetParam().err, "\n"));
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(Left(), testing::IsEmpty());
}

const std::string kOn = "--cluster dgx-a100:2 ";
const std::string kKinds =
    "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, scatter, gather, "
    "send-receive, barrier";
const std::string kNoSize = "is no size; wanted a number with a unit such as 64KiB or 80GB";
const std::string kNoDevice = "is no device or range; wanted such as 0-7 or 0,8,16";
const std::string kNoCases = "no JSON list of cases; wanted {\"cases\": [...]}";

INSTANTIATE_TEST_SUITE_P(
    Groups, WrongQuestions,
    testing::Values(
        Wrong{1, kOn + "--group 0-3,2",
              "--group: device 2 stands twice in the group; wanted each once"},
        Wrong{1, kOn + "--group 0,16", "--group: device 16 is not of the cluster; wanted 0 to 15"},
        Wrong{1, kOn + "--group 3,-1", "--group: '-1' " + kNoDevice},
        Wrong{1, kOn + "--group 0,,1", "--group: '' " + kNoDevice},
        Wrong{1, kOn + "--group 99999999999", "--group: '99999999999' " + kNoDevice},
        Wrong{1, "--cluster uniform:1@200Gbps",
              "--group: the group has 1 device; wanted at least two, as in 0-7 or 0,8,16"}));

INSTANTIATE_TEST_SUITE_P(
    Names, WrongQuestions,
    testing::Values(
        Wrong{1, kOn + "--kind all-shuffle",
              "--kind: collective 'all-shuffle' is unknown; wanted one of " + kKinds},
        Wrong{1, kOn + "--algorithm shuffle=ring",
              "--algorithm: collective 'shuffle' is unknown; wanted one of " + kKinds},
        Wrong{
            1, kOn + "--algorithm rign",
            "--algorithm: algorithm 'rign' is unknown; did you mean ring? --list-algorithms names "
            "all"},
        Wrong{1, kOn + "--kind all-to-all --algorithm all-to-all=tree",
              "--algorithm: algorithm 'tree' is not for all-to-all; try ring, direct"},
        Wrong{1, kOn + "--kind all-to-all --algorithm tree",
              "--algorithm: algorithm 'tree' is not for all-to-all; try ring, direct"},
        Wrong{
            1, kOn + "--algorithm in-network",
            "algorithm 'in-network' cannot serve this group of 16, 8 a node; wanted switches that "
            "reduce in every node (or, with one rank a node, between nodes)"},
        Wrong{1, kOn + "--network fast",
              "--network 'fast': wanted fluid, astra-unaware or astra-aware"},
        Wrong{1, "--cluster dgx-a100:0",
              "--cluster 'dgx-a100:0': got '0' nodes; wanted 1 to 131072, as in dgx-a100:4"},
        Wrong{
            1, "--cluster uniform:8",
            "--cluster 'uniform:8': '' is no bandwidth; wanted a positive number with a unit, such "
            "as 200Gbps (bits) or 300GB/s (bytes)"}));

INSTANTIATE_TEST_SUITE_P(
    Sizes, WrongQuestions,
    testing::Values(
        Wrong{1, kOn + "--bytes -5", "--bytes: '-5' " + kNoSize},
        Wrong{1, kOn + "--bytes many", "--bytes: 'many' " + kNoSize},
        Wrong{1, kOn + "--bytes 5parsecs", "--bytes: '5parsecs' " + kNoSize},
        Wrong{1, kOn + "--bytes 2048TiB", "--bytes '2048TiB': wanted at most 1024TiB"},
        Wrong{1, kOn + "--sizes a:b", "--sizes: 'a' " + kNoSize},
        Wrong{1, kOn + "--sizes 1:2:3", "--sizes '1:2:3': wanted FIRST:LAST, as in 64KiB:1GiB"},
        Wrong{1, kOn + "--sizes 0:1MiB",
              "--sizes '0:1MiB': wanted the smaller first, more than 0 and at most 1024TiB"}));

INSTANTIATE_TEST_SUITE_P(
    Files, WrongQuestions,
    testing::Values(Wrong{1, "--cases none.json", "none.json: no such file"},
                    Wrong{1, "--cases garbage.json", "garbage.json: " + kNoCases},
                    Wrong{1, "--cases number.json", "number.json: " + kNoCases},
                    Wrong{1, "--cases empty.json", "empty.json: " + kNoCases},
                    Wrong{1, "--cases .", ".: is a folder; wanted a file"}));

INSTANTIATE_TEST_SUITE_P(
    CommandLines, WrongQuestions,
    testing::Values(
        Wrong{2, kOn + "--frobnicate", "unrecognised option '--frobnicate'; try --help"},
        Wrong{2, kOn + "--kind",
              "the required argument for option '--kind' is missing; try --help"},
        Wrong{2, kOn + "--kind reduce --kind gather",
              "option '--kind' cannot be specified more than once; try --help"},
        Wrong{2, kOn + "stray",
              "too many positional options have been specified on the command line; try --help"}));

}  // namespace
}  // namespace collective_questions_test_cc
}  // namespace orrery::cli
