#include "cost_models/collectives/pricing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "cost_models/collectives/routes.h"
#include "support/check.h"

namespace orrery::cost_models {
namespace {

using cluster::LinkNumber;
using cluster::Topology;
using Wide = unsigned __int128;

// Links by their place in the order of first use. Where the topology has few links their places
// stand in an array: twice as fast as a hash table for a ring of 1,024 ranks.
class LinkTable {
 public:
  struct Entry {
    LinkNumber link;
    cluster::PathInfo speed;
    int64_t parts = 0;   // in the rounds that are being counted
    int64_t volume = 0;  // in all rounds
  };

  explicit LinkTable(const Topology& topology)
      : topology_(topology), dense_(topology.link_count() <= kMaxDense) {
    if (dense_) places_.assign(static_cast<size_t>(topology.link_count()), -1);
  }

  int32_t Find(LinkNumber link) {
    int32_t& place =
        dense_ ? places_[static_cast<size_t>(link)] : sparse_.try_emplace(link, -1).first->second;
    if (place < 0) {
      place = static_cast<int32_t>(entries_.size());
      entries_.push_back({.link = link, .speed = topology_.LinkAt(link).speed});
    }
    return place;
  }
  Entry& operator[](int32_t place) { return entries_[static_cast<size_t>(place)]; }
  std::vector<Entry>& entries() { return entries_; }

 private:
  static constexpr int64_t kMaxDense = int64_t{1} << 18;

  const Topology& topology_;
  bool dense_;
  std::vector<int32_t> places_;
  absl::flat_hash_map<LinkNumber, int32_t> sparse_;
  std::vector<Entry> entries_;
};

// a/b > c/d in whole numbers.
bool Slower(int64_t parts, Bandwidth rate, int64_t other_parts, Bandwidth other_rate) {
  return static_cast<Wide>(parts) * static_cast<Wide>(other_rate.bytes_per_second()) >
         static_cast<Wide>(other_parts) * static_cast<Wide>(rate.bytes_per_second());
}

// At least as slow in both respects.
bool Covers(const RoundCandidate& a, const RoundCandidate& b) {
  return a.latency >= b.latency && !Slower(b.parts, b.rate, a.parts, a.rate);
}

void AddCandidate(const RoundCandidate& candidate, std::vector<RoundCandidate>& candidates) {
  for (const RoundCandidate& other : candidates) {
    if (Covers(other, candidate)) return;
  }
  std::erase_if(candidates, [&](const RoundCandidate& c) { return Covers(candidate, c); });
  candidates.push_back(candidate);
}

// Counts rounds one by one, or several that overlap together.
class RoundCounter {
 public:
  RoundCounter(const Topology& topology, std::span<const DeviceGroup> groups, const Rounds& rounds)
      : topology_(topology), groups_(groups), rounds_(rounds), links_(topology) {}

  RoundsCost Count() {
    RoundsCost cost{.parts_a_size = rounds_.parts_a_size,
                    .copies_half = rounds_.kind != CollectiveKind::kAllReduce};
    if (!topology_.collective_profile().ideal()) {
      for (const DeviceGroup group : groups_) {
        cost.steps = std::max(cost.steps, CountSteps(topology_, group, rounds_));
      }
    }
    for (size_t first = 0; first < rounds_.rounds.size();) {
      size_t last = first;
      while (rounds_.rounds[last].overlaps_next) ++last;
      cost.rounds.push_back(first == last ? OneRound(rounds_.rounds[first])
                                          : Overlapping(first, last));
      for (LinkTable::Entry& entry : links_.entries()) entry.parts = 0;
      first = last + 1;
    }
    for (const LinkTable::Entry& entry : links_.entries()) {
      if (entry.volume == 0) continue;
      cost.volumes.push_back({.link = entry.link, .parts = entry.volume, .rate = entry.speed.rate});
    }
    return cost;
  }

 private:
  // Finds the routes of all transfers of a round and adds what they carry, `times` over.
  void Add(const Round& round, int64_t times) {
    steps_.clear();
    ends_.clear();
    for (const DeviceGroup group : groups_) {
      for (const Transfer& transfer : round.transfers) {
        route_.clear();
        AppendTransferRoute(topology_, group, rounds_.ranks_a_node, transfer, route_);
        const int64_t active = ActiveRepetitions(transfer, round, rounds_.parts);
        for (const LinkNumber link : route_) {
          const int32_t place = links_.Find(link);
          links_[place].parts += transfer.parts * times;
          links_[place].volume += transfer.parts * active;
          steps_.push_back(place);
        }
        ends_.push_back(steps_.size());
      }
    }
  }

  RoundCost OneRound(const Round& round) {
    Add(round, 1);
    RoundCost cost{.repeat = round.repeat, .active = round.repeat};
    if (round.pipelined) {
      cost.active = 0;
      for (const Transfer& transfer : round.transfers) {
        cost.active = std::max(cost.active, ActiveRepetitions(transfer, round, rounds_.parts));
      }
    }
    size_t begin = 0;
    for (const size_t end : ends_) {
      AddCandidate(CandidateOf(std::span(steps_).subspan(begin, end - begin)), cost.candidates);
      begin = end;
    }
    return cost;
  }

