#include "simulator/parameter_server/arithmetic.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "simulator/parameter_server/hosts.h"
#include "simulator/parameter_server/kernel_times.h"

namespace orrery::simulator::parameter_server {
namespace arithmetic_cc {
namespace {

struct Longest {
  double seconds = 0;
  ResourceId link = {};
};

double RateOf(const Training& training, int32_t link) {
  return static_cast<double>(
      training.network.resource(ResourceId(link)).capacity.bytes_per_second());
}

Longest LongestOf(const Training& training, const std::vector<double>& bytes) {
  Longest longest;
  for (int32_t l = 0; l < training.network.resource_count(); ++l) {
    const double seconds = bytes[static_cast<size_t>(l)] / RateOf(training, l);
    if (seconds > longest.seconds) longest = {.seconds = seconds, .link = ResourceId(l)};
  }
  return longest;
}

// Bytes of a step, by who sends or gets them: gradients, or parameters.
class Sizes {
 public:
  Sizes(const Training& training, const std::vector<Part>& parts, Bytes Part::*size)
      : hosts_(training),
        lanes_(training.adding.lanes),
        servers_(training.servers),
        bytes_(static_cast<size_t>(lanes_) * static_cast<size_t>(servers_)),
        of_lanes_(static_cast<size_t>(lanes_)) {
    for (const Part& part : parts) {
      const auto of_part = static_cast<double>((part.*size).count());
      bytes_[Row(part.lane, part.server)] += of_part;
      of_lanes_[static_cast<size_t>(part.lane)] += of_part;
    }
  }

  // Between a worker and a server: what is its own, or that it is the agent of.
  double Between(int32_t worker, int32_t server) const {
    double sum = 0;
    for (int32_t lane = Index(worker); lane < lanes_; lane += hosts_.SizeOf(worker)) {
      sum += bytes_[Row(lane, server)];
    }
    return sum;
  }
  // All that a worker is the agent of.
  double OfAgent(int32_t worker) const {
    double sum = 0;
    for (int32_t lane = Index(worker); lane < lanes_; lane += hosts_.SizeOf(worker)) {
      sum += of_lanes_[static_cast<size_t>(lane)];
    }
    return sum;
  }

 private:
  size_t Row(int32_t lane, int32_t server) const {
    return static_cast<size_t>(lane) * static_cast<size_t>(servers_) + static_cast<size_t>(server);
  }
  int32_t Index(int32_t worker) const { return worker - hosts_.FirstOf(worker); }

