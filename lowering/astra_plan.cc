#include "lowering/astra_plan.h"

#include <bit>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace orrery::lowering {
namespace {

using cost_models::CollectiveKind;

class Planner {
 public:
  Planner(CollectiveKind kind, Bytes size, LinkResources& links)
      : kind_(kind), size_(size), links_(links), n_(links.topology().devices()) {
    plan_.ranks.resize(static_cast<size_t>(n_));
  }

  AstraStepPlan Ring() {
    const bool gathers = kind_ == CollectiveKind::kAllGather;
    const Bytes message(gathers ? size_.count() : size_.count() / n_);
    for (int32_t rank = 0; rank < n_; ++rank) {
      const auto phase = [&](Bytes reduced) {
        return AstraPhase{.sends = {{(rank + 1) % n_, Flow(rank, (rank + 1) % n_, message)}},
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
        phase.sends.push_back({to, Flow(rank, to, message)});
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
        Append(
            Plan(rank),
            {.sends = {{partner, Flow(rank, partner, message)}}, .receives = 1, .reduced = reduced},
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

absl::StatusOr<AstraStepPlan> PlanAstraStep(CollectiveKind kind, absl::string_view algorithm,
                                            Bytes size, LinkResources& links) {
  const int32_t n = links.topology().devices();
  const absl::string_view name = cost_models::GetCollectiveKind(kind).name;
  if (n < 2) return absl::InvalidArgumentError(absl::StrCat("got ", n, " ranks; wanted 2 or more"));
  if (n > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("got ", n, " ranks; wanted at most 1024"));
  }
  if (kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kReduceScatter &&
      kind != CollectiveKind::kAllGather && kind != CollectiveKind::kAllToAll) {
    return absl::InvalidArgumentError(absl::StrCat("ASTRA-sim does not simulate ", name));
  }
  Planner planner(kind, size, links);
  if (algorithm == "ring") return planner.Ring();
  if (algorithm == "direct") return planner.Direct();
  const bool power = std::has_single_bit(static_cast<uint32_t>(n));
  if (algorithm == "halvingDoubling" && power && kind != CollectiveKind::kAllToAll) {
    return planner.HalvingDoubling();
  }
  return absl::InvalidArgumentError(absl::StrCat("algorithm '", algorithm, "' for ", name, " of ",
                                                 n,
                                                 " ranks; wanted ring, direct or, for a power "
                                                 "of two, halvingDoubling"));
}

}  // namespace orrery::lowering
