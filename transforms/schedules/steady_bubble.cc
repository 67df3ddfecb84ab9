#include "transforms/schedules/steady_bubble.h"

#include <algorithm>
#include <numeric>

#include "transforms/schedules/orders.h"

namespace orrery::transforms {
namespace steady_bubble_cc {
namespace {

// None where the run would be too long.
std::optional<int64_t> Makespan(const PipelineSchedule& schedule, PipelineShape shape,
                                int64_t microbatches) {
  if (microbatches > kMostSteadySteps / (2 * int64_t{shape.stages()})) return std::nullopt;
  shape.microbatches = static_cast<int32_t>(microbatches);
  return TimeOrders(schedule.OrdersOf(shape), schedule.placement, shape, shape.durations).makespan;
}

// Microbatches after which a full pipeline is where it was: as many as are under way go round, of
// 1F1B p and of a schedule with a limit so many.
int64_t Period(const PipelineShape& shape) {
  const int64_t ranks = shape.ranks;
  return std::lcm(2 * ranks, std::max<int64_t>(1, shape.live_limit));
}

}  // namespace
}  // namespace steady_bubble_cc

std::optional<double> SteadyBubble(const PipelineSchedule& schedule, const PipelineShape& shape) {
  const int64_t period = steady_bubble_cc::Period(shape);
  const auto makespan = [&](int64_t microbatches) {
    return steady_bubble_cc::Makespan(schedule, shape, microbatches);
  };
  for (int64_t microbatches = period;; microbatches *= 2) {
    const auto first = makespan(microbatches), second = makespan(microbatches + period),
               third = makespan(microbatches + 2 * period);
    if (!third.has_value()) return std::nullopt;
    const int64_t time = *third - *second;
    if (time != *second - *first) continue;
    const StepDurations& of = shape.durations;
    const int64_t busy =
        period * shape.chunks * (of.forward + of.input_gradient + of.weight_gradient);
    return time == 0 ? 0 : static_cast<double>(time - busy) / static_cast<double>(time);
  }
}

}  // namespace orrery::transforms
