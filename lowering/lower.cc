#include "lowering/lower.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lowering/blocks/host_work.h"
#include "lowering/blocks/task_template.h"
#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "lowering/placement/instantiator.h"
#include "lowering/placement/stage.h"
#include "lowering/placement/stage_maker.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::lowering {
namespace lower_cc {
namespace {

using simulator::Program;
using transforms::StepKind;

// A task takes about 130 bytes with its memory events: 8 GB.
constexpr int32_t kMaxTasks = 1 << 26;

absl::Status TooManyTasks(int64_t tasks) {
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kUnsupported,
       .detail = absl::StrCat("would be at least ", tasks, " tasks; at most ", kMaxTasks,
                              " are simulated; try fewer microbatches")});
}

// Slices of the sequence go by a schedule of slices, once; one slice is the whole.
absl::Status CheckSlices(const LoweringInput& input) {
  const auto slices = std::ssize(input.step.slices);
  const bool sliced = input.schedule.slices_sequence;
  if (slices > 0 ? !sliced : sliced && input.step.microbatches > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", input.schedule.name, " for a step of ", input.step.microbatches,
        slices > 0 ? " slices of the sequence; wanted one of slices, as terapipe is"
                   : " parts of the batch; wanted slices of the sequence: ParallelTransform3d"));
  }
  if (slices == 0 || (slices == input.step.microbatches && input.rounds == 1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(slices, " slices for ", input.step.microbatches,
                                                 " microbatches in ", input.rounds,
                                                 " rounds; wanted one each, in one round"));
}

// What software makes of communication, as Pricing wants to know it.
PricingOptions PricingOf(const LoweringInput& input) {
  PricingOptions options = {.blocking = input.options.blocking,
                            .every_link = input.options.every_link,
                            .algorithms = input.options.algorithms,
                            .start = input.options.kernels.collective};
  const std::optional<ir::AxisIndex> hp = input.step.mesh.Find("hp");
  if (!input.options.kernels.copies_gathers || !hp.has_value()) return options;
  options.copied_axes = ir::AxisList(*hp);
  options.copy = [&input](Bytes bytes) {
    Duration slowest;
    for (int32_t kind = 0; kind < input.cluster.kind_count(); ++kind) {
      const auto time = input.cost_model.Fused(Flops(0), bytes * 2, input.cluster.kind(kind));
      slowest = std::max(slowest, time.value_or(Duration(0)));
    }
    return slowest;
  };
  return options;
}

class Lowering {
 public:
  explicit Lowering(const LoweringInput& input)
      : input_(input),
        geometry_(input.step),
        pricing_(geometry_, input.cost_model, input.cluster.topology, PricingOf(input)),
        shape_(ShapeOf(input, input.rounds)) {}

  absl::StatusOr<Program> Run() {
    ORRERY_RETURN_IF_ERROR(input_.schedule.CheckShape(shape_));
    ORRERY_RETURN_IF_ERROR(CheckPlacement());
    const Repetitions repetitions = {
        .microbatches = shape_.microbatches, .shape = shape_, .update_every = UpdateEvery()};
    StageMaker maker(input_, geometry_, repetitions, pricing_, program_);
    stages_ = maker.Make();
    const auto count = [&](const auto& rows_of) { return repetitions.Count(stages_, rows_of); };
    // A collective of several groups counts once a rank: at least what there will be.
    const int64_t tasks =
        count([](const TaskTemplate& task_template) { return task_template.task_count(); });
    if (tasks > kMaxTasks) return TooManyTasks(tasks);
    program_.Reserve(static_cast<int32_t>(tasks));
    program_.ReserveMemoryEvents(static_cast<size_t>(
        count([](const TaskTemplate& task_template) { return std::ssize(task_template.memory); })));
    repetitions_ = repetitions;
    instantiator_.emplace(input_.options, geometry_, pricing_, maker.folded(), stages_, program_);
    if (input_.schedule.weighs_durations) shape_.durations = PhaseDurations();
    const transforms::RankOrders orders = input_.schedule.OrdersOf(shape_);
    CountMicrobatches(orders);
    InstantiateSlots(orders);
    if (!repetitions_.asynchronous()) InstantiateUpdates();
    ORRERY_DCHECK(program_.task_count() <= tasks) << "of " << tasks << " that were counted";
    return std::move(program_);
  }

