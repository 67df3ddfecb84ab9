#ifndef ORRERY_SEARCH_SPACES_CHOICE_LIST_H_
#define ORRERY_SEARCH_SPACES_CHOICE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "search/spaces/plan_list.h"
#include "transforms/plan/parallel_plan.h"

// Plans of a list in which, beside the axes, many things are chosen one by one: what hp does to
// each kind of weights, which devices run each group of ops.

namespace orrery::search {

/// Things that are chosen beside the axes of a plan. What may be chosen for one is a label: 0 is
/// what the plan says by itself.
class PlanChoices {
 public:
  virtual ~PlanChoices() = default;

  /// How many things there are, the weightiest first.
  virtual size_t size() const = 0;
  /// Labels of a thing are below that.
  virtual int LabelsOf(size_t thing) const = 0;
  /// Plans of one class have the same to choose from; those of 0 nothing.
  virtual int64_t ClassOf(const transforms::ParallelPlan& plan) const = 0;
  /// The labels that a thing may have in plans of a class other than 0, ascending, 0 among them.
  virtual std::vector<int> OptionsOf(int64_t plan_class, size_t thing) const = 0;
  /// What a thing is, as numbers: of all as many, of like ones like numbers.
  virtual std::vector<double> FeaturesOf(size_t thing) const = 0;
  /// Does to a plan what labels say, of the first things one each; others are as the plan says.
  virtual void Apply(std::span<const int> labels, transforms::ParallelPlan& plan) const = 0;
};

/// Each plan of a list with each combination of what may be chosen beside it. Nothing is kept of a
/// combination but its place.
class ChoiceList {
 public:
  /// So many are walked through at most, each of which a search bounds before it begins: of the
  /// things the first are chosen, as many as fit in.
  static constexpr size_t kMost = size_t{1} << 16;

  /// `plans` lives longer. Requires no more plans than `most`.
  ChoiceList(const PlanList& plans, std::unique_ptr<const PlanChoices> choices,
             size_t most = kMost);

  size_t size() const { return begins_.back(); }
  /// How many things are chosen.
  size_t things() const { return things_; }
  /// How many are not, for there would be too many combinations: they are as the plan says.
  size_t things_left() const { return choices_->size() - things_; }

  /// The `i`-th, made anew.
  transforms::ParallelPlan operator[](size_t i) const;
  /// Where the `plan`-th of the list stands as it is.
  size_t PlaceOf(size_t plan) const { return begins_[plan]; }

  /// Those that differ in one label, and neighbours of the plan (PlanList) with the same labels
  /// where these are among their options, 0 else.
  std::vector<size_t> Neighbours(size_t i) const;
  /// As those of the plan in PlanList.
  uint64_t FamilyOf(size_t i) const { return plans_.FamilyOf(PlanOf(i)); }
  /// Likewise, and one more for each label that is not 0.
  int32_t ChangesOf(size_t i) const;
  /// Those of the plan; then for each thing and each label but 0 whether it has it, 0 or 1.
  std::vector<double> FeaturesOf(size_t i) const;

  /// The one that has the same plan as the `i`-th, and of each thing that label; where it is none
  /// of the thing's options, 0. Requires a label for each thing.
  size_t With(size_t i, std::span<const int> labels) const;
  /// What a thing is, as numbers (PlanChoices::FeaturesOf).
  std::vector<double> FeaturesOfThing(size_t thing) const { return choices_->FeaturesOf(thing); }
  /// Labels of all things are below that.
  int label_limit() const;

 private:
  using Options = std::vector<std::vector<int>>;  // by thing
  using Digits = std::vector<size_t>;             // by thing, which of its options

  Options OptionsOf(int64_t plan_class, size_t things) const;
  size_t CountOf(size_t things) const;
  size_t PlanOf(size_t i) const;
  const Options& OptionsOfPlan(size_t plan) const { return options_.at(classes_[plan]); }
  Digits DigitsOf(size_t i) const;
  std::vector<int> LabelsOf(size_t i) const;
  size_t At(size_t plan, const Digits& digits) const;
  size_t WithLabels(size_t plan, std::span<const int> labels) const;

  const PlanList& plans_;
  std::unique_ptr<const PlanChoices> choices_;
  std::vector<int64_t> classes_;  // by plan
  size_t things_ = 0;
  std::map<int64_t, Options> options_;  // by class
  std::vector<size_t> begins_;          // by plan, and of the one behind the last
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_CHOICE_LIST_H_
