#include "search/bounds/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "search/bounds/least_memory.h"
#include "transforms/parallel.h"
#include "transforms/plan/divisors.h"
#include "transforms/plan/plan_text.h"
#include "transforms/step_work.h"
#include "transforms/training/microbatch.h"

namespace orrery::search {
namespace bounds_cc {
namespace {

// Sums are of doubles, bounds are exact.
constexpr double kBelow = 1 - 1e-9;

double SizeIn(const ir::Function& function, ir::ValueId value) {
  return static_cast<double>(SizeOf(function.type(value)).count());
}

// What a value is a view of, or `through_casts` another type of; invalid where it is neither.
ir::ValueId SourceOf(const ir::Function& function, ir::ValueId value, bool through_casts) {
  const ir::OpId op = function.producer(value);
  if (!op.valid()) return {};
  const ir::OpInfo& info = ir::GetOpInfo(function.kind(op));
  const bool is_view = info.op_class == ir::OpClass::kView || info.strided_view;
  const bool is_cast = through_casts && function.kind(op) == ir::OpKind::kCast;
  return is_view || is_cast ? function.operands(op)[0] : ir::ValueId();
}

// What a view looks at in the end.
ir::ValueId RootOf(const ir::Function& function, ir::ValueId value) {
  for (ir::ValueId from = value; from.valid(); from = SourceOf(function, from, false)) value = from;
  return value;
}

// A value, and what it is made of as a view or as another type: of these one is there before
// somebody asks for the others.
struct Chain {
  ir::ValueId root;
  double least = 0;  // bytes of the smallest
};
Chain ChainOf(const ir::Function& function, ir::ValueId value) {
  Chain chain{.root = value, .least = SizeIn(function, value)};
  for (ir::ValueId from = value; from.valid(); from = SourceOf(function, from, true)) {
    chain.root = from;
    chain.least = std::min(chain.least, SizeIn(function, from));
  }
  return chain;
}

// Bytes that forward leaves for backward, of `microbatches` microbatches together; nothing where
// the step cannot be made so.
std::optional<double> KeptIn(const Setting& setting, const ParallelPlan& plan,
                             int64_t microbatches) {
  const auto made = transforms::ParallelTransform3d(
      setting.step, {.microbatches = microbatches, .recompute = plan.recompute});
  if (!made.ok() || made->stages.size() != 1) return std::nullopt;
  const transforms::StageFunction& forward = made->stages.front().forward;
  const transforms::StageFunction& backward = made->stages.front().backward;
  std::set<ir::ValueId> saved, roots;  // saved: origins
  for (const ir::Input& input : backward.function.inputs()) {
    if (input.role != ir::InputRole::kSaved) continue;
    saved.insert(transforms::OriginOf(backward, input.value));
  }
  const auto take = [&](ir::ValueId value) {
    const ir::ValueId origin = transforms::OriginOf(forward, value);
    if (!origin.valid() || !saved.contains(origin)) return;
    const ir::ValueId root = RootOf(forward.function, value);
    if (forward.function.producer(root).valid()) roots.insert(root);
  };
  for (const ir::OpId op : forward.function.order()) {
    for (int32_t i = 0; i < forward.function.result_count(op); ++i) {
      take(forward.function.result(op, i));
    }
  }
  double bytes = 0;
  for (const ir::ValueId root : roots) bytes += SizeIn(forward.function, root);
  return bytes * static_cast<double>(microbatches);
}

// The part of what is kept that is as large as the batch: what is left of two numbers of
// microbatches without what each microbatch has anew. Two such pairs say the same, but where
// something grows faster than the batch; then nothing is said.
double KeptOfBatch(const Setting& setting, const ParallelPlan& plan) {
  const std::vector<int64_t> counts = transforms::Divisors(setting.batch_size);
  if (counts.size() < 3) return 0;
  const auto whole = KeptIn(setting, plan, 1);
  if (!whole.has_value()) return 0;
  const auto scaling = [&](int64_t count) -> double {
    const auto in_parts = KeptIn(setting, plan, count);
    if (!in_parts.has_value()) return -1;
    const double own = (*in_parts - *whole) / static_cast<double>(count - 1);  // of a microbatch
    return *whole - own;
  };
  const double first = scaling(counts[1]), last = scaling(counts.back());
  if (first <= 0 || std::abs(first - last) > 1e-9 * first) return 0;
  return first;
}

// What a rank has in flight, step by step.
class RankInFlight {
 public:
  RankInFlight(const std::vector<transforms::ScheduleStep>& order,
               const transforms::PipelineShape& shape)
      : held_(static_cast<size_t>(shape.stages()), 0) {
    for (const transforms::ScheduleStep& step : order) stages_.insert(step.stage);
  }

  void Take(const transforms::ScheduleStep& step) {
    using transforms::StepKind;
    if (step.kind == StepKind::kForward) {
      ++held_[static_cast<size_t>(step.stage)];
    } else if (begun_.emplace(step.stage, step.microbatch).second) {
      --held_[static_cast<size_t>(step.stage)];
    }
    const bool has_gradients =
        step.kind == StepKind::kBackward || step.kind == StepKind::kWeightGradient;
    if (has_gradients) with_gradients_.insert(step.stage);
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const int32_t stage : stages_) {
      fewest = std::min(fewest, held_[static_cast<size_t>(stage)]);
    }
    most_ = std::max(most_, fewest);
    if (with_gradients_.size() == stages_.size()) {
      beside_gradients_ = std::max(beside_gradients_, fewest);
    }
  }

  int64_t most() const { return most_; }
  int64_t beside_gradients() const { return beside_gradients_; }