  const Hosts hosts_;
  const int32_t lanes_, servers_;
  std::vector<double> bytes_;     // by lane and server
  std::vector<double> of_lanes_;  // of all servers
};

// Calls use(worker, link, bytes) for what messages of a step to or from servers put on links.
template <typename Use>
void ForLoads(const Training& training, const std::vector<Route>& routes, const Sizes& sizes,
              Use use) {
  for (size_t r = 0; r < routes.size(); ++r) {
    if (routes[r].loads.empty()) continue;
    const auto servers = static_cast<size_t>(training.servers);
    const size_t worker = r / servers;
    const double bytes =
        sizes.Between(static_cast<int32_t>(worker), static_cast<int32_t>(r % servers));
    for (const Load& load : routes[r].loads) {
      use(worker, static_cast<size_t>(load.resource.index()), load.load * bytes);
    }
  }
}

// Adds what workers send each other on their hosts: to agents, or from them.
void AddBeside(const Training& training, const Sizes& sizes, bool to_agents,
               std::vector<double>& bytes) {
  const auto lanes = static_cast<size_t>(training.adding.lanes);
  for (size_t r = 0; r < training.adding.routes.size(); ++r) {
    const size_t from = r / lanes, to = from / lanes * lanes + r % lanes;
    for (const Load& load : training.adding.routes[r].loads) {
      bytes[static_cast<size_t>(load.resource.index())] +=
          load.load * sizes.OfAgent(static_cast<int32_t>(to_agents ? to : from));
    }
  }
}

// What pushes of all workers put on links; what pulls do.
std::vector<double> PushedOnLinks(const Training& training, const std::vector<Part>& parts) {
  std::vector<double> bytes(static_cast<size_t>(training.network.resource_count()));
  const Sizes sizes(training, parts, &Part::gradient);
  ForLoads(training, training.push, sizes,
           [&](size_t, size_t link, double of_link) { bytes[link] += of_link; });
  AddBeside(training, sizes, true, bytes);
  return bytes;
}
std::vector<double> PulledOnLinks(const Training& training, const std::vector<Part>& parts) {
  std::vector<double> bytes(static_cast<size_t>(training.network.resource_count()));
  const Sizes sizes(training, parts, &Part::parameter);
  ForLoads(training, training.pull, sizes,
           [&](size_t, size_t link, double of_link) { bytes[link] += of_link; });
  AddBeside(training, sizes, false, bytes);
  return bytes;
}

// What a step of each worker puts on each link that its messages take, by link and worker.
std::vector<std::map<size_t, double>> SharesOfLinks(const Training& training) {
  std::vector<std::map<size_t, double>> shares(
      static_cast<size_t>(training.network.resource_count()));
  const auto add = [&](size_t worker, size_t link, double bytes) { shares[link][worker] += bytes; };
  ForLoads(training, training.push, Sizes(training, training.parts, &Part::gradient), add);
  ForLoads(training, training.pull, Sizes(training, training.parts, &Part::parameter), add);
  return shares;
}

// Steps a second of all workers at most where nobody waits for others: a link that is full makes
// most of those that put least on it, and whose messages take others go on beside.
double MostSharedRate(const Training& training, const std::vector<double>& rates) {
  const double all = std::accumulate(rates.begin(), rates.end(), 0.0);
  double most = all;
  const std::vector<std::map<size_t, double>> shares = SharesOfLinks(training);
  for (int32_t l = 0; l < training.network.resource_count(); ++l) {
    std::vector<std::pair<double, double>> of_link;  // bytes of a step, steps a second alone
    for (const auto& [worker, bytes] : shares[static_cast<size_t>(l)]) {
      if (bytes > 0) of_link.emplace_back(bytes, rates[worker]);
    }
    std::ranges::sort(of_link);
    double left = RateOf(training, l);
    double rate = all;
    for (const auto& [bytes, alone] : of_link) {
      const double taken = std::min(alone, left / bytes);
      left -= taken * bytes;
      rate -= alone - taken;
    }
    most = std::min(most, rate);
  }
  return most;
}

std::vector<double> ServerSeconds(const Training& training, const std::vector<Part>& parts) {
  std::vector<double> seconds(static_cast<size_t>(training.servers));
  const bool bulk = training.policy.sync == Sync::kBulk;
  const int32_t taken = Hosts(training).count() - training.policy.backup;
  for (const Part& part : parts) {
    const auto server = static_cast<size_t>(part.server);
    const auto rate = static_cast<double>(training.rates[server].bytes_per_second());
    if (rate == 0) continue;
    const auto sum = static_cast<double>(SumTraffic(part).count());
    const auto update = static_cast<double>(UpdateTraffic(part).count());
    seconds[server] += (bulk ? sum * (taken - 1) + update : update * training.workers) / rate;
  }
  return seconds;
}

}  // namespace
}  // namespace arithmetic_cc

double Arithmetic::least_s() const { return std::max({compute_s, link_s, server_s}); }

Arithmetic ArithmeticOf(const Training& training) {
  Arithmetic of;
  double compute = 0;
  for (const Segment& segment : training.segments) compute += segment.time.seconds();
  const std::vector<double> factors = LastingFactors(training);
  std::vector<double> rates;
  for (const double factor : factors) rates.push_back(1 / (factor * compute));
  of.compute_s = compute * *std::ranges::max_element(factors);
  std::vector<double> bytes = arithmetic_cc::PushedOnLinks(training, training.parts);
  const std::vector<double> pulled = arithmetic_cc::PulledOnLinks(training, training.parts);
  const auto push = arithmetic_cc::LongestOf(training, bytes);
  const auto pull = arithmetic_cc::LongestOf(training, pulled);
  for (size_t l = 0; l < bytes.size(); ++l) bytes[l] += pulled[l];
  const auto both = arithmetic_cc::LongestOf(training, bytes);
  of.push_s = push.seconds;
  of.push_link = push.link;
  of.pull_s = pull.seconds;
  of.pull_link = pull.link;
  of.link_s = both.seconds;
  of.link = both.link;
  of.server_s = std::ranges::max(arithmetic_cc::ServerSeconds(training, training.parts));
  const double steps = training.workers;
  of.most_rate = std::accumulate(rates.begin(), rates.end(), 0.0);
  if (training.policy.sync == Sync::kAsync) {
    of.most_rate = arithmetic_cc::MostSharedRate(training, rates);
  } else if (of.link_s > 0) {
    of.most_rate = std::min(of.most_rate, steps / of.link_s);
  }
  if (training.policy.sync == Sync::kStale) {
    of.most_rate = std::min(of.most_rate, steps / of.compute_s);
  }
  if (of.server_s > 0) of.most_rate = std::min(of.most_rate, steps / of.server_s);
  return of;
}

double ExpectedEvents(const Training& training) {
  const double parts = static_cast<double>(training.parts.size());
  const double segments = static_cast<double>(training.segments.size());
  // Where a bound holds workers up, what is measured may begin at the end of the others'.
  const double longer = training.policy.sync == Sync::kStale && training.policy.bound > 0 ? 1.8 : 1;
  return longer * training.workers * training.steps * (segments + 3 * parts);
}

std::vector<double> BusySeconds(const Training& training, const std::vector<Part>& parts) {
  std::vector<double> seconds = arithmetic_cc::PushedOnLinks(training, parts);
  const std::vector<double> pulled = arithmetic_cc::PulledOnLinks(training, parts);
  for (int32_t l = 0; l < training.network.resource_count(); ++l) {
    const auto link = static_cast<size_t>(l);
    seconds[link] = (seconds[link] + pulled[link]) / arithmetic_cc::RateOf(training, l);
  }
  const std::vector<double> servers = arithmetic_cc::ServerSeconds(training, parts);
  seconds.insert(seconds.end(), servers.begin(), servers.end());
  return seconds;
}

}  // namespace orrery::simulator::parameter_server
