#include "cost_models/collectives/alike_ranks.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace orrery::cost_models {
namespace alike_ranks_cc {
namespace {

using cluster::DeviceId;
using cluster::Rotation;

// The ranks of a group by their device.
class RankOfDevice {
 public:
  explicit RankOfDevice(std::span<const DeviceId> group) {
    const auto [least, most] = std::ranges::minmax(group);
    first_ = least.index();
    ranks_.assign(static_cast<size_t>(most.index() - first_ + 1), -1);
    for (size_t rank = 0; rank < group.size(); ++rank) {
      ranks_[static_cast<size_t>(group[rank].index() - first_)] = static_cast<int64_t>(rank);
    }
  }
  // -1: of none.
  int64_t Of(DeviceId device) const {
    const int64_t position = device.index() - first_;
    return position < 0 || position >= std::ssize(ranks_) ? -1
                                                          : ranks_[static_cast<size_t>(position)];
  }

 private:
  int64_t first_ = 0;
  std::vector<int64_t> ranks_;
};

// Where the rotation moves each block; nothing where it does not move blocks onto blocks.
std::vector<size_t> BlocksAfter(const Rotation& rotation, std::span<const DeviceId> group,
                                size_t each, const RankOfDevice& ranks) {
  std::vector<size_t> after;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    const int64_t other = ranks.Of(rotation.Of(group[rank]));
    if (other < 0) return {};
    const size_t block = static_cast<size_t>(other) / each;
    if (rank % each == 0) after.push_back(block);
    if (after.back() != block) return {};
  }
  return after;
}

size_t RootOf(size_t block, std::vector<size_t>& roots) {
  while (roots[block] != block) block = roots[block] = roots[roots[block]];
  return block;
}

}  // namespace
}  // namespace alike_ranks_cc

std::vector<AlikeBlocks> FindAlikeBlocks(const cluster::Topology& topology,
                                         std::span<const cluster::DeviceId> group, size_t each) {
  if (topology.interchangeable()) {
    return {{.first = 0, .count = static_cast<int64_t>(group.size() / each)}};
  }
  std::vector<size_t> roots(group.size() / each);
  std::iota(roots.begin(), roots.end(), size_t{0});
  const alike_ranks_cc::RankOfDevice ranks(group);
  for (const cluster::Rotation& rotation : topology.Rotations()) {
    const std::vector<size_t> after = alike_ranks_cc::BlocksAfter(rotation, group, each, ranks);
    for (size_t block = 0; block < after.size(); ++block) {
      const size_t a = alike_ranks_cc::RootOf(block, roots);
      const size_t b = alike_ranks_cc::RootOf(after[block], roots);
      roots[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<int64_t> counts(roots.size(), 0);
  for (size_t block = 0; block < roots.size(); ++block) {
    ++counts[alike_ranks_cc::RootOf(block, roots)];
  }
  std::vector<AlikeBlocks> alike;
  for (size_t block = 0; block < roots.size(); ++block) {
    if (counts[block] > 0) alike.push_back({.first = block, .count = counts[block]});
  }
  return alike;
}

std::vector<RankRotation> RankRotations(const cluster::Topology& topology,
                                        std::span<const cluster::DeviceId> group) {
  std::vector<RankRotation> rotations;
  if (topology.interchangeable()) {
    std::vector<size_t> after(group.size());
    for (size_t rank = 0; rank < group.size(); ++rank) after[rank] = (rank + 1) % group.size();
    return {{.after = std::move(after), .order = static_cast<int64_t>(group.size())}};
  }
  std::vector<cluster::Rotation> digits = topology.Rotations();
  std::ranges::sort(digits, {}, &cluster::Rotation::stride);
  const alike_ranks_cc::RankOfDevice ranks(group);
  int64_t above = 1;  // what the strides of further digits must divide by
  for (const cluster::Rotation& rotation : digits) {
    if (rotation.size == 1) continue;
    std::vector<size_t> after = alike_ranks_cc::BlocksAfter(rotation, group, 1, ranks);
    if (after.empty()) continue;
    if (rotation.stride % above != 0) return {};
    above = int64_t{rotation.stride} * rotation.size;
    rotations.push_back({.after = std::move(after), .order = rotation.size});
  }
  return rotations;
}

bool KeepsNodes(const cluster::Rotation& rotation, int32_t devices_a_node) {
  return rotation.stride % devices_a_node == 0 ||
         devices_a_node % (int64_t{rotation.stride} * rotation.size) == 0;
}

bool RotationsKeepNodes(const cluster::Topology& topology, int32_t devices_a_node) {
  if (devices_a_node == 1) return true;
  if (topology.interchangeable()) return false;
  return std::ranges::all_of(topology.Rotations(), [&](const cluster::Rotation& rotation) {
    return KeepsNodes(rotation, devices_a_node);
  });
}

}  // namespace orrery::cost_models
