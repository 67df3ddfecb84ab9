#include "lowering/network/boundary_move.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "ir/tensor_parts.h"

namespace orrery::lowering {
namespace boundary_move_cc {
namespace {

// Part of a tensor: from `first` up to, and without, `end` in each dimension.
struct Box {
  ir::Dims first, end;

  friend bool operator<(const Box& a, const Box& b) {
    return std::tie(a.first, a.end) < std::tie(b.first, b.end);
  }

  int64_t Elements() const {
    int64_t elements = 1;
    for (size_t d = 0; d < first.size(); ++d) elements *= std::max<int64_t>(0, end[d] - first[d]);
    return elements;
  }
  Box In(const Box& other) const {
    Box both = *this;
    for (size_t d = 0; d < first.size(); ++d) {
      both.first[d] = std::max(first[d], other.first[d]);
      both.end[d] = std::max(both.first[d], std::min(end[d], other.end[d]));
    }
    return both;
  }
  // Part number `part` of `parts` along the longest dimension.
  Box Share(int64_t part, int64_t parts) const {
    Box share = *this;
    if (first.empty()) {
      if (part > 0) share.first = share.end = ir::Dims{0};
      return share;
    }
    size_t longest = 0;
    for (size_t d = 1; d < first.size(); ++d) {
      if (end[d] - first[d] > end[longest] - first[longest]) longest = d;
    }
    const int64_t length = end[longest] - first[longest];
    share.first[longest] = first[longest] + length * part / parts;
    share.end[longest] = first[longest] + length * (part + 1) / parts;
    return share;
  }
};

// What a rank holds: a part of the tensor, and which part of a sum.
struct Held {
  int64_t summand = 0;
  Box box;

  friend bool operator<(const Held& a, const Held& b) {
    return std::tie(a.summand, a.box) < std::tie(b.summand, b.box);
  }
};

// One side of a boundary, of one replica or all.
class Side {
 public:
  Side(const BoundaryEnd& end, int32_t replica) : mesh_(end.mesh), type_(end.type) {
    const auto dp = mesh_.Find("dp");
    if (replica >= 0 && dp.has_value()) TakeReplicas(*dp);
    for (int64_t rank = 0; rank < mesh_.size(); ++rank) {
      const bool takes_part =
          replica < 0 || !dp.has_value() || ir::PartOf(mesh_, rank, ir::AxisList(*dp)) == replica;
      if (takes_part) held_.emplace_back(static_cast<int32_t>(rank), HeldBy(rank));
    }
  }

  const std::vector<std::pair<int32_t, Held>>& held() const { return held_; }
  int64_t summands() const { return mesh_.size(type_.sharding.partial); }
  double bytes_an_element() const { return ir::BytesOf(type_.dtype); }
  // Along which ranks that take part hold the same.
  ir::AxisList Replicated(bool of_replica) const {
    ir::AxisList axes;
    for (size_t a = 0; a < mesh_.axes().size(); ++a) {
      const auto axis = static_cast<ir::AxisIndex>(a);
      const bool apart = of_replica && mesh_.axes()[a].name == "dp";
      if (mesh_.size(axis) > 1 && !apart && !type_.sharding.Uses(axis)) axes.push_back(axis);
    }
    return axes;
  }

 private:
  // A replica has dimensions of its own where "dp" splits them, and a sum over "dp" is apart.
  void TakeReplicas(ir::AxisIndex dp) {
    type_.sharding.partial = type_.sharding.partial.Without(dp);
    for (size_t d = 0; d < type_.dims.size(); ++d) {
      const ir::AxisList axes = type_.sharding.at(d);
      if (!axes.contains(dp)) continue;
      type_.dims[d] = (type_.dims[d] + mesh_.size(dp) - 1) / mesh_.size(dp);
      type_.sharding.Set(d, type_.dims.size(), axes.Without(dp), type_.sharding.block(d));
    }
  }

