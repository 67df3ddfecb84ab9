#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/memory/offload.h"
#include "transforms/memory/offload_plan.h"
#include "transforms/memory/zero_part.h"

namespace orrery::transforms {
namespace offload_activations_cc {
namespace {

using ir::InputRole;
using ir::OpKind;
using ir::OutputRole;
using ir::ValueId;

// A copy of what stands for `old`, which takes its place from here on.
void Move(const ir::AttributeSet& how, ValueId old, const std::string& name, PartCopy& copy) {
  if (!copy.status().ok()) return;
  const std::string free = copy.builder().FreeName(name);
  const ValueId moved = copy.builder().Op(OpKind::kIdentity, {copy[old]}, free, how);
  if (!moved.valid()) return;
  copy[old] = moved;
  copy.TakeOrigin(old, moved);
}

std::string NameOf(const StageFunction& part, ValueId value, absl::string_view suffix) {
  const absl::string_view name = part.function.value_name(value);
  return absl::StrCat(name.empty() ? "activation" : name, suffix);
}

absl::StatusOr<StageFunction> StoreInForward(const StageFunction& part,
                                             const std::vector<LeftActivation>& left) {
  std::vector<std::vector<const LeftActivation*>> after(part.function.order().size());
  for (const LeftActivation& row : left) {
    if (row.offloaded) after[static_cast<size_t>(row.last_use)].push_back(&row);
  }
  PartCopy copy(part);
  for (const ir::Input& input : part.function.inputs()) copy.AddInput(input);
  for (size_t position = 0; position < after.size() && copy.status().ok(); ++position) {
    copy.CopyOp(part.function.order()[position]);
    for (const LeftActivation* row : after[position]) {
      Move({{"layer", int64_t{row->layer}}, {"memory", "host"}}, row->value,
           NameOf(part, row->value, ".host"), copy);
    }
  }
  copy.CopyOutputs();
  return std::move(copy).Finish();
}

// With what a later part also wants (`shared`) returned to it.
absl::StatusOr<StageFunction> LoadInBackward(const StageFunction& part,
                                             const std::vector<InsertedLoad>& loads,
                                             const absl::flat_hash_set<ValueId>& shared) {
  PartCopy copy(part);
  for (const ir::Input& input : part.function.inputs()) copy.AddInput(input);
  size_t next = 0;
  for (size_t position = 0; position < part.function.order().size() && copy.status().ok();
       ++position) {
    for (; next < loads.size() && loads[next].position <= static_cast<int32_t>(position); ++next) {
      Move({{"memory", "device"}}, loads[next].input, NameOf(part, loads[next].input, ".device"),
           copy);
    }
    copy.CopyOp(part.function.order()[position]);
  }
  copy.CopyOutputs();
  for (const InsertedLoad& load : loads) {
    if (shared.contains(copy.OriginOf(load.input)) && copy.status().ok()) {
      copy.builder().Return(copy[load.input], OutputRole::kSaved);
    }
  }
  return std::move(copy).Finish();
}

absl::flat_hash_set<ValueId> SavedInputs(const StageFunction& part) {
  absl::flat_hash_set<ValueId> origins;
  for (const ir::Input& input : part.function.inputs()) {
    if (input.role == InputRole::kSaved) origins.insert(OriginOf(part, input.value));
  }
  return origins;
}

absl::Status OffloadStage(int64_t prefetch, std::vector<LeftActivation> left,
                          PipelineStage& stage) {
  ORRERY_ASSIGN_OR_RETURN(stage.forward, StoreInForward(stage.forward, left));
  const absl::flat_hash_set<ValueId> wanted_later = SavedInputs(stage.weights);
  const absl::flat_hash_set<ValueId> wanted_first = SavedInputs(stage.backward);
  const std::vector<InsertedLoad> loads = InsertLoads(stage.backward, left, prefetch);
  ORRERY_ASSIGN_OR_RETURN(stage.backward, LoadInBackward(stage.backward, loads, wanted_later));
  if (stage.weights.function.order().empty()) return absl::OkStatus();
  for (LeftActivation& row : left) row.offloaded &= !wanted_first.contains(row.origin);
  const std::vector<InsertedLoad> rest = InsertLoads(stage.weights, left, prefetch);
  ORRERY_ASSIGN_OR_RETURN(stage.weights, LoadInBackward(stage.weights, rest, {}));
  return absl::OkStatus();
}

}  // namespace
}  // namespace offload_activations_cc

absl::Status OffloadActivations(const ActivationOffload& offload, PipelinedStep& step) {
  const OffloadPolicy& policy = offload.policy;
  if (!policy.activations) return absl::OkStatus();
  std::vector<const StageFunction*> forwards;
  for (const PipelineStage& stage : step.stages) forwards.push_back(&stage.forward);
  const std::vector<std::vector<LayerRange>> layers = FindLayers(forwards);
  bool any = false;
  for (size_t s = 0; s < step.stages.size(); ++s) {
    std::vector<LeftActivation> left = FindLeftActivations(policy, step.stages[s], layers[s]);
    if (std::ranges::none_of(left, &LeftActivation::offloaded)) continue;
    any = true;
    ORRERY_RETURN_IF_ERROR(
        offload_activations_cc::OffloadStage(offload.prefetch, std::move(left), step.stages[s]));
  }
  if (any || policy.pattern.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToString(policy),
                   "': finds no value that forward leaves for backward and that can be copied "
                   "out; opt names them with `stages`"));
}

}  // namespace orrery::transforms
