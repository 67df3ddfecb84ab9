#include "search/bounds/least_work.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/fusing.h"
#include "transforms/parallel.h"
#include "transforms/plan/divisors.h"
#include "transforms/stages/forward_layers.h"

namespace orrery::search {
namespace least_work_cc {
namespace {

using cost_models::LeastTime;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool IsSum(OpKind kind) { return kind == OpKind::kAccumulate || kind == OpKind::kCollect; }

bool IsAttention(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionGrad;
}

// Captured as graphs, kernels of forward and backward need no launches of their own. Those of the
// update do, which counts for nothing here.
cluster::Device DeviceOf(const Setting& setting, int32_t kind) {
  cluster::Device device = setting.cluster.kind(kind);
  if (setting.lowering.kernels.graphs) device.launch_overhead = Duration(0);
  return device;
}

// The op on one device, with the operands of type `dtype` that are floats, where that is said.
LeastTime LeastOn(const cost_models::LeastTimes& model, const Setting& setting,
                  const Function& function, OpId op, std::optional<ir::DType> dtype) {
  std::vector<ir::TensorType> operands;
  std::vector<const ir::TensorType*> pointers, results;
  operands.reserve(function.operands(op).size());
  for (const ValueId operand : function.operands(op)) {
    operands.push_back(function.type(operand));
    if (dtype.has_value() && ir::IsFloat(operands.back().dtype)) operands.back().dtype = *dtype;
    pointers.push_back(&operands.back());
  }
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    results.push_back(&function.type(function.result(op, i)));
  }
  const cost_models::OpView view = {.kind = function.kind(op),
                                    .attributes = function.attributes(op),
                                    .operands = pointers,
                                    .results = results,
                                    .choice = &setting.lowering.kernels.choice};
  LeastTime least;
  for (int32_t kind = 0; kind < setting.cluster.kind_count(); ++kind) {
    const LeastTime here = model.LeastOf(view, DeviceOf(setting, kind));
    if (kind == 0) {
      least = here;
      continue;
    }
    least.starts_s = std::min(least.starts_s, here.starts_s);
    for (size_t i = 0; i < least.kernels.size(); ++i) {
      double& arithmetic = least.kernels[i].arithmetic_s;
      double& memory = least.kernels[i].memory_s;
      arithmetic = std::min(arithmetic, here.kernels[i].arithmetic_s);
      memory = std::min(memory, here.kernels[i].memory_s);
    }
  }
  return least;
}

// What is in each range, by sums up to each position.
template <typename F>
void ForRanges(const std::vector<PositionRange>& ranges, const std::vector<LeastSeconds>& so_far,
               F f) {
  for (const PositionRange& range : ranges) {
    const LeastSeconds &end = so_far[range.end], &begin = so_far[range.begin];
    f(LeastSeconds{.shared = end.shared - begin.shared, .starts = end.starts - begin.starts});
  }
}

// By parts of LeastSeconds.
LeastSeconds LongestOf(const std::vector<PositionRange>& ranges,
                       const std::vector<LeastSeconds>& so_far) {
  LeastSeconds longest;
  ForRanges(ranges, so_far, [&](const LeastSeconds& range) { longest = Larger(longest, range); });
  return longest;
}

}  // namespace
}  // namespace least_work_cc

StepPrices::StepPrices(const Setting& setting, const cost_models::LeastTimes& model,
                       std::optional<ir::DType> copies)
    : setting_(setting), model_(model), copies_(copies) {}

void StepPrices::Take(const transforms::RecomputePolicy& policy) {
  const std::vector<int64_t> divisors =
      transforms::Divisors(std::max<int64_t>(1, setting_.batch_size));
  std::vector<transforms::PipelinedStep> steps;
  for (const size_t i : {size_t{0}, divisors.size() / 2, divisors.size() - 1}) {
    if (!parts_.empty() && divisors[i] == parts_.back()) continue;
    auto step = transforms::ParallelTransform3d(setting_.step,
                                                {.microbatches = divisors[i], .recompute = policy});
    if (!step.ok() || step->stages.size() != 1) break;
    steps.push_back(*std::move(step));
    parts_.push_back(divisors[i]);
  }
  std::vector<const ir::Function*> forwards, backwards;
  for (const transforms::PipelinedStep& step : steps) {
    forwards.push_back(&step.stages[0].forward.function);
    backwards.push_back(&step.stages[0].backward.function);
  }
  if (steps.empty() || !NumberAll(forwards, forward_) || !NumberAll(backwards, backward_)) {
    parts_.clear();
    return;
  }
  const transforms::PipelineStage& whole = steps.front().stages[0];
  const auto& order = whole.backward.function.order();
  IdTable<ir::OpId, double> seconds(whole.backward.function.op_limit(), 0);
  for (size_t at = 0; at < order.size(); ++at) {
    if (backward_[at] == kFree) continue;
    seconds[order[at]] = SecondsOf(ops_[static_cast<size_t>(backward_[at])], {}).shared;
  }
  chains_ = FindChains(whole, [&](ir::OpId op) { return seconds[op]; });
  const transforms::StageFunction* const forward = &whole.forward;
  const auto layers = transforms::FindLayers(std::span(&forward, 1));
  for (const transforms::LayerRange& layer : layers[0]) {
    layers_.push_back({static_cast<size_t>(layer.begin), static_cast<size_t>(layer.end)});
  }
  FindSums(*backwards.back());
  PriceUpdate(whole.update.function);
}

