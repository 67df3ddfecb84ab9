#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace chunks_cc {
namespace {

// Only some schedules leave it open how many stages a rank holds.
std::vector<ParallelPlan> Choices(const SpaceQuestion& question, const ParallelPlan& plan,
                                  std::span<const ParallelPlan> given) {
  if (plan.schedule->chunks == 0 && !given.empty()) {
    return WithGiven<&ParallelPlan::chunks>(plan, given);
  }
  if (plan.schedule->chunks == 0 && plan.pp > 1 && question.full) {
    return WithEach<&ParallelPlan::chunks>(plan, std::vector<int64_t>{0, 4});
  }
  return WithEach<&ParallelPlan::chunks>(plan, std::vector<int64_t>{0});
}

// As many as the schedule has, where the plan leaves them open.
AxisCell Cell(const ParallelPlan& plan) {
  const int32_t ranks = plan.pp > 1 ? 2 : 1;  // only one rank is unlike others
  return int64_t{plan.schedule->ShapeOf(ranks, 1, static_cast<int32_t>(plan.chunks)).chunks};
}

}  // namespace
}  // namespace chunks_cc

extern const AxisInfo kChunksAxis = {
    .flag = "chunks",
    .summary = "stages that a rank holds, of schedules that leave it open; 0: as they have it",
    .values = "a number",
    .page =
        "stages that a rank holds, where the schedule leaves it open (`interleaved`, `looped-bfs`, "
        "`interleaved-zero-bubble`); of others only what they have",
    .page_default = "0: 2 where it leaves it open and `pp` is more than 1",
    .examples = {"2", "1", "5", "0"},
    .mistake = {"x", "'x': wanted a number"},
    .is_number = true,
    .parse = ParseNumber<&ParallelPlan::chunks, 0>,
    .print = PrintNumber<&ParallelPlan::chunks>,
    .copy = CopyField<&ParallelPlan::chunks>,
    .choices = chunks_cc::Choices,
    .column_position = 5,
    .cell = chunks_cc::Cell,
};

}  // namespace orrery::transforms
