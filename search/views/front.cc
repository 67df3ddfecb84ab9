#include "search/views/front.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "search/pruning.h"
#include "search/views/run_cost.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace front_cc {
namespace {

double Exposed(const Result& result) { return result.exposed_communication_s; }
double Bubble(const Result& result) { return result.bubble_fraction * result.step_time.seconds(); }
double Computing(const Result& result) {
  return result.step_time.seconds() - Exposed(result) - Bubble(result);
}

// "+1.2 s"; empty where it is less than a thousandth of `of`.
std::string Change(double seconds, double of, const char* what) {
  if (std::abs(seconds) < 1e-3 * of) return "";
  const Duration size = Duration::FromSeconds(std::abs(seconds));
  return absl::StrCat(what, seconds < 0 ? " -" : " +", ToString(size));
}

std::string MemoryChange(Bytes from, Bytes to) {
  if (from == to) return "";
  const bool more = to > from;
  return absl::StrCat(ToString(more ? to - from : from - to), more ? " more" : " less", " a rank");
}

// "--pp 2 instead of 4, …": the axes in which a plan differs from another.
std::string AxesText(const ParallelPlan& from, const ParallelPlan& to) {
  std::vector<std::string> changes;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const std::string was = axis->print(from), is = axis->print(to);
    if (was == is) continue;
    const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
    changes.push_back(absl::StrCat("--", axis->flag, " ", text(is), " instead of ", text(was)));
  }
  return absl::StrJoin(changes, ", ");
}

// What the second of two results has otherwise than the first.
std::string TradeText(const Result& from, const Result& to) {
  const double step = from.step_time.seconds();
  std::vector<std::string> parts = {Change(Computing(to) - Computing(from), step, "compute"),
                                    Change(Exposed(to) - Exposed(from), step, "exposed"),
                                    Change(Bubble(to) - Bubble(from), step, "bubble"),
                                    MemoryChange(from.peak_memory, to.peak_memory)};
  if (from.plan.ranks() != to.plan.ranks()) {
    parts.push_back(absl::StrCat(to.plan.ranks(), " devices instead of ", from.plan.ranks()));
  }
  std::erase(parts, "");
  const double slower = to.step_time.seconds() / step - 1;
  return absl::StrFormat("%5.2f%% %s%s%s: %s", 100 * std::abs(slower),
                         slower < 0 ? "faster" : "slower", parts.empty() ? "" : "; ",
                         absl::StrJoin(parts, ", "), AxesText(from.plan, to.plan));
}

// The columns of what a plan costs.
std::string CostTitles(const Setting& setting) {
  const bool priced = setting.device_hour > 0;
  return absl::StrCat(priced ? "  price/sample" : "", setting.run_samples > 0 ? "      days" : "",
                      priced && setting.run_samples > 0 ? "     price/run" : "");
}

std::string CostCells(const Setting& setting, const Result& result) {
  const bool priced = setting.device_hour > 0;
  std::string text;
  if (priced) absl::StrAppendFormat(&text, " %13.4g", PriceOfSample(setting, result));
  if (setting.run_samples < 1) return text;
  const RunCost cost = CostOfRun(setting, result);
  absl::StrAppendFormat(&text, " %9s", AmountText(cost.days()));
  if (priced) absl::StrAppendFormat(&text, " %13s", AmountText(cost.price));
  return text;
}

// How sure the best is where something else than time is wanted.
std::string GapBySize(const SearchRows& rows, const Result& best) {
  const bool memory = rows.goal() == Goal::kMemory;
  const double least = rows.least_size_left();
  if (least <= 0) {
    return absl::StrCat("\nnot sure: of what is left no bound of ", memory ? "memory" : "time",
                        " is known\n");
  }
  const std::string text =
      memory ? absl::StrCat("needs ", ToString(Bytes(static_cast<int64_t>(least))), " a rank")
             : absl::StrCat("takes ", ToString(Duration::FromSeconds(least)),
                            " a step, devices times time,");
  const double size = SizeOf(rows.goal(), GoalFiguresOf(best));
  if (least >= size) {
    return absl::StrCat("\nsure: what is left ", text, " at least: none is better than the best\n");
  }
  return absl::StrFormat(
      "\nnot sure: what is left %s at least, so the best may be %.1f%% above the least of all\n",
      text, 100 * (size / least - 1));
}

}  // namespace
}  // namespace front_cc

std::string TradesText(const SearchRows& rows, int64_t top) {
  const std::vector<const Result*> ranked = Ranked(rows);
  const size_t shown = std::min(ranked.size(), static_cast<size_t>(std::max<int64_t>(0, top)));
  if (shown < 2 || ranked.front()->step_time <= Duration(0)) return "";
  std::string text = "\nhow each differs from the one before:\n";
  for (size_t i = 1; i < shown; ++i) {
    absl::StrAppendFormat(&text, "%4d  %s\n", i + 1,
                          front_cc::TradeText(*ranked[i - 1], *ranked[i]));
  }
  return text;
}

std::string FrontText(const Setting& setting, const SearchRows& rows, int64_t most) {
  std::vector<const Result*> front = ParetoFront(rows.played());
  if (front.size() < 2 || most < 2) return "";
  std::ranges::stable_sort(front, {}, &Result::step_time);
  const size_t shown = std::min(front.size(), static_cast<size_t>(most));
  std::string text = absl::StrFormat(
      "\nPareto front of time, memory and devices%s, %d plans%s:\n%12s %10s %8s%s\n",
      rows.least_left().has_value() ? " of what was played" : "", front.size(),
      shown < front.size() ? absl::StrCat(", ", shown, " of them") : "", "step", "memory",
      "devices", front_cc::CostTitles(setting));
  for (size_t i = 0; i < shown; ++i) {
    const Result& result = *front[i * (front.size() - 1) / (shown - 1)];
    absl::StrAppendFormat(&text, "%12s %10s %8d%s  %s\n", ToString(result.step_time),
                          ToString(result.peak_memory), result.plan.ranks(),
                          front_cc::CostCells(setting, result),
                          ToString(result.plan, setting.base));
  }
  return text;
}

std::string GapText(const SearchRows& rows) {
  const std::vector<const Result*> ranked = Ranked(rows);
  if (!rows.least_left().has_value() || ranked.empty()) return "";
  if (rows.goal() == Goal::kMemory || rows.goal() == Goal::kPrice) {
    return front_cc::GapBySize(rows, *ranked.front());
  }
  const Duration best = ranked.front()->step_time, least = *rows.least_left();
  if (least == Duration(0)) return "\nnot sure: of what is left no bound of time is known\n";
  if (least >= best) {
    return absl::StrCat("\nsure: nothing that is left takes less than ", ToString(least),
                        " a step: none is faster than the best\n");
  }
  return absl::StrFormat(
      "\nnot sure: what is left takes %s a step at least, so the best may be %.1f%% slower than "
      "the fastest of all\n",
      ToString(least), 100 * (best.seconds() / least.seconds() - 1));
}

}  // namespace orrery::search