// What is a kernel whatever the shardings and the stack, and is no sum over microbatches.
bool StepPrices::IsSure(const ir::Function& function, ir::OpId op) const {
  const ir::OpInfo& info = function.info(op);
  const ir::OpKind kind = function.kind(op);
  if (info.op_class != ir::OpClass::kCompute) return false;
  if (copies_.has_value() && !info.matrix_product) return false;
  const lowering::StackKernels& kernels = setting_.lowering.kernels;
  if (kernels.fuses_pointwise) return ir::FusingOf(kind) == ir::Fusing::kNever;
  return !kernels.fuses_dropout_sums || (kind != ir::OpKind::kDropout && kind != ir::OpKind::kAdd);
}

// A product of copies takes as little as one of either type; what it writes may be a copy, too.
cost_models::LeastTime StepPrices::LeastOf(const ir::Function& function, ir::OpId op) const {
  cost_models::LeastTime least =
      least_work_cc::LeastOn(model_, setting_, function, op, std::nullopt);
  if (!copies_.has_value()) return least;
  const cost_models::LeastTime narrow =
      least_work_cc::LeastOn(model_, setting_, function, op, copies_);
  for (size_t i = 0; i < least.kernels.size(); ++i) {
    least.kernels[i].arithmetic_s =
        std::min(least.kernels[i].arithmetic_s, narrow.kernels[i].arithmetic_s);
    least.kernels[i].memory_s = 0;
  }
  least.starts_s = std::min(least.starts_s, narrow.starts_s);
  return least;
}

// Seconds of one part, in several numbers of parts, as seconds of all. What fits no line, as what
// grows faster than the batch, is less where there are more parts: nothing is said of it.
StepPrices::Linear StepPrices::Fit(const std::vector<double>& seconds,
                                   const std::vector<int64_t>& parts) {
  constexpr double kExact = 1e-9;
  const auto all = [&](size_t i) { return seconds[i] * static_cast<double>(parts[i]); };
  const size_t last = parts.size() - 1;
  if (!std::isfinite(all(last)) || !std::isfinite(all(0))) return {};
  if (last == 0) return {.whole = all(0)};
  Linear line;
  line.each = (all(last) - all(0)) / static_cast<double>(parts[last] - parts[0]);
  line.whole = all(0) - line.each * static_cast<double>(parts[0]);
  const double near = kExact * all(last);
  for (size_t i = 0; i <= last; ++i) {
    const double there = line.whole + line.each * static_cast<double>(parts[i]);
    if (std::abs(there - all(i)) > near) return {};
  }
  if (line.whole < -near || line.each < -near / static_cast<double>(parts[last])) return {};
  return {.whole = std::max(0.0, line.whole), .each = std::max(0.0, line.each)};
}

int32_t StepPrices::NumberOf(const std::vector<InParts>& op) {
  const auto& [whole, first] = op.front();
  const bool product = whole->info(first).matrix_product;
  Op priced{.kernels = {},
            .starts_s = std::numeric_limits<double>::infinity(),
            .attention = least_work_cc::IsAttention(whole->kind(first)),
            .product = product};
  std::vector<cost_models::LeastTime> least;
  for (const auto& [function, id] : op) {
    least.push_back(LeastOf(*function, id));
    priced.starts_s = std::min(priced.starts_s, least.back().starts_s);
    if (least.back().kernels.size() != least.front().kernels.size()) return kFree;
  }
  bool grows = product;
  for (size_t i = 0; i < least.front().kernels.size(); ++i) {
    std::vector<double> arithmetic, memory;
    for (const cost_models::LeastTime& time : least) {
      arithmetic.push_back(time.kernels[i].arithmetic_s);
      memory.push_back(time.kernels[i].memory_s);
    }
    priced.kernels.push_back({.arithmetic = Fit(arithmetic, parts_),
                              .memory = Fit(memory, parts_),
                              .overlap = least.front().kernels[i].overlap});
    grows = grows || priced.kernels.back().memory.whole > 0;
  }
  // What is made from parameters alone may be made of shards of them, or once.
  if (!grows) return kFree;
  ops_.push_back(std::move(priced));
  return static_cast<int32_t>(ops_.size()) - 1;
}

