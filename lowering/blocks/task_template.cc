#include "lowering/blocks/task_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cost_models/collectives/collective_kind.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "lowering/blocks/block_buffers.h"
#include "lowering/blocks/collective_stream.h"
#include "lowering/blocks/earlier_rows.h"
#include "lowering/blocks/expert_exchange.h"
#include "lowering/blocks/fused_kernels.h"
#include "lowering/blocks/gradient_reduction.h"
#include "lowering/blocks/host_work.h"
#include "lowering/blocks/kernel_costs.h"
#include "lowering/blocks/launch_floor.h"
#include "lowering/blocks/pipelined_products.h"
#include "lowering/blocks/scratch.h"
#include "lowering/blocks/task_name.h"
#include "lowering/blocks/units.h"
#include "lowering/network/collective_times.h"
#include "support/check.h"
#include "transforms/redistribution/emit.h"

namespace orrery::lowering {
namespace task_template_cc {
namespace {

using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;
using simulator::StreamKind;
using transforms::HostWork;

constexpr int32_t kNone = -1;

// Copies to the host, and which of them kernels wait for.
struct HostStores {
  int32_t last = kNone;     // the last copy
  int32_t awaited = kNone;  // the last of the layer before, for which no kernel waits yet
  int64_t layer = kNone;    // of the last copy

  void Add(int32_t task, int64_t of_layer) {
    if (of_layer != layer) awaited = last;
    layer = of_layer;
    last = task;
  }
};

// So many fields: all that one walk through a function keeps.
class PhaseLowering {
 public:
  PhaseLowering(const transforms::StageFunction& part, const TemplateContext& context,
                simulator::Program& program)
      : part_(part),
        function_(part.function),
        context_(context),
        program_(program),
        copies_(context.cost_model.copies_everything()),
        local_(function_),
        costs_(function_, local_, context),
        fused_(function_, local_, context),
        maker_(function_.value_limit()),
        buffers_(FindBuffers(part_, context_, local_.bytes())),
        without_room_(fused_.WithoutRoom(buffers_)) {}

  TaskTemplate Run() {
    template_.tasks.reserve(function_.order().size());
    template_.memory.reserve(3 * function_.order().size());
    template_.outputs.reserve(function_.outputs().size());
    template_.inputs.reserve(function_.inputs().size());
    for (const ir::Input& input : function_.inputs()) AddInput(input.value);
    for (const OpId op : function_.order()) {
      LowerOp(op);
      ++position_;
    }
    for (const ir::Output& output : function_.outputs()) AddOutput(output.value);
    WaitForTheHost(context_, launches_, others_, template_.tasks);
    if (context_.kernels.pipelines_products && !context_.blocking) {
      PipelineProducts(function_, template_, program_);
    }
    if (context_.kernels.overlaps_experts) OverlapExchanges(function_, template_);
    if (template_.tasks.empty()) template_.memory.clear();  // there is no time at which to count it
    FormUnits(context_.blocking, context_.gathered_at_once, template_, program_);
    return std::move(template_);
  }

 private:
  // Who makes a value: a task of this template, an input, or nobody that one has to wait for.
  struct Maker {
    bool known = false;
    TemplateDependency dependency;
  };

  ValueId OriginOf(ValueId value) const { return transforms::OriginOf(part_, value); }
  int64_t BytesOf(ValueId value) const { return local_.BytesOf(value); }
  // What a buffer takes.
  int64_t RoomIn(ValueId buffer) const {
    const bool none = !without_room_.empty() && without_room_[buffer] != 0;
    return none ? 0 : BytesOf(buffer);
  }
  bool IsSum(OpKind kind) const { return kind == OpKind::kAccumulate || kind == OpKind::kCollect; }
  // Of its kernel: less than 1 of a sum where there is nothing yet, or where the product that makes
  // the summand adds it.
  double ShareTaken(OpId op) const {
    if (!IsSum(function_.kind(op))) return 1;
    if (context_.first) return 0;
    const OpId maker = function_.producer(function_.operands(op).back());
    const bool in_product = maker.valid() && function_.info(maker).products != nullptr;
    return in_product ? context_.kernels.sum_share : 1;
  }

