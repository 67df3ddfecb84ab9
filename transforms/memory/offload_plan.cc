#include "transforms/memory/offload_plan.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace offload_plan_cc {
namespace {

using ir::Function;
using ir::InputRole;
using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::OutputRole;
using ir::ValueId;

using Origins = absl::flat_hash_set<ValueId>;

// What `parts` take as `saved`.
Origins TakenBy(std::initializer_list<const StageFunction*> parts) {
  Origins taken;
  for (const StageFunction* part : parts) {
    for (const ir::Input& input : part->function.inputs()) {
      const ValueId origin = OriginOf(*part, input.value);
      if (input.role == InputRole::kSaved && origin.valid()) taken.insert(origin);
    }
  }
  return taken;
}

// Looks at forward op by op.
class LeftFinder {
 public:
  LeftFinder(const OffloadPolicy& policy, const PipelineStage& stage,
             std::span<const LayerRange> layers)
      : policy_(policy),
        stage_(stage),
        function_(stage.forward.function),
        layers_(layers),
        base_(function_.value_limit()),
        last_use_(function_.value_limit(), -1),
        from_data_(function_.value_limit(), 0),
        stays_(function_.value_limit(), 0) {}

  std::vector<LeftActivation> Run() {
    for (const ir::Input& input : function_.inputs()) {
      from_data_[input.value] = input.role == InputRole::kData ? 1 : 0;
      stays_[input.value] = 1;
    }
    for (size_t position = 0; position < function_.order().size(); ++position) {
      Visit(function_.order()[position], static_cast<int32_t>(position));
    }
    for (const ir::Output& output : function_.outputs()) {
      if (output.role != OutputRole::kSaved) stays_[BaseOf(output.value)] = 1;
    }
    return Choose();
  }

 private:
  ValueId BaseOf(ValueId value) const { return base_[value].valid() ? base_[value] : value; }

  void Visit(OpId op, int32_t position) {
    const OpKind kind = function_.kind(op);
    const auto operands = function_.operands(op);
    const bool goes = function_.info(op).op_class == OpClass::kSend ||
                      kind == OpKind::kAccumulate || kind == OpKind::kCollect;
    bool from_data = function_.info(op).op_class == OpClass::kReceive;
    for (const ValueId operand : operands) {
      last_use_[BaseOf(operand)] = position;
      if (goes) stays_[BaseOf(operand)] = 1;
      from_data = from_data || from_data_[operand] != 0;
    }
    const bool view = function_.info(op).strided_view && !operands.empty();
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      from_data_[result] = from_data ? 1 : 0;
      last_use_[result] = position;
      if (view) base_[result] = BaseOf(operands[0]);
    }
  }

  int32_t LayerAt(int32_t position) const {
    const auto after = std::ranges::find_if(
        layers_, [&](const LayerRange& layer) { return layer.end > position; });
    return static_cast<int32_t>(after - layers_.begin());
  }

  std::vector<LeftActivation> Choose() const {
    const Origins taken = TakenBy({&stage_.backward, &stage_.weights});
    const Origins of_update = TakenBy({&stage_.update});
    std::vector<LeftActivation> left;
    Origins seen;
    for (const OpId op : function_.order()) {
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        const ValueId value = function_.result(op, i);
        const ValueId origin = OriginOf(stage_.forward, value);
        if (!origin.valid() || !taken.contains(origin) || !IsSaved(value)) continue;
        if (!seen.insert(origin).second) continue;
        const ValueId base = BaseOf(value);
        LeftActivation& row = left.emplace_back(LeftActivation{
            .value = value, .origin = origin, .last_use = last_use_[base], .layer = 0});
        row.layer = LayerAt(row.last_use);
        row.offloaded = base == value && stays_[value] == 0 && from_data_[value] != 0 &&
                        !of_update.contains(origin) && Matches(row);
      }
    }
    return left;
  }

  bool IsSaved(ValueId value) const {
    return std::ranges::any_of(function_.outputs(), [&](const ir::Output& output) {
      return output.value == value && output.role == OutputRole::kSaved;
    });
  }

  bool Matches(const LeftActivation& row) const {
    if (policy_.pattern.empty()) return row.layer + 1 < static_cast<int32_t>(layers_.size());
    RE2::Options options;
    options.set_log_errors(false);
    const absl::string_view name = function_.value_name(row.value);
    return !name.empty() &&
           RE2::PartialMatch({name.data(), name.size()}, RE2(policy_.pattern, options));
  }

  const OffloadPolicy& policy_;
  const PipelineStage& stage_;
  const Function& function_;
  const std::span<const LayerRange> layers_;
  IdTable<ValueId, ValueId> base_;  // of views: what they view
  IdTable<ValueId, int32_t> last_use_;
  IdTable<ValueId, char> from_data_;
  IdTable<ValueId, char> stays_;  // on the device: other stages or the caller get it
};

}  // namespace
}  // namespace offload_plan_cc

std::vector<LeftActivation> FindLeftActivations(const OffloadPolicy& policy,
                                                const PipelineStage& stage,
                                                std::span<const LayerRange> layers) {
  return offload_plan_cc::LeftFinder(policy, stage, layers).Run();
}

std::vector<InsertedLoad> InsertLoads(const StageFunction& part,
                                      std::span<const LeftActivation> left, int64_t prefetch) {
  const ir::Function& function = part.function;
  IdTable<ir::ValueId, int32_t> first_use(function.value_limit(), -1);
  for (size_t position = 0; position < function.order().size(); ++position) {
    for (const ir::ValueId operand : function.operands(function.order()[position])) {
      if (first_use[operand] < 0) first_use[operand] = static_cast<int32_t>(position);
    }
  }
  absl::flat_hash_map<ir::ValueId, const LeftActivation*> by_origin;
  for (const LeftActivation& row : left) by_origin[row.origin] = &row;
  std::map<int32_t, int32_t> starts;  // of the backward of each layer, by its number
  std::vector<std::tuple<int32_t, int32_t, ir::ValueId>> loads;  // first use, layer, input
  for (const ir::Input& input : function.inputs()) {
    const auto found = by_origin.find(OriginOf(part, input.value));
    const int32_t use = first_use[input.value];
    if (input.role != ir::InputRole::kSaved || found == by_origin.end() || use < 0) continue;
    const int32_t layer = found->second->layer;
    const auto [start, added] = starts.try_emplace(layer, use);
    start->second = std::min(start->second, use);
    if (found->second->offloaded) loads.emplace_back(use, layer, input.value);
  }
  std::ranges::sort(loads);
  std::vector<InsertedLoad> inserted;
  for (const auto& [use, layer, input] : loads) {
    // Layers come last to first: the one that many before this one in backward is above it.
    auto ahead = starts.find(layer);
    int64_t steps = prefetch;
    while (steps > 0 && ahead != starts.end()) --steps, ++ahead;
    const int32_t from = prefetch == 0 ? use : ahead == starts.end() ? 0 : ahead->second;
    inserted.push_back({.input = input, .position = std::min(from, use)});
  }
  std::ranges::stable_sort(inserted, {}, &InsertedLoad::position);
  return inserted;
}

}  // namespace orrery::transforms
