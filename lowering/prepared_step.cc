#include "lowering/prepared_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lowering/blocks/host_work.h"
#include "lowering/instantiate_orders.h"
#include "lowering/placement/instantiator.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::lowering {
namespace prepared_step_cc {
namespace {

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

absl::Status CheckDevices(const LoweringInput& input) {
  int32_t largest = static_cast<int32_t>(input.step.mesh.size()) - 1;
  for (const int32_t device : input.step.devices) largest = std::max(largest, device);
  if (largest < input.cluster.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cluster ", input.cluster.name, " has ", input.cluster.size(), " devices; ",
                   ir::ToString(input.step.mesh), " wants device ", largest, " of it"));
}

// What software makes of communication, as Pricing wants to know it.
PricingOptions PricingOf(const LoweringInput& input) {
  PricingOptions options = {.blocking = input.options.blocking,
                            .every_link = input.options.every_link,
                            .algorithms = input.options.algorithms,
                            .start = input.options.kernels.collective,
                            .exchanges = input.exchanges};
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

}  // namespace
}  // namespace prepared_step_cc

PreparedStep::PreparedStep(const LoweringInput& input)
    : input_(input),
      geometry_(input.step),
      pricing_(geometry_, input.cost_model, input.cluster.topology,
               prepared_step_cc::PricingOf(input_)),
      repetitions_(RepetitionsOf(input.rounds, 0)) {}

absl::Status PreparedStep::Prepare() {
  const int64_t all = int64_t{input_.step.microbatches} * input_.rounds;
  if (all > prepared_step_cc::kMaxTasks) return prepared_step_cc::TooManyTasks(all);
  ORRERY_RETURN_IF_ERROR(prepared_step_cc::CheckDevices(input_));
  ORRERY_RETURN_IF_ERROR(CheckHosts(input_.step, input_.cluster));
  ORRERY_RETURN_IF_ERROR(prepared_step_cc::CheckSlices(input_));
  ORRERY_RETURN_IF_ERROR(input_.schedule.CheckShape(repetitions_.shape));
  ORRERY_RETURN_IF_ERROR(CheckPlacement());
  maker_.emplace(StageMaterials{input_, geometry_, repetitions_, pricing_, program_});
  stages_ = maker_->Make();
  return absl::OkStatus();
}

bool PreparedStep::Serves(int32_t rounds) const {
  return maker_.has_value() && maker_->Serves(RepetitionsOf(rounds, 0));
}

absl::StatusOr<simulator::Program> PreparedStep::Instantiate(const StepExtent& extent) {
  ORRERY_CHECK(Serves(extent.rounds)) << "prepared for " << input_.rounds << " rounds";
  Repetitions repetitions = RepetitionsOf(extent.rounds, extent.first_microbatches);
  ORRERY_RETURN_IF_ERROR(input_.schedule.CheckShape(repetitions.shape));
  const auto count = [&](const auto& rows_of) { return repetitions.Count(stages_, rows_of); };
  // A collective of several groups counts once a rank: at least what there will be.
  const int64_t tasks =
      count([](const TaskTemplate& task_template) { return task_template.task_count(); });
  if (tasks > prepared_step_cc::kMaxTasks) return prepared_step_cc::TooManyTasks(tasks);
  if (input_.schedule.weighs_durations) repetitions.shape.durations = PhaseDurations();
  transforms::RankOrders made;
  if (extent.orders == nullptr) made = input_.schedule.OrdersOf(repetitions.shape);
  simulator::Program program = program_;
  program.Reserve(static_cast<int32_t>(tasks));
  program.ReserveMemoryEvents(static_cast<size_t>(
      count([](const TaskTemplate& task_template) { return std::ssize(task_template.memory); })));
  Instantiator instantiator(input_.options, geometry_, pricing_, maker_->folded(), stages_,
                            program);
  InstantiateOrders({.stages = stages_,
                     .repetitions = repetitions,
                     .orders = extent.orders != nullptr ? *extent.orders : made,
                     .lowered = extent.lowered},
                    instantiator, program);
  ORRERY_DCHECK(program.task_count() <= tasks) << "of " << tasks << " that were counted";
  return program;
}

