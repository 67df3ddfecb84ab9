#include "lowering/lower.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lowering/block.h"
#include "lowering/geometry.h"
#include "lowering/pricing.h"
#include "lowering/stage.h"
#include "lowering/stage_maker.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::lowering {
namespace {

using simulator::Program;
using simulator::RankClassId;
using simulator::StreamId;
using simulator::StreamKind;
using simulator::TaskId;
using transforms::StepKind;

constexpr TaskId kNobody;

// A task takes about 130 bytes with its memory events: 8 GB.
constexpr int32_t kMaxTasks = 1 << 26;

absl::Status TooManyTasks(int64_t tasks) {
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kUnsupported,
       .detail = absl::StrCat("would be at least ", tasks, " tasks; at most ", kMaxTasks,
                              " are simulated; try fewer microbatches")});
}

// A rank is lowered with one stage, and a backward whole; what is asynchronous updates after each.
absl::Status CheckIsLowered(const transforms::PipelineSchedule& schedule,
                            const transforms::PipelineShape& shape,
                            const transforms::RankOrders& orders) {
  const auto is_part = [](const transforms::ScheduleStep& step) {
    return step.kind == StepKind::kInputGradient || step.kind == StepKind::kWeightGradient;
  };
  absl::string_view trouble;
  if (shape.chunks > 1) trouble = "several stages a rank";
  for (const auto& order : orders) {
    if (std::any_of(order.begin(), order.end(), is_part)) trouble = "backwards in two parts";
  }
  const auto an_update = schedule.microbatches_an_update;
  if (an_update != nullptr && an_update(shape) > 1) trouble = "updates after several microbatches";
  if (trouble.empty()) return absl::OkStatus();
  return InfeasibleStatus({.reason = InfeasibleReason::kUnsupported,
                           .detail = absl::StrCat("schedule ", schedule.name, " has ", trouble,
                                                  ", which are not simulated yet; try 1f1b")});
}

class Lowering {
 public:
  explicit Lowering(const LoweringInput& input)
      : input_(input),
        geometry_(input.step),
        pricing_(geometry_, input.cost_model, input.cluster.topology,
                 {.blocking = input.options.blocking,
                  .every_link = input.options.every_link,
                  .algorithms = input.options.algorithms}),
        asynchronous_(input.schedule.asynchronous),
        microbatches_(static_cast<int32_t>(input.step.microbatches) * input.rounds),
        placements_{microbatches_, asynchronous_} {}

  absl::StatusOr<Program> Run() {
    const transforms::PipelineShape shape =
        input_.schedule.ShapeOf(geometry_.stages(), microbatches_);
    ORRERY_RETURN_IF_ERROR(input_.schedule.CheckShape(shape));
    StageMaker maker(input_, geometry_, placements_, pricing_, program_);
    stages_ = maker.Make();
    fold_ = maker.folded();
    const auto count = [&](const auto& rows_of) { return placements_.Count(stages_, rows_of); };
    // A collective of several groups counts once a rank: at least what there will be.
    const int64_t tasks = count([](const Block& block) { return block.task_count(); });
    if (tasks > kMaxTasks) return TooManyTasks(tasks);
    program_.Reserve(static_cast<int32_t>(tasks));
    program_.ReserveMemoryEvents(
        static_cast<size_t>(count([](const Block& block) { return std::ssize(block.memory); })));
    const transforms::RankOrders orders = input_.schedule.orders(shape);
    ORRERY_RETURN_IF_ERROR(CheckIsLowered(input_.schedule, shape, orders));
    PlaceSlots(orders);
    for (int32_t s = 0; !asynchronous_ && s < geometry_.stages(); ++s) {
      Place(s, stages_[static_cast<size_t>(s)].update, -1);
    }
    ORRERY_DCHECK(program_.task_count() <= tasks) << "of " << tasks << " that were counted";
    return std::move(program_);
  }

 private:
  void PlaceSlots(const transforms::RankOrders& orders) {
    std::vector<size_t> next(orders.size(), 0);
    std::vector<std::pair<int32_t, const transforms::ScheduleStep*>> now;
    int32_t last_slot = 0;
    for (const auto& order : orders) last_slot = std::max(last_slot, order.back().slot);
    for (int32_t slot = 0; slot <= last_slot; ++slot) {
      now.clear();
      for (size_t s = 0; s < orders.size(); ++s) {
        if (next[s] < orders[s].size() && orders[s][next[s]].slot == slot) {
          now.emplace_back(static_cast<int32_t>(s), &orders[s][next[s]++]);
        }
      }
      for (const auto& [s, step] : now) PlaceStep(s, *step);
      for (const auto& [s, step] : now) PlaceSends(s, BlockOf(s, *step), step->microbatch);
    }
  }