 private:
  std::vector<int64_t> held_;                    // by stage
  std::set<std::pair<int32_t, int32_t>> begun_;  // backwards: stage, microbatch
  std::set<int32_t> stages_, with_gradients_;    // of the rank
  int64_t most_ = 0, beside_gradients_ = 0;
};

}  // namespace
}  // namespace bounds_cc

bool CountsKept(const Setting& setting, const ParallelPlan& plan) {
  const lowering::StackKernels& kernels = setting.lowering.kernels;
  return !plan.schedule->asynchronous && !plan.schedule->slices_sequence &&
         !plan.offload.activations && !plan.copies().has_value() && !kernels.fuses_pointwise &&
         !kernels.recomputes_whole && plan.slices.rows.empty();
}

double LeastPeak(double resident, double kept, std::span<const int64_t> in_flight) {
  double most = 0, inverse = 0;
  const auto ranks = static_cast<double>(in_flight.size());
  for (size_t i = 0; i < in_flight.size(); ++i) {
    const auto held = static_cast<double>(in_flight[i]);
    const double peak =
        (resident + held * kept) / (ranks - static_cast<double>(i) + held * inverse);
    most = std::max(most, peak);
    inverse += 1 / held;
  }
  return most;
}

InFlight LeastInFlight(const transforms::RankOrders& orders,
                       const transforms::PipelineShape& shape) {
  InFlight least;
  for (const std::vector<transforms::ScheduleStep>& order : orders) {
    bounds_cc::RankInFlight rank(order, shape);
    for (const transforms::ScheduleStep& step : order) rank.Take(step);
    least.most.push_back(std::max<int64_t>(1, rank.most()));
    least.beside_gradients.push_back(rank.beside_gradients());
  }
  return least;
}

Bounds::Bounds(const Setting& setting)
    : setting_(setting), weights_(SumWeights(setting)), time_(setting) {
  SumGradients();
}

// Several parameters may have views of one gradient, as those that are added up.
void Bounds::SumGradients() {
  const ir::Function& step = setting_.step;
  std::map<ir::ValueId, double> by_root;
  for (const ir::OpId op : step.order()) {
    if (ir::GetOpInfo(step.kind(op)).op_class != ir::OpClass::kOptimizer) continue;
    for (const ir::ValueId operand : step.operands(op)) {
      const bounds_cc::Chain chain = bounds_cc::ChainOf(step, operand);
      if (!step.producer(chain.root).valid()) continue;
      const auto [known, is_new] = by_root.emplace(chain.root, chain.least);
      if (!is_new) known->second = std::min(known->second, chain.least);
    }
  }
  for (const auto& [root, bytes] : by_root) gradients_ += bytes;
}

double Bounds::KeptOf(const ParallelPlan& plan) {
  if (!CountsKept(setting_, plan)) return 0;
  for (const auto& [policy, bytes] : kept_) {
    if (policy == plan.recompute) return bytes;
  }
  kept_.emplace_back(plan.recompute, bounds_cc::KeptOfBatch(setting_, plan));
  return kept_.back().second;
}

const InFlight& Bounds::InFlightOf(const ParallelPlan& plan) {
  constexpr int64_t kTooMany = 1 << 16;  // steps: to order more takes longer than it saves
  const transforms::PipelineSchedule& schedule = *plan.schedule;
  const bool open = setting_.orders.has_value() || schedule.weighs_durations ||
                    schedule.placement == transforms::StagePlacement::kTwoWay;
  const transforms::PipelineShape shape = ShapeOf(schedule, plan);
  const auto ranks = static_cast<size_t>(std::max<int64_t>(1, plan.pp));
  const auto [known, is_new] =
      in_flight_.try_emplace({&schedule, plan.pp, plan.microbatches, shape.chunks},
                             InFlight{std::vector<int64_t>(ranks, 1), {0}});
  if (!is_new || open) return known->second;
  if (int64_t{shape.stages()} * shape.microbatches > kTooMany) return known->second;
  if (!schedule.CheckShape(shape).ok()) return known->second;
  known->second = LeastInFlight(schedule.OrdersOf(shape), shape);
  std::ranges::sort(known->second.most);
  std::ranges::sort(known->second.beside_gradients);
  return known->second;
}

Bytes Bounds::MemoryOf(const ParallelPlan& plan) {
  const auto least = static_cast<double>(LeastMemory(weights_, plan).count());
  double with_gradients = least;
  if (!plan.schedule->asynchronous && !plan.offload.optimizer) {
    const int64_t share = plan.ranks() / plan.dp * transforms::ZeroGroupOf(plan);
    with_gradients += gradients_ / static_cast<double>(share);
  }
  double bytes = with_gradients;
  const auto stages = static_cast<double>(plan.pp);
  const double shares = static_cast<double>(plan.ranks()) * static_cast<double>(plan.microbatches);
  const double kept = KeptOf(plan) / shares * stages;
  if (kept > 0) {
    const auto& [most, beside_gradients] = InFlightOf(plan);
    bytes = std::max(bytes, LeastPeak(least * stages, kept, most));
    if (beside_gradients.front() > 0) {
      bytes = std::max(bytes, LeastPeak(with_gradients * stages, kept, beside_gradients));
    }
  }
  return Bytes(static_cast<int64_t>(bytes * bounds_cc::kBelow));
}

PlanBound Bounds::Of(const ParallelPlan& plan) {
  if (plan.unequal()) {  // sums over stages that are alike say nothing of others
    const auto least = static_cast<double>(LeastMemory(weights_, plan).count());
    return {.memory = Bytes(static_cast<int64_t>(least * bounds_cc::kBelow)), .time = {}};
  }
  return {.memory = MemoryOf(plan), .time = time_.Of(plan)};
}

}  // namespace orrery::search