Repetitions PreparedStep::RepetitionsOf(int32_t rounds, int64_t first_microbatches) const {
  const auto shape_of = [this](int64_t microbatches) {
    const auto ranks = geometry_.positions();
    return input_.schedule.ShapeOf(ranks, static_cast<int32_t>(microbatches),
                                   geometry_.stages() / ranks);
  };
  const int64_t all = int64_t{input_.step.microbatches} * rounds;
  Repetitions repetitions = {.microbatches = first_microbatches > 0 ? first_microbatches : all,
                             .shape = {}};
  repetitions.shape = shape_of(repetitions.microbatches);
  if (!input_.schedule.asynchronous) return repetitions;
  const auto every = input_.schedule.microbatches_an_update;
  repetitions.update_every = every == nullptr ? 1 : every(shape_of(input_.step.microbatches));
  return repetitions;
}

// The step has been cut for the schedule's ranks.
absl::Status PreparedStep::CheckPlacement() const {
  const transforms::PipelineShape& shape = repetitions_.shape;
  if (shape.stages() != geometry_.stages()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "found ", geometry_.stages(), " stages on ", shape.ranks, " ranks; schedule ",
        input_.schedule.name, " wants ", shape.stages(), "; partition for its chunks"));
  }
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    const int32_t wanted = RankOf(input_.schedule.placement, shape, s);
    if (wanted == geometry_.position_of(s)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", s, " of ", geometry_.stages(), " is on rank ", geometry_.position_of(s), " of ",
        shape.ranks, "; schedule ", input_.schedule.name, " wants it on ", wanted,
        "; partition for its placement"));
  }
  return absl::OkStatus();
}

// How long the phases of the average stage take, in nanoseconds; the same whether ranks are
// folded or not, and whether flows are asked for or not.
transforms::StepDurations PreparedStep::PhaseDurations() {
  Duration forward, input_gradient, weight_gradient;
  const auto add = [](Duration& sum, Duration by) { sum = SaturatedSum(sum, by); };
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    const Stage& stage = stages_[static_cast<size_t>(s)];
    add(forward, DurationOf(stage.forward));
    add(input_gradient, DurationOf(stage.backward));
    add(weight_gradient, DurationOf(stage.weights));
  }
  const auto average = [this](Duration sum) {
    return sum.picoseconds() / 1000 / geometry_.stages();
  };
  return {.forward = average(forward),
          .input_gradient = average(input_gradient),
          .weight_gradient = average(weight_gradient)};
}

// On the slowest device, in the slowest group.
Duration PreparedStep::DurationOf(const PhaseTemplates& templates) {
  const PricedTemplate& priced = !templates.slices.empty()
                                     ? templates.slices[templates.slices.size() / 2]
                                 : templates.later.task_template.tasks.empty() ? templates.first
                                                                               : templates.later;
  Duration sum;
  const auto add = [](Duration& to, Duration by) { to = SaturatedSum(to, by); };
  for (size_t t = 0; t < priced.task_template.tasks.size(); ++t) {
    const TemplateTask& task = priced.task_template.tasks[t];
    if (IsHostStream(task.stream)) continue;
    if (task.parts > Duration(0)) {
      add(sum, task.parts);
      continue;
    }
    const bool is_flow = maker_->folded() && priced.flows[t].valid();
    Duration slowest = is_flow ? AloneTime(priced.flows[t]) : task.duration;
    for (const auto& durations : priced.other_durations) {
      slowest = std::max(slowest, durations[t]);
    }
    const size_t groups =
        task.group.empty() || maker_->folded() ? 0 : pricing_.GroupsOf(task.group).size();
    for (size_t group = 0; group < groups; ++group) {
      const TaskTime time = pricing_.TimeOf(task.movement, group);
      slowest = std::max(slowest, time.flow.valid() ? AloneTime(time.flow) : time.duration);
    }
    add(sum, slowest);
  }
  return sum;
}

Duration PreparedStep::AloneTime(simulator::FlowId flow) const {
  return simulator::TimeAlone(program_.flow(flow), program_);
}

}  // namespace orrery::lowering
