#ifndef ORRERY_TESTS_DISTIR_PLAY_H_
#define ORRERY_TESTS_DISTIR_PLAY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "search/evaluate.h"
#include "tests/distir/oracle.h"

// A case as Orrery plays it, and the golden cases.

namespace orrery::distir {

/// The setting that `--preset distir` makes of a case, on a cluster of exactly its ranks.
search::Setting MakeSetting(const Case& c, bool fold = true);

/// The plan that the preset makes of a case.
transforms::ParallelPlan PlanOf(const Case& c);

/// The case played by Orrery.
absl::StatusOr<search::Run> Play(const Case& c);

/// One figure of each rank, by rank number: ranks of a class have the same.
struct RankFigures {
  std::vector<double> finish_s;
  std::vector<int64_t> peak_memory_bytes;
};
RankFigures ByRank(const search::Run& run);

/// A row of tests/data/distir/*.json.
struct Golden {
  Case config;
  bool skipped = false;                    // DistIR cannot run it: a degree does not divide
  Figures figures;                         // `ops` is not there
  std::vector<int64_t> peak_memory_bytes;  // by rank
};
std::vector<Golden> ReadGolden(const std::string& name);

}  // namespace orrery::distir

#endif  // ORRERY_TESTS_DISTIR_PLAY_H_
