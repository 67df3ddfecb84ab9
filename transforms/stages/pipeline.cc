#include "transforms/stages/pipeline.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/stages/choose_stages.h"
#include "transforms/stages/scattered_sends.h"
#include "transforms/stages/second_pipeline.h"
#include "transforms/stages/shared_parameters.h"
#include "transforms/stages/stage_part.h"
#include "transforms/stages/stage_plan.h"

namespace orrery::transforms {
namespace pipeline_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OutputRole;
using ir::ValueId;

// What is to be made of a function besides its plan.
struct Target {
  const ir::Mesh& mesh;
  int64_t microbatches;
  size_t stages;
  int32_t collect_dim;  // of outputs, along which microbatches are put together
};

class Partitioner {
 public:
  Partitioner(const Function& function, const StagePlan& plan, const Target& target)
      : function_(function),
        plan_(plan),
        target_(target),
        locals_(function.value_limit()),
        roles_(function.value_limit(), ir::InputRole::kData),
        fixed_(function.value_limit(), 0),
        to_sum_(function.value_limit(), 0),
        to_collect_(function.value_limit(), 0) {
    constexpr absl::string_view kNames[kStepPhaseCount] = {"forward", "backward", "weights",
                                                           "update"};
    for (const ir::Input& input : function.inputs()) roles_[input.value] = input.role;
    for (size_t s = 0; s < target.stages; ++s) {
      for (const absl::string_view name : kNames) {
        parts_.emplace_back(absl::StrCat(function.name(), ".", name, s), target.mesh, function,
                            static_cast<int32_t>(parts_.size()), locals_);
        if (name == "weights" || name == "update") continue;
        // Half of the ops of a step are forward, and they are spread evenly.
        const auto share = static_cast<int32_t>(2 * target.stages);
        parts_.back().Reserve(function.op_limit() / share + 1, function.value_limit() / share + 1);
      }
    }
  }

  absl::StatusOr<PipelinedStep> Run(const std::vector<bool>& batched) {
    ORRERY_RETURN_IF_ERROR(CheckUpdates());
    FindSums(batched);
    fixed_ = FindFixedValues(function_);
    const bool ordered = plan_.order.size() == function_.order().size();
    for (const OpId op : ordered ? plan_.order : function_.order()) {
      if (function_.info(op).op_class == ir::OpClass::kOptimizer) {
        SplitOptimizer(op);
      } else {
        CopyOp(op);
      }
    }
    for (const ir::Output& output : function_.outputs()) ReturnOutput(output);
    return Finish();
  }

 private:
  static size_t Index(StepPhase phase) { return static_cast<size_t>(phase); }
  StagePart& PartOf(int32_t stage, StepPhase phase) {
    return parts_[static_cast<size_t>(stage) * kStepPhaseCount + Index(phase)];
  }
  int32_t stages() const { return static_cast<int32_t>(parts_.size() / kStepPhaseCount); }
  StagePart& PartOf(OpId op) { return PartOf(plan_.stage[op], plan_.phase[op]); }

