#include "lowering/blocks/block_buffers.h"

#include <algorithm>
#include <utility>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "lowering/blocks/earlier_rows.h"
#include "lowering/blocks/origin_set.h"
#include "transforms/memory/offload.h"

namespace orrery::lowering {
namespace block_buffers_cc {
namespace {

using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;
using simulator::MemoryKind;
using simulator::Phase;
using transforms::HostWork;

class BufferFinder {
 public:
  BufferFinder(const transforms::StageFunction& part, const TemplateContext& context,
               const IdTable<ir::TypeId, int64_t>& bytes)
      : part_(part),
        function_(part.function),
        context_(context),
        bytes_(bytes),
        copies_(context.cost_model.copies_everything()),
        updates_(context.phase == Phase::kUpdate),
        of_update_(context.update),
        of_weights_(context.weights) {
    const int32_t values = function_.value_limit();
    result_.buffer.resize(values);
    result_.uses.resize(values, 0);
    result_.kind.resize(values, MemoryKind::kActivations);
    for (int32_t v = 0; v < values; ++v) BufferOf(ValueId(v)) = ValueId(v);
    saved_.resize(values, 0);
    for (const ir::Output& output : function_.outputs()) {
      if (output.role == ir::OutputRole::kSaved) saved_[output.value] = 1;
    }
  }

  TemplateBuffers Run() {
    FindKinds();
    for (const OpId op : function_.order()) AllocateResults(op);
    for (const ir::Output& output : function_.outputs()) AllocateUpdated(output);
    CountUses();
    if (context_.phase == Phase::kForward) KeepEarlierRows(function_, copies_, bytes_, result_);
    JoinKinds();
    return std::move(result_);
  }

 private:
  ValueId& BufferOf(ValueId value) { return result_.buffer[value]; }
  MemoryKind& KindOf(ValueId value) { return result_.kind[value]; }
  int64_t BytesOf(ValueId value) const { return bytes_[function_.type_id(value)]; }
  bool HasUnit(OpId op) const { return function_.attributes(op).Find("unit") != nullptr; }

  // What is added up over microbatches, and what update works on, is gradients.
  void FindKinds() {
    for (int32_t v = 0; updates_ && v < function_.value_limit(); ++v) {
      KindOf(ValueId(v)) = MemoryKind::kGradients;
    }
    for (const OpId op : function_.order()) FindKind(op);
    for (const ir::Output& output : function_.outputs()) {
      const bool gradient = output.role == ir::OutputRole::kGradient ||
                            (output.role == ir::OutputRole::kSaved &&
                             context_.phase == Phase::kBackward && IsForUpdate(output.value));
      if (gradient) KindOf(output.value) = MemoryKind::kGradients;
    }
  }

  ValueId OriginOf(ValueId value) const { return transforms::OriginOf(part_, value); }

  bool IsForUpdate(ValueId value) const {
    return context_.update == nullptr || of_update_.contains(OriginOf(value));
  }

  void FindKind(OpId op) {
    const OpKind kind = function_.kind(op);
    const bool scatter = kind == OpKind::kReduceScatter && HasUnit(op);
    if (kind == OpKind::kAccumulate || scatter) {
      for (const ValueId operand : function_.operands(op)) KindOf(operand) = MemoryKind::kGradients;
      KindOf(function_.result(op)) = MemoryKind::kGradients;
    }
    const HostWork work = transforms::HostWorkOf(function_, op);
    if (work == HostWork::kStore) KindOf(function_.result(op)) = MemoryKind::kHost;
    if (work == HostWork::kLoad && !updates_) KindOf(function_.operands(op)[0]) = MemoryKind::kHost;
    // Parameters that are whole for a while.
    if (kind == OpKind::kAllGather && HasUnit(op) && !updates_) {
      KindOf(function_.result(op)) = MemoryKind::kBuffers;
    }
  }

  // What the host has updated is copied to where it was.
  bool IsCopy(OpId op) const {
    const HostWork work = transforms::HostWorkOf(function_, op);
    return work == HostWork::kStore || (work == HostWork::kLoad && !updates_);
  }

  // A shard that stays where it is: of a parameter, or of a bucket of gradients.
  bool IsInPlace(OpId op) const { return function_.attributes(op).Int("in_place", 0) != 0; }

