#ifndef ORRERY_SEARCH_SPACES_ENUMERATION_H_
#define ORRERY_SEARCH_SPACES_ENUMERATION_H_

#include <cstddef>
#include <span>
#include <vector>

#include "search/spaces/plan_list.h"
#include "search/spaces/space.h"
#include "transforms/plan/axis.h"

// The plans of a space, one after another: what Enumerate and ListPlans list.

namespace orrery::search {

/// Whether an axis that is left open in that way is not listed.
bool IsOpen(const Space& space, transforms::LeftOpen left_open);

/// What there is to enumerate: at most one plan more than `most`; then there are more.
class Enumeration {
 public:
  /// `space` lives longer.
  Enumeration(const Space& space, const SpaceSize& size, size_t most);

  /// All plans, listed on so many threads.
  PlanList All(size_t threads) const { return AllBut({}, threads); }
  /// Those that have the first value of each of these axes.
  PlanList AllBut(std::span<const transforms::AxisInfo* const> held, size_t threads) const;
  /// Those that differ from `plan` in these axes alone, and itself.
  PlanList Variants(std::span<const transforms::AxisInfo* const> varied,
                    const transforms::ParallelPlan& plan) const;

 private:
  // The plans of some degrees.
  class Branch;

  PlanList NewList() const;
  void CallUsualPlain(PlanList& list) const;
  std::vector<transforms::ParallelPlan> Choices(const transforms::SpaceQuestion& question,
                                                const transforms::AxisInfo& axis,
                                                const transforms::ParallelPlan& plan) const;
  void AddDegrees(size_t at, const transforms::ParallelPlan& plan,
                  std::vector<transforms::ParallelPlan>& all) const;
  bool FitsDevices(const transforms::ParallelPlan& plan) const;

  const Space& space_;
  transforms::SpaceQuestion question_;
  const bool open_;  // whether degrees are
  const size_t most_;
  std::vector<char> varies_;        // by axis: whether plans have other values than the base
  transforms::ParallelPlan first_;  // of each axis what is listed first
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_ENUMERATION_H_