  // What forward or backward updates, a running statistic, has no rule over several microbatches.
  absl::Status CheckUpdates() const {
    for (const ir::Output& output : function_.outputs()) {
      const OpId producer = function_.producer(output.value);
      const bool early = producer.valid() && plan_.phase[producer] != StepPhase::kUpdate;
      if (target_.microbatches == 1 || output.role != OutputRole::kUpdated || !early) continue;
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kUnsupported,
           .detail =
               absl::StrCat(ir::PrintValue(function_, output.value),
                            " is updated before the end of the step; wanted one microbatch")});
    }
    return absl::OkStatus();
  }

  // Which values are added up or put together over the microbatches.
  void FindSums(const std::vector<bool>& batched) {
    if (target_.microbatches == 1) return;
    for (const OpId op : function_.order()) {
      if (plan_.phase[op] != StepPhase::kUpdate) continue;
      for (const ValueId operand : function_.operands(op)) {
        const OpId producer = function_.producer(operand);
        if (producer.valid() && plan_.phase[producer] != StepPhase::kUpdate) to_sum_[operand] = 1;
      }
    }
    for (size_t i = 0; i < function_.outputs().size(); ++i) {
      const ir::Output& output = function_.outputs()[i];
      const OpId producer = function_.producer(output.value);
      if (!producer.valid() || plan_.phase[producer] == StepPhase::kUpdate) continue;
      (batched[i] ? to_collect_ : to_sum_)[output.value] = 1;
    }
  }

  // Whether each part that wants the result runs the op for itself.
  bool IsRepeated(OpId op) const {
    if (plan_.repeated[op] != 0) return true;
    if (function_.result_count(op) > 0 && fixed_[function_.result(op)] != 0) return true;
    return ReshardsForward(function_, plan_.phase, op);
  }

  // The value in `part`, brought there from wherever it is made.
  ValueId Get(ValueId value, int32_t stage, StepPhase phase) {
    StagePart& part = PartOf(stage, phase);
    if (part.local(value).valid()) return part.local(value);
    const OpId producer = function_.producer(value);
    if (!producer.valid()) return part.AddInput(value, roles_[value]);
    const StepPhase made = plan_.phase[producer];
    const int32_t maker = plan_.stage[producer];
    // The update takes a gradient as it is summed up, even where a view makes the summand.
    const bool update = phase == StepPhase::kUpdate, summed = update && to_sum_[value] != 0;
    const bool again = maker == stage && made < phase && !update && IsViewOfAny(producer);
    if (!summed && (IsRepeated(producer) || again)) return Repeat(producer, value, stage, phase);
    // The phase in which this stage has it. Gradients only travel backward: that of the loss, which
    // forward leaves, too. Those of shared parameters travel once they are summed up.
    StepPhase comes = made;
    if (maker > stage) comes = std::max(made, std::min(phase, StepPhase::kBackward));
    if (update && maker != stage) comes = phase;
    if (maker != stage && comes == phase) {
      if (made < phase) Get(value, maker, phase);
      return Receive(value, stage, phase);
    }
    // Left by an earlier phase of this stage, which may have received it itself.
    ORRERY_CHECK(comes < phase) << function_.name() << " " << ir::PrintValue(function_, value);
    if (summed) return part.AddSum(value);
    Get(value, stage, comes);
    PartOf(stage, comes).Save(value);
    return part.AddInput(value, ir::InputRole::kSaved);
  }

  // Whether the op costs nothing and has something to look at: what it views is kept in its place.
  bool IsViewOfAny(OpId op) const {
    return function_.info(op).strided_view && !function_.operands(op).empty();
  }

  // Runs the op again in another part: constants, what is made from them, and views.
  ValueId Repeat(OpId op, ValueId value, int32_t stage, StepPhase phase) {
    StagePart& part = PartOf(stage, phase);
    std::vector<ValueId> operands;
    for (const ValueId operand : function_.operands(op)) {
      operands.push_back(Get(operand, stage, phase));
    }
    part.Append(op, operands);
    return part.local(value);
  }

  ValueId Receive(ValueId value, int32_t stage, StepPhase phase) {
    const int32_t from = plan_.stage[function_.producer(value)];
    StagePart& sender = PartOf(from, phase);
    if (phase == StepPhase::kUpdate) {
      sender.AddSend(value, stage);  // before anything is written over it
    } else {
      sender.SendAtEnd(value, stage);
    }
    return PartOf(stage, phase).AddReceive(value, from);
  }

  // What puts the gradient of a shared parameter together, on every stage that does so.
  void CopyJoin(OpId op, const std::vector<int32_t>& stages) {
    constexpr StepPhase kPhase = StepPhase::kUpdate;
    for (const int32_t stage : stages) {
      for (const ValueId operand : function_.operands(op)) Get(operand, stage, kPhase);
    }
    for (const int32_t stage : stages) {
      operands_.clear();
      for (const ValueId operand : function_.operands(op)) {
        operands_.push_back(Get(operand, stage, kPhase));
      }
      if (!PartOf(stage, kPhase).ok()) return;
      PartOf(stage, kPhase).Append(op, operands_);
    }
  }

  void CopyOp(OpId op) {
    if (IsRepeated(op)) return;
    if (const auto runs_on = plan_.runs_on.find(op); runs_on != plan_.runs_on.end()) {
      return CopyJoin(op, runs_on->second);
    }
    StagePart& part = PartOf(op);
    // An op and the collectives that complete its results stay together.
    if (function_.info(op).op_class != ir::OpClass::kCollective) part.AddUp(target_.microbatches);
    operands_.clear();
    for (const ValueId operand : function_.operands(op)) {
      operands_.push_back(Get(operand, plan_.stage[op], plan_.phase[op]));
    }
    if (!part.ok()) return;
    part.Append(op, operands_);
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      if (to_collect_[result] != 0) part.Collect(result, target_.collect_dim);
      if (to_sum_[result] != 0) part.Sum(result);
    }
  }

  // The parameters, states and gradients of one stage, as an optimizer of their own.
  void SplitOptimizer(OpId op) {
    const std::span<const ValueId> parameters = ir::OptimizerOperands(function_, op).parameters();
    for (int32_t stage = 0; stage < stages(); ++stage) {
      for (const std::vector<size_t>& mine : UpdatesOf(plan_, stage, parameters)) {
        AddOptimizer(op, stage, mine);
      }
    }
  }

  void AddOptimizer(OpId op, int32_t stage, const std::vector<size_t>& mine) {
    const ir::OptimizerOperands operands(function_, op);
    StagePart& part = PartOf(stage, StepPhase::kUpdate);
    operands_.clear();
    std::vector<ValueId> results;
    for (size_t group = 0; group < operands.groups(); ++group) {
      for (const size_t i : mine) {
        const size_t position = operands.Position(group, i);
        operands_.push_back(Get(operands.all()[position], stage, StepPhase::kUpdate));
        if (position >= operands.first_gradient()) continue;  // gradients are not updated
        results.push_back(function_.result(op, static_cast<int32_t>(position)));
      }
    }
    ir::AttributeSet attributes = function_.attributes(op);
    attributes.Set(ir::kParameterCount, static_cast<int64_t>(mine.size()));
    part.Append({.kind = function_.kind(op), .operands = operands_, .results = results},
                attributes);
  }

  void ReturnOutput(const ir::Output& output) {
    const OpId producer = function_.producer(output.value);
    if (!producer.valid()) return;  // an input handed back
    if (to_sum_[output.value] != 0 || to_collect_[output.value] != 0) return;
    if (function_.info(producer).op_class != ir::OpClass::kOptimizer) {
      return ReturnFrom(plan_.stage[producer], output);
    }
    const ValueId parameter = Parameter(output);
    for (int32_t stage = 0; stage < stages(); ++stage) {
      if (plan_.Holds(stage, parameter)) ReturnFrom(stage, output);
    }
  }

  void ReturnFrom(int32_t stage, const ir::Output& output) {
    const StepPhase phase = plan_.phase[function_.producer(output.value)];
    StagePart& part = PartOf(stage, phase);
    const ValueId of = output.of.valid() ? Get(output.of, stage, phase) : ValueId();
    part.builder().Return(part.local(output.value), output.role, of);
  }

  // The parameter whose update, or whose state's update, `output` is.
  ValueId Parameter(const ir::Output& output) const {
    const OpId op = function_.producer(output.value);
    const ir::OptimizerOperands operands(function_, op);
    const auto i = static_cast<size_t>(output.value.index() - function_.result(op).index());
    return operands.parameters()[operands.ParameterOf(i)];
  }

  absl::StatusOr<PipelinedStep> Finish() {
    PipelinedStep step{.mesh = target_.mesh,
                       .microbatches = target_.microbatches,
                       .stages = {},
                       .microbatch_size = 0,
                       .devices = {},
                       .slices = {},
                       .slice = {}};
    step.stages.reserve(parts_.size() / kStepPhaseCount);  // growing would copy them
    for (size_t s = 0; s < parts_.size(); s += kStepPhaseCount) {
      PipelineStage stage;
      ORRERY_ASSIGN_OR_RETURN(stage.forward, std::move(parts_[s]).Finish(target_.microbatches));
      ORRERY_ASSIGN_OR_RETURN(stage.backward,
                              std::move(parts_[s + 1]).Finish(target_.microbatches));
      ORRERY_ASSIGN_OR_RETURN(stage.weights, std::move(parts_[s + 2]).Finish(target_.microbatches));
      ORRERY_ASSIGN_OR_RETURN(stage.update, std::move(parts_[s + 3]).Finish(target_.microbatches));
      step.stages.push_back(std::move(stage));
    }
    return step;
  }

  const Function& function_;
  const StagePlan& plan_;
  const Target target_;
  LocalValues locals_;
  IdTable<ValueId, ir::InputRole> roles_;
  std::vector<StagePart> parts_;  // forward, backward and update of stage 0, then of stage 1, …
  IdTable<ValueId, char> fixed_;  // constants and buffers, and what is made from them alone
  IdTable<ValueId, char> to_sum_, to_collect_;
  std::vector<ValueId> operands_;
};

}  // namespace
}  // namespace pipeline_cc

