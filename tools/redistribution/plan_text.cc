#include "tools/redistribution/plan_text.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "support/text_table.h"

namespace orrery::tools {

using redistribution::PackedLayout;
using redistribution::PlannedStep;
using redistribution::RedistributionPlan;
using redistribution::StepCost;

namespace plan_text_cc {
namespace {

constexpr std::array<std::pair<absl::string_view, double StepCost::*>, 7> kParts = {
    {{"launches", &StepCost::launches},
     {"latency", &StepCost::latency},
     {"transfer", &StepCost::transfer},
     {"copy", &StepCost::copy},
     {"reduction", &StepCost::reduction},
     {"synchronization", &StepCost::synchronization},
     {"memory", &StepCost::memory}}};

std::string UnitBehind(const Redistributor& question) {
  return question.unit().empty() ? std::string() : absl::StrCat(" ", question.unit());
}

// Of each step its parts in the order of kParts, and what creating its group costs.
using Parts = std::array<double, kParts.size() + 1>;

std::vector<Parts> PartsOf(const Redistributor& question, const RedistributionPlan& plan) {
  std::vector<Parts> parts;
  PackedLayout at = Source(question);
  for (const PlannedStep& step : plan.steps) {
    const StepCost cost = question.move_set().CostOf(at, step.step);
    Parts& of_step = parts.emplace_back();
    for (size_t i = 0; i < kParts.size(); ++i) of_step[i] = cost.*kParts[i].second;
    of_step.back() = step.creation;
    at = step.step.after;
  }
  return parts;
}

absl::string_view NameOf(size_t part) {
  return part < kParts.size() ? kParts[part].first : "groups";
}

// Two reductions that are alike and to all ranks, with other steps between, where one group could
// do both: "".
std::string NotMerged(const Redistributor& question, const RedistributionPlan& plan) {
  using redistribution::MoveKind;
  std::string notes;
  PackedLayout first_at = Source(question);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const redistribution::Step& first = plan.steps[i].step;
    for (size_t j = i + 1; j < plan.steps.size() && first.kind == MoveKind::kAllReduce; ++j) {
      const redistribution::Step& second = plan.steps[j].step;
      if (second.kind != MoveKind::kAllReduce) continue;
      redistribution::Step merged = first;
      bool alike = true;
      for (const ir::AxisIndex axis : second.axes.axes()) {
        alike = alike && first_at.role(axis) == redistribution::AxisRole::kPartial &&
                redistribution::ReducedTogether(first_at.reduction(axis),
                                                first_at.reduction(first.axes.axes().front()));
        merged.axes.push_back(axis);
      }
      merged.axes = merged.axes.Sorted();
      if (!alike) continue;
      const std::string refusal = question.move_set().Refusal(first_at, merged);
      absl::StrAppend(
          &notes, "Steps ", i + 1, " and ", j + 1, " are two reductions of one kind",
          refusal.empty()
              ? absl::StrCat(", which a group ", question.problem().mesh.Names(merged.axes),
                             " does as one")
              : absl::StrCat(", and not merged: ", PlannerNote(absl::NotFoundError(refusal))),
          "\n");
    }
    first_at = first.after;
  }
  return notes;
}

}  // namespace
}  // namespace plan_text_cc

std::string Megabytes(int64_t elements, const Redistributor& question) {
  return PlainNumber(static_cast<double>(elements) *
                     static_cast<double>(question.problem().itemsize) / 1e6);
}

std::string WithUnit(absl::string_view column, const Redistributor& question) {
  return question.unit().empty() ? std::string(column)
                                 : absl::StrCat(column, " [", question.unit(), "]");
}

PackedLayout Source(const Redistributor& question) {
  return question.move_set().Normal(PackedLayout(question.problem().from));
}

std::string PlanText(const WrittenProblem& written, const Redistributor& question,
                     const RedistributionPlan& plan) {
  PackedLayout at = Source(question);
  std::vector<TextRow> rows = {
      {"Step #", "Operation", "Distribution", WithUnit("Cost", question), "Memory Usage [MB]"},
      {"0", "", written.Text(PackedLayout(question.problem().from)), "0",
       Megabytes(question.move_set().Elements(at), question)}};
  for (const PlannedStep& step : plan.steps) {
    rows.push_back({absl::StrCat(rows.size() - 1), question.move_set().NameOf(at, step.step),
                    written.Text(step.step.after), PlainNumber(step.cost),
                    Megabytes(question.move_set().Elements(step.step.after), question)});
    at = step.step.after;
  }
  return absl::StrCat(TextTable(rows), "Total cost: ", PlainNumber(plan.cost),
                      plan_text_cc::UnitBehind(question), "\nPeak: ", plan.peak, " elements, ",
                      Megabytes(plan.peak, question), " MB\n",
                      plan.exact ? "" : "The search gave up: there may be a better plan.\n");
}