  Held HeldBy(int64_t rank) const {
    const ir::Share share = ir::ShareOf(type_, mesh_, rank);
    const ir::Dims local = ir::LocalType(type_, mesh_).dims;
    Held held{.summand = ir::PartOf(mesh_, rank, type_.sharding.partial), .box = {}};
    held.box.first = held.box.end = share.first;
    for (size_t d = 0; d < local.size(); ++d) {
      held.box.first[d] = std::min(share.first[d], type_.dims[d]);
      held.box.end[d] = std::min(share.first[d] + local[d], type_.dims[d]);
    }
    return held;
  }

  const ir::Mesh& mesh_;
  ir::TensorType type_;
  std::vector<std::pair<int32_t, Held>> held_;
};

// Ranks that hold the same, by what it is; and what each has sent so far.
class Sources {
 public:
  explicit Sources(const Side& side) {
    for (const auto& [rank, held] : side.held()) ranks_[held].push_back(rank);
  }

  // Adds what brings `box` of a summand to a rank: from those that have sent least.
  template <typename Add>
  void Bring(const Held& wanted, const Add& add) {
    for (const auto& [held, ranks] : ranks_) {
      if (held.summand != wanted.summand) continue;
      const int64_t elements = held.box.In(wanted.box).Elements();
      if (elements == 0) continue;
      const auto sent = [&](int32_t rank) { return sent_[rank]; };
      const int32_t from = *std::ranges::min_element(ranks, {}, sent);
      sent_[from] += elements;
      add(from, elements);
    }
  }

 private:
  std::map<Held, std::vector<int32_t>> ranks_;
  std::map<int32_t, int64_t> sent_;
};

// Round by round, in each of which a rank sends one and gets one.
std::vector<BoundaryMessage> InRounds(std::vector<BoundaryMessage> messages) {
  std::vector<BoundaryMessage> ordered, later;
  while (!messages.empty()) {
    std::vector<int32_t> senders, receivers;
    for (const BoundaryMessage& message : messages) {
      const bool busy = std::ranges::find(senders, message.from) != senders.end() ||
                        std::ranges::find(receivers, message.to) != receivers.end();
      (busy ? later : ordered).push_back(message);
      if (busy) continue;
      senders.push_back(message.from);
      receivers.push_back(message.to);
    }
    messages = std::exchange(later, {});
  }
  return ordered;
}

}  // namespace
}  // namespace boundary_move_cc

BoundaryMove MoveAcross(const BoundaryEnd& from, const BoundaryEnd& to, int32_t from_replica,
                        int32_t to_replica) {
  using boundary_move_cc::Held;
  const boundary_move_cc::Side sender(from, from_replica), receiver(to, to_replica);
  const bool of_replica = from_replica >= 0;
  const int64_t summands = of_replica ? 1 : sender.summands();
  const int64_t wanted = of_replica ? 1 : receiver.summands();
  BoundaryMove move;
  std::map<Held, std::vector<int32_t>> groups;
  for (const auto& [rank, held] : receiver.held()) groups[held].push_back(rank);
  boundary_move_cc::Sources sources(sender);
  std::map<std::pair<int32_t, int32_t>, int64_t> elements;
  for (const auto& [held, ranks] : groups) {
    const auto parts = std::ssize(ranks);
    if (parts > 1) move.gather = receiver.Replicated(of_replica);
    for (int64_t part = 0; part < parts; ++part) {
      const int32_t rank = ranks[static_cast<size_t>(part)];
      for (int64_t summand = 0; summand < summands; ++summand) {
        if (wanted > 1 && summand % wanted != held.summand) continue;
        sources.Bring({.summand = summand, .box = held.box.Share(part, parts)},
                      [&](int32_t source, int64_t count) {
                        elements[{source, rank}] += count;
                      });
      }
    }
  }
  for (const auto& [pair, count] : elements) {
    move.messages.push_back({.from = pair.first,
                             .to = pair.second,
                             .bytes = Bytes(std::llround(std::ceil(static_cast<double>(count) *
                                                                   sender.bytes_an_element())))});
  }
  move.messages = boundary_move_cc::InRounds(std::move(move.messages));
  return move;
}

}  // namespace orrery::lowering