std::vector<ir::Function> PipelinedStep::Functions() const {
  std::vector<ir::Function> functions;
  for (const PipelineStage& stage : stages) {
    for (const StageFunction* part : stage.parts()) {
      if (!part->function.order().empty()) functions.push_back(part->function);
    }
  }
  return functions;
}

namespace pipeline_cc {
namespace {

PipelineShape ShapeOf(const ir::Mesh& mesh, const PartitionOptions& options) {
  const auto pp = mesh.Find("pp");
  return {.ranks = static_cast<int32_t>(pp.has_value() ? mesh.size(*pp) : 1),
          .chunks = options.chunks};
}

std::vector<int32_t> RanksOf(const PipelineShape& shape, StagePlacement placement) {
  std::vector<int32_t> ranks;
  for (int32_t s = 0; s < shape.stages(); ++s) ranks.push_back(RankOf(placement, shape, s));
  return ranks;
}

// Of one pipeline: a second one is a copy.
StageOptions StagesOf(const PipelineShape& shape, const PartitionOptions& options,
                      int64_t microbatches = 1) {
  const bool two_way = options.placement == StagePlacement::kTwoWay;
  std::vector<int32_t> ranks;
  if (options.chunks > 1 && !two_way) ranks = RanksOf(shape, options.placement);
  return {.stages = two_way ? shape.ranks : shape.stages(),
          .equal_stages = options.equal_stages,
          .split_backward = options.split_backward,
          .ranks = std::move(ranks),
          .choice = options.choice,
          .microbatches = microbatches};
}

}  // namespace
}  // namespace pipeline_cc

