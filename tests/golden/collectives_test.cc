#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/collective_cases.h"

// 253 collectives that ASTRA-sim has played (tests/data/collectives_astrasim.json).

namespace orrery::tools {
namespace {

const std::string& Path() {
  static const auto& kPath =
      *new std::string(absl::StrCat(ORRERY_SOURCE_DIR, "/tests/data/collectives_astrasim.json"));
  return kPath;
}

nlohmann::json Cases() {
  std::ifstream file(Path());
  return nlohmann::json::parse(file)["cases"];
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

// Ring, direct and halving-doubling, in one dimension or several, with one active chunk or more:
// to the nanosecond. What we do not play is said.
TEST(AstraSimGolden, IsMetToTheNanosecond) {
  const nlohmann::json cases = Cases();
  const auto rows = Rows(/*fluid=*/false);
  ASSERT_EQ(rows.size(), cases.size());
  int equal = 0, unknown = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("case ", i));
    if (rows[i][1].empty()) continue;  // ASTRA-sim itself aborted
    if (AlgorithmOf(cases[i]) == "doubleBinaryTree") {
      EXPECT_EQ(rows[i][2], "");
      EXPECT_NE(rows[i][4], "");
      ++unknown;
      continue;
    }
    EXPECT_EQ(rows[i][2], rows[i][1]);
    ++equal;
  }
  EXPECT_EQ(equal, 233);
  EXPECT_EQ(unknown, 18);
}

// Our own model of the same collectives is never below the bound, and a ring all-reduce on a ring
// or behind a switch is the bound and its latencies.
TEST(FluidModel, KeepsTheBandwidthBound) {
  const nlohmann::json cases = Cases();
  int rings = 0, bounded = 0;
  for (const auto& row : Rows(/*fluid=*/true)) {
    size_t index = 0;
    double found_ns = 0;
    ASSERT_TRUE(absl::SimpleAtoi(row[0], &index));
    if (!absl::SimpleAtod(row[2], &found_ns)) continue;  // several dimensions
    SCOPED_TRACE(absl::StrCat("case ", index));
    const nlohmann::json& record = cases[index];
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
      PlayCollectiveCases(absl::StrCat(ORRERY_SOURCE_DIR, "/README.md"), false).status().message(),
      absl::StrCat(ORRERY_SOURCE_DIR,
                   "/README.md: no JSON list of cases; wanted {\"cases\": [...]}"));
}

}  // namespace
}  // namespace orrery::tools