// Layers repeat: ops of the same kind, attributes and types are one. False: the functions differ in
// more than their types.
bool StepPrices::NumberAll(const std::vector<const ir::Function*>& functions, Numbers& numbers) {
  using Key = std::vector<int32_t>;
  std::map<Key, int32_t> known;
  std::vector<std::vector<ir::OpId>> orders;
  for (const ir::Function* function : functions) {
    std::vector<ir::OpId>& order = orders.emplace_back();
    for (const ir::OpId op : function->order()) {
      if (!least_work_cc::IsSum(function->kind(op))) order.push_back(op);
    }
    if (order.size() != orders.front().size()) return false;
  }
  const ir::Function& whole = *functions.front();
  size_t at = 0;
  for (const ir::OpId op : whole.order()) {
    numbers.push_back(kFree);
    if (least_work_cc::IsSum(whole.kind(op))) continue;
    std::vector<InParts> in_parts;
    Key key = {static_cast<int32_t>(whole.kind(op))};
    for (size_t i = 0; i < functions.size(); ++i) {
      const ir::Function& function = *functions[i];
      const ir::OpId here = orders[i][at];
      if (function.kind(here) != whole.kind(op)) return false;
      in_parts.push_back({&function, here});
      key.push_back(function.attributes_id(here).index());
      for (const ir::ValueId operand : function.operands(here)) {
        key.push_back(operand.valid() ? function.type_id(operand).index() : -1);
      }
    }
    ++at;
    if (!IsSure(whole, op)) continue;
    const auto [found, is_new] = known.try_emplace(std::move(key), kFree);
    if (is_new) found->second = NumberOf(in_parts);
    numbers.back() = found->second;
  }
  return true;
}

void StepPrices::FindSums(const ir::Function& backward) {
  for (const ir::OpId op : backward.order()) {
    if (backward.kind(op) != ir::OpKind::kAccumulate || !IsSure(backward, op)) continue;
    const cost_models::LeastTime least = LeastOf(backward, op);
    Op priced{.kernels = {}, .starts_s = least.starts_s};
    for (const cost_models::LeastKernel& kernel : least.kernels) {
      priced.kernels.push_back({.arithmetic = {.each = kernel.arithmetic_s},
                                .memory = {.each = kernel.memory_s},
                                .overlap = kernel.overlap});
    }
    sums_.push_back(static_cast<int32_t>(ops_.size()));
    ops_.push_back(std::move(priced));
  }
}

void StepPrices::PriceUpdate(const ir::Function& update) {
  for (const ir::OpId op : update.order()) {
    if (update.info(op).op_class != ir::OpClass::kOptimizer) continue;
    const cost_models::LeastTime least =
        least_work_cc::LeastOn(model_, setting_, update, op, std::nullopt);
    for (const cost_models::LeastKernel& kernel : least.kernels) update_s_ += kernel.seconds();
  }
}

LeastSeconds StepPrices::SecondsOf(const Op& op, const WorkChoice& choice) const {
  const auto parts = static_cast<double>(choice.parts);
  if (choice.slices && (op.attention || !op.product)) return {};
  LeastSeconds seconds{.starts = choice.slices ? 0 : op.starts_s};
  const auto at = [parts](const Linear& line) { return line.whole / parts + line.each; };
  for (const Kernel& kernel : op.kernels) {
    seconds.shared += cost_models::LeastKernel{.arithmetic_s = at(kernel.arithmetic),
                                               .memory_s = at(kernel.memory),
                                               .overlap = kernel.overlap}
                          .seconds();
  }
  if (op.attention && choice.parts_sequences) seconds.shared /= 2;
  return seconds;
}

LeastWork StepPrices::Of(const WorkChoice& choice) const {
  LeastWork work;
  if (parts_.empty() || (parts_.size() == 1 && choice.parts > 1)) return work;
  std::vector<LeastSeconds> of_op;
  for (const Op& op : ops_) of_op.push_back(SecondsOf(op, choice));
  const auto at = [&](int32_t number) {
    return number == kFree ? LeastSeconds() : of_op[static_cast<size_t>(number)];
  };
  std::vector<LeastSeconds> all_so_far = {{}}, so_far = {{}}, backward_so_far = {{}};
  const auto append = [](std::vector<LeastSeconds>& sums, const LeastSeconds& next) {
    sums.push_back(sums.back());
    sums.back() += next;
  };
  for (size_t i = 0; i < forward_.size(); ++i) {
    append(all_so_far, at(forward_[i]));
    append(so_far, chains_.forward[i] != 0 ? at(forward_[i]) : LeastSeconds());
  }
  for (const size_t i : chains_.backward) append(backward_so_far, at(backward_[i]));
  work.all = all_so_far.back();
  for (const int32_t number : backward_) work.all += at(number);
  for (const int32_t number : sums_) work.sums += at(number);
  work.forward = so_far.back();
  work.backward = backward_so_far.back();
  work.gap = least_work_cc::LongestOf(chains_.gaps, so_far);
  work.outside = least_work_cc::LongestOf(chains_.outside_forward, so_far);
  work.outside += least_work_cc::LongestOf(chains_.outside_backward, backward_so_far);
  const auto take = [&](const LeastSeconds& range) { work.all_outside += range; };
  least_work_cc::ForRanges(chains_.outside_forward, so_far, take);
  least_work_cc::ForRanges(chains_.outside_backward, backward_so_far, take);
  work.outside_again = least_work_cc::LongestOf(chains_.outside_forward, all_so_far);
  work.layer = least_work_cc::LongestOf(layers_, all_so_far);
  return work;
}

}  // namespace orrery::search
