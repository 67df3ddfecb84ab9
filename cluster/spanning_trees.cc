#include "cluster/spanning_trees.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "cluster/link_graph.h"
#include "support/check.h"

namespace orrery::cluster {
namespace spanning_trees_cc {
namespace {

// More hops than these, as of 400 ranks at one switch, and trees take seconds to lay.
constexpr size_t kMostHops = size_t{1} << 18;
// Links side by side that a hop chooses from.
constexpr int32_t kMostWays = 32;
// So many trees, and a link of average load has 20 of them where the graph has 3 links a device:
// what rounding makes busier than others is within 5 %. For larger groups fewer: hops of all trees
// are transfers of one round.
constexpr int32_t kMostTrees = 64;
constexpr int32_t kMostTreesOfAllRoots = 256;
// Of a root each, and four million hops: a second, and 200 MB.
constexpr int32_t kMostRoots = 2048;
constexpr int64_t kMostHopsOfTrees = int64_t{1} << 13;
// How often each tree is taken up and laid anew, where those after it are known. With two, an
// all-reduce takes at most 7.5 % more than the bound on 30 random graphs of up to 64 devices.
constexpr int kPasses = 2;
constexpr int64_t kMostEdgesToRelay = int64_t{1} << 22;

// A hop that a tree may take, from a parent to a child, with all links that it loads.
struct Edge {
  int32_t parent = 0, child = 0;
  int32_t way_down = 0, way_up = 0;
  std::vector<int32_t> links = {};  // positions in Search::loads_
  Duration latency = {};
};

// One of the ways from a rank to its neighbour.
struct Way {
  int32_t number = 0;
  std::vector<LinkNumber> route = {};
};

// So many fields: the graph as one packing looks at it.
class Search {
 public:
  Search(const TreeQuery& query, const Topology& topology)
      : query_(query),
        topology_(topology),
        graph_(*topology.shape().graph),
        ranks_(static_cast<int32_t>(query.group.size())),
        rank_at_(static_cast<size_t>(graph_.vertex_count()), -1),
        position_(static_cast<size_t>(topology.link_count()), -1) {
    for (int32_t rank = 0; rank < ranks_; ++rank) rank_at_[At(DeviceOf(rank).index())] = rank;
    for (LinkNumber link = 0; link < topology.link_count(); ++link) {
      const Bandwidth rate = topology.LinkAt(link).speed.rate;
      fastest_ = std::max(fastest_, rate);
      out_.resize(At(graph_.vertex_count()));
      out_[At(topology.LinkAt(link).from.index())].push_back(topology.LinkAt(link).to.index());
    }
  }

  SpanningTrees Lay() {
    if (query_.roots == TreeRoots::kEach && ranks_ > kMostRoots) return {};
    if (!FindEdges()) return {};
    const std::vector<int32_t> roots = Roots();
    for (const int32_t root : roots) laid_.push_back(Grow(root));
    SpanningTrees best = Result();
    const bool relay =
        !query_.shortest && std::ssize(roots) * std::ssize(edges_) * kPasses < kMostEdgesToRelay;
    for (int pass = 0; pass < (relay ? kPasses : 0); ++pass) {
      for (std::vector<Placed>& tree : laid_) {
        const int32_t root = RootOf(tree);
        for (const Placed& placed : tree) AddLoad(edges_[placed.edge], -1);
        tree = Grow(root);
      }
      SpanningTrees now = Result();
      if (Busier(best.busiest, now.busiest)) best = std::move(now);
    }
    return best;
  }

 private:
  // An edge as a hop of a tree.
  struct Placed {
    size_t edge;
    int32_t depth;
  };

  static size_t At(int32_t index) { return static_cast<size_t>(index); }
  DeviceId DeviceOf(int32_t rank) const { return query_.group[At(rank)]; }
  int32_t RootOf(const std::vector<Placed>& tree) const { return edges_[tree[0].edge].parent; }

  static bool Busier(const TreeLoad& a, const TreeLoad& b) {
    return static_cast<__int128>(a.trees) * b.rate.bytes_per_second() >
           static_cast<__int128>(b.trees) * a.rate.bytes_per_second();
  }

  // Ranks that a way leads to which passes through no other rank.
  std::vector<int32_t> NeighboursOf(int32_t rank) const {
    std::vector<int32_t> found, open = {DeviceOf(rank).index()};
    std::vector<char>& seen = seen_;
    seen.assign(rank_at_.size(), 0);
    seen[At(open[0])] = 1;
    while (!open.empty()) {
      const int32_t vertex = open.back();
      open.pop_back();
      for (const int32_t next : out_[At(vertex)]) {
        if (seen[At(next)] != 0) continue;
        seen[At(next)] = 1;
        (rank_at_[At(next)] >= 0 ? found : open).push_back(next);
      }
    }
    for (int32_t& vertex : found) vertex = rank_at_[At(vertex)];
    std::ranges::sort(found);
    return found;
  }