absl::Status CheckPartition(const ir::Function& whole, const ir::Mesh& mesh,
                            const PartitionOptions& options) {
  const PipelineShape shape = pipeline_cc::ShapeOf(mesh, options);
  ORRERY_RETURN_IF_ERROR(CheckStageCount(shape, std::ssize(whole.order())));
  return CheckPlaces(whole, pipeline_cc::StagesOf(shape, options));
}

absl::StatusOr<std::vector<std::vector<size_t>>> PartitionsToTry(const ir::Function& function,
                                                                 const ir::Mesh& mesh,
                                                                 int64_t microbatches,
                                                                 const PartitionOptions& options) {
  const PipelineShape shape = pipeline_cc::ShapeOf(mesh, options);
  ORRERY_RETURN_IF_ERROR(CheckStageCount(shape, std::ssize(function.order())));
  return CutsToTry(function, pipeline_cc::StagesOf(shape, options, microbatches));
}

absl::StatusOr<PipelinedStep> PartitionStages(const ir::Function& function, const ir::Mesh& mesh,
                                              int64_t microbatches,
                                              const std::vector<bool>& batched,
                                              const PartitionOptions& options) {
  const bool two_way = options.placement == StagePlacement::kTwoWay;
  const PipelineShape shape = pipeline_cc::ShapeOf(mesh, options);
  ORRERY_RETURN_IF_ERROR(CheckStageCount(shape, std::ssize(function.order())));
  const StageOptions stages = pipeline_cc::StagesOf(shape, options, microbatches);
  ORRERY_ASSIGN_OR_RETURN(StagePlan plan, PlanStages(function, stages));
  plan.late_updates = options.late_updates;
  std::optional<ir::Function> scattered;
  if (options.scatters_sends) scattered = ScatterSends(function, plan);
  pipeline_cc::Partitioner partitioner(
      scattered.has_value() ? *scattered : function, plan,
      {mesh, microbatches,
       plan.sets.empty() ? static_cast<size_t>(stages.stages) : plan.sets.size(),
       options.collect_dim});
  ORRERY_ASSIGN_OR_RETURN(PipelinedStep step, partitioner.Run(batched));
  step.ranks = plan.sets.empty() ? pipeline_cc::RanksOf(shape, options.placement) : plan.sets;
  step.layers = std::move(plan.layers);
  if (two_way) AddSecondPipeline(step);
  return step;
}

}  // namespace orrery::transforms
