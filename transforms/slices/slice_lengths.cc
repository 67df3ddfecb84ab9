#include "transforms/slices/slice_lengths.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace orrery::transforms {

absl::StatusOr<SliceLengths> ParseSliceLengths(absl::string_view text) {
  if (text.empty() || text == "equal") return SliceLengths{};
  if (text == "balanced") return SliceLengths{.balanced = true};
  SliceLengths lengths;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int64_t rows = 0;
    if (!absl::SimpleAtoi(item, &rows) || rows < 1 || rows > (int64_t{1} << 40)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text.substr(0, 80),
                       "': wanted equal, balanced, or the positions of each slice, as in "
                       "1024,640,384"));
    }
    lengths.rows.push_back(rows);
  }
  return lengths;
}

std::string ToString(const SliceLengths& lengths) {
  if (lengths.balanced) return "balanced";
  return lengths.rows.empty() ? "equal" : absl::StrJoin(lengths.rows, ",");
}

}  // namespace orrery::transforms