  void AddInput(ValueId value, bool received = false) {
    const auto index = static_cast<int32_t>(template_.inputs.size());
    template_.inputs.push_back({.origin = OriginOf(value), .task = kNone, .received = received});
    maker_[value] = {.known = true, .dependency = {.external = true, .index = index}};
  }

  void AddOutput(ValueId value) {
    const Maker& maker = maker_[value];
    const bool made_here = maker.known && !maker.dependency.external;
    // A sum goes by the name of what is summed, so that the next template finds it.
    ValueId origin = OriginOf(value);
    const OpId op = function_.producer(value);
    if (op.valid() && IsSum(function_.kind(op))) origin = OriginOf(function_.operands(op)[1]);
    template_.outputs.push_back(
        {.origin = origin, .task = made_here ? maker.dependency.index : kNone});
  }

  void LowerOp(OpId op) {
    if (transforms::HostWorkOf(function_, op) != HostWork::kNone) {
      return AddTask(op);
    }
    switch (function_.info(op).op_class) {
      case OpClass::kReceive:
        AddInput(function_.result(op), /*received=*/true);
        break;
      case OpClass::kSend:
        AddSend(op);
        break;
      case OpClass::kView:
        if (IsCopy(op)) {
          AddTask(op);
        } else {
          Forward(op);
        }
        break;
      default:
        // Adding to nothing is no work.
        if (!copies_ && context_.first && function_.kind(op) == OpKind::kAccumulate) {
          Forward(op);
        } else {
          AddTask(op);
        }
    }
  }

  // A view of another size than what it views.
  bool IsCopy(OpId op) const {
    if (function_.operands(op).empty() || function_.result_count(op) == 0) return false;
    return copies_ || buffers_.buffer[function_.result(op)] == function_.result(op);
  }

  // A result that takes no task: it is there when its operand is.
  void Forward(OpId op) {
    const auto operands = function_.operands(op);
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      if (!operands.empty()) maker_[function_.result(op, i)] = maker_[operands.back()];
    }
    UseOperands(op, std::max(0, static_cast<int32_t>(template_.tasks.size()) - 1));
  }

  // One use of the value's buffer by `task`; after the last one it is free.
  void Use(ValueId value, int32_t task) {
    const ValueId buffer = buffers_.buffer[value];
    if (--buffers_.uses[buffer] > 0) return;
    ORRERY_CHECK(buffers_.uses[buffer] == 0)
        << function_.name() << " " << ir::PrintValue(function_, value);
    const simulator::MemoryKind kind = buffers_.kind[buffer];
    if (kind == simulator::MemoryKind::kBuffers) template_.releases.push_back(task);
    template_.memory.push_back({.task = task, .kind = kind, .bytes = -RoomIn(buffer)});
  }

  void UseOperands(OpId op, int32_t task) {
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool so_far = i == 0 && IsSum(function_.kind(op));
      const bool collects = function_.kind(op) == OpKind::kCollect;
      if (so_far && (context_.first || (collects && !copies_))) {
        --buffers_.uses[buffers_.buffer[operands[0]]];  // there is nothing yet, or it stays where
                                                        // it was made
      } else if (so_far && collects) {
        --buffers_.uses[buffers_.buffer[operands[0]]];  // as large as the microbatches so far
        const bool slices = IsOfSlice(op);
        template_.memory.push_back({.task = task,
                                    .kind = buffers_.kind[operands[0]],
                                    .growth = slices ? MemoryGrowth::kNone : MemoryGrowth::kSoFar,
                                    .bytes = -(slices ? BytesBefore(op) : BytesOf(operands[1]))});
      } else {
        Use(operands[i], task);
      }
    }
    const auto earlier = buffers_.earlier_rows.find(op);
    if (earlier == buffers_.earlier_rows.end()) return;
    template_.memory.push_back({.task = task, .bytes = -earlier->second});
  }

