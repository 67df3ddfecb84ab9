#include "tools/search_lists.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace orrery::tools {
namespace search_lists_cc {
namespace {

bool IsFile(absl::string_view text) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::string(text), ignored);
}

// Whether the part of a list begins another name.
bool Begins(absl::string_view part, bool plain) {
  const size_t colon = part.find(':'), equals = part.find('=');
  if (colon != absl::string_view::npos && colon < equals) return true;
  return (plain && equals == absl::string_view::npos) || IsFile(part);
}

}  // namespace
}  // namespace search_lists_cc

std::vector<std::string> SplitNames(absl::string_view text, bool plain) {
  if (search_lists_cc::IsFile(text)) return {std::string(text)};
  std::vector<std::string> names;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (names.empty() || search_lists_cc::Begins(part, plain)) {
      names.emplace_back(part);
    } else {
      absl::StrAppend(&names.back(), ",", part);
    }
  }
  return names;
}

absl::StatusOr<std::vector<int64_t>> ParseBatchSizes(absl::string_view text) {
  std::vector<int64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "': wanted numbers of samples, as in 256,512"));
    }
    if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

absl::StatusOr<std::vector<double>> ParsePrices(absl::string_view text, size_t clusters) {
  if (text.empty()) return std::vector<double>(clusters, 0);
  std::vector<double> prices;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    double price = 0;
    if (!absl::SimpleAtod(part, &price) || !(price > 0) || !std::isfinite(price)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "': wanted what a device costs an hour, as in 2.5"));
    }
    prices.push_back(price);
  }
  if (prices.size() == 1) prices.resize(clusters, prices.front());
  if (prices.size() == clusters) return prices;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", prices.size(), " prices for ",
                                                 clusters, " clusters; wanted one, or one each"));
}

}  // namespace orrery::tools
