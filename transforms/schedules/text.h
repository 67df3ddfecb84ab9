#ifndef ORRERY_TRANSFORMS_SCHEDULES_TEXT_H_
#define ORRERY_TRANSFORMS_SCHEDULES_TEXT_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/schedule.h"

// Orders as text, in the form of torch.distributed.pipelining: a rank a line, its steps in a row
// with commas between, "<stage><kind><microbatch>" each. Steps that run at once stand in
// parentheses: "0F0,0F1,(0F2;3B0)OVERLAP_F_B".

namespace orrery::transforms {

/// The step without its slot: "0F3".
std::string StepName(const ScheduleStep& step);

/// The steps of a rank, those that run at once as one text: "(0F2;3B0)OVERLAP_F_B".
std::vector<std::string> StepNames(std::span<const ScheduleStep> order);

/// One line a rank.
std::string PrintOrders(const RankOrders& orders);

/// Orders that were read, and the pipeline that they are of.
struct ParsedOrders {
  RankOrders orders;  // with slots
  StagePlacement placement = StagePlacement::kLoop;
  PipelineShape shape;
};

/// Reads what `PrintOrders` or torch writes. Blanks are skipped; so are empty cells, and torch's
/// actions that do not compute (SEND_F, RECV_B, UNSHARD, REDUCE_GRAD, …). Which stages and
/// microbatches there are, and where, follows from the steps. Errors, of `file`: what is no step,
/// by line and column; stages on ranks where no placement has them; all that CheckOrders finds.
absl::StatusOr<ParsedOrders> ParseOrders(absl::string_view text, absl::string_view file = "orders");

/// The orders as a picture, ranks down and time across, as many columns as units of time:
/// "rank 0 | 0F0 .   0B0---- ." of a forward that lasts one unit and a backward that lasts two; a
/// dot is a unit in which the rank waits. `unit` 0: the largest of which all times are multiples,
/// or, where that makes lines too long to read, a larger one: then steps share columns.
std::string DrawTimeline(const RankOrders& orders, const Timing& timing, int64_t unit = 0);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_TEXT_H_
