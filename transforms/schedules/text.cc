#include "transforms/schedules/text.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/check.h"
#include "transforms/schedules/step_letters.h"

namespace orrery::transforms {
namespace text_cc {
namespace {

// More columns than that are more than anybody reads.
constexpr int64_t kReadableColumns = 400;

int64_t UnitOf(const Timing& timing) {
  int64_t unit = 0;
  for (const auto& times : timing.steps) {
    for (const StepTime& time : times) unit = std::gcd(std::gcd(unit, time.start), time.finish);
  }
  unit = std::max<int64_t>(unit, 1);
  return std::max(unit, (timing.makespan + kReadableColumns - 1) / kReadableColumns);
}

// How many columns the time from `start` to `finish` takes part in.
size_t ColumnsOf(const StepTime& time, int64_t unit) {
  return static_cast<size_t>((time.finish + unit - 1) / unit - time.start / unit);
}

// Characters a column so that every name has room in the columns of its step, and a blank after it.
size_t WidthOf(const RankOrders& orders, const Timing& timing, int64_t unit) {
  size_t width = 2;
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    for (size_t i = 0; i < orders[rank].size(); ++i) {
      const size_t columns = std::max<size_t>(1, ColumnsOf(timing.steps[rank][i], unit));
      width = std::max(width, (StepName(orders[rank][i]).size() + columns) / columns);
    }
  }
  return width;
}

// One rank: "." in each column in which it waits, a name and dashes for as long as steps last.
std::string LineOf(const std::vector<ScheduleStep>& order, const std::vector<StepTime>& times,
                   size_t line_size, int64_t unit, size_t width) {
  std::string line(line_size, ' ');
  for (size_t at = 0; at < line.size(); at += width) line[at] = '.';
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t columns = ColumnsOf(times[i], unit);
    if (columns == 0) continue;  // it lasts no time
    std::string name = StepName(order[i]);
    if (columns > 1) name.resize(std::max(name.size(), columns * width - 1), '-');
    name.resize(columns * width, ' ');
    line.replace(static_cast<size_t>(times[i].start / unit) * width, name.size(), name);
  }
  return line;
}

}  // namespace
}  // namespace text_cc

std::string StepName(const ScheduleStep& step) {
  return absl::StrCat(step.stage, kStepLetters.Of(step.kind), step.microbatch);
}

std::vector<std::string> StepNames(std::span<const ScheduleStep> order) {
  std::vector<std::string> names;
  bool open = false;  // parentheses around steps that run at once
  for (const ScheduleStep& step : order) {
    if (!open) names.emplace_back();
    absl::StrAppend(&names.back(),
                    open             ? ";"
                    : step.with_next ? "("
                                     : "",
                    StepName(step), open && !step.with_next ? ")OVERLAP_F_B" : "");
    open = step.with_next;
  }
  return names;
}

std::string PrintOrders(const RankOrders& orders) {
  std::string text;
  for (const auto& order : orders) {
    absl::StrAppend(&text, absl::StrJoin(StepNames(order), ","), "\n");
  }
  return text;
}

std::string DrawTimeline(const RankOrders& orders, const Timing& timing, int64_t unit) {
  if (unit == 0) unit = text_cc::UnitOf(timing);
  ORRERY_CHECK(unit > 0) << unit;
  const size_t width = text_cc::WidthOf(orders, timing, unit);
  const size_t size = static_cast<size_t>((timing.makespan + unit - 1) / unit) * width;
  const auto rank_width = static_cast<int>(absl::StrCat(orders.size() - 1).size());
  std::string text;
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    const std::string line = text_cc::LineOf(orders[rank], timing.steps[rank], size, unit, width);
    absl::StrAppendFormat(&text, "rank %-*d | %s\n", rank_width, rank,
                          absl::StripTrailingAsciiWhitespace(line));
  }
  return text;
}

}  // namespace orrery::transforms
