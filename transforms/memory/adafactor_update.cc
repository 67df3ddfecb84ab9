#include "transforms/memory/adafactor_update.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"
#include "transforms/memory/zero_part.h"

namespace orrery::transforms {
namespace adafactor_update_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool IsAdafactor(OpKind kind) {
  return kind == OpKind::kAdafactor || kind == OpKind::kAdafactorVectors;
}

// A parameter that is split: its place in the old op, and what the passes have made of it so far.
struct SplitParameter {
  size_t i = 0;
  ValueId weights, gradient;     // those that are updated: the master copy where there is one
  std::vector<ValueId> means;    // as many as there are states
  std::vector<ValueId> moments;  // the new states, and of a matrix the mean of the first
  ValueId norms;
};

class Expander {
 public:
  explicit Expander(const StageFunction& part) : copy_(part) {}

  absl::StatusOr<StageFunction> Run(bool on_host) {
    for (const ir::Input& input : from().inputs()) copy_.AddInput(input);
    for (const OpId op : from().order()) {
      if (!copy_.status().ok()) break;
      if (IsAdafactor(from().kind(op))) {
        ORRERY_RETURN_IF_ERROR(Expand(op, on_host));
      } else {
        copy_.CopyOp(op);
      }
    }
    copy_.CopyOutputs();
    return std::move(copy_).Finish();
  }

 private:
  const ir::Function& from() const { return copy_.from(); }
  std::string NameOf(ValueId old) const { return std::string(from().value_name(old)); }
  ValueId Result(OpId op, size_t i) const { return from().result(op, static_cast<int32_t>(i)); }
  size_t StateCount(OpId op) const { return from().kind(op) == OpKind::kAdafactor ? 2 : 1; }
  // Of tensors of a parameter that are no state: itself, and a master copy.
  size_t CopyCount(OpId op) const {
    return ir::OptimizerOperands(from(), op).groups() - 1 - StateCount(op);
  }

