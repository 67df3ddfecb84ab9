#ifndef ORRERY_TOOLS_REDISTRIBUTION_H_
#define ORRERY_TOOLS_REDISTRIBUTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "transforms/redistribution/dialect.h"
#include "transforms/redistribution/search.h"

// Redistributions as `redistribute` asks for them.

namespace orrery::tools {

/// A problem in the dialect that --cost names.
class Redistributor {
 public:
  /// `cost`: "tensorcraft", "dtensor", each with ":OPTIONS" after it, or "cluster:SPEC".
  /// `cost_model` is that of collectives on a cluster.
  static absl::StatusOr<Redistributor> Create(const redistribution::Problem& problem,
                                              absl::string_view cost, absl::string_view cost_model);

  const redistribution::Dialect& dialect() const { return *dialect_; }
  const redistribution::Problem& problem() const { return problem_; }
  /// What costs are in: "us", or "" for a cost without a unit.
  absl::string_view unit() const { return unit_; }

  /// By "optimal", "naive" or "greedy". The limit, in elements, is the optimal planner's.
  absl::StatusOr<redistribution::RedistributionPlan> Plan(absl::string_view planner,
                                                          int64_t limit) const;

 private:
  absl::Status UseTensorcraft(absl::string_view options);
  absl::Status UseDtensor(absl::string_view options);
  absl::Status UseCluster(absl::string_view spec, absl::string_view cost_model);

  redistribution::Problem problem_;
  std::string cost_;  // as it was given
  absl::string_view unit_;
  std::unique_ptr<const cluster::Cluster> cluster_;  // of the dialect of a cluster
  std::unique_ptr<const cost_models::CostModel> cost_model_;
  std::unique_ptr<const redistribution::Dialect> dialect_;
};

/// A limit of elements from "1500", elements, "64MiB", bytes of elements of `itemsize`, or
/// "endpoints", what source and target take; empty: none.
absl::StatusOr<int64_t> ParseElementLimit(absl::string_view text, const Redistributor& question);

/// Plans every record of `path`, a file in the format of
/// tests/data/redistribution_tensorcraft.json or redistribution_dtensor.json, and returns a line of
/// CSV for each: name, total cost, peak elements, seconds of planning, and a note where there is no
/// plan. `cost` empty: that of the format, with the hosts that a record names. No record stops the
/// others.
struct RedistributionCases {
  std::string path, cost, cost_model, planner, limit;
};
absl::StatusOr<std::string> PlanRedistributionCases(const RedistributionCases& cases);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REDISTRIBUTION_H_