  RoundCandidate CandidateOf(std::span<const int32_t> steps) {
    RoundCandidate candidate{.rate = Bandwidth(1)};
    for (const int32_t step : steps) {
      const LinkTable::Entry& entry = links_[step];
      candidate.latency += entry.speed.latency;
      if (Slower(entry.parts, entry.speed.rate, candidate.parts, candidate.rate)) {
        candidate.parts = entry.parts;
        candidate.rate = entry.speed.rate;
      }
    }
    return candidate;
  }

  RoundCost Overlapping(size_t first, size_t last) {
    RoundCandidate all{.rate = Bandwidth(1)};
    for (size_t r = first; r <= last; ++r) {
      const Round& round = rounds_.rounds[r];
      Add(round, round.repeat);
      Duration slowest;
      size_t begin = 0;
      for (const size_t end : ends_) {
        const auto steps = std::span(steps_).subspan(begin, end - begin);
        slowest = std::max(slowest, CandidateOf(steps).latency);
        begin = end;
      }
      all.latency += slowest * round.repeat;
    }
    for (const LinkTable::Entry& entry : links_.entries()) {
      if (!Slower(entry.parts, entry.speed.rate, all.parts, all.rate)) continue;
      all.parts = entry.parts;
      all.rate = entry.speed.rate;
    }
    return {.repeat = 1, .candidates = {all}};
  }