  absl::Status Expand(OpId op, bool on_host) {
    const ir::OptimizerOperands old(from(), op);
    std::vector<size_t> whole;
    std::vector<SplitParameter> split;
    for (size_t i = 0; i < old.count(); ++i) {
      const ValueId parameter = copy_[old.parameters()[i]];
      if (builder_.type(parameter).sharding.split.empty()) {
        whole.push_back(i);
        continue;
      }
      if (on_host) return Refused(old.all()[old.Position(CopyCount(op), i)]);
      SplitParameter& added = split.emplace_back();
      added.i = i;
      added.weights = copy_[old.all()[old.Position(CopyCount(op) - 1, i)]];
      added.gradient = copy_[old.gradients()[i]];
    }
    KeepWhole(op, whole);
    using Pass = void (Expander::*)(OpId, SplitParameter&);
    for (const Pass pass :
         {&Expander::Means, &Expander::AddUpMeans, &Expander::Moments, &Expander::AddUpTotal,
          &Expander::Norms, &Expander::AddUpNorms, &Expander::Update}) {
      for (SplitParameter& parameter : split) {
        if (copy_.status().ok()) (this->*pass)(op, parameter);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Refused(ValueId state) const {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat(
             "Adafactor on the host has ", ir::PrintValue(from(), state),
             " of a parameter that is split: its means would wait for the network between kernels "
             "of the host; wanted `hp` 1, `ep` 1 and `zero` 0, `offload` none or activations, or "
             "another optimizer")});
  }

  // The op without the parameters that are split.
  void KeepWhole(OpId op, const std::vector<size_t>& whole) {
    if (whole.empty()) return;
    const ir::OptimizerOperands old(from(), op);
    if (whole.size() == old.count()) return copy_.CopyOp(op);
    std::vector<ValueId> operands;
    std::vector<std::string> names;
    for (size_t group = 0; group < old.groups(); ++group) {
      for (const size_t i : whole) {
        operands.push_back(copy_[old.all()[old.Position(group, i)]]);
        if (group + 1 < old.groups()) names.push_back(NameOf(Result(op, old.Position(group, i))));
      }
    }
    ir::AttributeSet attributes = from().attributes(op);
    attributes.Set(ir::kParameterCount, static_cast<int64_t>(whole.size()));
    const std::vector<ValueId> made = Ops(from().kind(op), operands, names, attributes);
    for (size_t k = 0; k < made.size(); ++k) {
      Take(Result(op, old.Position(k / whole.size(), whole[k % whole.size()])), made[k]);
    }
  }

  void Means(OpId op, SplitParameter& p) {
    const std::vector<std::string> names(StateCount(op));
    p.means = Ops(OpKind::kAdafactorMeans, {p.gradient}, names, Only(op, {"epsilon1"}));
  }

  void AddUpMeans(OpId, SplitParameter& p) {
    for (ValueId& mean : p.means) AddUp(mean);
  }

  void Moments(OpId op, SplitParameter& p) {
    const ir::OptimizerOperands old(from(), op);
    const ir::AttributeSet attributes = Only(op, {"beta2"});
    ValueId total;
    for (size_t state = 0; state < StateCount(op); ++state) {
      const size_t position = old.Position(CopyCount(op) + state, p.i);
      const ValueId next = Result(op, position);
      const bool rows = StateCount(op) == 2 && state == 0;
      std::vector<std::string> names = {NameOf(next)};
      if (rows) names.emplace_back();
      const std::vector<ValueId> made =
          Ops(rows ? OpKind::kAdafactorRows : OpKind::kAdafactorMoment,
              {copy_[old.all()[position]], p.means[state]}, names, attributes);
      if (made.empty()) return;
      Take(next, made[0]);
      p.moments.push_back(made[0]);
      if (rows) total = made[1];
    }
    if (total.valid()) p.moments.push_back(total);
  }

  void AddUpTotal(OpId op, SplitParameter& p) {
    if (StateCount(op) == 2) AddUp(p.moments.back());
  }

  void Norms(OpId, SplitParameter& p) {
    std::vector<ValueId> operands = {p.weights, p.gradient};
    operands.insert(operands.end(), p.moments.begin(), p.moments.end());
    p.norms = builder_.Op(OpKind::kAdafactorNorms, operands);
  }

  void AddUpNorms(OpId, SplitParameter& p) { AddUp(p.norms); }

  void Update(OpId op, SplitParameter& p) {
    const ir::OptimizerOperands old(from(), op);
    std::vector<ValueId> operands;
    std::vector<std::string> names;
    for (size_t copy = 0; copy < CopyCount(op); ++copy) {
      operands.push_back(copy_[old.all()[old.Position(copy, p.i)]]);
      names.push_back(NameOf(Result(op, old.Position(copy, p.i))));
    }
    operands.insert(operands.end(), p.moments.begin(), p.moments.end());
    operands.push_back(p.norms);
    operands.push_back(p.gradient);
    ir::AttributeSet attributes = Only(op, {"clip", "epsilon2", "lr"});
    attributes.Set(ir::kParameterCount, int64_t{1});
    const std::vector<ValueId> made = Ops(OpKind::kAdafactorUpdate, operands, names, attributes);
    for (size_t copy = 0; copy < made.size(); ++copy) {
      Take(Result(op, old.Position(copy, p.i)), made[copy]);
    }
  }

  // The sum of the ranks' parts of it.
  void AddUp(ValueId& value) {
    if (!copy_.status().ok()) return;
    const ir::AxisList partial = builder_.type(value).sharding.partial;
    if (partial.empty()) return;
    value = builder_.Op(OpKind::kAllReduce, {value}, "",
                        {{"axes", builder_.function().mesh().Names(partial)}});
  }

  // Those attributes of the old op that it has.
  ir::AttributeSet Only(OpId op, std::initializer_list<absl::string_view> names) const {
    ir::AttributeSet attributes;
    for (const absl::string_view name : names) {
      const ir::Attribute* const found = from().attributes(op).Find(name);
      if (found != nullptr) attributes.Set(name, *found);
    }
    return attributes;
  }

  // The results of a new op; none after an error.
  std::vector<ValueId> Ops(OpKind kind, const std::vector<ValueId>& operands,
                           const std::vector<std::string>& names,
                           const ir::AttributeSet& attributes) {
    const std::vector<absl::string_view> views(names.begin(), names.end());
    const OpId op = builder_.Ops(kind, operands, views, attributes);
    std::vector<ValueId> results;
    for (int32_t i = 0; op.valid() && i < builder_.function().result_count(op); ++i) {
      results.push_back(builder_.function().result(op, i));
    }
    return results;
  }

  void Take(ValueId old, ValueId here) {
    copy_[old] = here;
    copy_.TakeOrigin(old, here);
  }

  PartCopy copy_;
  ir::Builder& builder_ = copy_.builder();
};

}  // namespace
}  // namespace adafactor_update_cc

bool HasAdafactor(const ir::Function& function) {
  return std::ranges::any_of(function.order(), [&](ir::OpId op) {
    return adafactor_update_cc::IsAdafactor(function.kind(op));
  });
}

absl::Status ExpandAdafactor(PipelinedStep& step, bool on_host) {
  for (PipelineStage& stage : step.stages) {
    if (!HasAdafactor(stage.update.function)) continue;
    ORRERY_ASSIGN_OR_RETURN(stage.update, adafactor_update_cc::Expander(stage.update).Run(on_host));
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
