#include "transforms/schedules/text.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/check.h"

namespace orrery::transforms {
namespace {

constexpr char kLetters[] = {'F', 'B', 'I', 'W'};
// More columns than that are more than anybody reads.
constexpr int64_t kReadableColumns = 400;

// Calls `visit` with the first and one past the last of each run of steps that run at once.
template <typename Visit>
void ForEachGroup(const std::vector<ScheduleStep>& order, Visit visit) {
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && order[end - 1].with_next) ++end;
    visit(begin, end);
    begin = end;
  }
}

std::string GroupName(const std::vector<ScheduleStep>& order, size_t begin, size_t end) {
  if (end == begin + 1) return StepName(order[begin]);
  std::string name = "(";
  for (size_t i = begin; i < end; ++i) {
    absl::StrAppend(&name, i == begin ? "" : ";", StepName(order[i]));
  }
  absl::StrAppend(&name, ")");
  return name;
}

int64_t UnitOf(const Timing& timing) {
  int64_t unit = 0;
  for (const auto& times : timing.steps) {
    for (const StepTime& time : times) unit = std::gcd(std::gcd(unit, time.start), time.finish);
  }
  unit = std::max<int64_t>(unit, 1);
  return std::max(unit, (timing.makespan + kReadableColumns - 1) / kReadableColumns);
}

// The cells of one rank: "." where it waits, a name where steps start, "-" where they go on.
std::vector<std::string> CellsOf(const std::vector<ScheduleStep>& order,
                                 const std::vector<StepTime>& times, size_t columns, int64_t unit) {
  std::vector<std::string> cells(columns, ".");
  ForEachGroup(order, [&](size_t begin, size_t end) {
    const auto first = static_cast<size_t>(times[begin].start / unit);
    const auto last = static_cast<size_t>((times[begin].finish + unit - 1) / unit);
    for (size_t column = first; column < std::min(last, columns); ++column) cells[column] = "-";
    if (first < columns) cells[first] = GroupName(order, begin, end);
  });
  return cells;
}

}  // namespace

std::string StepName(const ScheduleStep& step) {
  return absl::StrCat(step.stage, std::string(1, kLetters[static_cast<size_t>(step.kind)]),
                      step.microbatch);
}

std::string PrintOrders(const RankOrders& orders) {
  std::string text;
  for (const auto& order : orders) {
    ForEachGroup(order, [&](size_t begin, size_t end) {
      absl::StrAppend(&text, begin == 0 ? "" : ",", GroupName(order, begin, end),
                      end > begin + 1 ? "OVERLAP_F_B" : "");
    });
    text += "\n";
  }
  return text;
}

std::string DrawTimeline(const RankOrders& orders, const Timing& timing, int64_t unit) {
  if (unit == 0) unit = UnitOf(timing);
  ORRERY_CHECK(unit > 0) << unit;
  const auto columns = static_cast<size_t>((timing.makespan + unit - 1) / unit);
  std::vector<std::vector<std::string>> cells;
  size_t width = 1;
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    cells.push_back(CellsOf(orders[rank], timing.steps[rank], columns, unit));
    for (const std::string& cell : cells.back()) width = std::max(width, cell.size());
  }
  const size_t rank_width = absl::StrCat(orders.size() - 1).size();
  std::string text;
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    std::string line = absl::StrFormat("rank %-*d |", static_cast<int>(rank_width), rank);
    for (const std::string& cell : cells[rank]) {
      absl::StrAppendFormat(&line, " %-*s", static_cast<int>(width), cell);
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

}  // namespace orrery::transforms
