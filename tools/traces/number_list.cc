#include "tools/traces/number_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/printable.h"

namespace orrery::tools {
namespace number_list_cc {
namespace {

constexpr size_t kMostNumbers = 1'000'000;

bool ReadNumber(absl::string_view text, int32_t& number) {
  return std::ranges::all_of(
             text, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }) &&
         absl::SimpleAtoi(text, &number);
}

}  // namespace
}  // namespace number_list_cc

absl::StatusOr<std::vector<int32_t>> ParseNumberList(absl::string_view text) {
  std::vector<int32_t> numbers;
  std::set<int32_t> seen;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int32_t first = 0, last = 0;
    const bool is_range = part.find('-') != absl::string_view::npos;
    if (!number_list_cc::ReadNumber(ends.first, first) ||
        !number_list_cc::ReadNumber(is_range ? ends.second : ends.first, last) || last < first) {
      return absl::InvalidArgumentError(absl::StrCat(
          Show(part), ": wanted numbers and ranges with commas between, as in 0,8-15"));
    }
    if (static_cast<size_t>(last - first) >= number_list_cc::kMostNumbers) {
      return absl::InvalidArgumentError(absl::StrCat(Show(part), ": wanted at most a million"));
    }
    for (int32_t number = first; number <= last; ++number) {
      if (seen.insert(number).second) numbers.push_back(number);
    }
    if (numbers.size() > number_list_cc::kMostNumbers) {
      return absl::InvalidArgumentError(absl::StrCat(Show(part), ": wanted at most a million"));
    }
  }
  return numbers;
}

}  // namespace orrery::tools
