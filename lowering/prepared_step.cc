#include "lowering/prepared_step.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "lowering/blocks/host_work.h"
#include "lowering/instantiate_orders.h"
#include "lowering/placement/instantiator.h"
#include "lowering/placement/late_update.h"
#include "lowering/placement/least_span.h"
#include "lowering/placement/least_step.h"
#include "simulator/program/fragmentation.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/stages/dealt_orders.h"
#include "transforms/stages/dealt_rounds.h"
#include "transforms/stages/placed_orders.h"

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

// The name of a collective along the axis; empty: the function has none.
std::string MeetsAlong(const ir::Function& function, absl::string_view axis) {
  const std::optional<ir::AxisIndex> found = function.mesh().Find(axis);
  if (!found.has_value() || function.mesh().size(*found) == 1) return "";
  for (const ir::OpId op : function.order()) {
    if (function.info(op).op_class != ir::OpClass::kCollective) continue;
    ir::AxisList group;
    if (!ir::ParseAxes(function.attributes(op), function.mesh(), group).ok()) continue;
    if (group.contains(*found)) return std::string(function.info(op).name);
  }
  return "";
}

absl::Status CheckDevices(const LoweringInput& input) {
  int32_t largest = static_cast<int32_t>(input.step.mesh.size()) - 1;
  for (const int32_t device : input.step.devices) largest = std::max(largest, device);
  for (const transforms::StagePlace& place : input.step.unequal.places) {
    for (const int32_t device : place.devices) largest = std::max(largest, device);
  }
  if (largest < input.cluster.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cluster ", input.cluster.name, " has ", input.cluster.size(), " devices; ",
                   ir::ToString(input.step.mesh), " wants device ", largest, " of it"));
}

// Of microbatches that never drain: in turn, and one for each replica of each stage.
absl::Status CheckInTurn(const transforms::DealtMicrobatches& replica_of, int64_t microbatches) {
  for (size_t s = 0; s < replica_of.size(); ++s) {
    const std::vector<int32_t>& row = replica_of[s];
    const auto replicas = static_cast<size_t>(*std::ranges::max_element(row)) + 1;
    bool in_turn = row.size() % replicas == 0;
    for (size_t m = 0; m < row.size(); ++m) {
      in_turn = in_turn && row[m] == static_cast<int32_t>(m % replicas);
    }
    if (in_turn && microbatches % static_cast<int64_t>(replicas) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(microbatches, " microbatches for ", replicas, " replicas of stage ", s,
                     " that update by themselves; wanted as many for each, dealt in turn"));
  }
  return absl::OkStatus();
}

// Replicas that run microbatches of their own meet once a step, or a round.
absl::Status CheckDealt(const LoweringInput& input) {
  if (!input.step.unequal.dealt()) return absl::OkStatus();
  ORRERY_RETURN_IF_ERROR(transforms::CheckDealtOnAndOn(input.schedule));
  if (input.first_microbatches > 0 || (input.rounds > 1 && !input.schedule.asynchronous)) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", input.schedule.name,
                     " for microbatches that are dealt to replicas; wanted all of one round"));
  }
  for (size_t s = 0; s < input.step.stages.size(); ++s) {
    const transforms::PipelineStage& stage = input.step.stages[s];
    const std::vector<int32_t> awaited = AwaitedStages(stage.update, static_cast<int32_t>(s));
    if (input.schedule.asynchronous && !awaited.empty()) {
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kUnsupported,
           .detail = absl::StrCat(
               "stages ", awaited.front(), " and ", s,
               " share a parameter, of which rounds of replicas that never drain have no updates; "
               "try a synchronous schedule, or embeddings that are not tied, tied_embeddings=0 of "
               "built-in models")});
    }
    for (const auto* part : {&stage.forward, &stage.backward, &stage.weights}) {
      const std::string met = MeetsAlong(part->function, "dp");
      if (met.empty()) continue;
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kUnsupported,
           .detail = absl::StrCat("replicas of stage ", s, " meet in each microbatch (", met,
                                  "), which replicas with microbatches of their own cannot; try "
                                  "`shares` split, or a smaller `zero`")});
    }
  }
  return absl::OkStatus();
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
  ORRERY_RETURN_IF_ERROR(prepared_step_cc::CheckDealt(input_));
  maker_.emplace(StageMaterials{input_, geometry_, repetitions_, pricing_, program_});
  stages_ = maker_->Make();
  return absl::OkStatus();
}

bool PreparedStep::Serves(int32_t rounds) const {
  return maker_.has_value() && maker_->Serves(RepetitionsOf(rounds, 0));
}

