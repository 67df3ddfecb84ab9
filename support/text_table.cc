#include "support/text_table.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "support/check.h"

namespace orrery {
namespace text_table_cc {
namespace {

constexpr size_t kGap = 2;

// Characters of UTF-8.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

}  // namespace
}  // namespace text_table_cc

std::string TextTable(const std::vector<TextRow>& rows, size_t left) {
  using text_table_cc::Width;
  std::vector<size_t> widths;
  for (const TextRow& row : rows) {
    widths.resize(rows.front().size(), 0);
    ORRERY_CHECK(!row.empty() && row.size() == widths.size()) << row.size() << " cells";
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const TextRow& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - Width(row[i]), ' ');
      const bool last = i + 1 == row.size();
      absl::StrAppend(&text, i < left ? "" : blanks, row[i], i < left && !last ? blanks : "",
                      std::string(last ? 0 : text_table_cc::kGap, ' '));
    }
    text += '\n';
  }
  return text;
}

}  // namespace orrery
