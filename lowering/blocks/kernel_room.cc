#include "lowering/blocks/kernel_room.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/multiprocessor.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/fusing.h"
#include "transforms/memory/offload.h"

namespace orrery::lowering {
namespace kernel_room_cc {
namespace {

using ir::OpId;
using ir::ValueId;

constexpr int kElementsAThread = 4;

int64_t ElementsOf(const LocalTypes& local, ValueId value) {
  return ir::ElementCount(local.Of(value).dims);
}

bool IsOverLast(const ir::Function& function, const LocalTypes& local, OpId op) {
  const auto rank = static_cast<int64_t>(local.Of(function.operands(op)[0]).dims.size());
  std::vector<int64_t> axes = function.attributes(op).Ints("axes");
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return false;
  }
  return !axes.empty();
}

// From the member that reads or makes a value first, to the one that reads it last.
struct Life {
  int32_t first, last;
};

absl::flat_hash_map<ValueId, Life> LivesOf(std::span<const OpId> members,
                                           const ir::Function& function) {
  absl::flat_hash_map<ValueId, Life> lives;
  int32_t position = 0;
  for (const OpId member : members) {
    for (const ValueId operand : function.operands(member)) {
      Life& life =
          lives.try_emplace(RootOf(function, operand), Life{position, position}).first->second;
      life.last = position;
    }
    for (int32_t i = 0; i < function.result_count(member); ++i) {
      lives[function.result(member, i)] = {position, position};
    }
    ++position;
  }
  return lives;
}

}  // namespace
}  // namespace kernel_room_cc

bool IsPosition(const ir::Function& function, ir::OpId op) {
  return function.info(op).strided_view && function.kind(op) != ir::OpKind::kExtendRows &&
         transforms::HostWorkOf(function, op) == transforms::HostWork::kNone;
}

ir::ValueId RootOf(const ir::Function& function, ir::ValueId value) {
  ir::OpId maker = function.producer(value);
  while (maker.valid() && IsPosition(function, maker)) {
    value = function.operands(maker)[0];
    maker = function.producer(value);
  }
  return value;
}

std::optional<PointwiseSpace> PointwiseSpaceOf(const ir::Function& function,
                                               const LocalTypes& local, ir::OpId op) {
  const auto operands = function.operands(op);
  if (operands.empty() || function.result_count(op) == 0) return std::nullopt;
  const ir::Fusing fusing = ir::FusingOf(function.kind(op));
  if (fusing == ir::Fusing::kNever) return std::nullopt;
  const int64_t elements = kernel_room_cc::ElementsOf(local, function.result(op));
  if (fusing == ir::Fusing::kElements) return PointwiseSpace{.elements = elements};
  const int64_t read = kernel_room_cc::ElementsOf(local, operands[0]);
  if (elements <= 1 || !kernel_room_cc::IsOverLast(function, local, op)) return std::nullopt;
  return PointwiseSpace{.elements = read, .row = read / elements};
}

KernelRoom KernelRoomOf(const cluster::Device& device) {
  const auto core = cluster::FindMultiprocessor(device);
  if (!core.has_value()) return {};
  const int free = core->registers_a_thread - cluster::Multiprocessor::kOtherRegisters;
  return {.live_values = free / kernel_room_cc::kElementsAThread,
          .held = core->shared_memory_a_block};
}

KernelNeeds KernelNeedsOf(std::span<const ir::OpId> members, const ir::Function& function,
                          const LocalTypes& local) {
  namespace own = kernel_room_cc;
  const auto lives = own::LivesOf(members, function);
  std::vector<int64_t> live(members.size(), 0);
  for (const auto& [value, life] : lives) {
    for (int32_t at = life.first; at <= life.last; ++at) ++live[static_cast<size_t>(at)];
  }
  KernelNeeds needs;
  for (const int64_t count : live) needs.live_values = std::max(needs.live_values, count);
  int32_t position = 0;
  for (const ir::OpId member : members) {
    const std::optional<PointwiseSpace> space = PointwiseSpaceOf(function, local, member);
    if (space.has_value() && space->row > 1) {
      int64_t held = 0;
      for (const auto& [value, life] : lives) {
        const bool across = life.first <= position && life.last > position;
        if (!across || own::ElementsOf(local, value) != space->elements) continue;
        held += local.BytesOf(value) / (space->elements / space->row);
      }
      needs.held = std::max(needs.held, Bytes(held));
    }
    ++position;
  }
  return needs;
}

}  // namespace orrery::lowering
