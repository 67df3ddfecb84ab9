#include "search/spaces/choice_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "support/check.h"

namespace orrery::search {

ChoiceList::ChoiceList(const PlanList& plans, std::unique_ptr<const PlanChoices> choices,
                       size_t most)
    : plans_(plans), choices_(std::move(choices)) {
  ORRERY_CHECK(plans.size() <= most) << "plans of a list with choices";
  for (const transforms::ParallelPlan& plan : plans_) classes_.push_back(choices_->ClassOf(plan));
  while (things_ < choices_->size() && CountOf(things_ + 1) <= most) ++things_;
  for (const int64_t one : std::set(classes_.begin(), classes_.end())) {
    options_[one] = OptionsOf(one, things_);
  }
  begins_.push_back(0);
  for (const int64_t one : classes_) {
    size_t count = 1;
    for (const std::vector<int>& options : options_[one]) count *= options.size();
    begins_.push_back(begins_.back() + count);
  }
}

ChoiceList::Options ChoiceList::OptionsOf(int64_t plan_class, size_t things) const {
  Options options(things, {0});
  for (size_t thing = 0; plan_class != 0 && thing < things; ++thing) {
    options[thing] = choices_->OptionsOf(plan_class, thing);
  }
  return options;
}

// Combinations of the first `things`; no more than is of interest.
size_t ChoiceList::CountOf(size_t things) const {
  constexpr size_t kMany = size_t{1} << 40;
  std::map<int64_t, size_t> counts;
  size_t all = 0;
  for (const int64_t one : classes_) {
    const auto [found, is_new] = counts.try_emplace(one, 1);
    for (const std::vector<int>& options : is_new ? OptionsOf(one, things) : Options()) {
      found->second = std::min(kMany, found->second * options.size());
    }
    all = std::min(kMany, all + found->second);
  }
  return all;
}

size_t ChoiceList::PlanOf(size_t i) const {
  ORRERY_CHECK(i < size()) << "plan " << i << " of " << size();
  return static_cast<size_t>(std::ranges::upper_bound(begins_, i) - begins_.begin()) - 1;
}

// The first thing is the last digit.
ChoiceList::Digits ChoiceList::DigitsOf(size_t i) const {
  const size_t plan = PlanOf(i);
  size_t rest = i - begins_[plan];
  Digits digits;
  for (const std::vector<int>& options : OptionsOfPlan(plan)) {
    digits.push_back(rest % options.size());
    rest /= options.size();
  }
  return digits;
}

std::vector<int> ChoiceList::LabelsOf(size_t i) const {
  const Options& options = OptionsOfPlan(PlanOf(i));
  std::vector<int> labels;
  for (const size_t digit : DigitsOf(i)) labels.push_back(options[labels.size()][digit]);
  return labels;
}

size_t ChoiceList::At(size_t plan, const Digits& digits) const {
  const Options& options = OptionsOfPlan(plan);
  size_t at = 0;
  for (size_t thing = things_; thing-- > 0;) at = at * options[thing].size() + digits[thing];
  return begins_[plan] + at;
}

transforms::ParallelPlan ChoiceList::operator[](size_t i) const {
  transforms::ParallelPlan plan = plans_[PlanOf(i)];
  choices_->Apply(LabelsOf(i), plan);
  return plan;
}

std::vector<size_t> ChoiceList::Neighbours(size_t i) const {
  const size_t plan = PlanOf(i);
  const Options& options = OptionsOfPlan(plan);
  Digits digits = DigitsOf(i);
  std::vector<size_t> places;
  for (size_t thing = 0; thing < things_; ++thing) {
    const size_t own = digits[thing];
    for (digits[thing] = 0; digits[thing] < options[thing].size(); ++digits[thing]) {
      if (digits[thing] != own) places.push_back(At(plan, digits));
    }
    digits[thing] = own;
  }
  const std::vector<int> labels = LabelsOf(i);
  for (const size_t other : plans_.Neighbours(plan)) places.push_back(WithLabels(other, labels));
  return places;
}

size_t ChoiceList::WithLabels(size_t plan, std::span<const int> labels) const {
  ORRERY_CHECK(labels.size() == things_) << labels.size() << " labels of " << things_ << " things";
  const Options& options = OptionsOfPlan(plan);
  Digits digits(things_, 0);
  for (size_t thing = 0; thing < things_; ++thing) {
    const auto found = std::ranges::find(options[thing], labels[thing]);
    if (found != options[thing].end()) {
      digits[thing] = static_cast<size_t>(found - options[thing].begin());
    }
  }
  return At(plan, digits);
}

size_t ChoiceList::With(size_t i, std::span<const int> labels) const {
  return WithLabels(PlanOf(i), labels);
}

int ChoiceList::label_limit() const {
  int limit = 0;
  for (size_t thing = 0; thing < things_; ++thing) {
    limit = std::max(limit, choices_->LabelsOf(thing));
  }
  return limit;
}

int32_t ChoiceList::ChangesOf(size_t i) const {
  const std::vector<int> labels = LabelsOf(i);
  const auto changed = std::ranges::count_if(labels, [](int label) { return label != 0; });
  return plans_.ChangesOf(PlanOf(i)) + static_cast<int32_t>(changed);
}

std::vector<double> ChoiceList::FeaturesOf(size_t i) const {
  std::vector<double> features = plans_.FeaturesOf(PlanOf(i));
  const std::vector<int> labels = LabelsOf(i);
  for (size_t thing = 0; thing < things_; ++thing) {
    for (int label = 1; label < choices_->LabelsOf(thing); ++label) {
      features.push_back(labels[thing] == label ? 1 : 0);
    }
  }
  return features;
}

}  // namespace orrery::search
