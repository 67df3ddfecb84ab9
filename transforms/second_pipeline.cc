#include "transforms/second_pipeline.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "support/status.h"

namespace orrery::transforms {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Rebuilds one function of a stage op by op.
class StageCopy {
 public:
  // `name` of the new function. Origins of the copy are `origin_shift` further on than they were.
  StageCopy(const StageFunction& source, const std::string& name, int32_t origin_shift)
      : source_(source),
        builder_(name, source.function.mesh()),
        origin_shift_(origin_shift),
        here_(source.function.value_limit()),
        types_here_(source.function.types().size()) {}

  // Peers of sends and receives are `peer_shift` stages further on. With `twin` >= 0, sums of
  // gradients that come in are exchanged with that stage, whose origins are `twin_shift` further on
  // than those of the source.
  absl::StatusOr<StageFunction> Run(int32_t peer_shift, int32_t twin, int32_t twin_shift) {
    const Function& from = source_.function;
    for (const ir::Input& input : from.inputs()) {
      const ValueId value = builder_.function().AddInputOfType(from.value_name(input.value),
                                                               TypeOf(input.value), input.role);
      Bind(input.value, value);
    }
    if (twin >= 0) Exchange(twin, twin_shift);
    for (const OpId op : from.order()) CopyOp(op, peer_shift);
    for (const ir::Output& output : from.outputs()) {
      builder_.Return(here_[output.value], output.role,
                      output.of.valid() ? here_[output.of] : ValueId());
    }
    StageFunction copy;
    ORRERY_ASSIGN_OR_RETURN(copy.function, std::move(builder_).Finalize());
    origins_.resize(static_cast<size_t>(copy.function.value_limit()));
    copy.origins = std::move(origins_);
    return copy;
  }

 private:
  void SetOrigin(ValueId here, ValueId origin, int32_t shift) {
    const auto index = static_cast<size_t>(here.index());
    if (origins_.size() <= index) origins_.resize(index + 1);
    if (origin.valid()) origins_[index] = ValueId(origin.index() + shift);
  }

  void Bind(ValueId source, ValueId here) {
    here_[source] = here;
    SetOrigin(here, source_.origins[static_cast<size_t>(source.index())], origin_shift_);
  }

  void Exchange(int32_t twin, int32_t twin_shift) {
    const Function& from = source_.function;
    std::vector<ValueId> sums;
    for (const ir::Input& input : from.inputs()) {
      if (input.role == ir::InputRole::kAccumulator) sums.push_back(input.value);
    }
    Function& to = builder_.function();
    for (const ValueId sum : sums) {
      to.AddOpOfTypes(OpKind::kSend, std::span(&here_[sum], 1),
                      to.InternAttributes({{"tag", TagOf(sum)}, {"to", int64_t{twin}}}), {});
    }
    for (const ValueId sum : sums) {
      const ir::AttributesId attributes =
          to.InternAttributes({{"from", int64_t{twin}}, {"tag", TagOf(sum)}});
      const ir::TypeId type = TypeOf(sum);
      const OpId receive = to.AddOpOfTypes(OpKind::kReceive, {}, attributes, std::span(&type, 1));
      const ValueId other = to.result(receive);
      to.SetName(other, builder_.FreeName(absl::StrCat(TagOf(sum), ".twin")));
      SetOrigin(other, source_.origins[static_cast<size_t>(sum.index())], twin_shift);
      here_[sum] = builder_.Add(here_[sum], other);
    }
  }

  std::string TagOf(ValueId value) const { return std::string(source_.function.value_name(value)); }

