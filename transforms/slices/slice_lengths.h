#ifndef ORRERY_TRANSFORMS_SLICES_SLICE_LENGTHS_H_
#define ORRERY_TRANSFORMS_SLICES_SLICE_LENGTHS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery::transforms {

/// How long slices of the sequence are, of schedules whose microbatches they are: equally long;
/// `balanced`, so that the pipeline takes the least time (search/slices.h); or as `rows` has them.
struct SliceLengths {
  bool balanced = false;
  std::vector<int64_t> rows = {};  // positions of each

  friend bool operator==(const SliceLengths&, const SliceLengths&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SliceLengths& lengths) {
    return H::combine(std::move(h), lengths.balanced, lengths.rows);
  }
};

/// "equal", "balanced", or the positions of each slice: "1024,640,384". InvalidArgument for another
/// text.
absl::StatusOr<SliceLengths> ParseSliceLengths(absl::string_view text);
std::string ToString(const SliceLengths& lengths);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SLICES_SLICE_LENGTHS_H_
