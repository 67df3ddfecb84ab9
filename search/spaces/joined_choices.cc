#include "search/spaces/joined_choices.h"

#include <algorithm>

#include "support/check.h"

namespace orrery::search {
namespace joined_choices_cc {
namespace {

// A class of joined choices has a digit for the class of each kind: degrees, of which there are no
// more than devices.
constexpr int kDigit = 31;

int64_t DigitOf(int64_t plan_class, size_t kind) {
  return plan_class >> (kind * kDigit) & ((int64_t{1} << kDigit) - 1);
}

}  // namespace
}  // namespace joined_choices_cc

JoinedChoices::JoinedChoices(std::vector<std::unique_ptr<const PlanChoices>> kinds)
    : kinds_(std::move(kinds)) {
  ORRERY_CHECK(!kinds_.empty() && kinds_.size() <= 2) << kinds_.size() << " kinds";
  size_t most = 0;
  for (const auto& kind : kinds_) most = std::max(most, kind->size());
  for (size_t thing = 0; thing < most; ++thing) {
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (thing < kinds_[kind]->size()) things_.push_back({kind, thing});
    }
  }
}

int JoinedChoices::LabelsOf(size_t thing) const {
  return kinds_[things_[thing].kind]->LabelsOf(things_[thing].thing);
}

int64_t JoinedChoices::ClassOf(const transforms::ParallelPlan& plan) const {
  int64_t joined = 0;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    const int64_t one = kinds_[kind]->ClassOf(plan);
    ORRERY_CHECK(one >= 0 && one >> joined_choices_cc::kDigit == 0) << "class " << one;
    joined |= one << (kind * joined_choices_cc::kDigit);
  }
  return joined;
}

std::vector<int> JoinedChoices::OptionsOf(int64_t plan_class, size_t thing) const {
  const auto [kind, of_kind] = things_[thing];
  const int64_t one = joined_choices_cc::DigitOf(plan_class, kind);
  return one == 0 ? std::vector<int>{0} : kinds_[kind]->OptionsOf(one, of_kind);
}

std::vector<double> JoinedChoices::FeaturesOf(size_t thing) const {
  std::vector<double> features;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    const bool own = kind == things_[thing].kind;
    if (kinds_[kind]->size() == 0) continue;
    std::vector<double> of_kind = kinds_[kind]->FeaturesOf(own ? things_[thing].thing : 0);
    if (!own) of_kind.assign(of_kind.size(), 0);
    features.insert(features.end(), of_kind.begin(), of_kind.end());
  }
  return features;
}

void JoinedChoices::Apply(std::span<const int> labels, transforms::ParallelPlan& plan) const {
  std::vector<std::vector<int>> of_kind(kinds_.size());
  for (size_t i = 0; i < labels.size(); ++i) of_kind[things_[i].kind].push_back(labels[i]);
  for (size_t kind = 0; kind < kinds_.size(); ++kind) kinds_[kind]->Apply(of_kind[kind], plan);
}

}  // namespace orrery::search
