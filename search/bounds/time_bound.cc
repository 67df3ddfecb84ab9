#include "search/bounds/time_bound.h"

#include <algorithm>
#include <cmath>

#include "transforms/step_work.h"

namespace orrery::search {
namespace time_bound_cc {
namespace {

// Sums are of doubles, bounds are exact.
constexpr double kBelow = 1 - 1e-9;

double Clamped(double value) { return std::max(0.0, value); }

bool Slices(const ParallelPlan& plan) {
  return plan.schedule->slices_sequence || !plan.slices.rows.empty();
}

}  // namespace
}  // namespace time_bound_cc

// With z what a rank has to do for a microbatch, and T the time: rank s starts when the chain has
// passed the stages before it, and the chain passes them again after it has ended, so that
//     z_0 + … + z_s + (m-1) z_s <= T + beside + (p-1) gap.
// Were all of them equal, z_s would be T'/m (1-1/m)^s, with T' the right side: no cut has more.
// Stages outside of the chain hold back nobody, but have no more than `outside` each, `all_outside`
// together, and what is scattered, nor than T/m each.
double LeastPipelineTime(int64_t ranks, int64_t microbatches, const PipelineWork& work) {
  const auto m = static_cast<double>(microbatches);
  const auto p = static_cast<double>(ranks);
  const double lost = work.beside + (p - 1) * work.gap;
  const double stays = 1 - 1 / m;
  double least = std::numeric_limits<double>::infinity();
  double rest = stays;  // (1-1/m)^(p-k), of k stages that are outside
  for (int64_t k = ranks - 1; k >= 0; --k, rest *= stays) {
    const auto outside = static_cast<double>(k);
    const double grows = 1 / (1 - rest);
    const double by_time = (work.all * grows - lost) / (1 + outside * grows / m);
    const double most_outside = std::min(outside * work.outside, work.all_outside);
    const double by_size = (work.all - (k > 0 ? most_outside + work.scattered : 0)) * grows - lost;
    least = std::min(least, std::max(by_time, by_size));
  }
  // One microbatch goes all the way.
  return std::max({least, work.all * m / p, work.all - lost});
}

TimeBound::TimeBound(const Setting& setting)
    : setting_(setting),
      model_(dynamic_cast<const cost_models::LeastTimes*>(setting.cost_model.get())) {}

TimeBound::Known& TimeBound::KnownOf(const transforms::RecomputePolicy& policy,
                                     std::optional<ir::DType> copies) {
  for (Known& known : known_) {
    if (known.policy == policy && known.copies == copies) return known;
  }
  known_.push_back(
      {.policy = policy, .copies = copies, .prices = StepPrices(setting_, *model_, copies)});
  known_.back().prices.Take(policy);
  return known_.back();
}

const LeastWork& TimeBound::WorkOf(Known& known, const WorkChoice& choice) {
  const auto [found, is_new] = known.work.try_emplace(choice);
  if (is_new) found->second = known.prices.Of(choice);
  return found->second;
}

TimeBound::RankWork TimeBound::WorkOf(const ParallelPlan& plan, int64_t stages) {
  const bool slices = time_bound_cc::Slices(plan);
  const WorkChoice choice = {
      .parts = plan.dp * plan.microbatches, .parts_sequences = plan.cp > 1, .slices = slices};
  Known& plain = KnownOf({}, plan.copies());
  const LeastWork& work = WorkOf(plain, choice);
  const int64_t of_stage = plan.ranks() / plan.dp / plan.pp;
  const auto ranks = static_cast<double>(of_stage);
  const auto group = static_cast<double>(transforms::ZeroGroupOf(plan));
  RankWork of_rank = {.all = work.all.Of(ranks),
                      .sums = work.sums.Of(ranks) *
                              std::min(1.0, setting_.lowering.kernels.sum_share) /
                              (plan.zero < 2 ? 1 : static_cast<double>(plan.dp)),
                      .forward = work.forward.Of(ranks),
                      .backward = work.backward.Of(ranks),
                      .gap = work.gap.Of(ranks),
                      .outside = work.outside.Of(ranks),
                      .all_outside = work.all_outside.Of(ranks),
                      .outside_again = work.outside_again.Of(ranks)};
  if (slices) of_rank.sums = 0;
  if (!plan.offload.optimizer) of_rank.update = plain.prices.update_seconds() / ranks / group;
  const lowering::StackKernels& kernels = setting_.lowering.kernels;
  const transforms::RecomputeRecord& record = *plan.recompute.record;
  const bool by_names = !plan.recompute.pattern.empty();
  if (record.mark == nullptr || slices || kernels.fuses_pointwise || plan.offload.activations ||
      (by_names && stages > 1)) {
    return of_rank;
  }
  const double with = WorkOf(KnownOf(plan.recompute, plan.copies()), choice).all.Of(ranks);
  // Ends of stages are ends of groups of layers, of which there are more.
  const int64_t ends = stages == 1 ? 0 : stages - (plan.recompute.every == 1 ? 1 : 0);
  const double spared = static_cast<double>(ends) * work.layer.Of(ranks);
  const bool layers = stages == 1 || work.layer.shared > 0;
  if (layers) of_rank.again = time_bound_cc::Clamped(with - of_rank.all - spared);
  return of_rank;
}

bool SplitsBackwards(const transforms::PipelineSchedule& schedule,
                     transforms::PipelineShape shape) {
  constexpr int32_t kEnough = 8;  // orders of a thousand ranks are of millions of steps
  if (schedule.weighs_durations) return true;
  while (shape.ranks > kEnough && shape.ranks % 2 == 0) shape.ranks /= 2;
  shape.microbatches = 4 * shape.ranks;
  if (!schedule.CheckShape(shape).ok()) return true;
  for (const auto& order : schedule.OrdersOf(shape)) {
    for (const transforms::ScheduleStep& step : order) {
      const bool whole = step.kind == transforms::StepKind::kForward ||
                         step.kind == transforms::StepKind::kBackward;
      if (!whole) return true;
    }
  }
  return false;
}

bool KnownSplits::Of(const transforms::PipelineSchedule& schedule,
                     const transforms::PipelineShape& shape) {
  const auto [found, is_new] =
      splits_.try_emplace({&schedule, int64_t{shape.ranks} << 32 | shape.chunks}, true);
  if (is_new) found->second = SplitsBackwards(schedule, shape);
  return found->second;
}

bool TimeBound::HasPlainOrders(const ParallelPlan& plan, const transforms::PipelineShape& shape) {
  return !setting_.orders.has_value() && plan.schedule_file.empty() && shape.chunks == 1 &&
         plan.schedule->placement == transforms::StagePlacement::kLoop &&
         !splits_.Of(*plan.schedule, shape);
}

Duration TimeBound::Of(const ParallelPlan& plan) {
  if (model_ == nullptr || plan.schedule->asynchronous) return Duration(0);
  const transforms::PipelineShape shape = ShapeOf(*plan.schedule, plan);
  const int64_t stages = plan.pp * std::max<int64_t>(1, shape.chunks);
  const RankWork work = WorkOf(plan, stages);
  const auto m = static_cast<double>(plan.microbatches), p = static_cast<double>(plan.pp);
  const double pipelines = transforms::Pipelines(plan.schedule->placement);
  const double sums = time_bound_cc::Clamped(m - pipelines) * work.sums;
  const double all = work.all + work.again;
  double seconds = (m * all + sums + work.update) / p;
  if (plan.pp > 1 && !time_bound_cc::Slices(plan) && HasPlainOrders(plan, shape)) {
    const double scattered = time_bound_cc::Clamped(work.all - work.forward - work.backward);
    const double again = work.again > 0 ? work.outside_again : 0;
    const PipelineWork of_one = {.all = all,
                                 .beside = scattered + work.again,
                                 .gap = work.gap,
                                 .outside = work.outside + again,
                                 .all_outside = work.all_outside + work.again,
                                 .scattered = scattered};
    seconds = std::max(seconds, LeastPipelineTime(plan.pp, plan.microbatches, of_one));
  }
  // Down, where FromSeconds rounds up.
  const Duration up = Duration::FromSeconds(seconds * time_bound_cc::kBelow);
  return Duration(std::max<int64_t>(0, up.picoseconds() - 1));
}

}  // namespace orrery::search