  const PlacedBlock& BlockOf(int32_t s, const transforms::ScheduleStep& step) const {
    const Stage& stage = stages_[static_cast<size_t>(s)];
    const bool first = placements_.always_first() || step.microbatch == 0;
    if (step.kind == StepKind::kForward) return first ? stage.forward_first : stage.forward;
    return first ? stage.backward_first : stage.backward;
  }

  void PlaceStep(int32_t s, const transforms::ScheduleStep& step) {
    if (step.kind == StepKind::kBackward) {
      // Nothing asks for the microbatch before this one again.
      Stage& stage = stages_[static_cast<size_t>(s)];
      stage.makers.Forget(std::exchange(stage.last_backward, step.microbatch));
    }
    Place(s, BlockOf(s, step), step.microbatch);
    if (asynchronous_ && step.kind == StepKind::kBackward) {
      Place(s, stages_[static_cast<size_t>(s)].update, step.microbatch);
    }
  }

  // Runs one block on every actor of its stage: op by op, so that the members of a collective meet.
  void Place(int32_t s, const PlacedBlock& placed, int32_t microbatch) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    FindInputs(stage, placed.block, microbatch);
    if (microbatch >= 0) stage.last_microbatch = microbatch;
    const size_t actors = stage.actors.size();
    task_of_.assign(placed.block.tasks.size() * actors, kNobody);
    for (size_t t = 0; t < placed.block.tasks.size(); ++t) {
      const BlockTask& task = placed.block.tasks[t];
      if (task.group.empty() || actors == 1) {
        for (size_t a = 0; a < actors; ++a) PlaceKernel(stage, placed, t, a, microbatch);
      } else {
        PlaceCollective(s, placed, t, microbatch);
      }
    }
    AddMemory(stage, placed.block, microbatch);
    if (!input_.options.blocking) RememberMakers(stage, placed.block, microbatch);
  }

  // What other blocks will wait for: outputs, and what is sent from here.
  void RememberMakers(Stage& stage, const Block& block, int32_t microbatch) {
    const auto remember = [&](ir::ValueId origin, const auto& task_of) {
      Makers::Tasks made(current_actors_);
      for (size_t a = 0; a < current_actors_; ++a) made[a] = task_of(a);
      stage.makers.Remember(origin, microbatch, std::move(made));
    };
    for (const BlockValue& output : block.outputs) {
      if (output.task < 0) continue;
      const auto task = static_cast<size_t>(output.task);
      remember(output.origin, [&](size_t a) { return TaskOf(task, a); });
    }
    for (const BlockSend& send : block.sends) {
      if (!send.has_maker) continue;
      const auto index = static_cast<size_t>(send.made_by.index);
      remember(send.origin, [&](size_t a) {
        return send.made_by.external ? inputs_[index * current_actors_ + a] : TaskOf(index, a);
      });
    }
  }

  TaskId& TaskOf(size_t task, size_t actor) { return task_of_[task * current_actors_ + actor]; }

  void FindInputs(const Stage& stage, const Block& block, int32_t microbatch) {
    current_actors_ = stage.actors.size();
    inputs_.assign(block.inputs.size() * current_actors_, kNobody);
    if (input_.options.blocking) return;
    for (size_t i = 0; i < block.inputs.size(); ++i) {
      const Makers::Tasks* made = FindMade(stage, block.inputs[i].origin, microbatch);
      if (made == nullptr) continue;
      for (size_t a = 0; a < current_actors_; ++a) inputs_[i * current_actors_ + a] = (*made)[a];
    }
  }

  // Who made a value: in this microbatch, or, for the update at the end of the step, in the last
  // one that ran.
  static const Makers::Tasks* FindMade(const Stage& stage, ir::ValueId origin, int32_t microbatch) {
    return stage.makers.Find(origin, microbatch >= 0 ? microbatch : stage.last_microbatch);
  }

  void FindAfter(const Block& block, const BlockTask& task, size_t actor) {
    for (uint32_t d = task.dependency_begin; d < task.dependency_end; ++d) {
      const BlockDependency& dependency = block.dependencies[d];
      const auto index = static_cast<size_t>(dependency.index);
      const TaskId on =
          dependency.external ? inputs_[index * current_actors_ + actor] : TaskOf(index, actor);
      if (on.valid()) after_.push_back(on);
    }
  }

  void PlaceKernel(const Stage& stage, const PlacedBlock& placed, size_t t, size_t actor,
                   int32_t microbatch) {
    const BlockTask& task = placed.block.tasks[t];
    after_.clear();
    FindAfter(placed.block, task, actor);
    TaskOf(t, actor) =
        program_.AddTask(stage.actors[actor].streams[static_cast<size_t>(task.stream)],
                         {.duration = placed.DurationOf(t, stage.actors[actor].kind),
                          .flow = fold_ ? placed.flows[t] : simulator::FlowId(),
                          .label = task.label,
                          .microbatch = microbatch},
                         after_);
  }

  void PlaceCollective(int32_t s, const PlacedBlock& placed, size_t t, int32_t microbatch) {
    const Stage& stage = stages_[static_cast<size_t>(s)];
    const BlockTask& task = placed.block.tasks[t];
    const auto& groups = pricing_.GroupsOf(task.group);
    for (size_t g = 0; g < groups.size(); ++g) {
      after_.clear();
      streams_.clear();
      for (const int32_t place : groups[g]) {
        const auto actor = static_cast<size_t>(place);
        FindAfter(placed.block, task, actor);
        streams_.push_back(stage.actors[actor].streams[static_cast<size_t>(task.stream)]);
      }
      const TaskTime time = pricing_.Collective(s, task, g);
      const TaskId id = program_.AddRendezvous(streams_,
                                               {.duration = time.duration,
                                                .flow = time.flow,
                                                .label = task.label,
                                                .microbatch = microbatch},
                                               after_);
      for (const int32_t place : groups[g]) TaskOf(t, static_cast<size_t>(place)) = id;
    }
  }

  void AddMemory(const Stage& stage, const Block& block, int32_t microbatch) {
    const int64_t m = asynchronous_ ? 0 : std::max(0, microbatch);
    for (size_t a = 0; a < stage.actors.size(); ++a) {
      for (const BlockMemory& memory : block.memory) {
        program_.AddMemoryEvent({.task = TaskOf(static_cast<size_t>(memory.task), a),
                                 .rank = stage.actors[a].rank,
                                 .kind = memory.kind,
                                 .bytes = memory.BytesIn(m)});
      }
    }
  }

  void PlaceSends(int32_t s, const PlacedBlock& placed, int32_t microbatch) {
    for (size_t i = 0; i < placed.block.sends.size(); ++i) {
      const BlockSend& send = placed.block.sends[i];
      Stage& from = stages_[static_cast<size_t>(s)];
      Stage& to = stages_[static_cast<size_t>(send.to)];
      const bool next = send.to > s;
      Makers::Tasks ids(from.actors.size());
      for (size_t a = 0; a < from.actors.size(); ++a) {
        after_.clear();
        const auto* made = FindMade(from, send.origin, microbatch);
        if (made != nullptr && (*made)[a].valid()) after_.push_back((*made)[a]);
        const TaskTime time = fold_ ? placed.sends[i] : pricing_.Send(s, send, a);
        ids[a] = program_.AddRendezvous(
            std::array{
                StreamOf(from.actors[a], next ? StreamKind::kSendNext : StreamKind::kSendPrevious),
                StreamOf(to.actors[a],
                         next ? StreamKind::kReceivePrevious : StreamKind::kReceiveNext)},
            {.duration = time.duration,
             .flow = time.flow,
             .label = send.label,
             .microbatch = microbatch},
            after_);
        MoveMemory(send, ids[a], from.actors[a].rank, to.actors[a].rank);
      }
      if (!input_.options.blocking) to.makers.Remember(send.origin, microbatch, std::move(ids));
    }
  }

  void MoveMemory(const BlockSend& send, TaskId task, RankClassId from, RankClassId to) {
    constexpr auto kKind = simulator::MemoryKind::kActivations;
    program_.AddMemoryEvent({.task = task, .rank = to, .kind = kKind, .bytes = send.bytes.count()});
    if (!send.freed) return;
    program_.AddMemoryEvent(
        {.task = task, .rank = from, .kind = kKind, .bytes = -send.bytes.count()});
  }

  StreamId StreamOf(const Actor& actor, StreamKind kind) const {
    return actor.streams[input_.options.blocking ? 0 : static_cast<size_t>(kind)];
  }

  const LoweringInput& input_;
  Geometry geometry_;
  Pricing pricing_;
  const bool asynchronous_;
  const int32_t microbatches_;
  const Placements placements_;
  bool fold_ = true;
  Program program_;
  std::vector<Stage> stages_;
  size_t current_actors_ = 1;
  std::vector<TaskId> task_of_, inputs_, after_;
  std::vector<StreamId> streams_;
};

}  // namespace

absl::StatusOr<Program> Lower(const LoweringInput& input) {
  if (input.step.microbatches * input.rounds > kMaxTasks) {
    return TooManyTasks(input.step.microbatches * input.rounds);
  }
  const int64_t ranks = input.step.mesh.size();
  int32_t largest = static_cast<int32_t>(ranks) - 1;
  for (const int32_t device : input.step.devices) largest = std::max(largest, device);
  if (largest >= input.cluster.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster ", input.cluster.name, " has ", input.cluster.size(), " devices; ",
                     ir::ToString(input.step.mesh), " wants device ", largest, " of it"));
  }
  return Lowering(input).Run();
}

}  // namespace orrery::lowering
