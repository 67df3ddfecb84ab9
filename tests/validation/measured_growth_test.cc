#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/jitter/distribution.h"
#include "support/paths_test_util.h"

// How measured steps grow with replicas that each do the same work, beside the slowest of more
// draws.

namespace orrery::tools {
namespace measured_growth_test_cc {
namespace {

using nlohmann::json;

// The spread of ranks that docs/stragglers.md takes.
constexpr double kSpread = 0.008;

struct Timed {
  std::string id;
  int64_t replicas = 0, ranks_of_stage = 0;
  double seconds = 0;
};

// Rows of one job by all that they have in common: model, devices, precision, degrees, samples of
// a replica.
std::map<std::string, std::vector<Timed>> Jobs() {
  std::map<std::string, std::vector<Timed>> jobs;
  for (const char* source :
       {"03d_nvidia_dgxc_benchmarking", "12_mlperf_training_logs", "15_mlperf_v51"}) {
    std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/validation_times/", source, ".json"));
    const json source_rows = json::parse(file)["rows"];
    for (const json& row : source_rows) {
      json par = row["par"];
      const int64_t dp = par.value("dp", 0), batch = row["batch"].value("global_batch", 0);
      if (dp == 0 || batch % dp != 0 || par["tp"].is_null()) continue;
      par.erase("dp");
      const std::string id = row["id"];
      // Of logs of several years and systems only those of one.
      const std::string of = id.substr(0, id.rfind('-')).substr(0, sizeof("mlperf-v3.1") - 1);
      const std::string key =
          absl::StrCat(of, row["model"].dump(), row["hw"]["gpu"].dump(), row["precision"].dump(),
                       par.dump(), row["batch"]["micro_batch"].dump(), batch / dp);
      const int64_t of_stage = dp * par.value("tp", 1) * par.value("cp", 1);
      jobs[key].push_back({id, dp, of_stage, row["measured"].value("iter_time_s", 0.0)});
    }
  }
  return jobs;
}

struct Growth {
  std::string ids;
  double measured = 0, drawn = 0;
};

std::vector<Growth> Growths() {
  const simulator::Spread spread{&simulator::AllJitterDistributions().front(), kSpread};
  std::vector<Growth> growths;
  for (auto& [key, rows] : Jobs()) {
    std::ranges::sort(rows, {}, &Timed::replicas);
    const Timed &few = rows.front(), &many = rows.back();
    if (few.replicas == many.replicas || few.seconds <= 0 || many.seconds <= 0) continue;
    growths.push_back({absl::StrCat(few.id, " ", many.id), many.seconds / few.seconds - 1,
                       simulator::ExpectedLargest(spread, many.ranks_of_stage) /
                               simulator::ExpectedLargest(spread, few.ranks_of_stage) -
                           1});
  }
  return growths;
}

// The slowest of more ranks is part of what more of them cost; what the network costs besides, the
// simulated collectives have.
TEST(MeasuredGrowth, IsExplainedInPartByTheSlowestOfMoreRanks) {
  const std::vector<Growth> growths = Growths();
  ASSERT_GE(growths.size(), 11u);
  double measured = 0, drawn = 0;
  for (const Growth& growth : growths) {
    std::cout << growth.ids << ": measured " << growth.measured << ", drawn " << growth.drawn
              << "\n";
    EXPECT_GT(growth.measured, 0) << growth.ids;
    EXPECT_GT(growth.drawn, 0) << growth.ids;
    EXPECT_LT(growth.drawn, growth.measured + 0.01) << growth.ids;
    EXPECT_GT(growth.drawn, growth.measured - 0.03) << growth.ids;
    measured += growth.measured / static_cast<double>(growths.size());
    drawn += growth.drawn / static_cast<double>(growths.size());
  }
  EXPECT_LT(drawn, measured);
  EXPECT_GT(drawn, measured / 3);
}

}  // namespace
}  // namespace measured_growth_test_cc
}  // namespace orrery::tools
