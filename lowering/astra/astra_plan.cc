#include "lowering/astra/astra_plan.h"

#include <bit>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace orrery::lowering {
namespace astra_plan_cc {
namespace {

using cost_models::CollectiveKind;

// An all-to-all on a ring has n²/2 phases of n messages.
constexpr int32_t kMostRanksHopByHop = 256;

class Planner {
 public:
  Planner(CollectiveKind kind, Bytes size, LinkResources& links)
      : kind_(kind), size_(size), links_(links), n_(links.topology().devices()) {
    plan_.ranks.resize(static_cast<size_t>(n_));
  }

  // Chunks take two trees in turn, each for a whole chunk.
  std::vector<AstraStepPlan> Trees() {
    std::vector<AstraStepPlan> trees;
    for (const int32_t root : {n_ - 1, 0}) {
      plan_.ranks.assign(static_cast<size_t>(n_), {});
      for (int32_t key = 1; key <= n_; ++key) AppendTreePhases(root, key);
      trees.push_back(std::move(plan_));
    }
    return trees;
  }

  AstraStepPlan Ring() {
    const bool gathers = kind_ == CollectiveKind::kAllGather;
    const Bytes message(gathers ? size_.count() : size_.count() / n_);
    for (int32_t rank = 0; rank < n_; ++rank) {
      const auto phase = [&](Bytes reduced) {
        const int32_t next = (rank + 1) % n_;
        return AstraPhase{.sends = {{.to = next, .flow = Flow(rank, next, message)}},
                          .receives = 1,
                          .reduced = reduced};
      };
      AstraRankPlan& plan = Plan(rank);
      if (kind_ == CollectiveKind::kAllToAll) {
        Append(plan, phase(Bytes(0)), n_ * (n_ - 1) / 2);  // each block hop by hop, one at a time
        continue;
      }
      if (Reduces()) Append(plan, phase(message), n_ - 1);
      if (Gathers()) Append(plan, phase(Bytes(0)), n_ - 1);
    }
    return std::move(plan_);
  }

  AstraStepPlan Direct() {
    const bool gathers = kind_ == CollectiveKind::kAllGather;
    const Bytes message(gathers ? size_.count() : size_.count() / n_);
    for (int32_t rank = 0; rank < n_; ++rank) {
      AstraPhase phase{.receives = n_ - 1, .reduced = Reduces() ? message : Bytes(0)};
      for (int32_t away = 1; away < n_; ++away) {
        const int32_t to = (rank + away) % n_;
        phase.sends.push_back({.to = to, .flow = Flow(rank, to, message)});
      }
      Append(Plan(rank), phase, 1);
      if (kind_ != CollectiveKind::kAllReduce) continue;
      phase.reduced = Bytes(0);
      Append(Plan(rank), phase, 1);
    }
    return std::move(plan_);
  }

  // Memory is charged for what is sent next, and so not at all after the last exchange.
  AstraStepPlan HalvingDoubling() {
    for (int32_t rank = 0; rank < n_; ++rank) {
      Bytes message = size_;
      const auto exchange = [&](int32_t distance, Bytes reduced) {
        const int32_t partner = rank ^ distance;
        Append(Plan(rank),
               {.sends = {{.to = partner, .flow = Flow(rank, partner, message)}},
                .receives = 1,
                .reduced = reduced},
               1);
      };
      if (Reduces()) {
        for (int32_t distance = 1; distance < n_; distance *= 2) {
          message = Bytes(message.count() / 2);
          exchange(distance, Bytes(distance * 2 < n_ ? message.count() / 2 : 0));
        }
      }
      if (!Gathers()) continue;
      for (int32_t distance = n_ / 2; distance >= 1; distance /= 2) {
        exchange(distance, Bytes(0));
        message = message * 2;
      }
    }
    return std::move(plan_);
  }

 private:
  bool Reduces() const {
    return kind_ == CollectiveKind::kAllReduce || kind_ == CollectiveKind::kReduceScatter;
  }
  bool Gathers() const {
    return kind_ == CollectiveKind::kAllReduce || kind_ == CollectiveKind::kAllGather;
  }

  // A perfect tree over keys 1 to n-1 in order, so that the lowest bit of a key is its height;
  // above it the root, of key n. The root is the last rank, and keys count from rank 0, or it is
  // the first.
  int32_t TreeRank(int32_t root, int32_t key) const {
    if (key == n_) return root;
    return root == 0 ? key : key - 1;
  }

