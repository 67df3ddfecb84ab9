#ifndef ORRERY_SIMULATOR_NETWORK_FLUID_NETWORK_H_
#define ORRERY_SIMULATOR_NETWORK_FLUID_NETWORK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/network/event_heap.h"
#include "simulator/network/fair_rates.h"
#include "simulator/network/flow_chains.h"
#include "simulator/network/link_use.h"
#include "simulator/network/network_model.h"
#include "simulator/network/slot_heap.h"

namespace orrery::simulator {

/// Max-min fair sharing of links among the flows that are active (see fair_rates.h), cut-through: a
/// flow loads all its resources at once, from its start until its last byte is sent, and arrives
/// its latency later. docs/adr/0007 has the whole of it.
///
/// - Rates are found when time is about to pass, once for all that starts and ends at a moment.
/// - A flow sends its last byte at a whole picosecond, rounded up; less than 1/1024 ps above a
/// whole
///   one counts as whole. A flow that has the same rate throughout, and that which it has alone,
///   takes `TimeAlone`, which is exact; none takes less.
/// - What a flow has left to send is counted in fractions of a byte small enough that only the
///   rates, doubles, are rounded.
///
/// So many fields: arrays of flows, and arrays of links.
class FluidNetwork : public NetworkModel {
 public:
  /// `program`, which must verify, holds the resources and all flows; it must outlive the network
  /// and not change. `use`, when given, is told how much of each resource is used when.
  explicit FluidNetwork(const Program& program, LinkUse* use = nullptr);

  void Start(TaskId message, const Flow& flow) override;
  std::optional<Time> NextCompletion(Time now) override;
  std::span<const TaskId> Advance(Time to) override;
  std::span<const LegDelay> delays() const override { return chains_.delays(); }

 private:
  using Wide = unsigned __int128;
  // A flow that is sending, by its slot in `rates_`.
  struct Sending {
    Flow flow;
    Time start;
    Time since = {};   // `left` and the rate are of this moment
    Wide left = 0;     // in 1 / `scale` byte picoseconds a second
    Wide speed = 0;    // the rate, in 1 / `scale` bytes/s
    double rate = 0;   // in bytes/s; 0 before the first solution
    double scale = 1;  // a power of 2
    TaskId message = {};
    uint32_t sequence = 0;
    int32_t chain = -1;  // that it is of, or none
  };

  void Send(const Sending& sending);
  void SendOfChains();
  void AdvanceChains();
  void Solve();
  static Wide SpeedOf(double rate, double scale);
  void SetRate(FairRates::Slot slot, double rate);
  Duration TimeLeft(const Sending& sending);
  void RecordUse();

  const Program& program_;
  LinkUse* use_;
  FairRates rates_;
  Time now_;
  uint32_t started_ = 0;
  std::vector<Sending> sending_;
  SlotHeap last_bytes_;  // when each that is sending has sent all
  EventHeap arrivals_;   // of those that have
  FlowChains chains_;
  std::vector<TaskId> arrived_;
  std::vector<SlotHeap::Entry> moved_;
  // The last division: flows in step ask for the same one.
  Wide divided_left_ = 0;
  Wide divided_speed_ = 0;
  Duration divided_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_FLUID_NETWORK_H_
