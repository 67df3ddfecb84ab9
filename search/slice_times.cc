#include "search/slice_times.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "lowering/lower.h"
#include "simulator/program/time_alone.h"
#include "support/status.h"

namespace orrery::search {
namespace slice_times_cc {
namespace {

// What the slowest rank computes, and what ranks of one stage exchange while they wait.
double SecondsOf(const lowering::LoweredStep& row, const simulator::Program& program) {
  absl::flat_hash_map<simulator::RankClassId, double> by_rank;
  double slowest = 0;
  for (simulator::TaskId task = row.begin; task != row.end;
       task = simulator::TaskId(task.index() + 1)) {
    const auto streams = program.streams_of(task);
    const auto kind = program.stream(streams[0]).kind;
    const bool counts =
        kind == simulator::StreamKind::kCompute || kind == simulator::StreamKind::kHorizontal;
    if (!counts) continue;
    const simulator::FlowId flow = program.flow_of(task);
    const double seconds = flow.valid()
                               ? simulator::TimeAlone(program.flow(flow), program).seconds()
                               : program.duration(task).seconds();
    // A collective is one task of all its ranks.
    for (const simulator::StreamId stream : streams) {
      slowest = std::max(slowest, by_rank[program.stream(stream).rank] += seconds);
    }
  }
  return slowest;
}

double Sum(const std::array<double, 2>& phases) { return phases[0] + phases[1]; }

}  // namespace
}  // namespace slice_times_cc

SliceTimes::SliceTimes(int64_t units, int64_t count) : units_(static_cast<double>(units)) {
  for (int64_t length = 1; length <= units;) {
    lengths_.push_back(length);
    const int64_t next = length < 4 ? length + 1 : length + length / 2;
    length = length < units ? std::min(next, units) : next;
  }
  const auto position = std::ranges::lower_bound(lengths_, units / count);
  if (units % count == 0 && *position != units / count) lengths_.insert(position, units / count);
}

absl::Status SliceTimes::Measure(const SliceQuestion& q, int64_t unit) {
  transforms::PlanContext context = q.context;
  const int64_t all = lengths_.back() * unit;
  for (const int64_t length : lengths_) {
    context.slices.push_back({.begin = 0, .rows = length * unit});
    context.slices.push_back({.begin = all - length * unit, .rows = length * unit});
  }
  const int64_t rows = all / q.plan.microbatches;
  context.decided_on = {.begin = q.plan.microbatches / 2 * rows, .rows = rows};
  context.stages.schedule = nullptr;  // is of other microbatches
  ParallelPlan plan = q.plan;
  plan.microbatches = std::ssize(context.slices);
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelinedStep step,
                          transforms::ParallelTransform3d(q.setting.step, plan, context));
  std::vector<lowering::LoweredStep> lowered;
  lowering::LoweringOptions lowering = LoweringOf(q.setting, q.plan);
  lowering.fuse_runs = true;
  lowering.every_link = false;
  ORRERY_ASSIGN_OR_RETURN(const simulator::Program program,
                          lowering::Lower({.step = step,
                                           .schedule = q.schedule,
                                           .cluster = q.setting.cluster,
                                           .cost_model = *q.setting.cost_model,
                                           .options = lowering,
                                           .lowered = &lowered}));
  seconds_.assign(step.stages.size(), std::vector<Phases>(context.slices.size(), Phases{}));
  for (const lowering::LoweredStep& row : lowered) {
    const size_t phase = row.step.kind == transforms::StepKind::kForward ? 0 : 1;
    seconds_[static_cast<size_t>(row.step.stage)][static_cast<size_t>(row.step.microbatch)]
            [phase] += slice_times_cc::SecondsOf(row, program);
  }
  return absl::OkStatus();
}

// Of the slice of sample length i that begins at `begin`: keys grow with it. Beyond the last
// position where that slice could begin the line goes on.
SliceTimes::Phases SliceTimes::At(size_t stage, size_t sample, double begin) const {
  const Phases &first = seconds_[stage][2 * sample], &end = seconds_[stage][2 * sample + 1];
  const double last = units_ - static_cast<double>(lengths_[sample]);
  if (last <= 0) return first;
  Phases made;
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = first[i] + (end[i] - first[i]) * begin / last;
  }
  return made;
}

SliceTimes::Phases SliceTimes::Of(size_t stage, double begin, double length) const {
  const auto above = std::ranges::lower_bound(lengths_, length);
  const auto i = static_cast<size_t>(above - lengths_.begin());
  Phases made = At(stage, i, begin);
  if (i == 0 || static_cast<double>(*above) == length) return made;
  const auto low = static_cast<double>(lengths_[i - 1]), high = static_cast<double>(*above);
  const double share = (length - low) / (high - low);
  const Phases below = At(stage, i - 1, begin);
  for (size_t k = 0; k < made.size(); ++k) made[k] = share * made[k] + (1 - share) * below[k];
  return made;
}

double SliceTimes::OfSlowest(int64_t begin, int64_t length) const {
  double slowest = 0;
  for (size_t s = 0; s < StageCount(); ++s) {
    const Phases own = Of(s, static_cast<double>(begin), static_cast<double>(length));
    slowest = std::max(slowest, slice_times_cc::Sum(own));
  }
  return slowest;
}

double SliceTimes::Fill() const {
  double sum = 0, slowest = 0;
  for (size_t s = 0; s < StageCount(); ++s) {
    const double own = slice_times_cc::Sum(Of(s, 0, units_));
    sum += own;
    slowest = std::max(slowest, own);
  }
  return slowest > 0 ? sum / slowest - 1 : 0;
}

double SliceTimes::OfPipeline(const std::vector<double>& lengths) const {
  std::vector<double> free(StageCount(), 0);  // when each stage is
  std::vector<std::vector<double>> backward(lengths.size(), std::vector<double>(StageCount()));
  double begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    double done = 0;
    for (size_t s = 0; s < StageCount(); ++s) {
      const Phases own = Of(s, begin, lengths[i]);
      done = free[s] = std::max(done, free[s]) + own[0];
      backward[i][s] = own[1];
    }
    begin += lengths[i];
  }
  for (size_t i = lengths.size(); i-- > 0;) {
    double done = 0;
    for (size_t s = StageCount(); s-- > 0;) {
      done = free[s] = std::max(done, free[s]) + backward[i][s];
    }
  }
  return *std::ranges::max_element(free);
}

}  // namespace orrery::search