  void CopyOp(OpId op, int32_t peer_shift) {
    if (!builder_.status().ok()) return;
    const Function& from = source_.function;
    Function& to = builder_.function();
    operands_.clear();
    for (const ValueId operand : from.operands(op)) operands_.push_back(here_[operand]);
    result_types_.clear();
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      result_types_.push_back(TypeOf(from.result(op, i)));
    }
    const OpId copy =
        to.AddOpOfTypes(from.kind(op), operands_, AttributesOf(op, peer_shift), result_types_);
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      const ValueId result = from.result(op, i);
      if (!from.value_name(result).empty()) {
        to.SetName(to.result(copy, i), from.value_name(result));
      }
      Bind(result, to.result(copy, i));
    }
  }

  // The type of a value of the source, in the table of the copy.
  ir::TypeId TypeOf(ValueId value) {
    ir::TypeId& here = types_here_[source_.function.type_id(value)];
    if (!here.valid()) here = builder_.function().InternType(source_.function.type(value));
    return here;
  }

  // The attributes of an op of the source, in the table of the copy.
  ir::AttributesId AttributesOf(OpId op, int32_t peer_shift) {
    const Function& from = source_.function;
    Function& to = builder_.function();
    const bool sends = from.kind(op) == OpKind::kSend;
    if (sends || from.kind(op) == OpKind::kReceive) {
      const absl::string_view peer = sends ? "to" : "from";
      ir::AttributeSet attributes = from.attributes(op);
      attributes.Set(peer, attributes.Int(peer, 0) + peer_shift);
      return to.InternAttributes(attributes);
    }
    const auto place = static_cast<size_t>(from.attributes_id(op).index());
    if (attributes_here_.size() <= place) attributes_here_.resize(place + 1);
    ir::AttributesId& here = attributes_here_[place];
    if (!here.valid()) here = to.InternAttributes(from.attributes(op));
    return here;
  }

  const StageFunction& source_;
  ir::Builder builder_;
  const int32_t origin_shift_;
  IdTable<ValueId, ValueId> here_;
  IdTable<ir::TypeId, ir::TypeId> types_here_;
  std::vector<ir::AttributesId> attributes_here_;
  std::vector<ValueId> operands_;         // of the op that is being copied
  std::vector<ir::TypeId> result_types_;  // likewise
  std::vector<ValueId> origins_;
};

int32_t OriginLimit(const PipelinedStep& step) {
  int32_t limit = 0;
  for (const PipelineStage& stage : step.stages) {
    for (const StageFunction* part : stage.parts()) {
      for (const ValueId origin : part->origins) limit = std::max(limit, origin.index() + 1);
    }
  }
  return limit;
}

absl::Status CheckUpdatesAlone(const PipelinedStep& step) {
  for (const PipelineStage& stage : step.stages) {
    const Function& update = stage.update.function;
    for (const OpId op : update.order()) {
      if (update.kind(op) != OpKind::kReceive) continue;
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kUnsupported,
           .detail = absl::StrCat("gradient ", ir::PrintValue(update, update.result(op)),
                                  " is of a parameter of several stages, which two pipelines in "
                                  "opposite directions have twice; try another schedule, or "
                                  "embeddings that are not tied")});
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddSecondPipeline(PipelinedStep& step) {
  ORRERY_RETURN_IF_ERROR(CheckUpdatesAlone(step));
  const auto depth = static_cast<int32_t>(step.stages.size());
  const int32_t limit = OriginLimit(step);
  const auto name = [](const StageFunction& part) {
    return absl::StrCat(part.function.name(), ".back");
  };
  for (int32_t k = 0; k < depth; ++k) {
    const PipelineStage& first = step.stages[static_cast<size_t>(k)];
    PipelineStage second;
    const auto copy = [&](const StageFunction& part) {
      return StageCopy(part, name(part), limit).Run(depth, -1, 0);
    };
    ORRERY_ASSIGN_OR_RETURN(second.forward, copy(first.forward));
    ORRERY_ASSIGN_OR_RETURN(second.backward, copy(first.backward));
    ORRERY_ASSIGN_OR_RETURN(second.weights, copy(first.weights));
    ORRERY_ASSIGN_OR_RETURN(second.update,
                            StageCopy(first.update, name(first.update), limit).Run(depth, k, 0));
    ORRERY_ASSIGN_OR_RETURN(StageFunction update,
                            StageCopy(first.update, std::string(first.update.function.name()), 0)
                                .Run(0, depth + k, limit));
    step.stages[static_cast<size_t>(k)].update = std::move(update);
    step.stages.push_back(std::move(second));
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
