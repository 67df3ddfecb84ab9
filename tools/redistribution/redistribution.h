#ifndef ORRERY_TOOLS_REDISTRIBUTION_REDISTRIBUTION_H_
#define ORRERY_TOOLS_REDISTRIBUTION_REDISTRIBUTION_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "ir/text/layout_text.h"
#include "transforms/redistribution/groups.h"
#include "transforms/redistribution/move_set.h"
#include "transforms/redistribution/search.h"
#include "transforms/redistribution/synchronized.h"

// Redistributions as `redistribute` asks for them.

namespace orrery::tools {

namespace redistribution = transforms::redistribution;

/// How a layout is written: tensorcraft's mapping, DTensor's placements, or ours.
enum class Notation : uint8_t { kMapping, kPlacements, kAxes };

/// A redistribution as the command line has it.
struct RedistributionText {
  std::string mesh;   // "2,8", or "dp=2,hp=8"; not needed where a layout has it
  std::string shape;  // "8192,1024"; likewise
  int64_t itemsize = 0;
  std::string from, to;                // in any notation, both in the same
  std::string from_blocks, to_blocks;  // of a mapping
};

/// What was read: the problem, and how its layouts are printed.
struct WrittenProblem {
  redistribution::Problem problem;
  Notation notation = Notation::kMapping;
  ir::MeshRefinement mesh;  // of ours: problem.mesh is its refinement

  /// A layout of the problem, as the question was written.
  std::string Text(const redistribution::PackedLayout& layout) const;
};
absl::StatusOr<WrittenProblem> ParseRedistribution(const RedistributionText& text);

/// "1501", "71678.97481612775": as few digits as tell the number from all others. An exponent
/// stands only below 1e-4 and from 1e15 on, unlike in ShortestText of support/number_text.h.
std::string PlainNumber(double number);

/// A problem in the move set that --cost names.
/// So many fields: a move set within the other, and what each is made of.
class Redistributor {
 public:
  /// `cost`: "tensorcraft", "dtensor", each with ":OPTIONS" after it, or "cluster:SPEC".
  /// `cost_model` is that of collectives on a cluster, and `devices` where the mesh lies on it:
  /// the device of each rank in turn (ParseDevices), "" where rank r is on device r.
  static absl::StatusOr<Redistributor> Create(const redistribution::Problem& problem,
                                              absl::string_view cost, absl::string_view cost_model,
                                              const std::string& devices = "");

  /// Leaves a part of the cost ("copy", a name of FindCostPart) to break ties of the optimal
  /// planner alone; what plans cost still has it.
  absl::Status BreakTiesBy(absl::string_view part);

  /// Every step in which ranks exchange something waits so long besides: "50us", or a number where
  /// costs have no unit.
  absl::Status WaitForStragglers(absl::string_view wait);
  /// Collectives only within groups of ranks that exist, "a0,a1,a0.a1"; others are created at
  /// `price`, "5ms", once a group, or not at all where that is "".
  absl::Status UseGroups(absl::string_view groups, absl::string_view price);

  /// With what was asked for, but for ties and for the price of groups (PlannedStep::creation).
  const redistribution::MoveSet& move_set() const {
    return grouped_ != nullptr ? *grouped_ : ungrouped();
  }
  const redistribution::Problem& problem() const { return problem_; }
  /// Whether UseGroups was told which groups there are.
  bool has_groups() const { return groups_ != nullptr; }
  /// What costs are in: "us", or "" for a cost without a unit.
  absl::string_view unit() const { return unit_; }

  /// By "optimal", "naive" or "greedy". The limit, in elements, is the optimal planner's.
  absl::StatusOr<redistribution::RedistributionPlan> Plan(absl::string_view planner,
                                                          int64_t limit) const;
  /// The plan of `steps` (redistribution::GivenPlan), layouts called as in `written`; an error
  /// where it needs more than the limit. It is `exact` where none is cheaper within that.
  absl::StatusOr<redistribution::RedistributionPlan> Given(const WrittenProblem& written,
                                                           absl::string_view steps,
                                                           int64_t limit) const;

 private:
  absl::Status UseTensorcraft(absl::string_view options);
  absl::Status UseDtensor(absl::string_view options);
  absl::Status UseCluster(absl::string_view spec, absl::string_view cost_model,
                          const std::string& devices);
  const redistribution::MoveSet& ungrouped() const {
    return synchronized_ != nullptr ? *synchronized_ : *move_set_;
  }
  absl::StatusOr<double> ReadCost(absl::string_view text) const;
  absl::StatusOr<redistribution::RedistributionPlan> OptimalPlan(int64_t limit) const;
  absl::StatusOr<redistribution::RedistributionPlan> NaivePlan() const;
  absl::StatusOr<redistribution::RedistributionPlan> GreedyPlan() const;
  // A plan of steps that were chosen without groups: an error where one lacks its group.
  absl::Status ChargeForGroups(redistribution::RedistributionPlan& plan) const;

  redistribution::Problem problem_;
  std::string cost_;  // as it was given
  absl::string_view unit_;
  std::unique_ptr<const cluster::Cluster> cluster_;  // of the move set of a cluster
  std::unique_ptr<const cost_models::CostModel> cost_model_;
  std::unique_ptr<const redistribution::MoveSet> move_set_;
  std::unique_ptr<const redistribution::Synchronized> synchronized_;  // none: nobody waits
  std::unique_ptr<const redistribution::Groups> groups_;              // none: all that one may want
  std::optional<double> group_price_;                          // of another; none: there is none
  std::unique_ptr<const redistribution::MoveSet> grouped_;     // none where groups have a price
  std::unique_ptr<const redistribution::MoveSet> tie_broken_;  // none: no part breaks ties
  bool merges_ = true;  // whether there are steps over several axes
};

/// A limit of elements from "1500", elements, "64MiB", bytes of elements of `itemsize`, or
/// "endpoints", what source and target take; empty: none.
absl::StatusOr<int64_t> ParseElementLimit(absl::string_view text, const Redistributor& question);

/// Why there is no plan, with what a planner says one can choose as flags of `redistribute`.
std::string PlannerNote(const absl::Status& status);

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

#endif  // ORRERY_TOOLS_REDISTRIBUTION_REDISTRIBUTION_H_
