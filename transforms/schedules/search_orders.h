#ifndef ORRERY_TRANSFORMS_SCHEDULES_SEARCH_ORDERS_H_
#define ORRERY_TRANSFORMS_SCHEDULES_SEARCH_ORDERS_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transforms/schedules/schedule.h"

// The schedules that come out of a search: each is a placement, how much may be live on a rank, and
// the building blocks that the search starts from.

namespace orrery::transforms {

/// The least slots between the steps of a microbatch from one stage to the next.
struct BlockGaps {
  /// Within chunk 0 and within chunk 1, of forwards and of backwards. One chunk has the first only.
  std::array<int32_t, 2> forward = {1, 1};
  std::array<int32_t, 2> backward = {1, 1};
  /// From the last forward of chunk 0 to chunk 1, from the last forward of all to the first
  /// backward, and from the last backward of chunk 1 to chunk 0. One chunk has the second only.
  std::array<int32_t, 3> turns = {1, 1, 1};
  /// More than that after the forward of stage 0, and before that of the last stage but one.
  int32_t more_at_first = 0;
  int32_t more_near_last = 0;
};

struct OrderSearch {
  StagePlacement placement = StagePlacement::kLoop;  // one chunk; or kV, two
  bool splits_backward = true;
  std::vector<int64_t> live_limits;  // of each rank
  std::span<const BlockGaps> starts;
};

/// The best orders that a bounded search finds, slots included; the same at every call. Best by
/// OrderScore: the shortest under the durations of the shape; where all steps last the same, of
/// those the shortest for a transformer, so that the orders serve where nobody knows durations.
/// Requires limits of as many activations as a rank has chunks, or more. Plays 60,000 steps, or one
/// block of the whole shape if that is more: at most 7 ms for 16 ranks and 128 microbatches.
RankOrders SearchOrders(const PipelineShape& shape, const OrderSearch& search);

/// Limits for a V of two chunks where `limit` are meant to be live. Of few microbatches rank r
/// keeps at most all on the way down and r+1 on the way up: what came up first goes back before.
std::vector<int64_t> LimitsOfV(const PipelineShape& shape, int64_t limit);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_SEARCH_ORDERS_H_