  // The ways between two ranks that pass through no third; with `any`, that of messages if there
  // are none.
  std::vector<Way> WaysBetween(int32_t from, int32_t to, bool any) const {
    std::vector<Way> ways;
    Way first;
    for (int32_t number = 0; number < kMostWays; ++number) {
      Way way{.number = number};
      topology_.AppendWay(DeviceOf(from), DeviceOf(to), number, way.route);
      if (number > 0 && way.route == first.route) break;
      if (number == 0) first = way;
      const bool passes_through = std::any_of(
          way.route.begin(), way.route.end() - 1,
          [&](LinkNumber link) { return rank_at_[At(topology_.LinkAt(link).to.index())] >= 0; });
      const bool known =
          std::ranges::any_of(ways, [&](const Way& other) { return other.route == way.route; });
      if (!passes_through && !known) ways.push_back(std::move(way));
    }
    if (ways.empty() && any) ways.push_back(std::move(first));
    return ways;
  }

  int32_t PositionOf(LinkNumber link) {
    int32_t& position = position_[static_cast<size_t>(link)];
    if (position < 0) {
      position = static_cast<int32_t>(loads_.size());
      loads_.push_back({.link = link, .rate = topology_.LinkAt(link).speed.rate});
    }
    return position;
  }

  void AddWay(const Way& way, Edge& edge) {
    Duration latency;
    for (const LinkNumber link : way.route) {
      edge.links.push_back(PositionOf(link));
      latency += topology_.LinkAt(link).speed.latency;
    }
    edge.latency = std::max(edge.latency, latency);
  }

  void AddEdges(int32_t parent, int32_t child) {
    const bool down = query_.use != TreeUse::kUp, up = query_.use != TreeUse::kDown;
    std::vector<Way> ways_down, ways_up;
    if (down) ways_down = WaysBetween(parent, child, up);
    if (up) ways_up = WaysBetween(child, parent, down);
    const size_t count = std::max(ways_down.size(), ways_up.size());
    for (size_t i = 0; i < count; ++i) {
      Edge edge{.parent = parent, .child = child};
      if (down) {
        const Way& way = ways_down[i % ways_down.size()];
        edge.way_down = way.number;
        AddWay(way, edge);
      }
      if (up) {
        const Way& way = ways_up[i % ways_up.size()];
        edge.way_up = way.number;
        AddWay(way, edge);
      }
      of_parent_[At(parent)].push_back(edges_.size());
      edges_.push_back(std::move(edge));
    }
  }

  // Whether there are not too many.
  bool FindEdges() {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      for (const int32_t next : NeighboursOf(rank)) {
        if (query_.use != TreeUse::kUp) pairs.emplace_back(rank, next);
        if (query_.use != TreeUse::kDown) pairs.emplace_back(next, rank);
      }
      if (pairs.size() > kMostHops) return false;
    }
    std::ranges::sort(pairs);
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    of_parent_.resize(At(ranks_));
    for (const auto& [parent, child] : pairs) AddEdges(parent, child);
    return true;
  }

  // How many hops the furthest rank is away.
  int32_t Eccentricity(int32_t root) const {
    std::vector<int32_t> distance(At(ranks_), -1), open = {root};
    distance[At(root)] = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      for (const size_t edge : of_parent_[At(open[i])]) {
        const int32_t child = edges_[edge].child;
        if (distance[At(child)] >= 0) continue;
        distance[At(child)] = distance[At(open[i])] + 1;
        open.push_back(child);
      }
    }
    ORRERY_CHECK(std::ssize(open) == ranks_) << open.size() << " of " << ranks_ << " reached";
    return distance[At(open.back())];
  }

  std::vector<int32_t> Roots() const {
    if (query_.roots == TreeRoots::kEach) {
      const int32_t each = query_.shortest ? 1 : std::max(1, kMostTreesOfAllRoots / ranks_);
      std::vector<int32_t> roots;
      for (int32_t i = 0; i < each * ranks_; ++i) roots.push_back(i % ranks_);
      return roots;
    }
    int32_t root = 0;
    if (query_.roots == TreeRoots::kCenter) {
      int32_t least = std::numeric_limits<int32_t>::max();
      for (int32_t rank = 0; rank < ranks_; ++rank) {
        const int32_t eccentricity = Eccentricity(rank);
        if (eccentricity >= least) continue;
        least = eccentricity;
        root = rank;
      }
    }
    const int64_t count =
        query_.shortest ? 1 : std::clamp<int64_t>(kMostHopsOfTrees / ranks_, 1, kMostTrees);
    return std::vector<int32_t>(static_cast<size_t>(count), root);
  }