  void AddTask(OpId op) {
    const auto task = static_cast<int32_t>(template_.tasks.size());
    TemplateTask& row = template_.tasks.emplace_back();
    row.dependency_begin = static_cast<uint32_t>(template_.dependencies.size());
    row.first_op = row.last_op = position_;
    launches_.push_back(0);
    const HostWork work = transforms::HostWorkOf(function_, op);
    if (work != HostWork::kNone) {
      WorkWithHost(op, work, row);
    } else if (function_.info(op).op_class == OpClass::kCollective) {
      Collective(op, row);
      ++others_.count;
      if (context_.collective_time) others_.duration += context_.collective_time(row);
    } else {
      const KernelCosts::Cost* const share = fused_.Find(op);
      const KernelCosts::Cost cost = share != nullptr ? *share : costs_.Of(op);
      row.label = AddLabel(op, {.flops = cost.flops, .bytes = cost.bytes, .sources = cost.sources});
      const double taken = ShareTaken(op);
      row.duration =
          taken == 1 ? cost.duration : Duration::FromSeconds(cost.duration.seconds() * taken);
      if (taken == 1) launches_.back() = cost.launches;
    }
    for (const ValueId operand : function_.operands(op)) DependOn(operand, row.stream);
    if (IsKernel(row) && stores_.awaited != kNone) {
      template_.dependencies.push_back(
          {.external = false, .index = std::exchange(stores_.awaited, kNone)});
    }
    row.dependency_end = static_cast<uint32_t>(template_.dependencies.size());
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      maker_[result] = {.known = true, .dependency = {.external = false, .index = task}};
      if (buffers_.buffer[result] == result) template_.memory.push_back(RoomOf(op, result, task));
    }
    if (function_.kind(op) == OpKind::kExtendRowsGrad) KeepSums(op, task);
    Scratch(op, task);
    UseOperands(op, task);
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      if (buffers_.buffer[result] != result || buffers_.uses[result] > 0) continue;
      TemplateMemory freed = RoomOf(op, result, task);
      freed.bytes = -freed.bytes;
      template_.memory.push_back(freed);
    }
  }

  // Gradients of earlier slices' keys and values are summed up from the last slice on, each until
  // the backward of its own.
  void KeepSums(OpId op, int32_t task) {
    const int64_t change = ChangeOfSums(function_, op, local_.bytes());
    if (change != 0) template_.memory.push_back({.task = task, .bytes = change});
  }

  // What the software needs while the op runs.
  void Scratch(OpId op, int32_t task) {
    const double bytes = ScratchBytes(op, function_, local_.types(), context_.stack_memory);
    if (bytes <= 0) return;
    for (const double sign : {1.0, -1.0}) {
      template_.memory.push_back({.task = task,
                                  .kind = simulator::MemoryKind::kActivations,
                                  .bytes = static_cast<int64_t>(sign * bytes)});
    }
  }

  // That a result takes; what is collected grows with the microbatches.
  TemplateMemory RoomOf(OpId op, ValueId result, int32_t task) const {
    TemplateMemory memory{.task = task, .kind = buffers_.kind[result], .bytes = RoomIn(result)};
    if (function_.kind(op) == OpKind::kCollect) {
      memory.bytes = BytesOf(function_.operands(op)[1]);
      if (IsOfSlice(op)) {
        memory.bytes += BytesBefore(op);
      } else {
        memory.growth = MemoryGrowth::kWithThis;
      }
    }
    return memory;
  }

  // A Collect of slices of the sequence, and what those before it have left: they need not be
  // alike.
  bool IsOfSlice(OpId op) const { return function_.attributes(op).Find("begin") != nullptr; }
  int64_t BytesBefore(OpId op) const {
    return BytesCollectedBefore(function_, op, BytesOf(function_.operands(op)[1]));
  }

  // A stream runs its tasks in order, so only what another stream makes has to be waited for.
  void DependOn(ValueId operand, StreamKind stream) {
    const Maker& maker = maker_[operand];
    if (!maker.known || context_.blocking) return;
    const TemplateDependency& made_by = maker.dependency;
    const bool same_stream =
        !made_by.external && template_.tasks[static_cast<size_t>(made_by.index)].stream == stream;
    if (!same_stream || context_.every_dependency) template_.dependencies.push_back(made_by);
  }

  simulator::LabelId AddLabel(OpId op, simulator::TaskLabel label) {
    const std::string name = context_.names ? ToString(NameOfTask(function_, op)) : std::string();
    label.name = name;
    label.phase = context_.phase;
    label.stage = context_.stage;
    label.kernels = KernelsOf(function_, op, label.kind);
    return program_.AddLabel(label);
  }

  void Collective(OpId op, TemplateTask& row) {
    const auto step = transforms::redistribution::StepOf(function_.kind(op));
    ORRERY_CHECK(step.has_value()) << function_.info(op).name;
    row.collective = CollectiveOf(*step).value();
    const bool gathers = row.collective == cost_models::CollectiveKind::kAllGather;
    row.bytes = Bytes(BytesOf(gathers ? function_.result(op) : function_.operands(op)[0]));
    row.dtype = function_.type(function_.result(op)).dtype;
    row.unit = static_cast<int32_t>(function_.attributes(op).Int("unit", TemplateTask::kNoUnit));
    const absl::Status status =
        ir::ParseAxes(function_.attributes(op), function_.mesh(), row.group);
    ORRERY_CHECK(status.ok()) << function_.name() << ": " << status.ToString();
    const std::string axes = function_.mesh().Names(row.group);
    row.stream = StreamOfCollective(axes, context_);
    if (context_.phase == simulator::Phase::kUpdate) ReduceAsSoftwareDoes(context_.kernels, row);
    SendTokensOnce(function_, op, context_, row);
    const std::string kind =
        absl::StrCat(cost_models::GetCollectiveKind(row.collective).name, " ", axes);
    row.label = AddLabel(
        op, {.kind = simulator::TaskKind::kCollective, .bytes = row.bytes, .communication = kind});
  }

  // Copies of a microbatch have their place among the kernels: out after the last use, back no
  // sooner than told; and once those of a layer begin, kernels wait for those of the layer before.
  // Those of an update go when they can, and the host begins with it when it has all gradients.
  void WorkWithHost(OpId op, HostWork work, TemplateTask& row) {
    const Bytes bytes(BytesOf(function_.operands(op)[0]));
    const bool updates = work == HostWork::kUpdate;
    const Bytes moved = updates ? cost_models::BytesMovedBy(costs_.View(op)) : bytes;
    row.label = AddLabel(op, {.bytes = moved});
    row.duration =
        updates ? HostUpdateTime(moved, *context_.device) : HostCopyTime(bytes, *context_.device);
    if (context_.blocking) return;
    row.stream = HostStreamOf(work);
    row.follows = context_.phase != simulator::Phase::kUpdate;
    if (updates && stores_.last != kNone) {
      template_.dependencies.push_back({.external = false, .index = stores_.last});
    }
    if (work != HostWork::kStore) return;
    stores_.Add(static_cast<int32_t>(template_.tasks.size()) - 1,
                function_.attributes(op).Int("layer", kNone));
  }

  void AddSend(OpId op) {
    const ValueId value = function_.operands(op)[0];
    const Maker& maker = maker_[value];
    const Bytes bytes(BytesOf(value));
    template_.sends.push_back(
        {.origin = OriginOf(value),
         .made_by = maker.dependency,
         .has_maker = maker.known,
         .to = static_cast<int32_t>(function_.attributes(op).Int("to", 0)),
         .bytes = bytes,
         .freed = --buffers_.uses[buffers_.buffer[value]] == 0,
         .op = position_,
         .label = AddLabel(
             op, {.kind = simulator::TaskKind::kSend, .bytes = bytes, .communication = "send"})});
  }

  const transforms::StageFunction& part_;
  const ir::Function& function_;
  const TemplateContext& context_;
  simulator::Program& program_;
  const bool copies_;
  const LocalTypes local_;
  KernelCosts costs_;
  const FusedKernels fused_;
  IdTable<ValueId, Maker> maker_;
  TemplateBuffers buffers_;
  const IdTable<ValueId, char> without_room_;  // of buffers; no rows: all have room
  int32_t position_ = 0;                       // of the op that is being lowered, in the order
  HostStores stores_;
  std::vector<double> launches_;  // of each task
  OtherLaunches others_;
  TaskTemplate template_;
};

}  // namespace
}  // namespace task_template_cc

TaskTemplate LowerPhase(const transforms::StageFunction& part, const TemplateContext& context,
                        simulator::Program& program) {
  return task_template_cc::PhaseLowering(part, context, program).Run();
}

}  // namespace orrery::lowering
