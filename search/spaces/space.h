#ifndef ORRERY_SEARCH_SPACES_SPACE_H_
#define ORRERY_SEARCH_SPACES_SPACE_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/spaces/plan_list.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/parallel_plan.h"

namespace orrery::search {

/// What a search varies: some axes, each over values that are listed, or over those that its record
/// chooses (AxisInfo::choices). All else is as in `base`.
class Space {
 public:
  explicit Space(transforms::ParallelPlan base = {}) : base_(std::move(base)) {}

  const transforms::ParallelPlan& base() const { return base_; }

  /// Whether a search that leaves degrees open chooses what people train with, too: stages of ZeRO,
  /// interleaved pipelines, expert parallelism of a mixture, and recomputation where a plan does
  /// not fit.
  void SaveMemory() { saves_memory_ = true; }
  bool saves_memory() const { return saves_memory_; }
  /// Whether it tries all that applies to the model (`--space full`), also where degrees are
  /// listed: beside these recomputation anyway, context parallelism, all schedules, groups of ZeRO,
  /// offload, orders of the mesh, and, where degrees are open, fewer devices.
  void TakeAll() { saves_memory_ = takes_all_ = true; }
  bool takes_all() const { return takes_all_; }

  /// Lists values of an axis: "1,2,4". Each counts once. InvalidArgument for a value that the axis
  /// does not take, and where there is none; a text with commas is one value of an axis that does
  /// not list.
  absl::Status List(const transforms::AxisInfo& axis, absl::string_view values);

  /// The values that are listed, as plans that have them; empty: the axis is left open.
  std::span<const transforms::ParallelPlan> Values(const transforms::AxisInfo& axis) const;

 private:
  transforms::ParallelPlan base_;
  bool saves_memory_ = false, takes_all_ = false;
  std::map<const transforms::AxisInfo*, std::vector<transforms::ParallelPlan>>
      listed_;  // looked up
};

using transforms::SpaceSize;

/// All plans of the space, in the order of plan_axes.def, the last axis fastest; where microbatches
/// are left open, plans with schedules that cut sequences come behind those that cut the batch.
/// Degrees that are left open multiply up to all devices; where dp, hp and pp are listed, every
/// combination that the cluster has room for counts. Where a value means nothing beside the rest of
/// a plan, or contradicts it, the plan has that of the base (transforms::Settled), and each plan
/// counts once: `simulate` takes them all. In a full space degrees that are left open multiply up
/// to all devices, or to a half, a third or a quarter. InvalidArgument where that leaves
/// nothing, and where there are more than 10 million plans. On so many threads, on which the list
/// does not depend.
absl::StatusOr<PlanList> Enumerate(const Space& space, const SpaceSize& size, size_t threads = 1);

/// So many plans are listed at most: about a gigabyte, with what a search knows of each.
inline constexpr size_t kMostPlans = 10'000'000;

/// Plans of a space that may have too many to list.
struct Listing {
  PlanList plans;
  /// Axes (AxisInfo::detail) of which plans have the first value alone: each stands for those that
  /// differ in these. None: all plans are listed.
  std::vector<const transforms::AxisInfo*> held = {};
};

/// Enumerate where there are at most so many plans; where there may be more, with as many details
/// held as it takes, the last ones and long lists first. InvalidArgument where even then there are
/// more.
absl::StatusOr<Listing> ListPlans(const Space& space, const SpaceSize& size,
                                  size_t most = kMostPlans, size_t threads = 1);

/// The plans of the space that `plan`, one of a listing, stands for, but for itself: at most so
/// many of them, in their order.
std::vector<transforms::ParallelPlan> VariantsOf(const Space& space, const SpaceSize& size,
                                                 std::span<const transforms::AxisInfo* const> held,
                                                 const transforms::ParallelPlan& plan,
                                                 size_t most = 1'000);

/// Whether there may be something to try in place of a plan that does not fit: else Relief says
/// nothing of any.
bool MayRelieve(const Space& space);

/// What to try in place of a plan of the space that does not fit in memory, one after another until
/// one does: what the first axis with something (AxisInfo::relieve) that is left open says. Nothing
/// where degrees are given, the space does not save memory, or it tries all anyway.
std::vector<transforms::ParallelPlan> Relief(const Space& space,
                                             const transforms::ParallelPlan& plan);

/// InvalidArgument where an axis that is listed means nothing beside any of the plans, or
/// contradicts all of them: that is a mistake, but not of one that the base has so. `plans`: what
/// Enumerate makes of the space.
absl::Status CheckListed(const Space& space, const PlansView& plans);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_SPACE_H_
