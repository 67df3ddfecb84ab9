#include "tools/plan_flags.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/status.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {

namespace po = boost::program_options;
using transforms::AxisForm;
using transforms::AxisInfo;

namespace plan_flags_cc {
namespace {

// "stage of ZeRO: …: 0, 1, 2 or 3; a list of them [0]"
std::string HelpOf(const AxisInfo& axis, PlanForm form, const transforms::ParallelPlan& base) {
  std::string help(axis.summary);
  if (axis.form == AxisForm::kSwitch) return help;
  absl::StrAppend(&help, ": ", axis.values);
  const bool list = form == PlanForm::kSpace && axis.lists;
  if (list) absl::StrAppend(&help, "; or several, with commas between");
  const bool open = list && axis.left_open != transforms::LeftOpen::kPlan;
  const std::string value = axis.print(base);
  if (open && axis.left_open == transforms::LeftOpen::kDividesExperts) {
    absl::StrAppend(&help, " [all that divide the experts of a model]");
  } else if (open) {
    absl::StrAppend(&help, " [all that divide]");
  } else if (!value.empty()) {
    absl::StrAppend(&help, " [", value, "]");
  }
  return help;
}

bool Takes(PlanForm form, transforms::AxisScope scope) {
  if (form == PlanForm::kOne) return true;
  return form == PlanForm::kStep ? scope == transforms::AxisScope::kStep
                                 : scope != transforms::AxisScope::kOneRun;
}

// The error with its flag: "--zero '5': wanted …", "--order: …".
absl::Status OfFlag(const AxisInfo& axis, const absl::Status& status) {
  if (status.ok()) return status;
  const char* const between = absl::StartsWith(status.message(), "'") ? " " : ": ";
  return {status.code(), absl::StrCat("--", axis.flag, between, status.message())};
}

// One flag by both of its names, which boost takes for two.
absl::Status CheckNames(const AxisInfo& axis, const std::vector<std::string>& values) {
  if (axis.form == AxisForm::kMany || values.size() < 2 || values.front() == values.back()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--", axis.flag, " and --", axis.alias,
                                                 " are one flag; got ", values.front(), " and ",
                                                 values.back(), ", wanted one value"));
}

// A flag under one of its names.
struct FlagText {
  std::string name, help;
};

void AddFlag(const FlagText& text, const AxisInfo& axis, PlanForm form,
             po::options_description& options, PlanFlags& flags) {
  auto give = [&axis, &flags](const std::string& value) { flags.Give(axis, value); };
  auto add = options.add_options();
  if (axis.form == AxisForm::kSwitch) {
    add(text.name.c_str(), po::value<std::string>()->implicit_value("1", "")->notifier(give),
        text.help.c_str());
  } else if (axis.form == AxisForm::kMany) {
    using Values = std::vector<std::string>;
    add(text.name.c_str(), po::value<Values>()->composing()->notifier([give](const Values& values) {
      for (const std::string& value : values) give(value);
    }),
        text.help.c_str());
  } else if (form != PlanForm::kSpace && axis.is_number) {
    // No number is wrong usage.
    add(text.name.c_str(),
        po::value<int64_t>()->notifier([give](int64_t value) { give(absl::StrCat(value)); }),
        text.help.c_str());
  } else {
    add(text.name.c_str(), po::value<std::string>()->notifier(give), text.help.c_str());
  }
}

}  // namespace
}  // namespace plan_flags_cc

bool PlanFlags::Has(absl::string_view flag) const {
  return given_.find(std::string(flag)) != given_.end();
}

void PlanFlags::Give(const AxisInfo& axis, std::string value) {
  given_[std::string(axis.flag)].push_back(std::move(value));
}

const std::vector<std::string>* PlanFlags::Given(const AxisInfo& axis) const {
  const auto found = given_.find(std::string(axis.flag));
  return found == given_.end() ? nullptr : &found->second;
}