  void AddLoad(const Edge& edge, int64_t trees) {
    for (const int32_t link : edge.links) loads_[At(link)].trees += trees;
  }

  // What it costs to use an edge: squares of the loads that it makes, so that one link of two more
  // is worse than two links of one more.
  int64_t CostOf(const Edge& edge) const {
    constexpr int64_t kMost = int64_t{1} << 24;
    int64_t cost = 0;
    for (const int32_t link : edge.links) {
      const TreeLoad& load = loads_[At(link)];
      const int64_t slowness = std::min<int64_t>(
          kMost, 16 * (fastest_.bytes_per_second() / load.rate.bytes_per_second()) +
                     16 * (fastest_.bytes_per_second() % load.rate.bytes_per_second()) /
                         load.rate.bytes_per_second());
      const int64_t makes = std::min(kMost, (load.trees + 1) * slowness);
      cost += makes * makes;
    }
    return cost;
  }

  // Prim's, where costs rise as links are loaded. Of edges that cost the same, the one nearest to
  // the root.
  std::vector<Placed> Grow(int32_t root) {
    using Entry = std::tuple<int64_t, int32_t, size_t>;  // cost, depth, edge
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    std::vector<char> in_tree(At(ranks_), 0);
    std::vector<Placed> tree;
    const auto reach = [&](int32_t rank, int32_t depth) {
      in_tree[At(rank)] = 1;
      for (const size_t edge : of_parent_[At(rank)]) {
        if (in_tree[At(edges_[edge].child)] == 0) open.emplace(Rated(edge), depth + 1, edge);
      }
    };
    reach(root, 0);
    while (std::ssize(tree) < ranks_ - 1) {
      ORRERY_CHECK(!open.empty()) << "a rank that no hop leads to";
      const auto [cost, depth, edge] = open.top();
      open.pop();
      if (in_tree[At(edges_[edge].child)] != 0) continue;
      if (const int64_t now = Rated(edge); now > cost) {
        open.emplace(now, depth, edge);
        continue;
      }
      AddLoad(edges_[edge], 1);
      tree.push_back({edge, depth});
      reach(edges_[edge].child, depth);
    }
    return tree;
  }

  int64_t Rated(size_t edge) const { return query_.shortest ? 0 : CostOf(edges_[edge]); }

  SpanningTrees Result() const {
    SpanningTrees result{.busiest = {.trees = 0, .rate = Bandwidth(1)}};
    for (const std::vector<Placed>& tree : laid_) {
      SpanningTree& row = result.trees.emplace_back(SpanningTree{.root = RootOf(tree)});
      for (const auto& [number, depth] : tree) {
        const Edge& edge = edges_[number];
        row.hops.push_back({edge.parent, edge.child, depth, edge.way_down, edge.way_up});
        result.depth = std::max(result.depth, depth);
        result.hop_latency = std::max(result.hop_latency, edge.latency);
      }
    }
    result.loads = loads_;
    std::ranges::sort(result.loads, {}, &TreeLoad::link);
    for (const TreeLoad& load : result.loads) {
      if (Busier(load, result.busiest)) result.busiest = load;
    }
    return result;
  }

  const TreeQuery& query_;
  const Topology& topology_;
  const LinkGraph& graph_;
  int32_t ranks_;
  std::vector<int32_t> rank_at_;           // by vertex; -1: of none
  std::vector<int32_t> position_;          // by link, in loads_; -1: not loaded yet
  std::vector<std::vector<int32_t>> out_;  // by vertex, those that its links lead to
  mutable std::vector<char> seen_;         // by vertex
  Bandwidth fastest_ = Bandwidth(1);
  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> of_parent_;
  std::vector<TreeLoad> loads_;
  std::vector<std::vector<Placed>> laid_;
};

}  // namespace
}  // namespace spanning_trees_cc

const SpanningTrees& SpanningTreesOf(const TreeQuery& query, const Topology& topology) {
  ORRERY_CHECK(topology.shape().graph != nullptr && query.group.size() >= 2)
      << topology.kind().name << " of " << query.group.size();
  LaidOutCache& cache = topology.shape().graph->laid_out();
  return cache.Find(cache.trees, std::pair(query, topology.FasterLinks()),
                    [&] { return spanning_trees_cc::Search(query, topology).Lay(); });
}

}  // namespace orrery::cluster
