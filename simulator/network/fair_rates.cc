#include "simulator/network/fair_rates.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "support/check.h"

namespace orrery::simulator {
namespace fair_rates_cc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Puts `levels[0]` to its position in a heap that is one but for it. Equal levels stay where they
// are: links of one kind are full at one level, and none of them has to sink.
template <typename Level>
void SinkFirst(std::vector<Level>& levels) {
  const size_t count = levels.size();
  const Level first = levels[0];
  size_t hole = 0;
  for (size_t child = 1; child < count; child = 2 * hole + 1) {
    if (child + 1 < count && levels[child] > levels[child + 1]) ++child;
    if (!(first > levels[child])) break;
    levels[hole] = levels[child];
    hole = child;
  }
  levels[hole] = first;
}

template <typename Level>
void PopFirst(std::vector<Level>& levels) {
  levels[0] = levels.back();
  levels.pop_back();
  if (!levels.empty()) SinkFirst(levels);
}

}  // namespace
}  // namespace fair_rates_cc

FairRates::FairRates(const Program& program)
    : links_(static_cast<size_t>(program.resource_count())) {
  for (size_t i = 0; i < links_.size(); ++i) {
    const Bandwidth capacity = program.resource(ResourceId(static_cast<int32_t>(i))).capacity;
    links_[i].capacity = static_cast<double>(capacity.bytes_per_second());
  }
}

FairRates::Slot FairRates::Add(Bandwidth bound, std::span<const Load> loads) {
  ORRERY_DCHECK(!loads.empty());
  if (free_.empty()) {
    free_.push_back(static_cast<Slot>(flows_.size()));
    flows_.emplace_back();
  }
  const Slot slot = free_.back();
  free_.pop_back();
  double links_give = fair_rates_cc::kNever;
  for (const Load& load : loads) {
    Link& link = LinkOf(load.resource);
    link.flows.push_back(slot);
    link.load.Add(load.load);
    links_give = std::min(links_give, load.load == 1 ? link.capacity : link.capacity / load.load);
    MarkChanged(load.resource);
  }
  const double most = static_cast<double>(bound.bytes_per_second());
  SharingFlow& flow = FlowOf(slot);
  flow.loads = loads.data();
  flow.load_count = static_cast<int32_t>(loads.size());
  flow.alive = true;
  flow.bounded = most < links_give;
  flow.bound = most;
  flow.alone = std::min(most, links_give);
  flow.rate = 0;
  return slot;
}

void FairRates::Remove(Slot slot) {
  SharingFlow& flow = FlowOf(slot);
  ORRERY_DCHECK(flow.alive) << slot;
  flow.alive = false;
  for (const Load& load : flow.all_loads()) {
    LinkOf(load.resource).load.Add(-load.load);
    MarkChanged(load.resource);
  }
  gone_.push_back(slot);
}

void FairRates::MarkChanged(ResourceId id) {
  Link& link = LinkOf(id);
  if (link.changed) return;
  link.changed = true;
  changed_.push_back(id);
}

std::span<const FairRates::Slot> FairRates::Solve() {
  Collect();
  Fill();
  // Every list that a gone flow was in has been gone through, so that its slot is free.
  free_.insert(free_.end(), gone_.begin(), gone_.end());
  gone_.clear();
  return moved_;
}

// All that is connected with a change, breadth first.
void FairRates::Collect() {
  ++visit_;
  solved_.clear();
  moved_.clear();
  full_.clear();
  bounds_.clear();
  for (const ResourceId id : changed_) {
    LinkOf(id).changed = false;
    VisitLink(id);
  }
  changed_.clear();
  for (size_t i = 0; i < solved_.size(); ++i) {
    Link& link = LinkOf(solved_[i]);
    VisitFlowsOf(link);
    if (link.flows.empty()) {
      link.load = ExactSum();
      continue;
    }
    link.left = ExactSum(link.capacity);
    link.open = link.load;
    link.open_flows = static_cast<int32_t>(link.flows.size());
    link.level = link.capacity / link.load.value();
    full_.push_back({.level = link.level, .index = solved_[i].index()});
  }
}

void FairRates::VisitLink(ResourceId id) {
  Link& link = LinkOf(id);
  if (link.visit == visit_) return;
  link.visit = visit_;
  solved_.push_back(id);
}

// Drops the flows that are gone on the way.
void FairRates::VisitFlowsOf(Link& link) {
  size_t kept = 0;
  for (const Slot slot : link.flows) {
    SharingFlow& flow = FlowOf(slot);
    if (!flow.alive) continue;
    link.flows[kept++] = slot;
    if (flow.visit == visit_) continue;
    flow.visit = visit_;
    flow.frozen = false;
    moved_.push_back(slot);
    if (flow.bounded) bounds_.push_back({.level = flow.bound, .index = slot});
    for (const Load& load : flow.all_loads()) VisitLink(load.resource);
  }
  link.flows.resize(kept);
}

void FairRates::Fill() {
  std::make_heap(full_.begin(), full_.end(), std::greater<>());
  std::make_heap(bounds_.begin(), bounds_.end(), std::greater<>());
  for (double level = NextLevel(); level < fair_rates_cc::kNever; level = NextLevel()) {
    FreezeAt(level);
    Settle(level);
  }
}

// The lowest level at which a link is full or a flow has its bound, among those that have flows to
// freeze. A link's position in the heap is of a time when its level was the same or lower.
double FairRates::NextLevel() {
  while (!full_.empty()) {
    const Link& link = links_[static_cast<size_t>(full_[0].index)];
    if (link.open_flows == 0) {
      fair_rates_cc::PopFirst(full_);
    } else if (link.level > full_[0].level) {
      full_[0].level = link.level;
      fair_rates_cc::SinkFirst(full_);
    } else {
      break;
    }
  }
  while (!bounds_.empty() && FlowOf(bounds_[0].index).frozen) fair_rates_cc::PopFirst(bounds_);
  return std::min(full_.empty() ? fair_rates_cc::kNever : full_[0].level,
                  bounds_.empty() ? fair_rates_cc::kNever : bounds_[0].level);
}

// Gives `level` to the flows of all links that are full at it and to all flows that are bounded by
// it.
void FairRates::FreezeAt(double level) {
  while (NextLevel() == level) {
    if (!bounds_.empty() && bounds_[0].level == level) {
      Freeze(bounds_[0].index, level);
      fair_rates_cc::PopFirst(bounds_);
      continue;
    }
    for (const Slot slot : links_[static_cast<size_t>(full_[0].index)].flows) Freeze(slot, level);
    fair_rates_cc::PopFirst(full_);
  }
}

void FairRates::Freeze(Slot slot, double level) {
  SharingFlow& flow = FlowOf(slot);
  if (flow.frozen) return;
  flow.frozen = true;
  flow.rate = level;
  for (const Load& load : flow.all_loads()) {
    Link& link = LinkOf(load.resource);
    link.freezing.Add(load.load);
    --link.open_flows;
    if (link.freezes) continue;
    link.freezes = true;
    freezing_.push_back(load.resource);
  }
}

// Takes what froze at `level` from the links that it crosses.
void FairRates::Settle(double level) {
  for (const ResourceId id : freezing_) {
    Link& link = LinkOf(id);
    link.left.SubtractProduct(level, link.freezing);
    link.open.Subtract(link.freezing);
    link.freezing = ExactSum();
    link.freezes = false;
    if (link.open_flows == 0) continue;
    // A level never falls but by rounding, which must not count.
    link.level = std::max(link.level, link.left.value() / link.open.value());
  }
  freezing_.clear();
}

}  // namespace orrery::simulator