  // From leaves: up, and await what comes down. Others add up what comes from below, send it up,
  // and pass on what comes down. The positions of what each receives follow from its height.
  void AppendTreePhases(int32_t root, int32_t key) {
    const int32_t rank = TreeRank(root, key), bit = key & -key;
    const auto message = [&](int32_t other, int32_t position) {
      const int32_t to = TreeRank(root, other);
      return AstraPhase::Message{.to = to, .flow = Flow(rank, to, size_), .position = position};
    };
    AstraRankPlan& plan = Plan(rank);
    AstraPhase from_below{.receives = 2, .reduced = size_, .awaits_processing = true};
    if (key == n_) {
      from_below.receives = 1;
      Append(plan, from_below, 1);
      Append(plan, {.sends = {message(n_ / 2, n_ > 2 ? 1 : 0)}}, 1);
      return;
    }
    const bool leaf = bit == 1;
    if (!leaf) Append(plan, from_below, 1);
    const int32_t parent = bit * 2 == n_ ? n_ : (key ^ bit) | (bit << 1);
    Append(plan, {.sends = {message(parent, 0)}, .receives = 1, .reduced = leaf ? Bytes(0) : size_},
           1);
    if (leaf) return;
    const int32_t half = bit / 2, position = half == 1 ? 0 : 1;
    Append(plan, {.sends = {message(key - half, position), message(key + half, position)}}, 1);
  }

  AstraRankPlan& Plan(int32_t rank) { return plan_.ranks[static_cast<size_t>(rank)]; }

  static void Append(AstraRankPlan& plan, const AstraPhase& phase, int32_t times) {
    plan.order.insert(plan.order.end(), static_cast<size_t>(times),
                      static_cast<int32_t>(plan.phases.size()));
    plan.phases.push_back(phase);
  }

  simulator::FlowId Flow(int32_t from, int32_t to, Bytes size) {
    simulator::FlowId& flow = flows_[{from, to, size.count()}];
    if (flow.valid()) return flow;
    route_.clear();
    links_.topology().AppendRoute(cluster::DeviceId(from), cluster::DeviceId(to), route_);
    flow = links_.AddMessage(size, route_);
    return flow;
  }

  CollectiveKind kind_;
  Bytes size_;
  LinkResources& links_;
  int32_t n_;
  AstraStepPlan plan_;
  absl::flat_hash_map<std::tuple<int32_t, int32_t, int64_t>, simulator::FlowId> flows_;
  std::vector<cluster::LinkNumber> route_;
};

}  // namespace
}  // namespace astra_plan_cc

int64_t MessageCount(const AstraStepPlan& plan) {
  int64_t count = 0;
  for (const AstraRankPlan& rank : plan.ranks) {
    for (size_t position = 0; position < rank.order.size(); ++position) {
      count += static_cast<int64_t>(rank.PhaseAt(position).sends.size());
    }
  }
  return count;
}

absl::StatusOr<std::vector<AstraStepPlan>> PlanAstraStep(cost_models::CollectiveKind kind,
                                                         absl::string_view algorithm, Bytes size,
                                                         LinkResources& links) {
  const int32_t n = links.topology().devices();
  const absl::string_view name = cost_models::GetCollectiveKind(kind).name;
  if (n < 2) return absl::InvalidArgumentError(absl::StrCat("got ", n, " ranks; wanted 2 or more"));
  if (n > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("got ", n, " ranks; wanted at most 1024"));
  }
  if (kind != cost_models::CollectiveKind::kAllReduce &&
      kind != cost_models::CollectiveKind::kReduceScatter &&
      kind != cost_models::CollectiveKind::kAllGather &&
      kind != cost_models::CollectiveKind::kAllToAll) {
    return absl::InvalidArgumentError(absl::StrCat("ASTRA-sim does not simulate ", name));
  }
  if (algorithm == "ring" && kind == cost_models::CollectiveKind::kAllToAll &&
      n > astra_plan_cc::kMostRanksHopByHop) {
    return absl::InvalidArgumentError(absl::StrCat("algorithm 'ring' for all-to-all of ", n,
                                                   " ranks; wanted at most ",
                                                   astra_plan_cc::kMostRanksHopByHop));
  }
  astra_plan_cc::Planner planner(kind, size, links);
  const auto one = [](AstraStepPlan plan) { return std::vector{std::move(plan)}; };
  if (algorithm == "ring") return one(planner.Ring());
  if (algorithm == "direct") return one(planner.Direct());
  const bool power = std::has_single_bit(static_cast<uint32_t>(n));
  if (algorithm == "halvingDoubling" && power && kind != cost_models::CollectiveKind::kAllToAll) {
    return one(planner.HalvingDoubling());
  }
  if (algorithm == "doubleBinaryTree" && power && kind == cost_models::CollectiveKind::kAllReduce) {
    return planner.Trees();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("algorithm '", algorithm, "' for ", name, " of ", n,
                   " ranks; wanted ring, direct or, for a power of two, halvingDoubling or "
                   "doubleBinaryTree (which is for all-reduce only)"));
}

}  // namespace orrery::lowering
