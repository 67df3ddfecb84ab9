#include "lowering/placement/boundary_sends.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/op_kind.h"
#include "lowering/network/boundary_move.h"

namespace orrery::lowering {
namespace boundary_sends_cc {
namespace {

// Which replica of the one stage hands microbatches to which of the other; {-1, -1}: all to all.
std::set<std::pair<int32_t, int32_t>> ReplicaPairs(const BoundarySend& send, bool once,
                                                   const Geometry& geometry) {
  std::set<std::pair<int32_t, int32_t>> pairs;
  if (once || !geometry.dealt()) return {{-1, -1}};
  for (int32_t m = 0; m < geometry.microbatches(); ++m) {
    pairs.emplace(geometry.ReplicaOf(send.from, m), geometry.ReplicaOf(send.to, m));
  }
  return pairs;
}

// Whether rank i of the one has what rank i of the other wants.
bool AreAlike(const BoundarySend& send, const std::set<std::pair<int32_t, int32_t>>& replicas,
              const Geometry& geometry) {
  const auto same = [](const auto& pair) { return pair.first == pair.second; };
  return geometry.mesh_at(geometry.position_of(send.from)) ==
             geometry.mesh_at(geometry.position_of(send.to)) &&
         send.type == send.received && std::ranges::all_of(replicas, same);
}

SendMessages Straight(const BoundarySend& send, const Geometry& geometry, Pricing& pricing) {
  const ir::Mesh& mesh = geometry.mesh_at(geometry.position_of(send.from));
  const Bytes bytes = ir::SizeOf(ir::LocalType(send.type, mesh));
  SendMessages messages{.received = bytes};
  const MovementId movement = pricing.Expect(send.from, SendRequest{.to = send.to, .bytes = bytes});
  for (int32_t rank = 0; rank < mesh.size(); ++rank) {
    messages.messages.push_back({.from = rank,
                                 .to = rank,
                                 .bytes = bytes,
                                 .movement = movement,
                                 .group = static_cast<size_t>(rank)});
  }
  return messages;
}

// Messages of one size are one movement.
void AnnounceMessages(const BoundarySend& send, Pricing& pricing,
                      std::vector<SendMessage>& messages) {
  std::map<Bytes, std::vector<SendPair>> by_size;
  for (SendMessage& message : messages) {
    std::vector<SendPair>& pairs = by_size[message.bytes];
    message.group = pairs.size();
    pairs.emplace_back(message.from, message.to);
  }
  std::map<Bytes, MovementId> movements;
  for (const auto& [bytes, pairs] : by_size) {
    movements[bytes] = pricing.Expect(
        send.from, SendRequest{.to = send.to, .bytes = bytes, .pairs = pricing.AddPairs(pairs)});
  }
  for (SendMessage& message : messages) message.movement = movements[message.bytes];
}

}  // namespace
}  // namespace boundary_sends_cc

const ir::TensorType* FindReceived(const transforms::PipelineStage& stage, ir::ValueId origin) {
  for (const transforms::StageFunction* part : stage.parts()) {
    const ir::Function& function = part->function;
    for (const ir::OpId op : function.order()) {
      if (function.kind(op) != ir::OpKind::kReceive) continue;
      if (OriginOf(*part, function.result(op)) == origin)
        return &function.type(function.result(op));
    }
  }
  return nullptr;
}

SendMessages MessagesOf(const BoundarySend& send, bool once, const Geometry& geometry,
                        Pricing& pricing) {
  const auto replicas = boundary_sends_cc::ReplicaPairs(send, once, geometry);
  if (boundary_sends_cc::AreAlike(send, replicas, geometry)) {
    return boundary_sends_cc::Straight(send, geometry, pricing);
  }
  const ir::Mesh& from = geometry.mesh_at(geometry.position_of(send.from));
  const ir::Mesh& to = geometry.mesh_at(geometry.position_of(send.to));
  SendMessages messages{.received = ir::SizeOf(ir::LocalType(send.received, to))};
  for (const auto& [from_replica, to_replica] : replicas) {
    const BoundaryMove move =
        MoveAcross({send.type, from}, {send.received, to}, from_replica, to_replica);
    if (!move.gather.empty()) messages.gather = move.gather;
    for (const BoundaryMessage& message : move.messages) {
      messages.messages.push_back({.from = message.from, .to = message.to, .bytes = message.bytes});
    }
  }
  boundary_sends_cc::AnnounceMessages(send, pricing, messages.messages);
  if (messages.gather.empty()) return messages;
  messages.gathering = pricing.Expect(
      send.to, CollectiveRequest{.stream = simulator::StreamKind::kHorizontal,
                                 .collective = cost_models::CollectiveKind::kAllGather,
                                 .group = messages.gather,
                                 .bytes = messages.received});
  return messages;
}

}  // namespace orrery::lowering
