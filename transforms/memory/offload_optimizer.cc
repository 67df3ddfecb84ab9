#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"
#include "transforms/memory/offload.h"
#include "transforms/memory/zero_part.h"

namespace orrery::transforms {
namespace offload_optimizer_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Positions at which backward makes what the update takes, by origins.
using ReadyPositions = absl::flat_hash_map<ValueId, int32_t>;

ReadyPositions FindReadyPositions(const PipelineStage& stage) {
  ReadyPositions positions;
  int32_t position = 0;
  for (const StageFunction* part : {&stage.backward, &stage.weights}) {
    const ir::Function& function = part->function;
    for (const OpId op : function.order()) {
      ++position;
      for (int32_t i = 0; i < function.result_count(op); ++i) {
        const ValueId origin = OriginOf(*part, function.result(op, i));
        if (origin.valid()) positions[origin] = position;
      }
    }
  }
  return positions;
}

// An update whose optimizers run on the host.
class UpdateOffload {
 public:
  UpdateOffload(const PipelineStage& stage)
      : copy_(stage.update),
        positions_(FindReadyPositions(stage)),
        ready_(copy_.from().value_limit(), 0) {}

  absl::StatusOr<StageFunction> Run() {
    for (const ir::Input& input : from().inputs()) {
      copy_.AddInput(input);
      const auto position = positions_.find(copy_.OriginOf(input.value));
      if (position != positions_.end()) ready_[input.value] = position->second;
    }
    for (const OpId op : from().order()) {
      if (!copy_.status().ok()) break;
      FindReady(op);
      if (HasStates(op)) {
        MoveOptimizer(op);
      } else {
        copy_.CopyOp(op);
      }
    }
    copy_.CopyOutputs();
    return std::move(copy_).Finish();
  }

 private:
  const ir::Function& from() const { return copy_.from(); }

  // Without states there is nothing to keep elsewhere.
  bool HasStates(OpId op) const {
    return from().info(op).op_class == ir::OpClass::kOptimizer &&
           ir::OptimizerOperands(from(), op).groups() > 2;
  }

  void FindReady(OpId op) {
    int32_t ready = 0;
    for (const ValueId operand : from().operands(op)) ready = std::max(ready, ready_[operand]);
    for (int32_t i = 0; i < from().result_count(op); ++i) ready_[from().result(op, i)] = ready;
  }

  // First all copies out, as the host begins when it has all of them; in the order in which they
  // can begin.
  void MoveOptimizer(OpId op) {
    const ir::OptimizerOperands operands(from(), op);
    const std::span<const ValueId> gradients = operands.gradients();
    const size_t n = operands.count();
    std::vector<size_t> order(n);
    for (size_t i = 0; i < n; ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return ready_[gradients[i]]; });
    std::vector<ValueId> on_host(n);
    for (const size_t i : order) {
      on_host[i] = Copy("host", copy_[gradients[i]], Named(gradients[i], "gradient", ".host"));
    }
    for (const size_t i : order) Update(op, i, on_host[i]);
  }

  // One parameter with its states.
  void Update(OpId op, size_t i, ValueId gradient) {
    if (!copy_.status().ok()) return;
    const ir::OptimizerOperands old(from(), op);
    std::vector<ValueId> operands;
    std::vector<std::string> names;
    for (size_t group = 0; group + 1 < old.groups(); ++group) {
      operands.push_back(copy_[old.all()[old.Position(group, i)]]);
      const ValueId result = ResultOf(op, old.Position(group, i));
      names.push_back(group == 0 ? Named(result, "parameter", ".host")
                                 : std::string(from().value_name(result)));
    }
    operands.push_back(gradient);
    ir::AttributeSet attributes = from().attributes(op);
    attributes.Set(ir::kParameterCount, int64_t{1});
    attributes.Set("memory", "host");
    const std::vector<absl::string_view> views(names.begin(), names.end());
    const OpId update = copy_.builder().Ops(from().kind(op), operands, views, attributes);
    if (!update.valid()) return;
    for (size_t group = 0; group + 1 < old.groups(); ++group) {
      const ValueId result = ResultOf(op, old.Position(group, i));
      copy_[result] = copy_.builder().function().result(update, static_cast<int32_t>(group));
      copy_.TakeOrigin(result, copy_[result]);
    }
    const ValueId parameter = ResultOf(op, i);
    copy_[parameter] = Copy("device", copy_[parameter], std::string(from().value_name(parameter)));
    if (copy_[parameter].valid()) copy_.TakeOrigin(parameter, copy_[parameter]);
  }

  ValueId ResultOf(OpId op, size_t i) const { return from().result(op, static_cast<int32_t>(i)); }

  ValueId Copy(const char* memory, ValueId value, const std::string& name) {
    if (!copy_.status().ok()) return ValueId();
    return copy_.builder().Op(OpKind::kIdentity, {value}, name, {{"memory", memory}});
  }

  std::string Named(ValueId value, absl::string_view other, absl::string_view suffix) {
    const absl::string_view name = from().value_name(value);
    return copy_.builder().FreeName(absl::StrCat(name.empty() ? other : name, suffix));
  }

  PartCopy copy_;
  const ReadyPositions positions_;
  IdTable<ValueId, int32_t> ready_;  // by values as they were
};

bool HasOptimizer(const ir::Function& update) {
  return std::ranges::any_of(
      update.order(), [&](OpId op) { return update.info(op).op_class == ir::OpClass::kOptimizer; });
}

}  // namespace
}  // namespace offload_optimizer_cc

absl::Status OffloadOptimizer(const OffloadPolicy& policy, PipelinedStep& step) {
  if (!policy.optimizer) return absl::OkStatus();
  for (PipelineStage& stage : step.stages) {
    if (!offload_optimizer_cc::HasOptimizer(stage.update.function)) continue;
    ORRERY_ASSIGN_OR_RETURN(stage.update, offload_optimizer_cc::UpdateOffload(stage).Run());
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
