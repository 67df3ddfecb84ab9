#ifndef ORRERY_COST_MODELS_COLLECTIVES_ALIKE_RANKS_H_
#define ORRERY_COST_MODELS_COLLECTIVES_ALIKE_RANKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/topology.h"

// Of ranks that see the same from where they are, one is looked at and stands for all.

namespace orrery::cost_models {

/// Blocks of ranks that are alike: the number of the first, and how many they are.
struct AlikeBlocks {
  size_t first = 0;
  int64_t count = 0;
};

/// Which blocks of `each` consecutive ranks of `group` a rotation of the topology
/// (Topology::Rotations) moves onto each other, where it moves the whole group onto itself, block
/// onto block: their routes to all others are the same, but for which links of the same speeds they
/// are. Ascending by their first. Requires different devices, and whole blocks.
/// O(ranks × rotations).
std::vector<AlikeBlocks> FindAlikeBlocks(const cluster::Topology& topology,
                                         std::span<const cluster::DeviceId> group, size_t each);

/// A way to renumber the ranks of a group that changes nothing: where each is then, and after how
/// many times all are where they were.
struct RankRotation {
  std::vector<size_t> after;
  int64_t order = 1;
};

/// Such ways that follow from the topology and leave no rank of any group of them where it was but
/// by leaving all: every combination of them is another one. None where that is not sure.
std::vector<RankRotation> RankRotations(const cluster::Topology& topology,
                                        std::span<const cluster::DeviceId> group);

/// Whether devices of one node, of so many devices, are of one node after that rotation.
bool KeepsNodes(const cluster::Rotation& rotation, int32_t devices_a_node);

/// Whether they are after any rotation of the topology.
bool RotationsKeepNodes(const cluster::Topology& topology, int32_t devices_a_node);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_ALIKE_RANKS_H_
