#ifndef ORRERY_SIMULATOR_NETWORK_FAIR_RATES_H_
#define ORRERY_SIMULATOR_NETWORK_FAIR_RATES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/network/exact_sum.h"
#include "simulator/program/program.h"

// Who gets how much. Flows that load resources share them max-min fairly (Bertsekas & Gallager,
// Data Networks, section 6.5.2, "progressive filling"): all rates y rise alike; when a resource is
// full, that is when the sum of load × y over its flows is its capacity, or a flow has its own
// bound, those flows keep what they have and the others go on.
//
// Only what is connected with a change is solved again: flows that share a resource with a flow
// that came or went, flows that share one with those, and so on. The outcome depends on which flows
// there are, and not on the order in which they came: sums are exact (see exact_sum.h), and what a
// resource has given away is summed by level, levels ascending.

namespace orrery::simulator {

/// The rates of the flows that are active. Memory and work are of the flows that there are, not of
/// those that there were.
class FairRates {
 public:
  /// A row for a flow; used again when the flow is gone.
  using Slot = int32_t;

  /// `program`, which must verify, says what the resources are; it must outlive this.
  explicit FairRates(const Program& program);

  /// Adds a flow that takes at most `bound`. `loads`, at least one, must stay where they are until
  /// it is removed. It has no rate until `Solve`.
  Slot Add(Bandwidth bound, std::span<const Load> loads);
  /// Takes a flow away, whose slot and loads are free then; other rates change at the next `Solve`.
  void Remove(Slot slot);

  /// Whether flows came or went since the last `Solve`.
  bool stale() const { return !changed_.empty(); }
  /// Finds the rates, and returns the flows that may have another one than before, each once. Good
  /// until the next call.
  std::span<const Slot> Solve();
  /// The rate of the flow in `slot`, in bytes/s; 0 before the first `Solve`.
  double rate(Slot slot) const { return flows_[static_cast<size_t>(slot)].rate; }
  /// What it would get if nobody else were there; equal to `rate`, to the bit, if nobody is.
  double rate_alone(Slot slot) const { return flows_[static_cast<size_t>(slot)].alone; }

  /// The resources whose use the last `Solve` may have changed, each once, and the use in bytes/s.
  std::span<const ResourceId> solved() const { return solved_; }
  /// The bandwidth of a resource that flows took at the last `Solve`, in bytes/s.
  double used(ResourceId id) const {
    const Link& link = links_[static_cast<size_t>(id.index())];
    return link.flows.empty() ? 0 : link.capacity - link.left.value();
  }

 private:
  struct SharingFlow {
    const Load* loads = nullptr;
    int32_t load_count = 0;
    uint32_t visit = 0;  // of the last `Solve` that saw it
    bool alive = false;
    bool frozen = false;   // has its rate
    bool bounded = false;  // its own bound is below what its resources would give it alone
    double bound = 0;
    double alone = 0;
    double rate = 0;

    std::span<const Load> all_loads() const {
      return std::span(loads, static_cast<size_t>(load_count));
    }
  };
  struct Link {
    double capacity = 0;
    double level = 0;         // at which it is full
    ExactSum left;            // of the capacity, beside what frozen flows take
    ExactSum open;            // loads of the flows that are not frozen
    ExactSum freezing;        // loads of the flows that freeze at the level at hand
    int32_t open_flows = 0;   // that are not frozen
    uint32_t visit = 0;       // of the last `Solve` that saw it
    bool changed = false;     // a flow came or went
    bool freezes = false;     // a flow on it freezes at the level at hand
    ExactSum load;            // of all its flows
    std::vector<Slot> flows;  // with those that went since the last `Solve`
  };
  // Where a link or a flow's bound stands in the order of levels.
  struct Level {
    double level;
    int32_t index;  // of a link, or a slot
    bool operator>(const Level& other) const { return level > other.level; }
  };

  Link& LinkOf(ResourceId id) { return links_[static_cast<size_t>(id.index())]; }
  SharingFlow& FlowOf(Slot slot) { return flows_[static_cast<size_t>(slot)]; }
  void MarkChanged(ResourceId id);
  void Collect();
  void VisitLink(ResourceId id);
  void VisitFlowsOf(Link& link);
  void Fill();
  double NextLevel();
  void FreezeAt(double level);
  void Freeze(Slot slot, double level);
  void Settle(double level);

  std::vector<Link> links_;          // by resource
  std::vector<SharingFlow> flows_;   // by slot
  std::vector<Slot> free_;           // slots to use again
  std::vector<Slot> gone_;           // slots that are still in the lists of links
  std::vector<ResourceId> changed_;  // links with `changed`
  uint32_t visit_ = 0;
  // Of the last `Solve`.
  std::vector<ResourceId> solved_;
  std::vector<Slot> moved_;
  std::vector<Level> full_;           // a heap of links by the level at which they are full
  std::vector<Level> bounds_;         // a heap of flows that are `bounded`
  std::vector<ResourceId> freezing_;  // links with `freezes`
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_FAIR_RATES_H_
