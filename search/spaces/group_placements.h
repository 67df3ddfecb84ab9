#ifndef ORRERY_SEARCH_SPACES_GROUP_PLACEMENTS_H_
#define ORRERY_SEARCH_SPACES_GROUP_PLACEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "search/spaces/choice_list.h"

// Which devices run which groups of ops, as a choice of its own: placement as Mirhoseini et al.
// learn it (Device Placement Optimization with Reinforcement Learning, ICML 2017).

namespace orrery::search {

/// What a group of ops is among all.
struct GroupShare {
  double flops = 0;  // which part of the flops of forward it has, 0 to 1
  double place = 0;  // where its ops are in the order of forward, on average, 0 to 1
};

/// Groups of forward ops that are placed, each as a whole; all other ops are the rest.
struct OpGroups {
  std::vector<std::string> patterns;    // RE2 of names; the first that is found counts
  std::vector<GroupShare> shares = {};  // of each; none: nobody says
  bool apart = false;                   // no op is found by two of them
  bool covers_all = false;              // there is no rest
};

/// At most so many groups, by names: ops whose names begin alike are one; the one of most flops is
/// divided by what comes next in its names, between dots, slashes, colons or underscores, as long
/// as there are no more. To the rest go the one of most flops, losses and, of the first parts,
/// those of less than a hundredth of all and, where there are more than groups, those of least.
/// InvalidArgument where names tell no two groups apart.
absl::StatusOr<OpGroups> GroupsByName(const ir::Function& step, size_t most);

/// "branch1x1;branch3x3": groups as they are given. InvalidArgument for a pattern that is none, or
/// finds no op that none before it does.
absl::StatusOr<OpGroups> GroupsOfPatterns(const ir::Function& step, absl::string_view patterns);

/// Each group stays with the rest, or goes to another of the sets of devices: as many sets as the
/// plan has stages, of dp x hp each, in the order of devices; labels are sets. All with the rest is
/// the pipeline of the plan as it is. A plan without a pipeline, or which a placement contradicts,
/// has nothing to choose; others are of the class of their pp.
class GroupPlacements final : public PlanChoices {
 public:
  /// `most_sets`: the most stages of any plan.
  GroupPlacements(OpGroups groups, int64_t most_sets)
      : groups_(std::move(groups)), most_sets_(most_sets) {}

  size_t size() const override { return groups_.patterns.size(); }
  int LabelsOf(size_t) const override { return static_cast<int>(most_sets_); }
  int64_t ClassOf(const transforms::ParallelPlan& plan) const override;
  std::vector<int> OptionsOf(int64_t plan_class, size_t thing) const override;
  /// Its GroupShare.
  std::vector<double> FeaturesOf(size_t thing) const override;
  void Apply(std::span<const int> labels, transforms::ParallelPlan& plan) const override;

 private:
  const OpGroups groups_;
  const int64_t most_sets_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_GROUP_PLACEMENTS_H_