absl::StatusOr<std::string> GivenText(const WrittenProblem& written, const Redistributor& question,
                                      const RedistributionPlan& plan, int64_t limit) {
  PackedLayout at = Source(question);
  std::vector<TextRow> rows = {{"Step #", "Operation", "Distribution", WithUnit("Cost", question),
                                "Volume", "Group", "Memory Usage [MB]"},
                               {"0", "", written.Text(PackedLayout(question.problem().from)), "0",
                                "", "", Megabytes(question.move_set().Elements(at), question)}};
  for (const PlannedStep& step : plan.steps) {
    const redistribution::StepVolume volume = question.move_set().VolumeOf(at, step.step);
    rows.push_back({absl::StrCat(rows.size() - 1), question.move_set().NameOf(at, step.step),
                    written.Text(step.step.after), PlainNumber(step.cost),
                    PlainNumber(volume.elements), absl::StrCat(volume.ranks),
                    Megabytes(question.move_set().Elements(step.step.after), question)});
    at = step.step.after;
  }
  ORRERY_ASSIGN_OR_RETURN(const RedistributionPlan best, question.Plan("optimal", limit));
  const std::string unit = plan_text_cc::UnitBehind(question);
  return absl::StrCat(TextTable(rows), "Total cost: ", PlainNumber(plan.cost), unit,
                      "\nCheapest plan: ", PlainNumber(best.cost), unit, ", ", best.steps.size(),
                      best.steps.size() == 1 ? " step" : " steps", "\nPeak: ", plan.peak,
                      " elements, ", Megabytes(plan.peak, question), " MB\n",
                      question.has_groups() ? plan_text_cc::NotMerged(question, plan) : "");
}

std::string PartsText(const Redistributor& question, const RedistributionPlan& plan) {
  const std::vector<plan_text_cc::Parts> parts = plan_text_cc::PartsOf(question, plan);
  plan_text_cc::Parts sums = {};
  for (const plan_text_cc::Parts& of_step : parts) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_step[i];
  }
  std::vector<TextRow> rows = {{"Step #", "Operation"}};
  for (size_t s = 0; s < parts.size() + 1; ++s) rows.push_back({});
  PackedLayout at = Source(question);
  for (size_t s = 0; s < parts.size(); ++s) {
    const redistribution::Step& step = plan.steps[s].step;
    rows[s + 1] = {absl::StrCat(s + 1), question.move_set().NameOf(at, step)};
    at = step.after;
  }
  rows.back() = {"", "all"};
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == 0) continue;
    rows[0].push_back(WithUnit(plan_text_cc::NameOf(i), question));
    for (size_t s = 0; s < parts.size(); ++s) rows[s + 1].push_back(PlainNumber(parts[s][i]));
    rows.back().push_back(PlainNumber(sums[i]));
  }
  return TextTable(rows);
}

std::string PlanJson(const WrittenProblem& written, const Redistributor& question,
                     const RedistributionPlan& plan) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  const std::vector<plan_text_cc::Parts> parts = plan_text_cc::PartsOf(question, plan);
  PackedLayout at = Source(question);
  for (const PlannedStep& step : plan.steps) {
    const redistribution::StepVolume volume = question.move_set().VolumeOf(at, step.step);
    nlohmann::ordered_json of_step;
    for (size_t i = 0; i < parts[steps.size()].size(); ++i) {
      of_step[std::string(plan_text_cc::NameOf(i))] = parts[steps.size()][i];
    }
    steps.push_back({{"op", question.move_set().NameOf(at, step.step)},
                     {"kind", redistribution::ToString(step.step.kind)},
                     {"axes", step.step.axes.axes()},
                     {"cost", step.cost},
                     {"elements", question.move_set().Elements(step.step.after)},
                     {"peak_elements", step.peak},
                     {"volume_elements", volume.elements},
                     {"group_size", volume.ranks},
                     {"layout", written.Text(step.step.after)},
                     {"cost_parts", of_step}});
    at = step.step.after;
  }
  const nlohmann::ordered_json whole = {{"total_cost", plan.cost},
                                        {"peak_elements", plan.peak},
                                        {"exact", plan.exact},
                                        {"from", written.Text(PackedLayout(written.problem.from))},
                                        {"to", written.Text(PackedLayout(written.problem.to))},
                                        {"steps", steps}};
  return whole.dump(1) + "\n";
}

}  // namespace orrery::tools
