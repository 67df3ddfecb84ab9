#ifndef ORRERY_LOWERING_NETWORK_PRICING_H_
#define ORRERY_LOWERING_NETWORK_PRICING_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "cost_models/cost_model.h"
#include "ir/mesh.h"
#include "lowering/network/exchange.h"
#include "lowering/network/exchange_store.h"
#include "lowering/network/geometry.h"
#include "lowering/network/link_classes.h"
#include "simulator/program/program.h"
#include "support/id.h"
#include "support/id_table.h"
#include "support/units.h"

namespace orrery::lowering {

ORRERY_DEFINE_ID(MovementId, "movement");

/// How long a task takes: a flow says, if there is one.
struct TaskTime {
  Duration duration = {};
  simulator::FlowId flow = {};
};

/// A collective of all groups of ranks of a stage along axes.
struct CollectiveRequest {
  simulator::StreamKind stream = simulator::StreamKind::kCompute;
  cost_models::CollectiveKind collective = cost_models::CollectiveKind::kAllReduce;
  ir::AxisList group;
  Bytes bytes;  // that it gathers or reduces, a rank
};

/// What each rank of a stage sends to one of another.
struct SendRequest {
  int32_t to = 0;        // stage
  Bytes bytes;           // a message
  int32_t pairs = kAll;  // of Pricing::AddPairs; kAll: each rank to that of its own number

  static constexpr int32_t kAll = -1;
};

/// A rank of a stage, and that of another which it sends to: as positions in the stages.
using SendPair = std::pair<int32_t, int32_t>;

struct PricingOptions {
  bool blocking = false;  // a rank has one stream for everything
  /// Flows for all communication and resources for all links that carry it, for people who want to
  /// see links. If not, only for what shares a link with something else; the rest has fixed times.
  bool every_link = false;
  cost_models::CollectiveChoice algorithms = {};  // of collectives, where they can serve a group
  Duration start = Duration(0);  // of a collective over links, besides: StackKernels::collective
  /// How long it takes to copy what a gather or a reduce-scatter along these axes moves; none: it
  /// lies where it is wanted.
  std::function<Duration(Bytes)> copy = {};
  ir::AxisList copied_axes = {};
  /// Of exchanges of all groups, which others may look up, too; null: of its own. Lives longer.
  ExchangeStore* exchanges = nullptr;
};

/// Times of communication among the ranks of a pipelined step. First everything is announced
/// (`Expect`), then the times are found at once (`Prepare`), as what shares a link with what
/// depends on all of it; then they are looked up. So many fields: what is announced, and in how
/// many tables it is looked up.
class Pricing {
 public:
  Pricing(const Geometry& geometry, const cost_models::CostModel& cost_model,
          const cluster::Topology& topology, const PricingOptions& options = {})
      : geometry_(geometry),
        cost_model_(cost_model),
        topology_(topology),
        options_(options),
        own_(topology) {
    message_.rounds = MessageRounds();
  }

  /// The number of a list of pairs, for SendRequest::pairs; of equal lists the same.
  int32_t AddPairs(const std::vector<SendPair>& pairs);

  /// What is announced has a number, by which it is looked up sooner.
  MovementId Expect(int32_t stage, const CollectiveRequest& task);
  MovementId Expect(int32_t stage, const SendRequest& send);

  /// Whether all groups of ranks of a stage pay the same for everything announced, and meet the
  /// same on the links that they share: then one of them can stand for all.
  bool AllGroupsAlike();

  /// Finds all times and adds the resources and flows that it takes to `program`. With `fold`, of
  /// all groups of a stage in step: the slowest sets the pace.
  void Prepare(bool fold, simulator::Program& program);

  /// Groups of the ranks of a stage along `axes`, as positions within the stage.
  const std::vector<std::vector<int32_t>>& GroupsOf(int32_t stage, const ir::AxisList& axes);

  /// Of a collective in group number `group` of a stage (0 when folded); zero when the group is one
  /// rank.
  TaskTime Collective(int32_t stage, const CollectiveRequest& task, size_t group) const;
  /// Of a send from rank number `position` of a stage (0 when folded) to the same one of stage
  /// send.to; or of that pair.
  TaskTime Send(int32_t stage, const SendRequest& send, size_t position) const;
  /// Either of them.
  TaskTime TimeOf(MovementId movement, size_t group) const {
    return movements_[movement].second.times[group];
  }