 private:
  using Step = transforms::ScheduleStep;

  static transforms::PipelineShape ShapeOf(const LoweringInput& input, int32_t rounds) {
    const auto pp = input.step.mesh.Find("pp");
    const auto ranks = static_cast<int32_t>(pp.has_value() ? input.step.mesh.size(*pp) : 1);
    return input.schedule.ShapeOf(ranks, static_cast<int32_t>(input.step.microbatches) * rounds,
                                  static_cast<int32_t>(input.step.stages.size()) / ranks);
  }

  // The step has been cut for the schedule's ranks.
  absl::Status CheckPlacement() const {
    if (shape_.stages() != geometry_.stages()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "found ", geometry_.stages(), " stages on ", shape_.ranks, " ranks; schedule ",
          input_.schedule.name, " wants ", shape_.stages(), "; partition for its chunks"));
    }
    for (int32_t s = 0; s < geometry_.stages(); ++s) {
      const int32_t wanted = RankOf(input_.schedule.placement, shape_, s);
      if (wanted == geometry_.position_of(s)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "stage ", s, " of ", geometry_.stages(), " is on rank ", geometry_.position_of(s), " of ",
          shape_.ranks, "; schedule ", input_.schedule.name, " wants it on ", wanted,
          "; partition for its placement"));
    }
    return absl::OkStatus();
  }

  int64_t UpdateEvery() const {
    if (!input_.schedule.asynchronous) return 0;
    if (input_.schedule.microbatches_an_update == nullptr) return 1;
    return input_.schedule.microbatches_an_update(ShapeOf(input_, 1));
  }

  // How long the phases of the average stage take, in nanoseconds; the same whether ranks are
  // folded or not, and whether flows are asked for or not.
  transforms::StepDurations PhaseDurations() {
    Duration forward, input_gradient, weight_gradient;
    const auto add = [](Duration& sum, Duration by) { sum = SaturatedSum(sum, by); };
    for (int32_t s = 0; s < geometry_.stages(); ++s) {
      const Stage& stage = stages_[static_cast<size_t>(s)];
      add(forward, DurationOf(s, stage.forward));
      add(input_gradient, DurationOf(s, stage.backward));
      add(weight_gradient, DurationOf(s, stage.weights));
    }
    const auto average = [this](Duration sum) {
      return sum.picoseconds() / 1000 / geometry_.stages();
    };
    return {.forward = average(forward),
            .input_gradient = average(input_gradient),
            .weight_gradient = average(weight_gradient)};
  }

  // On the slowest device, in the slowest group.
  Duration DurationOf(int32_t s, const PhaseTemplates& templates) {
    const PricedTemplate& priced = !templates.slices.empty()
                                       ? templates.slices[templates.slices.size() / 2]
                                   : templates.later.task_template.tasks.empty() ? templates.first
                                                                                 : templates.later;
    Duration sum;
    for (size_t t = 0; t < priced.task_template.tasks.size(); ++t) {
      const TemplateTask& task = priced.task_template.tasks[t];
      if (IsHostStream(task.stream)) continue;
      const bool is_flow = instantiator_->folded() && priced.flows[t].valid();
      Duration slowest = is_flow ? AloneTime(priced.flows[t]) : task.duration;
      for (const auto& durations : priced.other_durations) {
        slowest = std::max(slowest, durations[t]);
      }
      const size_t groups =
          task.group.empty() || instantiator_->folded() ? 0 : pricing_.GroupsOf(task.group).size();
      for (size_t group = 0; group < groups; ++group) {
        const TaskTime time = pricing_.Collective(s, RequestOf(task), group);
        slowest = std::max(slowest, time.flow.valid() ? AloneTime(time.flow) : time.duration);
      }
      sum = SaturatedSum(sum, slowest);
    }
    return sum;
  }

  Duration AloneTime(simulator::FlowId flow) const {
    return simulator::TimeAlone(program_.flow(flow), program_);
  }

  void CountMicrobatches(const transforms::RankOrders& orders) {
    counts_.assign(stages_.size(), 0);
    last_added_.assign(stages_.size(), 0);
    for (const auto& order : orders) {
      for (const Step& step : order) {
        if (step.kind == StepKind::kForward) ++counts_[static_cast<size_t>(step.stage)];
      }
    }
  }

  // The steps of a moment that stand at the next position of their rank's order: one of each rank,
  // or two that run at once.
  void InstantiateSlots(const transforms::RankOrders& orders) {
    std::vector<size_t> next(orders.size(), 0);
    std::vector<std::span<const Step>> now;
    int32_t last_slot = 0;
    for (const auto& order : orders) {
      if (!order.empty()) last_slot = std::max(last_slot, order.back().slot);
    }
    for (int32_t slot = 0; slot <= last_slot; ++slot) {
      now.clear();
      for (size_t r = 0; r < orders.size(); ++r) {
        if (next[r] >= orders[r].size() || orders[r][next[r]].slot != slot) continue;
        const size_t count = orders[r][next[r]].with_next ? 2 : 1;
        now.push_back(std::span(orders[r]).subspan(next[r], count));
        next[r] += count;
      }
      InstantiateMoment(now);
    }
  }

  // Sends follow all compute of the moment, in order of the sending rank.
  void InstantiateMoment(const std::vector<std::span<const Step>>& now) {
    sends_.clear();
    for (const std::span<const Step>& steps : now) {
      const simulator::TaskId begin(program_.task_count());
      if (steps.size() == 2) {
        InstantiateTogether(steps[0], steps[1]);
      } else {
        InstantiateStep(steps[0]);
      }
      if (input_.lowered == nullptr) continue;
      for (const Step& step : steps) {
        input_.lowered->push_back(
            {.step = step, .begin = begin, .end = simulator::TaskId(program_.task_count())});
      }
    }
    for (const Instantiator::Item& item : sends_) {
      for (size_t i = 0; i < item.priced->task_template.sends.size(); ++i)
        instantiator_->InstantiateSend(item, i);
    }
  }

  Stage& StageOf(const Step& step) { return stages_[static_cast<size_t>(step.stage)]; }

  // The template of a microbatch that is the `number`th of its phase.
  const PricedTemplate* TemplateOf(const Step& step, const PhaseTemplates& templates,
                                   int32_t number) const {
    if (!templates.slices.empty()) return &templates.slices[static_cast<size_t>(step.microbatch)];
    if (repetitions_.always_first() || repetitions_.IsFirst(number)) return &templates.first;
    const bool last = !templates.last.task_template.tasks.empty() &&
                      repetitions_.IsLast(number, counts_[static_cast<size_t>(step.stage)]);
    return last ? &templates.last : &templates.later;
  }

  // The next microbatch of one of a stage's phases.
  Instantiator::Item Next(const Step& step, PhaseTemplates& templates) {
    const int32_t number = templates.microbatches++;
    const PricedTemplate& gathers = StageOf(step).gathers;
    if (number == 0 && step.kind == StepKind::kForward && !gathers.task_template.tasks.empty()) {
      instantiator_->Instantiate({.stage = step.stage, .priced = &gathers});
    }
    const Instantiator::Item item = {.stage = step.stage,
                                     .priced = TemplateOf(step, templates, number),
                                     .microbatch = step.microbatch,
                                     .collected = repetitions_.asynchronous() ? 0 : number};
    sends_.push_back(item);
    Stage& stage = StageOf(step);
    if (&templates == &stage.backward) stage.last_gradient = step.microbatch;
    return item;
  }

  PhaseTemplates& FirstTemplatesOf(const Step& step) {
    Stage& stage = StageOf(step);
    if (step.kind == StepKind::kForward) return stage.forward;
    return step.kind == StepKind::kWeightGradient ? stage.weights : stage.backward;
  }

  void InstantiateTogether(const Step& a, const Step& b) {
    const Instantiator::Item first = Next(a, FirstTemplatesOf(a));
    instantiator_->InstantiateTogether(first, Next(b, FirstTemplatesOf(b)));
    for (const Step* step : {&a, &b}) Finish(*step);
  }

  void InstantiateStep(const Step& step) {
    instantiator_->Instantiate(Next(step, FirstTemplatesOf(step)));
    Finish(step);
  }

  // The rest of a backward: the gradients of the weights, an update.
  void Finish(const Step& step) {
    Stage& stage = StageOf(step);
    const bool split = !stage.weights.first.task_template.tasks.empty();
    if (split && step.kind == StepKind::kBackward)
      instantiator_->Instantiate(Next(step, stage.weights));
    const bool done = step.kind == StepKind::kWeightGradient || step.kind == StepKind::kBackward ||
                      (!split && step.kind == StepKind::kInputGradient);
    if (!done) return;
    last_added_[static_cast<size_t>(step.stage)] = program_.task_count();
    // Nothing asks for the microbatch before this one again.
    stage.makers.Forget(std::exchange(stage.last_backward, step.microbatch));
    const int64_t every = repetitions_.update_every;
    if (every == 0 || stage.backward.microbatches % every != 0) return;
    instantiator_->Instantiate(
        {.stage = step.stage, .priced = &stage.update, .microbatch = step.microbatch});
  }

  // Gradients of parameters that several stages have go first; what is made of them then comes from
  // later stages (ShareParameters). Else a rank reduces first what its last backwards make first.
  void InstantiateUpdates() {
    for (int32_t s = 0; s < geometry_.stages(); ++s)
      InstantiateUpdateSends(s, /*made_there=*/false);
    std::vector<int32_t> order;
    bool sends = false;
    for (int32_t s = geometry_.stages() - 1; s >= 0; --s) {
      order.push_back(s);
      sends = sends || !stages_[static_cast<size_t>(s)].update.task_template.sends.empty();
    }
    const auto last_added = [this](int32_t s) { return last_added_[static_cast<size_t>(s)]; };
    std::vector<int32_t> by_end = order;
    std::ranges::stable_sort(by_end, {}, last_added);
    for (const int32_t s : by_end) {
      const PricedTemplate& update = stages_[static_cast<size_t>(s)].update;
      if (StandsAlone(update.task_template)) {
        instantiator_->BeginUpdate({.stage = s, .priced = &update});
      }
    }
    if (!sends) order = by_end;
    for (const int32_t s : order) {
      instantiator_->Instantiate({.stage = s, .priced = &stages_[static_cast<size_t>(s)].update});
      InstantiateUpdateSends(s, /*made_there=*/true);
    }
  }

  // Whether a template neither waits for those of other stages nor they for it.
  static bool StandsAlone(const TaskTemplate& task_template) {
    return task_template.sends.empty() &&
           std::ranges::none_of(task_template.inputs, &TemplateValue::received);
  }

  void InstantiateUpdateSends(int32_t s, bool made_there) {
    const PricedTemplate& update = stages_[static_cast<size_t>(s)].update;
    for (size_t i = 0; i < update.task_template.sends.size(); ++i) {
      const TemplateSend& send = update.task_template.sends[i];
      const bool made = send.has_maker && !send.made_by.external;
      if (made == made_there) instantiator_->InstantiateSend({.stage = s, .priced = &update}, i);
    }
  }

  const LoweringInput& input_;
  Geometry geometry_;
  Pricing pricing_;
  transforms::PipelineShape shape_;
  Repetitions repetitions_;
  Program program_;
  std::vector<Stage> stages_;
  std::vector<int64_t> counts_;      // of microbatches, by stage
  std::vector<int32_t> last_added_;  // of a stage's backwards: how many tasks were before its end
  std::optional<Instantiator> instantiator_;
  std::vector<Instantiator::Item> sends_;  // whose templates have run in this moment
};

}  // namespace
}  // namespace lower_cc

bool IsOf(const simulator::TaskLabel& label, const transforms::ScheduleStep& step) {
  const bool forward = step.kind == transforms::StepKind::kForward;
  return label.stage == step.stage &&
         label.phase == (forward ? simulator::Phase::kForward : simulator::Phase::kBackward);
}

absl::StatusOr<simulator::Program> Lower(const LoweringInput& input) {
  if (input.step.microbatches * input.rounds > lower_cc::kMaxTasks) {
    return lower_cc::TooManyTasks(input.step.microbatches * input.rounds);
  }
  const int64_t ranks = input.step.mesh.size();
  int32_t largest = static_cast<int32_t>(ranks) - 1;
  for (const int32_t device : input.step.devices) largest = std::max(largest, device);
  if (largest >= input.cluster.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster ", input.cluster.name, " has ", input.cluster.size(), " devices; ",
                     ir::ToString(input.step.mesh), " wants device ", largest, " of it"));
  }
  ORRERY_RETURN_IF_ERROR(CheckHosts(input.step, input.cluster));
  ORRERY_RETURN_IF_ERROR(lower_cc::CheckSlices(input));
  return lower_cc::Lowering(input).Run();
}

}  // namespace orrery::lowering
