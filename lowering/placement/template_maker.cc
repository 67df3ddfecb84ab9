#include "lowering/placement/template_maker.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "cost_models/collectives/choice.h"
#include "ir/op_kind.h"
#include "lowering/blocks/buckets.h"
#include "lowering/blocks/compressed_reductions.h"
#include "lowering/blocks/stragglers.h"
#include "lowering/placement/boundary_sends.h"
#include "lowering/placement/early_gathers.h"
#include "lowering/placement/fuse_runs.h"
#include "lowering/placement/late_update.h"
#include "support/check.h"
#include "transforms/memory/offload.h"
#include "transforms/stages/dealt_orders.h"

namespace orrery::lowering {
namespace template_maker_cc {
namespace {

// Whether anything in the function adds to what an earlier microbatch has left.
bool AddsUp(const ir::Function& function) {
  return std::ranges::any_of(function.order(), [&](ir::OpId op) {
    return function.kind(op) == ir::OpKind::kAccumulate ||
           function.kind(op) == ir::OpKind::kCollect;
  });
}

// In one stream, what two templates at once take, and copies from and to the host, comes in the
// middle of runs.
bool HasRuns(const LoweringInput& input) {
  if (!input.options.blocking) return true;
  return !RunsPairs(input.schedule) && !transforms::FindHostWork(input.step).copies;
}

}  // namespace
}  // namespace template_maker_cc

std::vector<std::vector<int32_t>> KindsByPosition(const StageMaterials& of) {
  std::vector<std::vector<int32_t>> kinds_by_position;
  for (int32_t position = 0; position < of.geometry.positions(); ++position) {
    std::vector<int32_t>& kinds = kinds_by_position.emplace_back();
    for (const int32_t rank : of.geometry.ranks_at(position)) {
      const int32_t kind = of.input.cluster.kind_of(of.geometry.device(rank));
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  return kinds_by_position;
}

bool MaySlowDown(const LoweringInput& input) {
  if (input.options.kernels.slowdown > 0) return true;
  for (int32_t kind = 0; kind < input.cluster.kind_count(); ++kind) {
    if (input.cluster.kind(kind).communication_slowdown > 0) return true;
  }
  return false;
}

// In two pipelines a stage sees the microbatches of its own.
bool SeesOne(const StageMaterials& of, int32_t stage) {
  if (of.repetitions.always_first()) return true;
  if (of.geometry.dealt()) {
    if (of.repetitions.asynchronous()) return false;
    const auto position = static_cast<size_t>(of.geometry.position_of(stage));
    return transforms::MostDealt(of.input.step.unequal.replica_of[position]) == 1;
  }
  if (of.input.schedule.placement != transforms::StagePlacement::kTwoWay) return false;
  const bool second = stage >= of.geometry.stages() / 2;
  return (of.repetitions.microbatches + (second ? 0 : 1)) / 2 == 1;
}

std::vector<Stage> TemplateMaker::Make() && {
  int32_t ops = 0;
  for (const transforms::PipelineStage& stage : input_.step.stages) {
    for (const auto* part : stage.parts()) ops += part->function.op_limit();
  }
  of_.program.ReserveLabels(ops);
  stages_.reserve(static_cast<size_t>(of_.geometry.stages()));
  has_runs_ = template_maker_cc::HasRuns(input_);
  for (int32_t s = 0; s < of_.geometry.stages(); ++s) {
    if (!CopyFromEarlier(s)) MakeStage(s);
    last_of_size_.insert_or_assign(SizeOf(s), s);
    Announce(s);
  }
  return std::move(stages_);
}

// Of which part of a stage its templates are, by their number in Stage::templates.
const transforms::StageFunction& TemplateMaker::PartOf(int32_t s, size_t number) const {
  const transforms::PipelineStage& parts = PartsOf(s);
  if (number < 2) return parts.forward;
  if (number < 5) return parts.backward;
  return number < 8 ? parts.weights : parts.update;
}

void TemplateMaker::Announce(int32_t s) {
  size_t number = 0;
  for (PricedTemplate* priced : stages_[static_cast<size_t>(s)].templates()) {
    for (TemplateTask& task : priced->task_template.tasks) {
      if (!task.group.empty()) task.movement = of_.pricing.Expect(s, RequestOf(task));
    }
    for (TemplateSend& send : priced->task_template.sends) {
      const bool travels = of_.geometry.Travels(s, send.to);
      if (travels && of_.geometry.unequal()) {
        AnnounceAcross(s, PartOf(s, number), send);
      } else {
        send.movement = travels ? of_.pricing.Expect(s, RequestOf(send)) : MovementId();
      }
    }
    ++number;
  }
}

void TemplateMaker::AnnounceAcross(int32_t s, const transforms::StageFunction& part,
                                   TemplateSend& send) {
  const ir::OpId op = part.function.order()[static_cast<size_t>(send.op)];
  const ir::TensorType& type = part.function.type(part.function.operands(op)[0]);
  const bool once = &part == &PartsOf(s).update;
  const ir::TensorType* received = FindReceived(PartsOf(send.to), send.origin);
  ORRERY_CHECK(received != nullptr)
      << "stage " << send.to << " does not receive what " << s << " sends";
  const BoundarySend boundary{.from = s, .to = send.to, .type = type, .received = *received};
  send.across = MessagesOf(boundary, once, of_.geometry, of_.pricing);
  // Reports count what a message has, not what a rank has of the value.
  std::map<Bytes, simulator::LabelId> labels = {{send.bytes, send.label}};
  for (SendMessage& message : send.across.messages) {
    const auto [label, is_new] = labels.try_emplace(message.bytes);
    if (is_new) {
      simulator::TaskLabel of_size = of_.program.label(send.label);
      of_size.bytes = message.bytes;
      label->second = of_.program.AddLabel(of_size);
    }
    message.label = label->second;
  }
  if (send.across.gather.empty()) return;
  const std::string axes =
      of_.geometry.mesh_at(of_.geometry.position_of(send.to)).Names(send.across.gather);
  simulator::TaskLabel label = of_.program.label(send.label);
  label.kind = simulator::TaskKind::kCollective;
  label.stage = send.to;
  label.bytes = send.across.received;
  const std::string communication = absl::StrCat("all-gather ", axes);
  label.communication = communication;
  send.across.label = of_.program.AddLabel(label);
}

// Gradients, as they become ready, and compressed where that is wanted.
void TemplateMaker::Reduce(const ir::Function& update, const Stage& stage,
                           const TemplateContext& context, TaskTemplate& task_template,
                           simulator::Program& program) const {
  const cost_models::GradientCompression& compression = input_.options.compression;
  std::vector<cost_models::GradientSize> sizes;
  if (compression) sizes = GradientSizes(compression, update, task_template);
  FormBuckets(stage.LastBackward(), input_.options.bucket_size, task_template, program,
              compression ? &sizes : nullptr);
  if (!compression) return;
  CompressReductions({.compression = compression,
                      .mesh = update.mesh(),
                      .cost_model = context.cost_model,
                      .device = *context.device,
                      .program = program},
                     sizes, task_template);
}

// `stage` has all templates but those that come after this one.
PricedTemplate TemplateMaker::MakeTemplate(const transforms::StageFunction& part,
                                           const Stage& stage, const TemplateContext& context) {
  const bool overlaps = context.every_dependency;
  const auto lower = [&](int32_t kind, simulator::Program& program) {
    cluster::Device device = input_.cluster.kind(kind);
    if (context.kernels.graphs && context.phase != simulator::Phase::kUpdate) {
      device.launch_overhead = Duration(0);
    }
    TemplateContext of_kind = context;
    of_kind.device = &device;
    TaskTemplate task_template = LowerPhase(part, of_kind, program);
    if (input_.options.stragglers) {
      WaitForTheSlowest(part.function.mesh(), context.cost_model.Straggling(*of_kind.device),
                        task_template.tasks);
    }
    if (overlaps) Reduce(part.function, stage, of_kind, task_template, program);
    return task_template;
  };
  const std::vector<int32_t>& kinds = KindsOf(context.stage);
  PricedTemplate priced;
  priced.task_template = lower(kinds.front(), of_.program);
  for (size_t k = 1; k < kinds.size(); ++k) {
    simulator::Program labels;  // are those of the first kind
    std::vector<Duration>& durations = priced.other_durations.emplace_back();
    for (const TemplateTask& task : lower(kinds[k], labels).tasks)
      durations.push_back(task.duration);
  }
  return priced;
}

// Stages of another size do not do the same.
size_t TemplateMaker::SizeOf(int32_t s) const {
  size_t size = 0;
  for (const auto* part : PartsOf(s).parts()) {
    const ir::Function& function = part->function;
    size = absl::HashOf(size, function.inputs().size(), function.order().size());
  }
  return size;
}

// A stage before this one that may do the same; -1: none.
int32_t TemplateMaker::FindAlike(int32_t s) const {
  if (!input_.step.slices.empty() || of_.geometry.unequal()) return -1;
  const auto last = last_of_size_.find(SizeOf(s));
  const int32_t before = last == last_of_size_.end() ? -1 : last->second;
  const bool two_way = input_.schedule.placement == transforms::StagePlacement::kTwoWay;
  const int32_t twin = two_way ? s - of_.geometry.stages() / 2 : -1;
  for (const int32_t made : {twin, before}) {
    if (made >= 0 && !stages_[static_cast<size_t>(made)].awaited.empty()) continue;
    if (made >= 0 && KindsOf(made) == KindsOf(s) && SeesOne(of_, made) == SeesOne(of_, s))
      return made;
  }
  return -1;
}

bool TemplateMaker::CopyFromEarlier(int32_t s) {
  const int32_t made = FindAlike(s);
  if (made < 0) return false;
  std::optional<Stage> copy = copier_.Copy({.parts = PartsOf(made),
                                            .made = stages_[static_cast<size_t>(made)],
                                            .other_parts = PartsOf(s),
                                            .other = s});
  if (!copy.has_value()) return false;
  stages_.push_back(*std::move(copy));
  return true;
}

// Of the first group of a stage along the axes.
std::vector<cluster::DeviceId> TemplateMaker::FirstGroup(int32_t s, const ir::AxisList& axes) {
  std::vector<cluster::DeviceId> devices;
  for (const int32_t position : of_.pricing.GroupsOf(s, axes).front()) {
    const int32_t rank = of_.geometry.ranks_of_stage(s)[static_cast<size_t>(position)];
    devices.push_back(of_.geometry.device(rank));
  }
  return devices;
}

int64_t TemplateMaker::PlacesOf(int32_t s, const ir::AxisList& axes) {
  const std::vector<cluster::DeviceId> devices = FirstGroup(s, axes);
  if (devices.size() < 2) return 1;
  const cost_models::CollectiveCall call = cost_models::MakeCall(
      {.kind = cost_models::CollectiveKind::kAllToAll, .group = devices}, input_.cluster.topology);
  return call.ranks_a_node == call.ranks ? call.ranks : call.ranks / call.ranks_a_node;
}

// An estimate, before it is known what shares links with what.
Duration TemplateMaker::TimeAlone(int32_t s, const TemplateTask& task) {
  const std::vector<cluster::DeviceId> devices = FirstGroup(s, task.group);
  if (devices.size() < 2) return Duration(0);
  return input_.cost_model.Collective(task.collective, task.bytes, devices,
                                      input_.cluster.topology);
}

TemplateContext TemplateMaker::ContextOf(int32_t s) {
  const transforms::PipelineStage& parts = PartsOf(s);
  TemplateContext context = {
      .cost_model = input_.cost_model,
      .stage = s,
      .blocking = input_.options.blocking,
      .keeps_results = !of_.repetitions.asynchronous(),
      .names = input_.options.names,
      .update = parts.weights.function.order().empty() ? nullptr : &parts.update,
      .stack_memory = input_.options.stack_memory,
      .kernels = input_.options.kernels};
  if (SeesOne(of_, s)) context.kernels.overlaps_experts = false;
  if (context.kernels.sends_tokens_once) {
    context.places = [this, s](const ir::AxisList& axes) { return PlacesOf(s, axes); };
  }
  if (context.kernels.launch > Duration(0)) {
    context.collective_time = [this, s](const TemplateTask& task) { return TimeAlone(s, task); };
  }
  return context;
}

void TemplateMaker::MakeStage(int32_t s) {
  Stage& stage = stages_.emplace_back();
  TemplateContext context = ContextOf(s);
  if (input_.step.slices.empty()) {
    MakePhases(context, stage);
  } else {
    MakeSlices(context, stage);
  }
  MakeUpdate(std::move(context), stage);
  // A run that communication slows down ends at a picosecond once, its kernels each.
  if (has_runs_) {
    FuseRuns(stage, input_.options.fuse_runs && !MaySlowDown(input_), of_.program);
  }
}

void TemplateMaker::MakePhases(TemplateContext context, Stage& stage) {
  const transforms::PipelineStage& parts = PartsOf(context.stage);
  const auto make = [&](const transforms::StageFunction& part, simulator::Phase phase,
                        PhaseTemplates& templates) {
    context.phase = phase;
    context.first = true;
    templates.first = MakeTemplate(part, stage, context);
    context.first = false;
    if (SeesOne(of_, context.stage)) return;
    templates.later = template_maker_cc::AddsUp(part.function) ? MakeTemplate(part, stage, context)
                                                               : templates.first;
  };
  make(parts.forward, simulator::Phase::kForward, stage.forward);
  if (context.update != nullptr) context.weights = &parts.weights;
  make(parts.backward, simulator::Phase::kBackward, stage.backward);
  context.weights = nullptr;
  make(parts.weights, simulator::Phase::kBackward, stage.weights);
}

// Backwards run in the opposite order: sums begin with the last slice.
void TemplateMaker::MakeSlices(TemplateContext context, Stage& stage) {
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

void TemplateMaker::MakeUpdate(TemplateContext context, Stage& stage) {
  const transforms::PipelineStage& parts = PartsOf(context.stage);
  context.phase = simulator::Phase::kUpdate;
  // A share of each stage of a rank.
  const int64_t step = context.kernels.step.picoseconds() * of_.geometry.positions();
  context.kernels.step = Duration((step + of_.geometry.stages() - 1) / of_.geometry.stages());
  context.first = true;
  context.every_dependency = !input_.options.blocking;
  const bool ahead = input_.options.kernels.gathers_ahead && !input_.options.blocking &&
                     !of_.repetitions.asynchronous() && input_.step.slices.empty();
  if (ahead) context.gathered_at_once = std::max(Bytes(1), input_.options.bucket_size);
  stage.update = MakeTemplate(parts.update, stage, context);
  if (of_.repetitions.asynchronous()) {
    stage.awaited = AwaitedStages(parts.update, context.stage);
    stage.late_update = TakeLate(parts, context.stage, stage.update);
  }
  if (ahead) {
    stage.gathers = TakeGathers(parts.update, stage.forward.first.task_template, stage.update);
  }
}

}  // namespace orrery::lowering
