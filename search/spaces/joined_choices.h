#ifndef ORRERY_SEARCH_SPACES_JOINED_CHOICES_H_
#define ORRERY_SEARCH_SPACES_JOINED_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "search/spaces/choice_list.h"
#include "transforms/plan/parallel_plan.h"

namespace orrery::search {

/// Choices of several kinds at once, as strategies of weights and placements of groups: the first
/// thing of each kind, then the second of each, … A plan in which one kind has nothing to choose
/// still has what the others have.
class JoinedChoices final : public PlanChoices {
 public:
  /// Kinds change a plan one after another. Whether a plan has something to choose each kind says
  /// of the plan as it is, so kinds must not contradict each other. Requires one kind or two.
  explicit JoinedChoices(std::vector<std::unique_ptr<const PlanChoices>> kinds);

  size_t size() const override { return things_.size(); }
  int LabelsOf(size_t thing) const override;
  int64_t ClassOf(const transforms::ParallelPlan& plan) const override;
  std::vector<int> OptionsOf(int64_t plan_class, size_t thing) const override;
  /// Those of the thing's kind, where others have as many 0.
  std::vector<double> FeaturesOf(size_t thing) const override;
  void Apply(std::span<const int> labels, transforms::ParallelPlan& plan) const override;

 private:
  struct Thing {
    size_t kind = 0;
    size_t thing = 0;  // of the kind
  };

  const std::vector<std::unique_ptr<const PlanChoices>> kinds_;
  std::vector<Thing> things_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_JOINED_CHOICES_H_
