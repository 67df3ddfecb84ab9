#include "tools/collective_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "tools/terminal/interrupt.h"

namespace orrery::tools {
namespace collective_cases_test_cc {
namespace {

// What comes of a file with that text; its path is "FILE" in errors.
std::string PlayText(const std::string& text, bool fluid = true) {
  const std::string path = absl::StrCat(testing::TempDir(), "cases_", getpid(), ".json");
  EXPECT_TRUE(WriteFile(path, text).ok());
  const absl::StatusOr<std::string> csv = PlayCollectiveCases(path, fluid);
  std::filesystem::remove(path);
  if (csv.ok()) return *csv;
  return absl::StrReplaceAll(csv.status().message(), {{path, "FILE"}});
}

// 4 MiB over 4 ranks, each link 1 GiB/s and 1 us; damaged by replacing texts.
using Replacements = std::vector<std::pair<const absl::string_view, absl::string_view>>;
std::string Record(const Replacements& replacements = {}) {
  return absl::StrReplaceAll(
      R"({"backend": "Unaware", "collective": "all_reduce", "size_bytes": 4194304,
          "topology": ["FullyConnected"], "npus": [4], "bandwidth_GBps": [1],
          "latency_ns": [1000], "finish_ns_max": 1000000, "system": {
            "endpoint-delay": 10, "local-mem-bw": 1600, "preferred-dataset-splits": 1,
            "active-chunks-per-dimension": 1, "collective-optimization": "localBWAware",
            "all-reduce-implementation": ["direct"], "all-gather-implementation": ["direct"],
            "reduce-scatter-implementation": ["direct"],
            "all-to-all-implementation": ["direct"]}})",
      replacements);
}

// Found nanoseconds, ratio and note of one record.
std::string Play(const Replacements& replacements, bool fluid = true) {
  const std::string csv = PlayText(absl::StrCat("[", Record(replacements), "]"), fluid);
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n');
  EXPECT_EQ(lines.size(), 3) << csv;
  EXPECT_THAT(lines.at(1), testing::StartsWith("0,1000000,"));
  return lines.at(1).substr(10);
}

// 1 MiB over a link of 1 GiB/s takes 1/1024 s, here 976,562.5 ns, and a latency of 1,000.
TEST(CollectiveCases, AreDirectByHand) {
  EXPECT_EQ(Play({}), "1955125,1.955125,");  // two such steps
  EXPECT_EQ(Play({{"all_reduce", "reduce_scatter"}}), "977562.500,0.977563,");
  EXPECT_EQ(Play({{"all_reduce", "all_to_all"}}), "977562.500,0.977563,");
  // Each rank brings 4 MiB and sends that to all others.
  EXPECT_EQ(Play({{"all_reduce", "all_gather"}}), "3907250,3.907250,");
  EXPECT_EQ(Play({{"[4]", "[1]"}}), "0,0.000000,");
}

TEST(CollectiveCases, TakeWhatTheRecordSays) {
  EXPECT_EQ(Play({{"4194304", "8388608"}}), "3908250,3.908250,");
  EXPECT_EQ(Play({{"_GBps\": [1]", "_GBps\": [2]"}}), "978562.500,0.978563,");
  EXPECT_EQ(Play({{"[1000]", "[2000.5]"}}), "1957126,1.957126,");
}

// 6 of 4 MiB in all, as six steps on a ring, and as a half and a quarter there and back by halving:
// through a switch each of these four waits for two latencies.
TEST(CollectiveCases, TakeAlgorithmAndTopologyOfTheRecord) {
  EXPECT_EQ(Play({{"FullyConnected", "Ring"}, {"direct", "ring"}}), "5865375,5.865375,");
  EXPECT_EQ(Play({{"direct", "halvingDoubling"}}), "5863375,5.863375,");
  EXPECT_EQ(Play({{"FullyConnected", "Switch"}, {"direct", "halvingDoubling"}}),
            "5867375,5.867375,");
  // The algorithm of the collective itself, not that of its parts.
  EXPECT_EQ(Play({{"all-reduce-implementation\": [\"direct\"]",
                   "all-reduce-implementation\": [\"halvingDoubling\"]"}}),
            "5863375,5.863375,");
}

// Up the first dimension, through the second with a half, and down again.
TEST(CollectiveCases, PlayOneDimensionAfterTheOther) {
  const auto both = [](absl::string_view optimization) {
    return Play({{R"(["FullyConnected"])", R"(["FullyConnected", "Ring"])"},
                 {"\"npus\": [4]", "\"npus\": [2, 2]"},
                 {"\"bandwidth_GBps\": [1]", "\"bandwidth_GBps\": [1, 2]"},
                 {"\"latency_ns\": [1000]", "\"latency_ns\": [1000, 3000]"},
                 {R"(["direct"])", R"(["direct", "direct"])"},
                 {"localBWAware", optimization}});
  };
  // 2 MiB at 1 GiB/s and 1 us, twice; between them 1 MiB at 2 GiB/s and 3 us, twice.
  EXPECT_EQ(both("localBWAware"), "4890812.500,4.890813,");
  // 2 MiB twice in each.
  EXPECT_EQ(both("other"), "5867375,5.867375,");
}

// An algorithm that is not for this kind leaves the fastest.
TEST(CollectiveCases, TakeTheFastestWhereTheAlgorithmIsForAnotherKind) {
  EXPECT_EQ(Play({{"all_reduce", "all_to_all"}, {"direct", "doubleBinaryTree"}}),
            "977562.500,0.977563,");
}

// A message of 1 MiB through a switch: unaware of it, both latencies and one transfer; aware of it,
// a transfer on each link. Both ends take 10 ns, and fractions of a nanosecond are dropped.
TEST(CollectiveCases, PlayWhatAstraPlaysByItsNetworks) {
  const auto play = [](absl::string_view backend) {
    return Play({{"Unaware", backend},
                 {"[4]", "[2]"},
                 {"4194304", "2097152"},
                 {"FullyConnected", "Switch"},
                 {"all_reduce", "all_to_all"}},
                /*fluid=*/false);
  };
  EXPECT_EQ(play("Unaware"), "978582,0.978582,");  // 976562 + 2 * 1000 + 2 * 10
  EXPECT_EQ(play("Aware"), "1955144,1.955144,");   // 2 * (976562 + 1000) + 2 * 10
}

// Two ranks more than four: all goes to others and back, 4 MiB each time.
TEST(CollectiveCases, SayWhereOurOwnModelStandsIn) {
  EXPECT_EQ(Play({{"[4]", "[6]"}, {"direct", "halvingDoubling"}}, /*fluid=*/false),
            "13677875,13.677875,by --network fluid: algorithm 'halvingDoubling' for all-reduce of "
            "6 ranks; wanted ring; direct or; for a power of two; halvingDoubling or "
            "doubleBinaryTree (which is for all-reduce only)");
}

struct Wrong {
  Replacements replacements;
  std::string note;
  bool fluid = true;
};

TEST(CollectiveCases, EachMayBeWrong) {
  const auto sizes = [](absl::string_view got) {
    return absl::StrCat("got ", got, "; wanted 1 to 1024; a positive rate and no negative latency");
  };
  const auto delay = [](absl::string_view got) {
    return absl::StrCat("got an endpoint-delay of ", got, "; wanted 0 to 1e9; and 0 to 2^40");
  };
  const Wrong kWrong[] = {
      {{{"FullyConnected", "Torus"}},
       "topology 'Torus' is unknown; wanted one of Ring; FullyConnected; Switch"},
      {{{"[4]", "[0]"}}, sizes("0 devices; 1 GB/s; 1000 ns")},
      {{{"[4]", "[1025]"}}, sizes("1025 devices; 1 GB/s; 1000 ns")},
      {{{"_GBps\": [1]", "_GBps\": [0]"}}, sizes("4 devices; 0 GB/s; 1000 ns")},
      {{{"_GBps\": [1]", "_GBps\": [1e9]"}}, sizes("4 devices; 1e+09 GB/s; 1000 ns")},
      {{{"[1000]", "[-1]"}}, sizes("4 devices; 1 GB/s; -1 ns")},
      {{{"[1000]", "[1e12]"}}, sizes("4 devices; 1 GB/s; 1e+12 ns")},
      {{{"all_reduce", "broadcast"}},
       "collective 'broadcast' is unknown; wanted all_reduce; reduce_scatter; all_gather or "
       "all_to_all"},
      {{{"delay\": 10", "delay\": -1"}}, delay("-1 and size_bytes 4194304")},
      {{{"delay\": 10", "delay\": 1000000001"}}, delay("1000000001 and size_bytes 4194304")},
      {{{"4194304", "1099511627777"}}, delay("10 and size_bytes 1099511627777")},
      {{{"4194304", "-1"}}, delay("10 and size_bytes -1")},
      {{{"4194304", "-1e308"}}, "size_bytes: got -1e+308; wanted a whole number"},
      {{{"4194304", "0.5"}}, "size_bytes: got 0.5; wanted a whole number"},
      {{{"delay\": 10", "delay\": 1e308"}}, "endpoint-delay: got 1e+308; wanted a whole number"},
      {{{"[4]", "[1e308]"}}, "npus: got 1e+308; wanted a whole number"},
      {{{"splits\": 1", "splits\": -1e308"}},
       "preferred-dataset-splits: got -1e+308; wanted a whole number"},
      {{{"dimension\": 1", "dimension\": 1e99"}},
       "active-chunks-per-dimension: got 1e+99; wanted a whole number",
       false},
      {{{"direct", "magic"}},
       "algorithm 'magic' is unknown; wanted one of ring; direct; halvingDoubling; "
       "doubleBinaryTree"},
      {{{"Unaware", "Dim"}}, "backend 'Dim' is unknown; wanted Aware or Unaware", false}};
  for (const Wrong& wrong : kWrong) {
    EXPECT_EQ(Play(wrong.replacements, wrong.fluid), absl::StrCat(",,", wrong.note));
  }
}

TEST(CollectiveCases, TakeWhatIsJustWithinTheLimits) {
  for (const Replacements& replacements :
       {Replacements{{"[4]", "[1024]"}, {"FullyConnected", "Switch"}},
        Replacements{{"[1000]", "[0]"}}, Replacements{{"delay\": 10", "delay\": 0"}},
        Replacements{{"4194304", "1099511627776"}},
        Replacements{{"delay\": 10", "delay\": 1000000000"}}}) {
    EXPECT_THAT(Play(replacements), testing::Not(testing::StartsWith(",")));
  }
}

TEST(CollectiveCases, HaveNoMoreDevicesThanAClusterMay) {
  const auto play = [](absl::string_view devices) {
    return Play({{R"(["FullyConnected"])", R"(["Switch", "Switch", "Switch"])"},
                 {"\"npus\": [4]", devices},
                 {"\"bandwidth_GBps\": [1]", "\"bandwidth_GBps\": [1, 1, 1]"},
                 {"\"latency_ns\": [1000]", "\"latency_ns\": [0, 0, 0]"},
                 {R"(["direct"])", R"(["direct", "direct", "direct"])"}});
  };
  EXPECT_EQ(play("\"npus\": [1024, 1024, 2]"),
            ",,npus: got 2097152 in all; wanted at most 1048576");
  EXPECT_THAT(play("\"npus\": [1024, 1024, 1]"), testing::EndsWith(","));
}

// A record says nothing of others; without a measurement there is no ratio.
TEST(CollectiveCases, StandEachOnItsOwn) {
  EXPECT_EQ(
      PlayText(absl::StrCat("{\"cases\": [7, ", Record({{"\"finish_ns_max\"", "\"x\""}}), ",",
                            Record({{"finish_ns_max\": 1000000", "finish_ns_max\": 0"}}), ", ",
                            Record({{"1000000", "\"soon\""}}), "]}")),
      "index,expected_ns,found_ns,ratio,note\n"
      "0,,,,no record as in tests/data/collectives_astrasim.json: cannot use at() with number\n"
      "1,,1955125,,\n"
      "2,0,1955125,,\n"
      "3,,1955125,,\n");
  EXPECT_EQ(PlayText(absl::StrCat("[", Record({{"1000000", "1e-320"}}), "]")),
            "index,expected_ns,found_ns,ratio,note\n0,9.99989e-321,1955125,,\n");
}

TEST(CollectiveCases, EndWhereASignalCame) {
  {
    const StopOnSignals signals;
    std::raise(SIGINT);
    EXPECT_EQ(PlayText("[{}]"), "index,expected_ns,found_ns,ratio,note\n");
  }
  const StopOnSignals none;
  EXPECT_NE(PlayText("[{}]"), "index,expected_ns,found_ns,ratio,note\n");
}

TEST(CollectiveCases, AreAList) {
  const std::string wanted = "FILE: no JSON list of cases; wanted {\"cases\": [...]}";
  for (const char* text : {"", "{", "7", "{}", "{\"cases\": 7}"}) EXPECT_EQ(PlayText(text), wanted);
  EXPECT_EQ(PlayText("[]"), "index,expected_ns,found_ns,ratio,note\n");
  EXPECT_EQ(PlayText("{\"cases\": []}"), "index,expected_ns,found_ns,ratio,note\n");
  EXPECT_FALSE(PlayCollectiveCases("/no/such/file.json", true).ok());
}

TEST(Networks, HaveNames) {
  const simulator::Program program;
  for (const char* name : {"fluid", "astra-unaware", "astra-aware"}) {
    EXPECT_NE(MakeNetwork(name, program).value(), nullptr) << name;
  }
  EXPECT_EQ(MakeNetwork("abacus", program).status().message(),
            "--network 'abacus': wanted fluid, astra-unaware or astra-aware");
}

}  // namespace
}  // namespace collective_cases_test_cc
}  // namespace orrery::tools