void AddPlanFlags(po::options_description& options, PlanForm form,
                  const transforms::ParallelPlan& base, PlanFlags& flags) {
  for (const AxisInfo* axis : transforms::AllAxes()) {
    if (!plan_flags_cc::Takes(form, axis->scope)) continue;
    plan_flags_cc::AddFlag(
        {.name = std::string(axis->flag), .help = plan_flags_cc::HelpOf(*axis, form, base)}, *axis,
        form, options, flags);
    if (axis->alias.empty()) continue;
    plan_flags_cc::AddFlag(
        {.name = std::string(axis->alias), .help = absl::StrCat("the same as --", axis->flag)},
        *axis, form, options, flags);
  }
}

absl::StatusOr<transforms::ParallelPlan> ReadPlan(const PlanFlags& flags,
                                                  const transforms::ParallelPlan& base) {
  transforms::ParallelPlan plan = base;
  for (const AxisInfo* axis : transforms::AllAxes()) {
    const std::vector<std::string>* const values = flags.Given(*axis);
    if (values == nullptr) continue;
    ORRERY_RETURN_IF_ERROR(plan_flags_cc::CheckNames(*axis, *values));
    for (const std::string& value : *values) {
      ORRERY_RETURN_IF_ERROR(plan_flags_cc::OfFlag(*axis, axis->parse(value, plan)));
    }
  }
  for (const AxisInfo* axis : transforms::AllAxes()) {
    if (axis->follow != nullptr && flags.Given(*axis) == nullptr) axis->follow(plan);
  }
  return plan;
}

absl::Status AtBoundary(const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("--", status.message())};
}

absl::Status CheckFlags(const PlanFlags& flags, const transforms::ParallelPlan& plan,
                        const transforms::ParallelPlan& preset) {
  ORRERY_RETURN_IF_ERROR(AtBoundary(CheckPlan(plan, preset)));
  for (const AxisInfo* axis : transforms::AllAxes()) {
    if (flags.Given(*axis) == nullptr || axis->applies == nullptr || axis->applies(plan)) continue;
    if (SetBy(preset, *axis, plan)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", axis->flag, " ", axis->print(plan), ": wanted ", axis->needs));
  }
  return absl::OkStatus();
}

namespace plan_flags_cc {
namespace {

// Of stages or groups of ops with ranks of their own, degrees that nobody gives are those that one
// plan has.
absl::Status FollowMeshes(search::Space& space) {
  std::set<size_t> stages;
  for (const transforms::ParallelPlan& given :
       space.Values(*transforms::FindAxis("stage-meshes"))) {
    if (given.stage_meshes.empty()) return absl::OkStatus();
    stages.insert(given.stage_meshes.stages.size());
  }
  for (const transforms::ParallelPlan& given : space.Values(*transforms::FindAxis("placement"))) {
    if (given.placement.empty()) return absl::OkStatus();
    stages.insert(given.placement.sets.size());
  }
  if (stages.empty()) return absl::OkStatus();
  for (const auto& [name, value] :
       {std::pair("dp", std::string("1")), std::pair("hp", std::string("1")),
        std::pair("pp", absl::StrJoin(stages, ","))}) {
    const AxisInfo& axis = *transforms::FindAxis(name);
    if (space.Values(axis).empty()) ORRERY_RETURN_IF_ERROR(space.List(axis, value));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plan_flags_cc

absl::StatusOr<search::Space> ReadSpace(const PlanFlags& flags,
                                        const transforms::ParallelPlan& base) {
  search::Space space(base);
  for (const AxisInfo* axis : transforms::AllAxes()) {
    const std::vector<std::string>* const values = flags.Given(*axis);
    if (values == nullptr) continue;
    ORRERY_RETURN_IF_ERROR(plan_flags_cc::CheckNames(*axis, *values));
    for (const std::string& value : *values) {
      ORRERY_RETURN_IF_ERROR(plan_flags_cc::OfFlag(*axis, space.List(*axis, value)));
    }
  }
  ORRERY_RETURN_IF_ERROR(plan_flags_cc::FollowMeshes(space));
  return space;
}

}  // namespace orrery::tools