  const Topology& topology_;
  std::span<const DeviceGroup> groups_;
  const Rounds& rounds_;
  LinkTable links_;
  std::vector<LinkNumber> route_;  // of one transfer
  std::vector<int32_t> steps_;     // places of the links of all routes of a round
  std::vector<size_t> ends_;       // where each route ends in steps_
};

// Parts that pass at one rate, in all rounds together.
struct RateParts {
  Bandwidth rate;
  int64_t parts = 0;
};

void AddParts(Bandwidth rate, int64_t parts, std::vector<RateParts>& sum) {
  for (RateParts& other : sum) {
    if (other.rate != rate) continue;
    other.parts += parts;
    return;
  }
  sum.push_back({rate, parts});
}

// Exact where there is one rate. Of several, less than 1/1024 ps above a whole number counts as
// whole (ADR 7).
Duration TimeOfParts(std::span<const RateParts> sum, Bytes size, int64_t parts_a_size) {
  if (sum.size() == 1) return TransferTime(size, sum[0].parts, parts_a_size, sum[0].rate);
  Duration whole;
  long double rest = 0;
  for (const RateParts& term : sum) {
    const Duration up = TransferTime(size, term.parts, parts_a_size, term.rate);
    if (up == Duration(0)) continue;
    whole += up - Duration(1);
    const Wide divisor =
        static_cast<Wide>(parts_a_size) * static_cast<Wide>(term.rate.bytes_per_second());
    const Wide dividend =
        static_cast<Wide>(size.count()) * static_cast<Wide>(term.parts) * Wide{1'000'000'000'000};
    rest += static_cast<long double>(
                dividend - static_cast<Wide>((up - Duration(1)).picoseconds()) * divisor) /
            static_cast<long double>(divisor);
  }
  return whole + Duration(static_cast<int64_t>(std::ceil(rest - 1.0L / 1024)));
}

long double Seconds(const RoundCandidate& c, Bytes size, int64_t parts_a_size) {
  return static_cast<long double>(c.latency.picoseconds()) * 1e-12L +
         static_cast<long double>(size.count()) * static_cast<long double>(c.parts) /
             (static_cast<long double>(parts_a_size) *
              static_cast<long double>(c.rate.bytes_per_second()));
}

// What flows through the slowest link of each round, and through the memory of a device.
struct Stream {
  std::vector<RateParts> terms;
  int64_t parts = 0;  // over links
};

// LL sends as many flags as data. What is slower yet has other reasons than the wire.
constexpr double kLeastUsefulShare = 0.5;

Bandwidth Reached(Bandwidth rate, double share) {
  if (share == 1) return rate;
  const double reached = std::floor(static_cast<double>(rate.bytes_per_second()) * share);
  return Bandwidth(static_cast<int64_t>(std::clamp(reached, 1.0, 9e18)));
}

Stream StreamOf(const RoundsCost& cost, const cluster::CollectiveProtocol& protocol) {
  Stream stream;
  for (const RoundCost& round : cost.rounds) {
    const RoundCandidate* slowest = nullptr;
    for (const RoundCandidate& c : round.candidates) {
      if (slowest == nullptr || Slower(c.parts, c.rate, slowest->parts, slowest->rate)) {
        slowest = &c;
      }
    }
    if (slowest == nullptr || slowest->parts == 0) continue;
    const int64_t parts = slowest->parts * (protocol.ideal() ? round.repeat : round.active);
    AddParts(Reached(slowest->rate, protocol.rate), parts, stream.terms);
    stream.parts += parts;
  }
  if (protocol.copy_rate > Bandwidth(0) && stream.parts > 0) {
    const Bandwidth rate = cluster::Aggregate(protocol.copy_rate, cost.copies_half ? 2 : 1);
    AddParts(rate, cost.parts_a_size, stream.terms);
  }
  return stream;
}

}  // namespace

RoundsCost CostOf(const Topology& topology, std::span<const DeviceGroup> groups,
                  const Rounds& rounds) {
  for (const DeviceGroup group : groups) {
    ORRERY_CHECK(static_cast<int64_t>(group.size()) == rounds.ranks) << group.size() << " devices";
  }
  ORRERY_CHECK(rounds.rounds.empty() || !rounds.rounds.back().overlaps_next) << "no next round";
  return RoundCounter(topology, groups, rounds).Count();
}

const cluster::CollectiveProtocol& IdealProtocol() {
  static const cluster::CollectiveProtocol& ideal = *new cluster::CollectiveProtocol;
  return ideal;
}

Duration TimeOf(const RoundsCost& cost, Bytes size, const cluster::CollectiveProtocol& protocol) {
  if (!protocol.ideal()) {
    return LatencyOf(cost.steps, protocol) +
           TimeOfParts(StreamOf(cost, protocol).terms, size, cost.parts_a_size);
  }
  Duration latency;
  std::vector<RateParts> sum;
  for (const RoundCost& round : cost.rounds) {
    const RoundCandidate* slowest = nullptr;
    for (const RoundCandidate& candidate : round.candidates) {
      if (slowest == nullptr || Seconds(candidate, size, cost.parts_a_size) >
                                    Seconds(*slowest, size, cost.parts_a_size)) {
        slowest = &candidate;
      }
    }
    if (slowest == nullptr) continue;
    latency += slowest->latency * round.repeat;
    AddParts(slowest->rate, slowest->parts * round.repeat, sum);
  }
  return latency + TimeOfParts(sum, size, cost.parts_a_size);
}

Duration PriceOn(const Topology& topology, DeviceGroup group, const Rounds& rounds, Bytes size) {
  return TimeOf(CostOf(topology, std::span(&group, 1), rounds), size);
}

CollectiveFlow FlowOf(const RoundsCost& cost, Bytes size,
                      const cluster::CollectiveProtocol& protocol) {
  const Duration time = TimeOf(cost, size, protocol);
  const auto [sum, parts] = StreamOf(cost, protocol);
  CollectiveFlow flow{.rate = Bandwidth(1), .latency = time};
  if (parts == 0 || size == Bytes(0)) return flow;
  const Wide moved = static_cast<Wide>(size.count()) * static_cast<Wide>(parts);
  const auto divisor = static_cast<Wide>(cost.parts_a_size);
  const Duration streaming = TimeOfParts(sum, size, cost.parts_a_size);
  constexpr auto kMost = static_cast<Wide>(std::numeric_limits<int64_t>::max());
  // One rate: whole numbers that give the time exactly. A fraction of a byte is scaled away.
  const Wide scale = moved % divisor == 0 ? 1 : divisor;
  const Wide scaled_rate = static_cast<Wide>(sum[0].rate.bytes_per_second()) * scale;
  // Not so far that the loads become too small to reckon with.
  const bool small = scale * static_cast<Wide>(parts) <= 100'000'000;
  if (sum.size() == 1 && small && moved / divisor <= kMost / (scale + 1) && scaled_rate <= kMost) {
    flow.size = Bytes(static_cast<int64_t>(scale == 1 ? moved / divisor : moved));
    flow.rate = Bandwidth(static_cast<int64_t>(scaled_rate));
  } else {
    flow.size = Bytes(static_cast<int64_t>((moved + divisor - 1) / divisor));
    const double rate = std::ceil(static_cast<double>(flow.size.count()) / streaming.seconds());
    flow.rate = Bandwidth(static_cast<int64_t>(std::clamp(rate, 1.0, 9e18)));
  }
  flow.latency = std::max(Duration(0), time - TransferTime(flow.size, flow.rate));
  const double part_bytes =
      static_cast<double>(size.count()) / static_cast<double>(cost.parts_a_size);
  const double flags = std::max(protocol.rate, kLeastUsefulShare);
  const double a_part = part_bytes / static_cast<double>(flow.size.count()) / flags;
  for (const LinkVolume& volume : cost.volumes) {
    flow.loads.push_back({volume.link, static_cast<double>(volume.parts) * a_part});
  }
  return flow;
}

CollectiveFlow LoadsOf(const Topology& topology, std::span<const DeviceGroup> groups,
                       const Rounds& rounds, Bytes size,
                       const cluster::CollectiveProtocol& protocol) {
  return FlowOf(CostOf(topology, groups, rounds), size, protocol);
}

BusiestLink BusiestLinkOf(const RoundsCost& cost, Bytes size) {
  const LinkVolume* busiest = nullptr;
  for (const LinkVolume& volume : cost.volumes) {
    if (busiest == nullptr || Slower(volume.parts, volume.rate, busiest->parts, busiest->rate)) {
      busiest = &volume;
    }
  }
  if (busiest == nullptr) return {};
  return {.link = busiest->link,
          .busy = TransferTime(size, busiest->parts, cost.parts_a_size, busiest->rate)};
}

}  // namespace orrery::cost_models
