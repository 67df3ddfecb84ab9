#include "search/views/difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "search/search.h"
#include "search/views/changes.h"
#include "simulator/report/report_details.h"
#include "support/printable.h"
#include "support/status.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace difference_cc {
namespace {

double KernelsOf(const simulator::Report& report) {
  const double step = report.step_time.seconds();
  return step * (1 - report.bubble_fraction) - report.exposed_communication_s;
}

// What kernels take more than without recomputation; 0 where that cannot be played.
absl::StatusOr<double> RecomputeOf(const Setting& setting, const ParallelPlan& plan,
                                   double kernels) {
  ParallelPlan without = plan;
  without.recompute = ParallelPlan().recompute;
  if (without.recompute == plan.recompute) return 0;
  const absl::StatusOr<Run> run = Play(setting, without);
  if (!run.ok() && !AsInfeasible(run.status()).has_value()) return run.status();
  return run.ok() ? kernels - KernelsOf(run->report) : 0;
}

// A step that is compared: the change of one part.
struct PartChange {
  std::string name;
  double seconds = 0;
};

// From the parts of `other` to those of `plan`, the largest first.
std::vector<PartChange> ChangesOf(const DividedStep& plan, const DividedStep& other) {
  std::vector<PartChange> changes;
  const auto add = [&](const NamedTime& part, double sign) {
    auto row = std::ranges::find(changes, part.name, &PartChange::name);
    if (row == changes.end()) row = changes.insert(row, {part.name, 0});
    row->seconds += sign * part.seconds;
  };
  for (const NamedTime& part : other.parts) add(part, -1);
  for (const NamedTime& part : plan.parts) add(part, 1);
  std::ranges::stable_sort(changes, std::greater<>(),
                           [](const PartChange& row) { return std::abs(row.seconds); });
  return changes;
}

constexpr int kBar = 24;  // characters of the longest

std::string Row(absl::string_view name, double seconds, double longest, bool is_change) {
  const Duration time = Duration::FromSeconds(std::abs(seconds));
  const auto length =
      static_cast<size_t>(longest > 0 ? std::lround(kBar * std::abs(seconds) / longest) : 0);
  const std::string number = absl::StrCat(!is_change    ? ""
                                          : seconds < 0 ? "-"
                                                        : "+",
                                          ToString(time));
  const std::string bar(length, !is_change ? '=' : seconds < 0 ? '-' : '+');
  return absl::StrFormat("  %-30s %12s%s%s\n", name, number, bar.empty() ? "" : "  ", bar);
}

std::string MemoryText(absl::string_view name, const DividedStep& step) {
  return absl::StrFormat("  memory of %-20s %12s: %s\n", name, ToString(step.memory.total),
                         simulator::CompositionText(step.memory));
}

// Whether `plan` has all values that `text` lists.
absl::StatusOr<bool> HasValues(const ParallelPlan& plan, absl::string_view text) {
  bool has = true;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const transforms::AxisInfo* axis = transforms::FindAxis(pair.first);
    if (axis == nullptr || word.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          Show(word), ": wanted a place, as in 1, or values of axes, as in 'dp=2 pp=4'"));
    }
    ParallelPlan with = plan;
    ORRERY_RETURN_IF_ERROR(transforms::SetAxis(*axis, pair.second, with));
    has &= axis->print(with) == axis->print(plan);
  }
  return has;
}

// Where others would come from.
absl::string_view MoreText(const SearchRows& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.IsPruned(i)) return "try --no-prune for those that were pruned";
  }
  return "try other lists of values to search";
}

}  // namespace
}  // namespace difference_cc

absl::StatusOr<DividedStep> Divide(const Setting& setting, const ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(const Run run, Play(setting, plan));
  const simulator::Report& report = run.report;
  DividedStep step{.plan = plan, .step_time = report.step_time, .parts = {}, .memory = {}};
  const double kernels = difference_cc::KernelsOf(report);
  ORRERY_ASSIGN_OR_RETURN(const double recompute,
                          difference_cc::RecomputeOf(setting, plan, kernels));
  step.parts = {{"compute", kernels - recompute}, {"recompute", recompute}};
  for (const simulator::CommunicationReport& row : report.communication) {
    const std::string name = absl::StrCat("exposed ", row.kind);
    auto part = std::ranges::find(step.parts, name, &NamedTime::name);
    if (part == step.parts.end()) part = step.parts.insert(part, {name, 0});
    part->seconds += row.exposed_s;
  }
  step.parts.push_back({"bubble", report.bubble_fraction * report.step_time.seconds()});
  for (const simulator::RankReport& rank : report.ranks.rows()) {
    if (rank.memory.total >= step.memory.total) step.memory = rank.memory;
  }
  return step;
}

absl::Status CheckCandidateName(absl::string_view text) {
  int64_t place = 0;
  if (absl::SimpleAtoi(text, &place)) return absl::OkStatus();
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Show(text), ": wanted a place, as in 1, or values of axes, as in 'dp=2 pp=4'"));
  }
  return difference_cc::HasValues(ParallelPlan(), text).status();
}

absl::StatusOr<const Result*> FindCandidate(const SearchRows& rows, absl::string_view text) {
  const std::vector<const Result*> ranked = Ranked(rows);
  int64_t place = 0;
  if (absl::SimpleAtoi(text, &place)) {
    if (place >= 1 && place <= std::ssize(ranked)) return ranked[static_cast<size_t>(place - 1)];
    return absl::InvalidArgumentError(
        absl::StrCat("got place ", place, "; wanted 1 to ", ranked.size(),
                     " of those that were played and fit; ", difference_cc::MoreText(rows)));
  }
  ORRERY_RETURN_IF_ERROR(CheckCandidateName(text));
  for (const Result* result : FastestFirst(rows)) {
    ORRERY_ASSIGN_OR_RETURN(const bool has, difference_cc::HasValues(result->plan, text));
    if (has) return result;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Show(text), ": none that was played and fits has these values; ",
                   difference_cc::MoreText(rows)));
}

std::string DifferenceText(const DividedStep& plan, const DividedStep& other,
                           absl::string_view first, absl::string_view second) {
  const double from = other.step_time.seconds(), to = plan.step_time.seconds();
  const double longest = std::max(from, to);
  std::string text =
      absl::StrFormat("why %s is %s than %s:\n", first,
                      from > to   ? absl::StrFormat("%.1f%% faster", 100 * (from / to - 1))
                      : from < to ? absl::StrFormat("%.1f%% slower", 100 * (to / from - 1))
                                  : "no faster",
                      second);
  text += difference_cc::Row(absl::StrCat("step of ", second), from, longest, false);
  for (const difference_cc::PartChange& row : difference_cc::ChangesOf(plan, other)) {
    if (std::abs(row.seconds) < 1e-4 * longest) continue;
    text += difference_cc::Row(row.name, row.seconds, longest, true);
  }
  text += difference_cc::Row(absl::StrCat("step of ", first), to, longest, false);
  text += difference_cc::MemoryText(first, plan) + difference_cc::MemoryText(second, other);
  const std::string changes = ChangeText(other.plan, plan.plan),
                    was = ChangeText(plan.plan, other.plan);
  absl::StrAppend(&text, "  ", first, " has ", changes.empty() ? "nothing else" : changes, ", ",
                  second, " ", was.empty() ? "nothing else" : was, "\n");
  return text;
}

}  // namespace orrery::search