  /// The kind of link that bounds such a task when nothing else is under way: "port", "nic"; empty
  /// when it is not known. Of all groups at once, as they are in step.
  absl::string_view LevelOf(int32_t stage, const CollectiveRequest& task) const;
  absl::string_view LevelOf(int32_t stage, const SendRequest& send) const;
  absl::string_view LevelOf(MovementId movement) const { return movements_[movement].second.level; }

 private:
  // A collective of a stage along axes, or the sends from a stage to another; of one size.
  struct Key {
    int32_t stage = 0;
    int32_t to = -1;     // of a send
    int32_t pairs = -1;  // likewise
    ir::AxisList axes;   // of a collective
    cost_models::CollectiveKind kind = cost_models::CollectiveKind::kSendReceive;
    Bytes size;
    // Of a collective: the same on another stream can be under way at the same time.
    simulator::StreamKind stream = simulator::StreamKind::kCompute;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Movement {
    std::vector<int32_t> exchanges;                      // of all groups at once, or one a group
    std::vector<cluster::CollectiveProtocol> protocols;  // likewise; of the library
    std::vector<TaskTime> times;                         // likewise
    double load_in_step = 1;  // see LoadInStep; of groups that are simulated each
    absl::string_view level;
  };
  using Entry = std::pair<Key, Movement>;
  // What tells exchanges apart, beside the group: equal rounds of equal groups are one.
  using ExchangeKey =
      std::tuple<int32_t, int32_t, int32_t, ir::AxisList, cost_models::CollectiveKind, const void*,
                 int64_t, int64_t, int64_t, int32_t, bool, simulator::StreamKind>;

  static Key KeyOf(int32_t stage, const CollectiveRequest& task) {
    return {.stage = stage,
            .axes = task.group,
            .kind = task.collective,
            .size = task.bytes,
            .stream = task.stream};
  }
  static Key KeyOf(int32_t stage, const SendRequest& send) {
    return {.stage = stage, .to = send.to, .pairs = send.pairs, .axes = {}, .size = send.bytes};
  }
  static bool IsSend(const Key& key) { return key.to >= 0; }

  size_t GroupCount(const Key& key);
  SendPair PairOf(const Key& key, size_t group) const;
  std::vector<Devices> MakeGroups(const Key& key);
  const GroupList& ListOf(const Key& key);
  const Layouts& LayoutsOf(const Key& key);
  struct Plan {
    std::vector<int32_t> groups;  // that carry it out
    const cost_models::ChosenCollective* chosen = nullptr;
  };
  Plan PlanOf(const Key& key, int32_t group);
  // kAll: the exchange of all groups at once.
  static constexpr int32_t kAll = -1;
  ExchangeStore& StoreOf(bool of_all);
  int32_t FindExchange(Entry& entry, int32_t group);
  absl::InlinedVector<Lane, 2> LanesOf(const Entry& entry, int32_t group);
  void FindExchanges(bool fold);
  void FindLoadsInStep();
  // Of each group.
  std::vector<Duration> TimesWithoutLinks(const Key& key);
  void SetTimesWithoutLinks(bool fold);
  absl::string_view BusiestLevel(const Movement& movement) const;
  Duration StartOf(const Key& key) const;
  TaskTime TimeOf(const Key& key, const Movement& movement, size_t group,
                  const std::vector<char>& in_step, simulator::Program& program) const;
  simulator::ResourceId AddResource(int32_t link_class, simulator::Program& program) const;
  MovementId Expect(const Key& key);
  const Movement& Find(const Key& key) const {
    return movements_[numbers_.find(key)->second].second;
  }

  const Geometry& geometry_;
  const cost_models::CostModel& cost_model_;
  const cluster::Topology& topology_;
  const PricingOptions options_;
  std::vector<std::vector<SendPair>> pairs_;
  std::map<std::pair<int32_t, ir::AxisList>, std::vector<std::vector<int32_t>>> groups_;
  // By stage, stage to send to, pairs, axes and kind.
  std::map<std::tuple<int32_t, int32_t, int32_t, ir::AxisList, cost_models::CollectiveKind>,
           const GroupList*>
      lists_;
  IdTable<MovementId, Entry> movements_;   // as they were announced
  std::map<Key, MovementId> numbers_;      // in the order in which they are priced
  cost_models::ChosenCollective message_;  // of a send
  std::optional<bool> exchanges_are_of_;   // whether those below are of a folded step
  std::map<ExchangeKey, int32_t> exchange_numbers_;
  ExchangeStore own_;  // what options_.exchanges does not have
  std::vector<PlacedExchange> exchanges_;
  const LinkClasses* classes_ = nullptr;          // of what is in exchanges_
  std::vector<simulator::ResourceId> resources_;  // by class; invalid where it needs none
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_PRICING_H_
