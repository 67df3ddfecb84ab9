#include "cost_models/collectives/pricing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cost_models/collectives/slower.h"
#include "support/check.h"

namespace orrery::cost_models {
namespace pricing_cc {
namespace {

using Wide = unsigned __int128;

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

// What flows through the slowest link of each round.
struct Stream {
  std::vector<RateParts> terms;
  int64_t parts = 0;
};

// LL sends as many flags as data. What is slower yet has other reasons than the wire.
constexpr double kLeastUsefulShare = 0.5;

// The part of a link's rate that a protocol reaches, in a node and between nodes.
struct Shares {
  double in_node = 1;
  double between = 1;

  double of(bool leaves_node) const { return leaves_node ? between : in_node; }
};

double Seconds(const RoundCandidate& candidate) {
  return static_cast<double>(candidate.parts) /
         static_cast<double>(candidate.rate.bytes_per_second());
}

// The share in a node with the rank's own part: it takes its time beside that of the links.
Shares SharesOf(const RoundsCost& cost, const cluster::CollectiveProtocol& protocol) {
  Shares shares = {protocol.rate, protocol.rate_between_nodes};
  if (protocol.part_rate == Bandwidth(0) || cost.own_parts == 0) return shares;
  double links = 0;
  for (const RoundCost& round : cost.rounds) {
    double slowest = 0;
    for (const RoundCandidate& candidate : round.candidates) {
      if (!candidate.leaves_node) slowest = std::max(slowest, Seconds(candidate));
    }
    links += slowest * static_cast<double>(round.active);
  }
  if (links == 0) return shares;
  const double own = cost.own_parts / static_cast<double>(protocol.part_rate.bytes_per_second());
  shares.in_node = links / (links / protocol.rate + own);
  return shares;
}

Bandwidth Reached(Bandwidth rate, double share) {
  if (share == 1) return rate;
  const double reached = std::floor(static_cast<double>(rate.bytes_per_second()) * share);
  return Bandwidth(static_cast<int64_t>(std::clamp(reached, 1.0, 9e18)));
}

Stream StreamOf(const RoundsCost& cost, const cluster::CollectiveProtocol& protocol) {
  const Shares shares = SharesOf(cost, protocol);
  Stream stream;
  for (const RoundCost& round : cost.rounds) {
    RateParts slowest{.rate = Bandwidth(1)};
    for (const RoundCandidate& candidate : round.candidates) {
      const Bandwidth rate = Reached(candidate.rate, shares.of(candidate.leaves_node));
      if (Slower(candidate.parts, rate, slowest.parts, slowest.rate)) {
        slowest = {rate, candidate.parts};
      }
    }
    if (slowest.parts == 0) continue;
    const int64_t parts = slowest.parts * (protocol.ideal() ? round.repeat : round.active);
    AddParts(slowest.rate, parts, stream.terms);
    stream.parts += parts;
  }
  return stream;
}

}  // namespace
}  // namespace pricing_cc

const cluster::CollectiveProtocol& IdealProtocol() {
  static const cluster::CollectiveProtocol& ideal = *new cluster::CollectiveProtocol;
  return ideal;
}

Duration TimeOf(const RoundsCost& cost, Bytes size, const cluster::CollectiveProtocol& protocol) {
  if (!protocol.ideal()) {
    return LatencyOf(cost.steps, protocol) +
           pricing_cc::TimeOfParts(pricing_cc::StreamOf(cost, protocol).terms, size,
                                   cost.parts_a_size);
  }
  Duration latency;
  std::vector<pricing_cc::RateParts> sum;
  for (const RoundCost& round : cost.rounds) {
    const RoundCandidate* slowest = nullptr;
    for (const RoundCandidate& candidate : round.candidates) {
      if (slowest == nullptr || pricing_cc::Seconds(candidate, size, cost.parts_a_size) >
                                    pricing_cc::Seconds(*slowest, size, cost.parts_a_size)) {
        slowest = &candidate;
      }
    }
    if (slowest == nullptr) continue;
    latency += slowest->latency * round.repeat;
    pricing_cc::AddParts(slowest->rate, slowest->parts * round.repeat, sum);
  }
  return latency + pricing_cc::TimeOfParts(sum, size, cost.parts_a_size);
}

namespace pricing_cc {
namespace {

// The flow of `cost` with the loads of those of its links.
CollectiveFlow FlowOver(std::span<const LinkVolume> volumes, const RoundsCost& cost, Bytes size,
                        const cluster::CollectiveProtocol& protocol) {
  const Duration time = TimeOf(cost, size, protocol);
  const auto [sum, parts] = StreamOf(cost, protocol);
  CollectiveFlow flow{.rate = Bandwidth(1), .latency = time};
  if (parts == 0 || size == Bytes(0)) return flow;
  const Wide moved = static_cast<Wide>(size.count()) * static_cast<Wide>(parts);
  const auto divisor = static_cast<Wide>(cost.parts_a_size);
  const Duration streaming = TimeOfParts(sum, size, cost.parts_a_size);
  constexpr auto kMost = static_cast<Wide>(std::numeric_limits<int64_t>::max());
  // One rate: whole numbers that give the time exactly. A fraction of a byte is not scaled away: a
  // unit of rate must be a byte, or others that share a link would not get what is fair.
  if (sum.size() == 1 && moved % divisor == 0 && moved / divisor <= kMost) {
    flow.size = Bytes(static_cast<int64_t>(moved / divisor));
    flow.rate = sum[0].rate;
  } else {
    flow.size = Bytes(static_cast<int64_t>((moved + divisor - 1) / divisor));
    const double rate = std::ceil(static_cast<double>(flow.size.count()) / streaming.seconds());
    flow.rate = Bandwidth(static_cast<int64_t>(std::clamp(rate, 1.0, 9e18)));
  }
  flow.latency = std::max(Duration(0), time - TransferTime(flow.size, flow.rate));
  const double part_bytes =
      static_cast<double>(size.count()) / static_cast<double>(cost.parts_a_size);
  const double a_part = part_bytes / static_cast<double>(flow.size.count());
  const double useful = std::max({protocol.rate, protocol.rate_between_nodes, kLeastUsefulShare});
  for (const LinkVolume& volume : volumes) {
    flow.loads.push_back({volume.link, static_cast<double>(volume.parts) * a_part / useful});
  }
  return flow;
}

}  // namespace
}  // namespace pricing_cc

CollectiveFlow FlowOf(const RoundsCost& cost, Bytes size,
                      const cluster::CollectiveProtocol& protocol) {
  return pricing_cc::FlowOver(cost.volumes, cost, size, protocol);
}

CollectiveFlow FlowOfFirstLink(const RoundsCost& cost, Bytes size,
                               const cluster::CollectiveProtocol& protocol) {
  const size_t first = std::min<size_t>(cost.volumes.size(), 1);
  return pricing_cc::FlowOver(std::span(cost.volumes).first(first), cost, size, protocol);
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

RoundsKey KeyOf(const CollectiveAlgorithm* algorithm, const Rounds& rounds) {
  return {.kind = rounds.kind,
          .algorithm = algorithm,
          .parts = rounds.parts,
          .parts_a_size = rounds.parts_a_size,
          .repetitions = RepetitionCount(rounds)};
}

const RoundsCost& KeptCosts::Of(const CollectiveAlgorithm& algorithm, const Rounds& rounds,
                                DeviceGroup group, const cluster::Topology& topology) {
  std::unique_ptr<const RoundsCost>& cost = costs_[KeyOf(&algorithm, rounds)];
  if (cost == nullptr) {
    cost = std::make_unique<const RoundsCost>(CostOf(topology, std::span(&group, 1), rounds));
  }
  return *cost;
}

}  // namespace orrery::cost_models