bool PreparedStep::folded() const { return maker_->folded(); }

bool PreparedStep::RunsInTurn() const {
  const transforms::PipelineSchedule& schedule = input_.schedule;
  const bool in_turn = !schedule.runs_pairs && schedule.given == nullptr;
  const bool has_all = schedule.placement != transforms::StagePlacement::kTwoWay;
  return in_turn && has_all && input_.rounds == 1 && !geometry_.unequal() &&
         !repetitions_.asynchronous() && input_.step.slices.empty();
}

StepBound PreparedStep::BoundOf(const transforms::RankOrders& orders) const {
  ORRERY_CHECK(folded() && RunsInTurn());
  const FoldedStep step{geometry_, repetitions_, stages_, program_};
  const TimesOfStep times = TimesOf(step);
  StepBound bound{.time = times.least,
                  .likely_time = times.likely,
                  .peak = {},
                  .likely_peak = {},
                  .communication = CommunicationShare(step)};
  const IdTable<simulator::RankClassId, PeakBound> peaks = BoundPeaks(step, orders);
  const bool others = input_.schedule.weighs_durations;  // it may come to other orders
  for (int32_t rank = 0; rank < program_.rank_count(); ++rank) {
    const simulator::RankClassId id(rank);
    const Bytes peak = WithLost(id, others ? peaks[id].resident : peaks[id].least);
    const Bytes capacity = program_.rank(id).capacity;
    bound.may_fit = bound.may_fit && (capacity == Bytes(0) || peak <= capacity);
    bound.peak = std::max(bound.peak, peak);
    bound.likely_peak = std::max(bound.likely_peak, WithLost(id, peaks[id].likely));
  }
  return bound;
}

// With what an allocator loses.
Bytes PreparedStep::WithLost(simulator::RankClassId rank, Bytes use) const {
  const double fragmentation = input_.options.memory_overhead.fragmentation;
  return use + simulator::LostOf(program_, rank, fragmentation, use);
}

absl::StatusOr<simulator::Program> PreparedStep::Instantiate(const StepExtent& extent) {
  ORRERY_CHECK(Serves(extent.rounds)) << "prepared for " << input_.rounds << " rounds";
  Repetitions repetitions = RepetitionsOf(extent.rounds, extent.first_microbatches);
  ORRERY_RETURN_IF_ERROR(input_.schedule.CheckShape(repetitions.shape));
  const auto count = [&](const auto& rows_of) {
    int64_t rows = 0;
    for (int32_t s = 0; s < geometry_.stages(); ++s) {
      const Stage& stage = stages_[static_cast<size_t>(s)];
      rows += OfARank(repetitions, s).CountOnARank(stage, rows_of) * std::ssize(stage.actors);
    }
    return rows;
  };
  // A collective of several groups counts once a rank: at least what there will be.
  int64_t tasks =
      count([](const TaskTemplate& task_template) { return task_template.task_count(); });
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    tasks += OfARank(repetitions, s)
                 .CountOnARank(stages_[static_cast<size_t>(s)], [](const TaskTemplate& of_stage) {
                   return of_stage.shared_task_count();
                 });
  }
  if (tasks > prepared_step_cc::kMaxTasks) return prepared_step_cc::TooManyTasks(tasks);
  if (input_.schedule.weighs_durations) repetitions.shape.durations = PhaseDurations();
  transforms::RankOrders made;
  if (geometry_.dealt()) {
    ORRERY_ASSIGN_OR_RETURN(made, OrdersOfDealt(repetitions.microbatches));
  } else if (input_.step.unequal.placed) {
    made = OrdersOfPlaced(repetitions.microbatches);
  } else if (extent.orders == nullptr) {
    made = input_.schedule.OrdersOf(repetitions.shape);
  }
  const bool given = extent.orders != nullptr && !geometry_.dealt();
  simulator::Program program = program_;
  program.Reserve(static_cast<int32_t>(tasks));
  program.ReserveMemoryEvents(static_cast<size_t>(
      count([](const TaskTemplate& task_template) { return std::ssize(task_template.memory); })));
  Instantiator instantiator(input_.options, geometry_, pricing_, maker_->folded(), stages_,
                            program);
  InstantiateOrders({.stages = stages_,
                     .repetitions = repetitions,
                     .geometry = geometry_,
                     .orders = given ? *extent.orders : made,
                     .lowered = extent.lowered},
                    instantiator, program);
  ORRERY_DCHECK(program.task_count() <= tasks) << "of " << tasks << " that were counted";
  return program;
}