  void AllocateResults(OpId op) {
    const ir::OpInfo& info = function_.info(op);
    const bool in_place =
        info.in_place_from >= 0 && (!copies_ || info.op_class == OpClass::kOptimizer);
    const bool view = (info.strided_view || IsInPlace(op)) && !copies_ && !IsCopy(op);
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      if (view) BufferOf(result) = BufferOf(function_.operands(op)[0]);
      if (view || !in_place) continue;
      // The first sum is the summand itself.
      const bool first_sum = function_.kind(op) == OpKind::kAccumulate && context_.first;
      const auto position = static_cast<size_t>(first_sum ? 1 : info.in_place_from + i);
      const ValueId operand = function_.operands(op)[position];
      // Nothing is written over what somebody reads later.
      if (!first_sum && saved_[operand] != 0) continue;
      const ValueId room = updates_ ? operand : BufferOf(operand);
      if (BytesOf(room) == BytesOf(result)) BufferOf(result) = BufferOf(operand);
    }
  }

  // A parameter that is put together from updated shards is put where it was; so is the 8-bit copy
  // of an updated one.
  void AllocateUpdated(const ir::Output& output) {
    const OpId op = function_.producer(output.value);
    const bool gathered = op.valid() && (function_.kind(op) == OpKind::kAllGather ||
                                         function_.kind(op) == OpKind::kCast);
    if (!updates_ || copies_ || !gathered || output.role != ir::OutputRole::kUpdated) return;
    if (BytesOf(output.value) == BytesOf(output.of)) BufferOf(output.value) = output.of;
  }

  void CountUses() {
    const auto use = [this](ValueId value) { ++result_.uses[BufferOf(value)]; };
    for (const OpId op : function_.order()) {
      const auto operands = function_.operands(op);
      // Constants are resident.
      if (function_.info(op).op_class == OpClass::kView && operands.empty()) {
        ++result_.uses[function_.result(op)];
      }
      for (const ValueId operand : operands) use(operand);
      // What has been collected stays where it was made.
      const bool collects = function_.kind(op) == OpKind::kCollect;
      if (!copies_ && context_.keeps_results && collects) use(operands[1]);
    }
    for (const ir::Output& output : function_.outputs()) {
      if (!IsDropped(output)) use(output.value);
    }
    for (const ir::Input& input : function_.inputs()) {
      const bool resident =
          input.role != ir::InputRole::kSaved && input.role != ir::InputRole::kAccumulator;
      // What comes back from the host for both parts of a backward stays on the device.
      const bool for_both =
          KindOf(input.value) != MemoryKind::kHost && of_weights_.contains(OriginOf(input.value));
      if (resident || for_both) ++result_.uses[input.value];
    }
  }

  // A result that its caller takes away as it comes.
  bool IsDropped(const ir::Output& output) const {
    const OpId op = function_.producer(output.value);
    const bool result = output.role == ir::OutputRole::kResult ||
                        output.role == ir::OutputRole::kLoss ||
                        (op.valid() && function_.kind(op) == OpKind::kCollect);
    return result && !context_.keeps_results;
  }

  // A buffer holds one kind: gradients, when any of its values is one. What came from forward keeps
  // the kind that it was taken as.
  void JoinKinds() {
    for (int32_t v = 0; v < function_.value_limit(); ++v) {
      const ValueId value(v);
      if (KindOf(value) == MemoryKind::kGradients) KindOf(BufferOf(value)) = MemoryKind::kGradients;
    }
    for (const ir::Input& input : function_.inputs()) {
      const bool on_host = KindOf(input.value) == MemoryKind::kHost;
      if (input.role == ir::InputRole::kSaved && context_.phase == Phase::kBackward && !on_host) {
        KindOf(input.value) = MemoryKind::kActivations;
      }
    }
  }

  const transforms::StageFunction& part_;
  const ir::Function& function_;
  const TemplateContext& context_;
  const IdTable<ir::TypeId, int64_t>& bytes_;
  const bool copies_;   // where a framework works in place
  const bool updates_;  // the phase is update
  const OriginSet of_update_, of_weights_;
  IdTable<ValueId, char> saved_;  // left for another function
  TemplateBuffers result_;
};

}  // namespace
}  // namespace block_buffers_cc

TemplateBuffers FindBuffers(const transforms::StageFunction& part, const TemplateContext& context,
                            const IdTable<ir::TypeId, int64_t>& bytes) {
  return block_buffers_cc::BufferFinder(part, context, bytes).Run();
}

}  // namespace orrery::lowering
