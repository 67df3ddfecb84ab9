#ifndef ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_ALGORITHM_H_
#define ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_ALGORITHM_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/link.h"
#include "cluster/spanning_trees.h"
#include "cost_models/collectives/collective_kind.h"
#include "cost_models/collectives/rounds.h"
#include "support/units.h"

// An algorithm carries out a collective as rounds of transfers between its ranks.

namespace orrery::cost_models {

/// On an explicit graph: spanning trees for a kind, packed to load its links equally, and the one
/// of shortest paths. Null elsewhere and for kinds that do without. They hold as long as the
/// topology's graph does.
struct LaidTrees {
  bool on_graph = false;
  const cluster::SpanningTrees* packed = nullptr;
  const cluster::SpanningTrees* shortest = nullptr;
};

/// One collective, as an algorithm sees it.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Bytes size = {};    // see CollectiveKind
  int32_t ranks = 2;  // >= 2
  /// Rank r is in node r / ranks_a_node, and nodes are whole. 1 or `ranks` when there are no nodes
  /// to tell apart.
  int32_t ranks_a_node = 1;
  bool node_reduces = false;    // the switch in each node reduces (NVLS)
  bool fabric_reduces = false;  // the switches between nodes reduce (SHARP)
  /// Any two ranks of a node have a link to each other; where there are no nodes to tell apart, any
  /// two ranks.
  bool linked = false;
  /// Where the ranks lie on a grid whose lines are rings or the like, its sides, two at least: a
  /// rank's coordinates are the digits of its number, that along the first side the lowest. Else
  /// empty.
  std::vector<int32_t> grid = {};
  LaidTrees laid = {};
  bool by_library = false;  // as communication libraries do it: the topology has their profile
  /// From a rank to the next: what a pipeline reckons with when it cuts the tensor into chunks.
  cluster::PathInfo hop = {};

  int32_t nodes() const { return ranks / ranks_a_node; }
  /// Whether there are several nodes of several ranks.
  bool two_levels() const { return ranks_a_node > 1 && nodes() > 1; }
};

/// A set of kinds.
class CollectiveKinds {
 public:
  constexpr CollectiveKinds() = default;
  constexpr CollectiveKinds(std::initializer_list<CollectiveKind> kinds) {
    for (const CollectiveKind kind : kinds) bits_ |= 1u << static_cast<uint32_t>(kind);
  }
  /// Whether the kind is in the set.
  constexpr bool contains(CollectiveKind kind) const {
    return (bits_ >> static_cast<uint32_t>(kind) & 1u) != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  uint32_t bits_ = 0;
};

/// The one record of an algorithm. All that a new one needs, besides its line in collectives.def.
struct CollectiveAlgorithm {
  absl::string_view name;     // "ring"
  absl::string_view summary;  // one sentence
  absl::string_view source;
  CollectiveKinds kinds = {};
  /// Those of its kinds for which it is considered when the algorithm is left open: what
  /// communication libraries (NCCL 2.2x) choose from. By hand it can be had for all its kinds.
  CollectiveKinds chosen = {};
  /// For which groups it is considered then; null: for all that it supports.
  bool (*worthwhile)(const CollectiveCall& call) = nullptr;
  /// What groups it is for; null: any.
  bool (*supports)(const CollectiveCall& call) = nullptr;
  absl::string_view wanted = {};  // by `supports`, for people: "nodes of several ranks"
  /// Its rounds. Requires a kind of `kinds` and a group that it supports.
  Rounds (*rounds)(const CollectiveCall& call) = nullptr;
  /// The same as far as prices go, where there are far fewer transfers to it: of a round those from
  /// one rank to another are one, which stands for all of them where the first stood; whose parts
  /// are is left out. Null: `rounds`.
  Rounds (*merged)(const CollectiveCall& call) = nullptr;

  /// Rounds that cost what `rounds` do and may be fewer transfers. Requires what `rounds` does.
  Rounds RoundsToPrice(const CollectiveCall& call) const {
    return merged == nullptr ? rounds(call) : merged(call);
  }
  /// Whether it can carry out the call: one of its kinds, in a group that it is for.
  bool Supports(const CollectiveCall& call) const {
    return kinds.contains(call.kind) && (supports == nullptr || supports(call));
  }
  /// Whether it is considered when the algorithm is left open.
  bool IsChosen(const CollectiveCall& call) const {
    return chosen.contains(call.kind) && Supports(call) &&
           (worthwhile == nullptr || worthwhile(call));
  }
};

/// All algorithms, in the order of collectives.def.
std::span<const CollectiveAlgorithm* const> AllCollectiveAlgorithms();

/// An algorithm by its name; the error lists the names that there are.
absl::StatusOr<const CollectiveAlgorithm*> FindCollectiveAlgorithm(absl::string_view name);

/// Into how many chunks to cut a tensor that passes through a pipeline of `fill` rounds more than
/// chunks, each of which moves `share` of the tensor over the number of chunks: the one of least
/// time, sqrt(fill × share × size / (rate × latency)), between 1 and 1,024.
int64_t PipelineChunks(const CollectiveCall& call, int64_t fill, double share);

/// The most transfers of one round that an algorithm makes: for those whose ranks all send to each
/// other, 1,024 ranks.
inline constexpr int64_t kMaxTransfersARound = int64_t{1} << 20;

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_ALGORITHM_H_