// What a rank of the stage runs of it, at most.
Repetitions PreparedStep::OfARank(const Repetitions& all, int32_t stage) const {
  Repetitions of_rank = all;
  if (!geometry_.dealt() || !all.asynchronous()) return all;
  const int32_t replicas = geometry_.RunnersOf(stage);
  of_rank.microbatches /= replicas;
  of_rank.update_every = transforms::UpdateEveryOfReplica(all.update_every, replicas);
  return of_rank;
}

// Of as many as are run, which are those of a batch where the pipeline drains.
absl::StatusOr<transforms::RankOrders> PreparedStep::OrdersOfDealt(int64_t microbatches) const {
  const transforms::DealtMicrobatches& of_batch = input_.step.unequal.replica_of;
  if (!input_.schedule.asynchronous) return transforms::DealtOrders(input_.schedule, of_batch);
  ORRERY_RETURN_IF_ERROR(prepared_step_cc::CheckInTurn(of_batch, microbatches));
  transforms::DealtMicrobatches all(of_batch.size());
  for (size_t s = 0; s < all.size(); ++s) {
    for (int64_t m = 0; m < microbatches; ++m) {
      all[s].push_back(geometry_.ReplicaOf(static_cast<int32_t>(s), static_cast<int32_t>(m)));
    }
  }
  return transforms::DealtOrders(input_.schedule, all);
}

// By how long the phases of each stage take.
transforms::RankOrders PreparedStep::OrdersOfPlaced(int64_t microbatches) {
  std::vector<transforms::PlacedStage> stages = transforms::PlacedStagesOf(input_.step);
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    const Stage& stage = stages_[static_cast<size_t>(s)];
    transforms::PlacedStage& placed = stages[static_cast<size_t>(s)];
    placed.forward = DurationOf(s, stage.forward).picoseconds();
    placed.backward = DurationOf(s, stage.backward).picoseconds();
  }
  return transforms::PlacedOrders(stages, static_cast<int32_t>(microbatches),
                                  input_.schedule.name == "gpipe");
}

Repetitions PreparedStep::RepetitionsOf(int32_t rounds, int64_t first_microbatches) const {
  const auto shape_of = [this](int64_t microbatches) {
    const auto ranks = geometry_.positions();
    return input_.schedule.ShapeOf(ranks, static_cast<int32_t>(microbatches),
                                   input_.step.unequal.placed ? 1 : geometry_.stages() / ranks);
  };
  const int64_t all = int64_t{input_.step.microbatches} * rounds;
  Repetitions repetitions = {.microbatches = first_microbatches > 0 ? first_microbatches : all,
                             .shape = {}};
  repetitions.shape = shape_of(repetitions.microbatches);
  if (!input_.schedule.asynchronous) return repetitions;
  if (geometry_.dealt()) {
    repetitions.update_every = transforms::DealtUpdateEvery(
        input_.schedule, transforms::ReplicasOf(input_.step.unequal), input_.step.microbatches);
    return repetitions;
  }
  const auto every = input_.schedule.microbatches_an_update;
  repetitions.update_every = every == nullptr ? 1 : every(shape_of(input_.step.microbatches));
  return repetitions;
}

// The step has been cut for the schedule's ranks.
absl::Status PreparedStep::CheckPlacement() const {
  if (input_.step.unequal.placed) return absl::OkStatus();  // orders are made for its stages
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
Duration PreparedStep::DurationOf(int32_t s, const PhaseTemplates& templates) {
  const std::vector<PricedTemplate>& slices = templates.slices;
  const PricedTemplate& priced = slices.empty() ? templates.usual() : slices[slices.size() / 2];
  Duration sum;
  const auto add = [](Duration& to, Duration by) { to = SaturatedSum(to, by); };
  for (size_t t = 0; t < priced.task_template.tasks.size(); ++t) {
    const TemplateTask& task = priced.task_template.tasks[t];
    if (IsHostStream(task.stream)) continue;
    if (task.parts > Duration(0)) {
      add(sum, task.parts);
      continue;
    }
    Duration slowest = maker_->folded() ? TimeAlone(priced, t, program_) : task.duration;
    for (const auto& durations : priced.other_durations) {
      slowest = std::max(slowest, durations[t]);
    }
    const size_t groups =
        task.group.empty() || maker_->folded() ? 0 : pricing_.GroupsOf(s, task.group).size();
    for (size_t group = 0; group < groups; ++group) {
      slowest = std::max(slowest, TimeAlone(pricing_.TimeOf(task.movement, group), program_));
    }
    add(sum, slowest);
  }
  return sum;
}

}  // namespace orrery::lowering
