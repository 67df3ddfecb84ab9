#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/paths_test_util.h"
#include "tools/collective_cases.h"

// 253 collectives that ASTRA-sim has played (tests/data/collectives_astrasim.json).

namespace orrery::tools {
namespace collectives_test_cc {
namespace {

const std::string& Path() {
  static const auto& kPath =
      *new std::string(absl::StrCat(SourceDir(), "/tests/data/collectives_astrasim.json"));
  return kPath;
}

const nlohmann::json& Cases() {
  static const auto& kCases = *new nlohmann::json([] {
    std::ifstream file(Path());
    return nlohmann::json::parse(file)["cases"];
  }());
  return kCases;
}

std::vector<std::vector<std::string>> Rows(bool fluid) {
  const absl::StatusOr<std::string> csv = PlayCollectiveCases(Path(), fluid);
  EXPECT_TRUE(csv.ok()) << csv.status();
  std::vector<std::vector<std::string>> rows;
  for (const auto& line : absl::StrSplit(csv.value_or(""), '\n', absl::SkipEmpty())) {
    rows.push_back(absl::StrSplit(line, ','));
  }
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

std::string AlgorithmOf(const nlohmann::json& record) {
  std::string key = record["collective"].get<std::string>() + "-implementation";
  for (char& c : key) c = c == '_' ? '-' : c;
  return record["system"][key][0].get<std::string>();
}

// All algorithms, in one dimension or several, with one active chunk or more: to the nanosecond.
TEST(AstraSimGolden, IsMetToTheNanosecond) {
  const nlohmann::json& cases = Cases();
  const auto rows = Rows(/*fluid=*/false);
  ASSERT_EQ(rows.size(), cases.size());
  int equal = 0, trees = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("case ", i));
    if (rows[i][1].empty()) continue;  // ASTRA-sim itself aborted
    EXPECT_EQ(rows[i][2], rows[i][1]);
    EXPECT_EQ(rows[i][4], "");
    ++equal;
    trees += AlgorithmOf(cases[i]) == "doubleBinaryTree";
  }
  EXPECT_EQ(equal, 251);
  EXPECT_EQ(trees, 18);
}

// A record of the file, changed, as its line of CSV without the index.
std::string Line(size_t index, const std::function<void(nlohmann::json&)>& change,
                 bool fluid = false) {
  nlohmann::json record = Cases()[index];
  change(record);
  // Of this process: ctest runs many at a time.
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/orrery_changed_case.", getpid(), ".json");
  std::ofstream(path) << nlohmann::json::array({record});
  const absl::StatusOr<std::string> csv = PlayCollectiveCases(path, fluid);
  std::remove(path.c_str());
  EXPECT_TRUE(csv.ok()) << csv.status();
  const std::vector<std::string> lines = absl::StrSplit(csv.value_or("\n"), '\n');
  return lines[1].substr(2);
}

constexpr size_t kRing = 0;   // of four ranks, aware
constexpr size_t kTree = 72;  // of eight fully connected, unaware

// What ASTRA-sim does not play either is played by our own model: a figure for everything.
TEST(CollectiveCases, WithoutAPlanGetTheFluidFigure) {
  const auto six = [](nlohmann::json& record) { record["npus"] = {6}; };
  const std::string line = Line(kTree, six);
  EXPECT_EQ(line.find("123052,"), 0u) << line;
  EXPECT_NE(line.find(",by --network fluid: algorithm 'doubleBinaryTree' for all-reduce of 6 "
                      "ranks; wanted ring; direct or; for a power of two; halvingDoubling or "
                      "doubleBinaryTree (which is for all-reduce only)"),
            std::string::npos)
      << line;
  const std::vector<std::string> cells = absl::StrSplit(line, ',');
  const std::vector<std::string> fluid = absl::StrSplit(Line(kTree, six, true), ',');
  EXPECT_EQ(cells[1], fluid[1]);
}

// One record that makes no sense is a line with a note, whatever is wrong with it.
TEST(CollectiveCases, SayWhatIsWrongWithARecord) {
  struct Wrong {
    const char* pointer;
    nlohmann::json value;
    const char* note;
  };
  const Wrong wrongs[] = {
      {"/collective", "broadcast", "collective 'broadcast' is unknown; wanted all_reduce"},
      {"/backend", "ns3", "backend 'ns3' is unknown; wanted Aware or Unaware"},
      {"/topology/0", "Mesh", "topology 'Mesh' is unknown; wanted one of Ring; FullyConnected"},
      {"/npus/0", 0, "got 0 devices"},
      {"/npus/0", -4, "got -4 devices"},
      {"/npus/0", "four", "type must be number"},
      {"/npus", nlohmann::json::array(), "array index 0 is out of range"},
      {"/bandwidth_GBps/0", 0, "a positive rate"},
      {"/latency_ns/0", -1, "no negative latency"},
      {"/size_bytes", 0, "size: got 0; wanted 1 or more"},
      {"/size_bytes", int64_t{1} << 60, "size_bytes 1152921504606846976; wanted 0 to 1e9; and"},
      {"/system/endpoint-delay", -1, "got an endpoint-delay of -1 and size_bytes"},
      {"/system/local-mem-bw", 0, "local-mem-bw: got 0; wanted 1 or more"},
      {"/system/preferred-dataset-splits", 0, "preferred-dataset-splits: got 0; wanted 1"},
      {"/system/preferred-dataset-splits", 1 << 30, "wanted at most 1048576"},
      {"/system/active-chunks-per-dimension", 0, "active-chunks-per-dimension: got 0"},
      {"/system/all-reduce-implementation/0", "magic", "algorithm 'magic' is unknown"},
      {"/system", nullptr, "cannot use at() with null"},
  };
  for (const Wrong& wrong : wrongs) {
    const std::string line = Line(kRing, [&](nlohmann::json& record) {
      record[nlohmann::json::json_pointer(wrong.pointer)] = wrong.value;
    });
    EXPECT_NE(line.find(wrong.note), std::string::npos) << wrong.pointer << ": " << line;
  }
}

// Other ranks, kinds, chunks and dimensions than those of the file.
TEST(CollectiveCases, OfOtherShapesArePlayed) {
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    for (const int64_t ranks : {2, 3, 5, 12, 33}) {
      for (const int64_t chunks : {1, 3, 7}) {
        for (const char* algorithm : {"ring", "direct"}) {
          const std::string line = Line(kRing, [&](nlohmann::json& record) {
            record["collective"] = kind;
            record["npus"] = {ranks};
            record["size_bytes"] = 1'000'003;
            record["system"]["preferred-dataset-splits"] = chunks;
            for (const char* each : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}) {
              record["system"][absl::StrCat(each, "-implementation")] = {algorithm};
            }
          });
          double found_ns = 0;
          const std::vector<std::string> cells = absl::StrSplit(line, ',');
          EXPECT_TRUE(absl::SimpleAtod(cells[1], &found_ns) && found_ns > 0) << line;
          EXPECT_EQ(cells[3], "") << line;
        }
      }
    }
  }
}

