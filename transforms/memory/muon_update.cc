#include "transforms/memory/muon_update.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"
#include "transforms/memory/zero_part.h"

namespace orrery::transforms {
namespace muon_update_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

class Expander {
 public:
  explicit Expander(const StageFunction& part) : copy_(part) {}

  absl::StatusOr<StageFunction> Run() {
    for (const ir::Input& input : from().inputs()) copy_.AddInput(input);
    for (const OpId op : from().order()) {
      if (!copy_.status().ok()) break;
      if (from().kind(op) == OpKind::kMuon) {
        const size_t parameters = ir::ParameterCount(from().attributes(op));
        for (size_t i = 0; i < parameters; ++i) Expand(op, i);
      } else {
        copy_.CopyOp(op);
      }
    }
    copy_.CopyOutputs();
    return std::move(copy_).Finish();
  }

 private:
  const ir::Function& from() const { return copy_.from(); }
  ir::TensorType type(ValueId here) const { return builder_.type(here); }
  std::string NameOf(ValueId old) const { return std::string(from().value_name(old)); }

  // One parameter.
  void Expand(OpId op, size_t i) {
    const ir::OptimizerOperands old(from(), op);
    const size_t moment = old.groups() - 2;  // group; the masters, if any, are before it
    const ValueId m = old.all()[old.Position(moment, i)], g = old.gradients()[i];
    const ValueId m_new = Result(op, old.Position(moment, i));
    const ValueId ahead = LookAhead(op, m, g, m_new);
    if (!copy_.status().ok()) return;
    const ValueId step = Orthogonal(op, ahead, type(copy_[old.parameters()[i]]));
    std::vector<ValueId> operands;
    std::vector<std::string> names;
    for (size_t group = 0; group < moment; ++group) {
      operands.push_back(copy_[old.all()[old.Position(group, i)]]);
      names.push_back(NameOf(Result(op, old.Position(group, i))));
    }
    operands.push_back(step);
    const std::vector<absl::string_view> views(names.begin(), names.end());
    ir::AttributeSet attributes = {{ir::kParameterCount, int64_t{1}}};
    if (const ir::Attribute* rate = from().attributes(op).Find("lr")) attributes.Set("lr", *rate);
    const OpId update = builder_.Ops(OpKind::kSgd, operands, views, attributes);
    if (!update.valid()) return;
    for (size_t group = 0; group < moment; ++group) {
      Take(Result(op, old.Position(group, i)),
           builder_.function().result(update, static_cast<int32_t>(group)));
    }
  }

  ValueId LookAhead(OpId op, ValueId m, ValueId g, ValueId m_new) {
    const ValueId operands[] = {copy_[m], copy_[g]};
    const std::string kept = NameOf(m_new);
    const std::string ahead =
        NameOf(g).empty() ? "" : builder_.FreeName(absl::StrCat(NameOf(g), ".ahead"));
    const absl::string_view names[] = {kept, ahead};
    ir::AttributeSet attributes;
    if (const ir::Attribute* mu = from().attributes(op).Find("mu")) attributes.Set("mu", *mu);
    const OpId momentum = builder_.Ops(OpKind::kMuonMomentum, operands, names, attributes);
    if (!momentum.valid()) return ValueId();
    Take(m_new, builder_.function().result(momentum, 0));
    return builder_.function().result(momentum, 1);
  }

  // The step of a matrix, split as `ahead` and the weight are: gathered, and cut again.
  ValueId Orthogonal(OpId op, ValueId ahead, const ir::TensorType& weight) {
    const size_t rank = weight.dims.size();
    const ir::Sharding split = weight.sharding;
    for (size_t d = rank - 2; d < rank; ++d) {
      if (split.at(d).empty()) continue;
      ahead = Op(OpKind::kAllGather, ahead, Along(split.at(d), d));
    }
    ir::AttributeSet attributes = {{"scale", ir::MuonScale(weight.dims)}};
    if (const ir::Attribute* steps = from().attributes(op).Find("steps")) {
      attributes.Set("steps", *steps);
    }
    ValueId step = Op(OpKind::kNewtonSchulz, ahead, attributes);
    for (size_t d = rank - 2; d < rank; ++d) {
      if (split.at(d).empty()) continue;
      ir::AttributeSet cut = Along(split.at(d), d);
      if (weight.dims[d] % builder_.function().mesh().size(split.at(d)) != 0) {
        cut.Set("uneven", int64_t{1});
      }
      step = Op(OpKind::kAllSlice, step, cut);
    }
    return step;
  }

  ir::AttributeSet Along(const ir::AxisList& axes, size_t dim) const {
    return {{"axes", copy_.from().mesh().Names(axes)}, {"dim", static_cast<int64_t>(dim)}};
  }

  ValueId Op(OpKind kind, ValueId operand, const ir::AttributeSet& attributes) {
    if (!copy_.status().ok()) return ValueId();
    return builder_.Op(kind, {operand}, "", attributes);
  }

  ValueId Result(OpId op, size_t i) const { return from().result(op, static_cast<int32_t>(i)); }

  void Take(ValueId old, ValueId here) {
    copy_[old] = here;
    copy_.TakeOrigin(old, here);
  }

  PartCopy copy_;
  ir::Builder& builder_ = copy_.builder();
};

}  // namespace
}  // namespace muon_update_cc

bool HasMuon(const ir::Function& function) {
  return std::ranges::any_of(function.order(),
                             [&](ir::OpId op) { return function.kind(op) == ir::OpKind::kMuon; });
}

absl::Status ExpandMuon(PipelinedStep& step) {
  for (PipelineStage& stage : step.stages) {
    if (!HasMuon(stage.update.function)) continue;
    ORRERY_ASSIGN_OR_RETURN(stage.update, muon_update_cc::Expander(stage.update).Run());
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
