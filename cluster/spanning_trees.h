#ifndef ORRERY_CLUSTER_SPANNING_TREES_H_
#define ORRERY_CLUSTER_SPANNING_TREES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cluster/topology.h"

// What collectives follow on an explicit graph: rings and spanning trees over a group of devices,
// laid along its links. Trees are packed: each one where the trees before it have loaded the links
// least. As many data as go to each tree, so many trees a link is in: what the busiest link carries
// is near to the least that is possible. With trees that are used both ways that is the size over
// the graph's strength, the least number of links that part it into k + 1 over k (Tutte 1961,
// Nash-Williams 1961); to pack greedily comes near to it (Thorup 2007, Karger 2000).

namespace orrery::cluster {

/// Which way data pass through a tree: up to its root and down again, or one of both.
enum class TreeUse : uint8_t { kBothWays, kDown, kUp };

/// Where trees have their roots: at the rank that is nearest to all, at rank 0, or as many trees at
/// each rank.
enum class TreeRoots : uint8_t { kCenter, kFirst, kEach };

/// Which trees are wanted. Rank r is device r of `group`.
struct TreeQuery {
  std::vector<DeviceId> group;  // two at least, all different
  TreeUse use = TreeUse::kBothWays;
  TreeRoots roots = TreeRoots::kCenter;
  bool shortest = false;  // one tree for each root, no rank of which is further away than it must

  friend auto operator<=>(const TreeQuery&, const TreeQuery&) = default;
};

/// From a rank to another that no third rank of the group lies between. Data take the ways of
/// Topology::AppendWay.
struct TreeHop {
  int32_t parent = 0;
  int32_t child = 0;
  int32_t depth = 1;  // of the child; 0 is the root
  int32_t way_down = 0;
  int32_t way_up = 0;

  friend bool operator==(const TreeHop&, const TreeHop&) = default;
};

/// A tree over all ranks; hops stand behind those to their parents.
struct SpanningTree {
  int32_t root = 0;
  std::vector<TreeHop> hops = {};

  friend bool operator==(const SpanningTree&, const SpanningTree&) = default;
};

/// How many trees load a link, counted for each hop whose way leads over it.
struct TreeLoad {
  LinkNumber link = 0;
  int64_t trees = 0;
  Bandwidth rate = {};

  friend bool operator==(const TreeLoad&, const TreeLoad&) = default;
};

/// Trees that share the data equally. None where there would be too many hops to choose from.
struct SpanningTrees {
  std::vector<SpanningTree> trees = {};
  std::vector<TreeLoad> loads = {};  // ascending by link
  TreeLoad busiest = {};             // of `loads`, that which needs longest
  int32_t depth = 0;                 // of the deepest
  Duration hop_latency = {};         // the largest of a hop

  friend bool operator==(const SpanningTrees&, const SpanningTrees&) = default;
};

/// The trees of that query on a topology that is an explicit graph: the same ones every time, and
/// laid once. The reference holds as long as the graph does. Any number of threads may ask.
const SpanningTrees& SpanningTreesOf(const TreeQuery& query, const Topology& topology);

/// The devices of `group`, which is in ascending order, in the order in which a ring passes through
/// them over few links: as they are, or by exchanges of two hops until none helps (2-opt, Croes
/// 1958), up to 256 devices. Requires a topology that is an explicit graph. Laid once, likewise.
const std::vector<DeviceId>& RingOrderOf(const std::vector<DeviceId>& group,
                                         const Topology& topology);

/// What has been laid on a graph.
class LaidOutCache {
 public:
  /// What stands at `key`, or what `make` makes of it. Two threads may both make it; one is kept.
  template <typename Key, typename Value, typename Make>
  const Value& Find(std::map<Key, std::unique_ptr<const Value>>& kept, const Key& key, Make make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = kept.find(key); found != kept.end()) return *found->second;
    }
    auto made = std::make_unique<const Value>(make());
    const std::lock_guard lock(mutex_);
    return *kept.try_emplace(key, std::move(made)).first->second;
  }

  // Behind the query, the links that are faster (Topology::FasterLinks).
  std::map<std::pair<TreeQuery, std::string>, std::unique_ptr<const SpanningTrees>> trees;
  std::map<std::vector<DeviceId>, std::unique_ptr<const std::vector<DeviceId>>> rings;

 private:
  std::mutex mutex_;
};

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_SPANNING_TREES_H_
