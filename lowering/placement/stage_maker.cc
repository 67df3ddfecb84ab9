#include "lowering/placement/stage_maker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/hash/hash.h"
#include "cost_models/collectives/choice.h"
#include "ir/op_kind.h"
#include "lowering/blocks/buckets.h"
#include "lowering/blocks/host_work.h"
#include "lowering/blocks/residents.h"
#include "lowering/blocks/stragglers.h"
#include "lowering/placement/early_gathers.h"
#include "lowering/placement/fuse_runs.h"
#include "support/check.h"

namespace orrery::lowering {
namespace stage_maker_cc {
namespace {

// Whether anything in the function adds to what an earlier microbatch has left.
bool AddsUp(const ir::Function& function) {
  return std::ranges::any_of(function.order(), [&](ir::OpId op) {
    return function.kind(op) == ir::OpKind::kAccumulate ||
           function.kind(op) == ir::OpKind::kCollect;
  });
}

}  // namespace
}  // namespace stage_maker_cc

std::vector<Stage> StageMaker::Make() {
  MakeTemplates();
  uses_host_ = transforms::FindHostWork(input_.step).copies;
  fold_ = input_.options.fold && CanFold();
  pricing_.Prepare(fold_, program_);
  MakeRanks();
  SetLevels();
  PriceTemplates();
  return std::move(stages_);
}

const cluster::Device& StageMaker::DeviceOf(int32_t rank) const {
  return input_.cluster.device_of(geometry_.device(rank));
}

// `stage` has all templates but those that come after this one.
PricedTemplate StageMaker::MakeTemplate(const transforms::StageFunction& part, const Stage& stage,
                                        const TemplateContext& context) {
  const bool overlaps = context.every_dependency;
  const auto lower = [&](int32_t kind, simulator::Program& program) {
    cluster::Device device = input_.cluster.kind(kind);
    if (context.kernels.graphs && context.phase != simulator::Phase::kUpdate) {
      device.launch_overhead = Duration(0);
    }
    TemplateContext of_kind = context;
    of_kind.device = &device;
    TaskTemplate task_template = LowerPhase(part, of_kind, program);
    WaitForTheSlowest(part.function.mesh(), context.cost_model.Straggling(*of_kind.device),
                      task_template.tasks);
    if (overlaps)
      FormBuckets(stage.LastBackward(), input_.options.bucket_size, task_template, program);
    return task_template;
  };
  const std::vector<int32_t>& kinds = KindsOf(context.stage);
  PricedTemplate priced;
  priced.task_template = lower(kinds.front(), program_);
  for (size_t k = 1; k < kinds.size(); ++k) {
    simulator::Program labels;  // are those of the first kind
    std::vector<Duration>& durations = priced.other_durations.emplace_back();
    for (const TemplateTask& task : lower(kinds[k], labels).tasks)
      durations.push_back(task.duration);
  }
  return priced;
}

// Stages of another size do not do the same.
size_t StageMaker::SizeOf(int32_t s) const {
  size_t size = 0;
  for (const auto* part : input_.step.stages[static_cast<size_t>(s)].parts()) {
    const ir::Function& function = part->function;
    size = absl::HashOf(size, function.inputs().size(), function.order().size());
  }
  return size;
}

// Whether the stage sees one microbatch: it has nothing to add to, and the update follows it. In
// two pipelines a stage sees those of its own.
bool StageMaker::SeesOne(int32_t s) const {
  if (repetitions_.always_first()) return true;
  if (input_.schedule.placement != transforms::StagePlacement::kTwoWay) return false;
  const bool second = s >= geometry_.stages() / 2;
  return (repetitions_.microbatches + (second ? 0 : 1)) / 2 == 1;
}

// A stage before this one that may do the same; -1: none.
int32_t StageMaker::FindAlike(int32_t s) const {
  if (!input_.step.slices.empty()) return -1;
  const auto last = last_of_size_.find(SizeOf(s));
  const int32_t before = last == last_of_size_.end() ? -1 : last->second;
  const bool two_way = input_.schedule.placement == transforms::StagePlacement::kTwoWay;
  const int32_t twin = two_way ? s - geometry_.stages() / 2 : -1;
  for (const int32_t made : {twin, before}) {
    if (made >= 0 && KindsOf(made) == KindsOf(s) && SeesOne(made) == SeesOne(s)) return made;
  }
  return -1;
}

bool StageMaker::CopyFromEarlier(int32_t s) {
  const int32_t made = FindAlike(s);
  if (made < 0) return false;
  const std::vector<transforms::PipelineStage>& parts = input_.step.stages;
  std::optional<Stage> copy = copier_.Copy({.parts = parts[static_cast<size_t>(made)],
                                            .made = stages_[static_cast<size_t>(made)],
                                            .other_parts = parts[static_cast<size_t>(s)],
                                            .other = s});
  if (!copy.has_value()) return false;
  stages_.push_back(*std::move(copy));
  return true;
}

// Of the first group of a stage along the axes.
std::vector<cluster::DeviceId> StageMaker::FirstGroup(int32_t s, const ir::AxisList& axes) {
  std::vector<cluster::DeviceId> devices;
  for (const int32_t position : pricing_.GroupsOf(axes).front()) {
    const int32_t rank = geometry_.ranks_of_stage(s)[static_cast<size_t>(position)];
    devices.push_back(geometry_.device(rank));
  }
  return devices;
}

int64_t StageMaker::PlacesOf(int32_t s, const ir::AxisList& axes) {
  const std::vector<cluster::DeviceId> devices = FirstGroup(s, axes);
  if (devices.size() < 2) return 1;
  const cost_models::CollectiveCall call = cost_models::MakeCall(
      {.kind = cost_models::CollectiveKind::kAllToAll, .group = devices}, input_.cluster.topology);
  return call.ranks_a_node == call.ranks ? call.ranks : call.ranks / call.ranks_a_node;
}

// An estimate, before it is known what shares links with what.
Duration StageMaker::TimeAlone(int32_t s, const TemplateTask& task) {
  const std::vector<cluster::DeviceId> devices = FirstGroup(s, task.group);
  if (devices.size() < 2) return Duration(0);
  return input_.cost_model.Collective(task.collective, task.bytes, devices,
                                      input_.cluster.topology);
}

void StageMaker::MakeStage(int32_t s) {
  if (CopyFromEarlier(s)) return;
  const transforms::PipelineStage& parts = input_.step.stages[static_cast<size_t>(s)];
  Stage& stage = stages_.emplace_back();
  TemplateContext context = {
      .cost_model = input_.cost_model,
      .stage = s,
      .blocking = input_.options.blocking,
      .keeps_results = !repetitions_.asynchronous(),
      .update = parts.weights.function.order().empty() ? nullptr : &parts.update,
      .stack_memory = input_.options.stack_memory,
      .kernels = input_.options.kernels};
  if (SeesOne(s)) context.kernels.overlaps_experts = false;
  if (context.kernels.sends_tokens_once) {
    context.places = [this, s](const ir::AxisList& axes) { return PlacesOf(s, axes); };
  }
  if (context.kernels.launch > Duration(0)) {
    context.collective_time = [this, s](const TemplateTask& task) { return TimeAlone(s, task); };
  }
  const auto make = [&](const transforms::StageFunction& part, simulator::Phase phase,
                        PhaseTemplates& templates) {
    context.phase = phase;
    context.first = true;
    templates.first = MakeTemplate(part, stage, context);
    context.first = false;
    if (SeesOne(s)) return;
    templates.later = stage_maker_cc::AddsUp(part.function) ? MakeTemplate(part, stage, context)
                                                            : templates.first;
  };
  if (input_.step.slices.empty()) {
    make(parts.forward, simulator::Phase::kForward, stage.forward);
    if (context.update != nullptr) context.weights = &parts.weights;
    make(parts.backward, simulator::Phase::kBackward, stage.backward);
    context.weights = nullptr;
    make(parts.weights, simulator::Phase::kBackward, stage.weights);
  } else {
    MakeSlices(context, stage);
  }
  context.phase = simulator::Phase::kUpdate;
  // A share of each stage of a rank.
  const int64_t step = context.kernels.step.picoseconds() * geometry_.positions();
  context.kernels.step = Duration((step + geometry_.stages() - 1) / geometry_.stages());
  context.first = true;
  context.every_dependency = !input_.options.blocking;
  const bool ahead = input_.options.kernels.gathers_ahead && !input_.options.blocking &&
                     !repetitions_.asynchronous() && input_.step.slices.empty();
  if (ahead) context.gathered_at_once = std::max(Bytes(1), input_.options.bucket_size);
  stage.update = MakeTemplate(parts.update, stage, context);
  if (ahead) {
    stage.gathers = TakeGathers(parts.update, stage.forward.first.task_template, stage.update);
  }
  // A run that communication slows down ends at a picosecond once, its kernels each.
  if (!input_.options.blocking) {
    FuseRuns(stage, input_.options.fuse_runs && !MaySlowDown(), program_);
  }
}

// Backwards run in the opposite order: sums begin with the last slice.
void StageMaker::MakeSlices(TemplateContext context, Stage& stage) {
  ORRERY_CHECK(context.update == nullptr) << "backwards of slices are not split";
  const auto s = static_cast<size_t>(context.stage);
  for (const transforms::SequenceSlice& slice : input_.step.slices) {
    context.phase = simulator::Phase::kForward;
    context.first = stage.forward.slices.empty();
    stage.forward.slices.push_back(MakeTemplate(slice.stages[s].forward, stage, context));
    context.phase = simulator::Phase::kBackward;
    context.first = stage.backward.slices.size() + 1 == input_.step.slices.size();
    stage.backward.slices.push_back(MakeTemplate(slice.stages[s].backward, stage, context));
  }
}

void StageMaker::MakeTemplates() {
  int32_t ops = 0;
  for (const transforms::PipelineStage& stage : input_.step.stages) {
    for (const auto* part : stage.parts()) ops += part->function.op_limit();
  }
  program_.ReserveLabels(ops);
  for (int32_t position = 0; position < geometry_.positions(); ++position) {
    std::vector<int32_t>& kinds = kinds_.emplace_back();
    for (const int32_t rank : geometry_.ranks_at(position)) {
      const int32_t kind = input_.cluster.kind_of(geometry_.device(rank));
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  stages_.reserve(static_cast<size_t>(geometry_.stages()));
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    MakeStage(s);
    last_of_size_.insert_or_assign(SizeOf(s), s);
    for (const PricedTemplate* priced : stages_.back().templates()) {
      for (const TemplateTask& task : priced->task_template.tasks) {
        if (!task.group.empty()) pricing_.Expect(s, RequestOf(task));
      }
      for (const TemplateSend& send : priced->task_template.sends) {
        if (Travels(s, send)) pricing_.Expect(s, RequestOf(send));
      }
    }
  }
}

// Where ranks are alike, or too many to simulate each. Runs of kernels count once, whether they are
// one task or, for a trace, many: what is asked for beside an answer does not change it.
bool StageMaker::CanFold() {
  if (OneKindAStage() && pricing_.AllGroupsAlike()) return true;
  const auto tasks_of = [](const TaskTemplate& task_template) {
    const auto joins = std::ranges::count_if(task_template.tasks, &TemplateTask::joins);
    return task_template.task_count() - joins;
  };
  int64_t tasks = 0;
  for (int32_t stage = 0; stage < geometry_.stages(); ++stage) {
    tasks += repetitions_.CountOnARank(stages_[static_cast<size_t>(stage)], tasks_of) *
             std::ssize(geometry_.ranks_of_stage(stage));
  }
  return tasks > input_.options.most_unfolded_tasks;
}

bool StageMaker::OneKindAStage() const {
  return std::all_of(kinds_.begin(), kinds_.end(),
                     [](const auto& kinds) { return kinds.size() == 1; });
}

Bytes StageMaker::CapacityOf(int32_t rank) const {
  const Bytes limit = input_.options.memory_limit;
  if (!input_.options.device_memory) return limit;
  const Bytes memory = DeviceOf(rank).memory;
  return limit == Bytes(0) ? memory : std::min(limit, memory);
}

bool StageMaker::MaySlowDown() const {
  if (input_.options.kernels.slowdown > 0) return true;
  for (int32_t kind = 0; kind < input_.cluster.kind_count(); ++kind) {
    if (input_.cluster.kind(kind).communication_slowdown > 0) return true;
  }
  return false;
}

// As with durations, the slowest kind stands for all of a folded stage.
double StageMaker::SlowDownOf(int32_t position, int32_t rank) const {
  const double of_stack = input_.options.kernels.slowdown;
  if (!fold_) return std::max(of_stack, DeviceOf(rank).communication_slowdown);
  double slowdown = of_stack;
  for (const int32_t kind : kinds_[static_cast<size_t>(position)]) {
    slowdown = std::max(slowdown, input_.cluster.kind(kind).communication_slowdown);
  }
  return slowdown;
}

void StageMaker::MakeActors(int32_t position) {
  const std::vector<int32_t>& ranks = geometry_.ranks_at(position);
  const std::vector<int32_t>& kinds = kinds_[static_cast<size_t>(position)];
  std::vector<Actor>& actors = actors_.emplace_back();
  const size_t count = fold_ ? 1 : ranks.size();
  for (size_t a = 0; a < count; ++a) {
    Bytes capacity = CapacityOf(ranks[a]);
    for (const int32_t rank : ranks) {
      if (fold_) capacity = std::min(capacity, CapacityOf(rank));
    }
    const int32_t kind = input_.cluster.kind_of(geometry_.device(ranks[a]));
    Actor actor;
    actor.kind =
        fold_ ? 0
              : static_cast<size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
    actor.rank = program_.AddRank({.name = geometry_.Name(ranks[a]),
                                   .members = fold_ ? ranks : std::vector<int32_t>{ranks[a]},
                                   .stage = position,
                                   .capacity = capacity,
                                   .communication_slowdown = SlowDownOf(position, ranks[a])});
    for (int stream = 0; stream < (input_.options.blocking ? 1 : simulator::kStreamKindCount);
         ++stream) {
      const auto kind = static_cast<simulator::StreamKind>(stream);
      if (IsHostStream(kind) && kind != simulator::StreamKind::kHost && !uses_host_) continue;
      actor.streams[static_cast<size_t>(stream)] = program_.AddStream(actor.rank, kind);
    }
    actors.push_back(actor);
  }
}

void StageMaker::MakeRanks() {
  for (int32_t position = 0; position < geometry_.positions(); ++position) MakeActors(position);
  for (int32_t position = 0; position < geometry_.positions(); ++position) {
    for (const Actor& actor : actors_[static_cast<size_t>(position)]) {
      AddOverhead(input_.options.memory_overhead, input_.step.mesh, actor.rank, program_);
      std::vector<char> seen;
      for (int32_t s = 0; s < geometry_.stages(); ++s) {
        if (geometry_.position_of(s) != position) continue;
        const int32_t versions = input_.schedule.weight_versions(repetitions_.shape, s);
        AddResidents({.step = input_.step,
                      .stage = s,
                      .weight_versions = versions,
                      .microbatches_under_way = std::min<int64_t>(input_.step.microbatches,
                                                                  geometry_.positions() - position),
                      .rank = actor.rank,
                      .stack_memory = input_.options.stack_memory},
                     seen, program_);
      }
    }
  }
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    stages_[static_cast<size_t>(s)].actors = actors_[static_cast<size_t>(geometry_.position_of(s))];
  }
}

// The first kind's durations become those of the slowest of all.
void StageMaker::TakeSlowest(PricedTemplate& priced) const {
  for (const std::vector<Duration>& durations : priced.other_durations) {
    for (size_t t = 0; t < durations.size(); ++t) {
      Duration& duration = priced.task_template.tasks[t].duration;
      duration = std::max(duration, durations[t]);
    }
  }
}

void StageMaker::SetLevels() {
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    for (const PricedTemplate* priced : stages_[static_cast<size_t>(s)].templates()) {
      for (const TemplateTask& task : priced->task_template.tasks) {
        if (!task.group.empty())
          program_.SetLevel(task.label, pricing_.LevelOf(s, RequestOf(task)));
      }
      for (const TemplateSend& send : priced->task_template.sends) {
        if (Travels(s, send)) program_.SetLevel(send.label, pricing_.LevelOf(s, RequestOf(send)));
      }
    }
  }
}

void StageMaker::PriceTemplates() {
  if (!fold_) return;
  for (int32_t s = 0; s < geometry_.stages(); ++s) {
    for (PricedTemplate* priced : stages_[static_cast<size_t>(s)].templates()) {
      TakeSlowest(*priced);
      priced->flows.resize(priced->task_template.tasks.size());
      for (size_t t = 0; t < priced->task_template.tasks.size(); ++t) {
        TemplateTask& task = priced->task_template.tasks[t];
        if (task.group.empty()) continue;
        const TaskTime time = pricing_.Collective(s, RequestOf(task), 0);
        task.duration = time.duration;
        priced->flows[t] = time.flow;
        program_.SetCollectives(task.label,
                                static_cast<int32_t>(pricing_.GroupsOf(task.group).size()));
      }
      for (const TemplateSend& send : priced->task_template.sends) {
        priced->sends.push_back(Travels(s, send) ? pricing_.Send(s, RequestOf(send), 0)
                                                 : TaskTime());
      }
    }
  }
}

}  // namespace orrery::lowering
