#ifndef ORRERY_TRANSFORMS_PLAN_AXIS_FIELDS_H_
#define ORRERY_TRANSFORMS_PLAN_AXIS_FIELDS_H_

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "support/status.h"
#include "transforms/plan/axis.h"

// What records of axes are put together from: the functions of a field, by its member pointer.

namespace orrery::transforms {

/// AxisInfo::copy of a field.
template <auto kField>
void CopyField(const ParallelPlan& from, ParallelPlan& to) {
  to.*kField = from.*kField;
}

/// AxisInfo::parse of a field that `kParse` reads.
template <auto kField, auto kParse>
absl::Status ParseField(absl::string_view text, ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(plan.*kField, kParse(text));
  return absl::OkStatus();
}

/// AxisInfo::parse of a number of at least `kLeast`.
template <auto kField, int64_t kLeast = std::numeric_limits<int64_t>::min()>
absl::Status ParseNumber(absl::string_view text, ParallelPlan& plan) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < kLeast) {
    return absl::InvalidArgumentError(
        kLeast < 0 ? absl::StrCat("'", text, "': wanted a number")
                   : absl::StrCat("'", text, "': wanted a number of at least ", kLeast));
  }
  plan.*kField = value;
  return absl::OkStatus();
}

/// AxisInfo::print of a number.
template <auto kField>
std::string PrintNumber(const ParallelPlan& plan) {
  return absl::StrCat(plan.*kField);
}

/// AxisInfo::cell of a number.
template <auto kField>
AxisCell NumberCell(const ParallelPlan& plan) {
  return int64_t{plan.*kField};
}

/// AxisInfo::parse and print of a switch.
template <auto kField>
absl::Status ParseSwitch(absl::string_view text, ParallelPlan& plan) {
  if (text != "0" && text != "1") {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': wanted 0 or 1"));
  }
  plan.*kField = text == "1";
  return absl::OkStatus();
}
/// AxisInfo::print of a switch.
template <auto kField>
std::string PrintSwitch(const ParallelPlan& plan) {
  return plan.*kField ? "1" : "0";
}
/// AxisInfo::cell of a switch: 0 or 1.
template <auto kField>
AxisCell SwitchCell(const ParallelPlan& plan) {
  return int64_t{plan.*kField};
}

/// Plans like `plan` with these values in a field.
template <auto kField, typename Values>
std::vector<ParallelPlan> WithEach(const ParallelPlan& plan, const Values& values) {
  std::vector<ParallelPlan> plans;
  plans.reserve(values.size());
  for (const auto& value : values) plans.emplace_back(plan).*kField = value;
  return plans;
}

/// `plan`, and plans like it with those of the values in a field that differ.
template <auto kField, typename Values>
std::vector<ParallelPlan> AndEach(const ParallelPlan& plan, const Values& values) {
  std::vector<ParallelPlan> plans = {plan};
  for (const auto& value : values) {
    if (plan.*kField != value) plans.emplace_back(plan).*kField = value;
  }
  return plans;
}

/// Plans like `plan` with the values that those given have in a field.
template <auto kField>
std::vector<ParallelPlan> WithGiven(const ParallelPlan& plan, std::span<const ParallelPlan> given) {
  std::vector<ParallelPlan> plans;
  plans.reserve(given.size());
  for (const ParallelPlan& one : given) plans.emplace_back(plan).*kField = one.*kField;
  return plans;
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_AXIS_FIELDS_H_
