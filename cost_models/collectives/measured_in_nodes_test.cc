#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/kernels/measured_test_util.h"
#include "support/paths_test_util.h"

// Collectives of two devices and of all of a node, by the presets' profiles, beside nccl-tests.

namespace orrery::cost_models {
namespace measured_in_nodes_test_cc {
namespace {

struct Row {
  std::string preset, kind;
  int32_t devices = 0;
  Bytes size = {};
  double microseconds = 0;
};

std::vector<Row> Rows(const std::string& file) {
  std::vector<Row> rows;
  for (const std::vector<std::string>& fields : Lines(file)) {
    Row& row = rows.emplace_back(Row{.preset = fields[0], .kind = fields[1]});
    int64_t bytes = 0;
    EXPECT_TRUE(absl::SimpleAtoi(fields[2], &row.devices) && absl::SimpleAtoi(fields[3], &bytes) &&
                absl::SimpleAtod(fields[4], &row.microseconds));
    row.size = Bytes(bytes);
  }
  return rows;
}

double Predicted(const Row& row) {
  static std::map<std::string, cluster::Cluster>& clusters =
      *new std::map<std::string, cluster::Cluster>;
  if (!clusters.contains(row.preset)) {
    clusters[row.preset] = *cluster::ParseCluster(absl::StrCat(row.preset, ":1"));
  }
  std::vector<cluster::DeviceId> group;
  for (int32_t i = 0; i < row.devices; ++i) group.push_back(cluster::DeviceId(i));
  return FastestTime({.kind = *FindCollectiveKind(row.kind), .size = row.size, .group = group},
                     clusters[row.preset].topology)
      .microseconds();
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The median error of each sweep, of so many machines with a number of devices: docs/collectives.md
// has them all. Their mean.
double MeanOfMedians(const std::string& file, size_t machines) {
  using Machine = std::pair<std::string, int32_t>;
  std::map<Machine, std::map<std::string, std::vector<double>>> errors;
  for (const Row& row : Rows(file)) {
    errors[{row.preset, row.devices}][row.kind].push_back(
        std::abs(Predicted(row) / row.microseconds - 1));
  }
  EXPECT_EQ(errors.size(), machines);
  const std::string page = *ReadFile(SourceDir() + "/docs/collectives.md");
  std::vector<double> all;
  for (const auto& [machine, kinds] : errors) {
    std::string line = absl::StrFormat("| `%s` | %d |", machine.first, machine.second);
    for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}) {
      all.push_back(MedianOf(kinds.at(kind)));
      absl::StrAppendFormat(&line, " %.1f |", 100 * all.back());
    }
    EXPECT_TRUE(absl::StrContains(page, line)) << line;
  }
  return MeanOf(all);
}

TEST(Collectives, AreAsMeasuredInNodes) {
  EXPECT_LE(MeanOfMedians("collectives_in_nodes.csv", 12), 0.04);
}

TEST(Collectives, AreAsMeasuredOverPcie) {
  EXPECT_LE(MeanOfMedians("collectives_over_pcie.csv", 4), 0.08);
}

// Where two devices stream less than all of a node would by the same links: each has half of the
// data to itself.
TEST(Collectives, OfTwoDevicesTakeAlmostWhatThoseOfEightDo) {
  for (const char* kind : {"all-gather", "reduce-scatter", "all-to-all"}) {
    const Row two = {"dgx-b200", kind, 2, Bytes(256 << 20)};
    Row eight = two;
    eight.devices = 8;
    EXPECT_GT(Predicted(two), 0.75 * Predicted(eight)) << kind;  // links alone: 0.57
    EXPECT_LT(Predicted(two), Predicted(eight)) << kind;
  }
}

}  // namespace
}  // namespace measured_in_nodes_test_cc
}  // namespace orrery::cost_models