// A dimension of one rank changes nothing; in three the fluid model takes one after the other.
TEST(CollectiveCases, OfSeveralDimensionsArePlayed) {
  const auto with = [](const std::vector<int>& ranks) {
    return [ranks](nlohmann::json& record) {
      record["npus"] = ranks;
      for (const char* key : {"topology", "bandwidth_GBps", "latency_ns"}) {
        const nlohmann::json first = record[key][0];
        record[key] = std::vector<nlohmann::json>(ranks.size(), first);
      }
      for (const char* each : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}) {
        record["system"][absl::StrCat(each, "-implementation")] =
            std::vector<std::string>(ranks.size(), "ring");
      }
    };
  };
  for (const bool fluid : {false, true}) {
    const std::string plain = Line(kRing, with({4}), fluid);
    EXPECT_EQ(Line(kRing, with({1, 4}), fluid), plain);
    EXPECT_EQ(Line(kRing, with({4, 1, 1}), fluid), plain);
    double one_ns = 0, three_ns = 0;
    ASSERT_TRUE(absl::SimpleAtod(std::vector<std::string>(absl::StrSplit(plain, ','))[1], &one_ns));
    ASSERT_TRUE(absl::SimpleAtod(
        std::vector<std::string>(absl::StrSplit(Line(kRing, with({4, 4, 2}), fluid), ','))[1],
        &three_ns));
    EXPECT_GT(three_ns, one_ns);
  }
}

// Our own model of the same collectives is never below the bound, and a ring all-reduce on a ring
// or behind a switch is the bound and its latencies.
TEST(FluidModel, KeepsTheBandwidthBound) {
  const nlohmann::json& cases = Cases();
  int rings = 0, bounded = 0;
  for (const auto& row : Rows(/*fluid=*/true)) {
    size_t index = 0;
    double found_ns = 0;
    ASSERT_TRUE(absl::SimpleAtoi(row[0], &index));
    ASSERT_TRUE(absl::SimpleAtod(row[2], &found_ns));
    const nlohmann::json& record = cases[index];
    if (record["npus"].size() > 1) continue;
    SCOPED_TRACE(absl::StrCat("case ", index));
    const std::string collective = record["collective"].get<std::string>();
    const std::string topology = record["topology"][0].get<std::string>();
    const double n = record["npus"][0].get<double>();
    const double passes = collective == "all_reduce"   ? 2 * (n - 1) / n
                          : collective == "all_gather" ? n - 1
                                                       : (n - 1) / n;
    const double port_ns = passes * record["size_bytes"].get<double>() /
                           (record["bandwidth_GBps"][0].get<double>() * 1.073741824);
    const double ports = topology == "Ring" ? 2 : topology == "Switch" ? 1 : n - 1;
    EXPECT_GE(found_ns, port_ns / ports * (1 - 1e-9));
    ++bounded;
    if (collective != "all_reduce" || AlgorithmOf(record) != "ring") continue;
    if (topology == "FullyConnected") continue;
    const double hops = topology == "Switch" ? 2 : 1;
    const double expected_ns = port_ns + 2 * (n - 1) * hops * record["latency_ns"][0].get<double>();
    EXPECT_NEAR(found_ns / expected_ns, 1, 1e-6);
    EXPECT_GE(found_ns, port_ns);
    ++rings;
  }
  EXPECT_GT(bounded, 200);
  EXPECT_GT(rings, 50);
}

TEST(CollectiveCases, SayWhatIsWrongWithTheFile) {
  EXPECT_NE(PlayCollectiveCases("/nowhere.json", false).status().message(), "");
  EXPECT_EQ(
      PlayCollectiveCases(absl::StrCat(SourceDir(), "/README.md"), false).status().message(),
      absl::StrCat(SourceDir(), "/README.md: no JSON list of cases; wanted {\"cases\": [...]}"));
}

}  // namespace
}  // namespace collectives_test_cc
}  // namespace orrery::tools
