#include "simulator/parameter_server/training.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/check.h"

namespace orrery::simulator::parameter_server {
namespace training_cc {
namespace {

absl::Status Bad(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status CheckPolicy(const Training& training) {
  const Policy& policy = training.policy;
  if (policy.bound < 0) return Bad(absl::StrCat("a bound of ", policy.bound, "; wanted 0 or more"));
  if (policy.backup < 0 || policy.backup >= training.workers) {
    return Bad(absl::StrCat(policy.backup, " backup workers of ", training.workers,
                            "; wanted fewer than there are workers, and not below zero"));
  }
  if (policy.backup > 0 && policy.sync != Sync::kBulk) {
    return Bad("backup workers without bulk synchronization; wanted it, as nobody else waits");
  }
  return absl::OkStatus();
}

absl::Status CheckAdding(const Training& training) {
  const Adding& adding = training.adding;
  if (adding.lanes < 1) return Bad(absl::StrCat(adding.lanes, " workers of a host; wanted some"));
  const auto wanted =
      adding.lanes == 1 ? 0
                        : static_cast<size_t>(training.workers) * static_cast<size_t>(adding.lanes);
  if (adding.routes.size() != wanted) {
    return Bad(absl::StrCat(adding.routes.size(), " routes within hosts; wanted ", wanted));
  }
  if (adding.lanes > 1 && (training.policy.sync != Sync::kBulk || training.policy.backup > 0)) {
    return Bad("workers of a host that add up; wanted bulk synchronization without backup workers");
  }
  return absl::OkStatus();
}

absl::Status CheckKeys(const Training& training) {
  std::vector<int32_t> needed(training.keys.size()), completed(training.keys.size());
  const auto keys = static_cast<int32_t>(training.keys.size());
  for (const Segment& segment : training.segments) {
    for (const auto& [list, counts] :
         {std::pair(&segment.needs, &needed), std::pair(&segment.completes, &completed)}) {
      for (const int32_t key : *list) {
        if (key < 0 || key >= keys) return Bad(absl::StrCat("no key ", key, " of ", keys));
        ++(*counts)[static_cast<size_t>(key)];
      }
    }
  }
  for (size_t key = 0; key < training.keys.size(); ++key) {
    if (needed[key] == 0) return Bad(absl::StrCat("nobody needs key ", key));
    if (completed[key] != 1) {
      return Bad(absl::StrCat("key ", key, " is completed ", completed[key], " times; wanted 1"));
    }
  }
  return absl::OkStatus();
}

// A piece `number` of `count` of so many bytes, all as large as each other to a byte.
Bytes Piece(Bytes whole, int64_t number, int64_t count) {
  const int64_t each = whole.count() / count, more = whole.count() % count;
  return Bytes(each + (number < more ? 1 : 0));
}

std::vector<Part> Cut(const std::vector<Key>& keys, int64_t servers, Bytes most) {
  std::vector<Part> parts;
  for (size_t k = 0; k < keys.size(); ++k) {
    const Key& key = keys[k];
    const int64_t largest = std::max(key.gradient.count(), key.parameter.count());
    int64_t count = 1;
    if (most.count() > 0 && largest > most.count()) {
      count = (largest + most.count() - 1) / most.count();
      count = (count + servers - 1) / servers * servers;
    }
    for (int64_t i = 0; i < count; ++i) {
      parts.push_back({.key = static_cast<int32_t>(k),
                       .gradient = Piece(key.gradient, i, count),
                       .parameter = Piece(key.parameter, i, count),
                       .state = Piece(key.state, i, count)});
    }
  }
  return parts;
}

// How full servers are. Of those of one share the one that has least is the least full with a part,
// too: so these stand in one queue.
class Fill {
 public:
  explicit Fill(const std::vector<double>& shares) {
    for (size_t s = 0; s < shares.size(); ++s) {
      if (shares[s] > 0) least_[shares[s]].emplace(0, static_cast<int32_t>(s));
    }
    ORRERY_CHECK(!least_.empty()) << "no server has a share";
  }

  // Gives it to the server that is the least full with it.
  int32_t Take(Bytes size) {
    std::pair<double, int32_t> best = {std::numeric_limits<double>::infinity(), 0};
    Queue* queue = nullptr;
    for (auto& [share, servers] : least_) {
      const auto& [bytes, server] = servers.top();
      const std::pair full(static_cast<double>(bytes + size.count()) / share, server);
      if (full >= best) continue;
      best = full;
      queue = &servers;
    }
    const auto [bytes, server] = queue->top();
    queue->pop();
    queue->emplace(bytes + size.count(), server);
    return server;
  }

 private:
  using Load = std::pair<int64_t, int32_t>;  // bytes, server
  using Queue = std::priority_queue<Load, std::vector<Load>, std::greater<>>;
  std::map<double, Queue> least_;  // by share
};

}  // namespace
}  // namespace training_cc

absl::Status Check(const Training& training) {
  using training_cc::Bad;
  if (training.workers < 1) return Bad(absl::StrCat(training.workers, " workers; wanted some"));
  if (training.servers < 1) return Bad(absl::StrCat(training.servers, " servers; wanted some"));
  if (training.steps < 1) return Bad(absl::StrCat(training.steps, " steps; wanted some"));
  if (training.segments.empty()) return Bad("workers without kernels; wanted some");
  absl::Status status = training_cc::CheckPolicy(training);
  if (!status.ok()) return status;
  status = training_cc::CheckKeys(training);
  if (!status.ok()) return status;
  status = training_cc::CheckAdding(training);
  if (!status.ok()) return status;
  const auto routes = static_cast<size_t>(training.workers) * static_cast<size_t>(training.servers);
  if (training.push.size() != routes || training.pull.size() != routes) {
    return Bad(absl::StrCat(training.push.size(), " and ", training.pull.size(), " routes; wanted ",
                            routes));
  }
  const auto servers = static_cast<size_t>(training.servers);
  if (training.rates.size() != servers) {
    return Bad(absl::StrCat(training.rates.size(), " rates of servers; wanted ", servers));
  }
  if (!training.shares.empty() && training.shares.size() != servers) {
    return Bad(absl::StrCat(training.shares.size(), " shares of servers; wanted ", servers));
  }
  for (const Part& part : training.parts) {
    if (part.server < 0 || part.server >= training.servers) {
      return Bad(absl::StrCat("no server ", part.server, " of ", training.servers));
    }
    if (part.lane < 0 || part.lane >= training.adding.lanes) {
      return Bad(absl::StrCat("no lane ", part.lane, " of ", training.adding.lanes));
    }
  }
  for (const SlowRank& slow : training.disturbances.slow) {
    if (slow.rank < 0 || slow.rank >= training.workers) {
      return Bad(absl::StrCat("no worker ", slow.rank, " of ", training.workers));
    }
  }
  return absl::OkStatus();
}

std::vector<Part> SpreadKeys(const std::vector<Key>& keys, int32_t servers, Bytes most) {
  ORRERY_CHECK(servers >= 1) << "no server";
  return SpreadKeys(keys, std::vector<double>(static_cast<size_t>(servers), 1), most);
}

std::vector<Part> SpreadKeys(const std::vector<Key>& keys, const std::vector<double>& shares,
                             Bytes most) {
  std::vector<Part> parts = training_cc::Cut(keys, static_cast<int64_t>(shares.size()), most);
  std::vector<size_t> by_size(parts.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, std::greater<>(), [&](size_t p) { return parts[p].gradient; });
  training_cc::Fill fill(shares);
  for (const size_t p : by_size) parts[p].server = fill.Take(parts[p].gradient);
  return parts;
}

// Places are taken in an order in which both servers and lanes come by turns, so that a few parts
// are spread over as many of each as may be: each pair once, by the Chinese remainder theorem.
std::vector<Part> SpreadKeys(const Training& training, Bytes most) {
  const int32_t servers = training.servers, lanes = training.adding.lanes;
  const int32_t turn = std::lcm(servers, lanes);
  std::vector<double> shares;
  for (int32_t place = 0; place < servers * lanes; ++place) {
    const auto s = static_cast<size_t>(place % servers);
    shares.push_back(training.shares.empty() ? 1 : training.shares[s]);
  }
  std::vector<Part> parts = SpreadKeys(training.keys, shares, most);
  for (Part& part : parts) {
    const int32_t place = part.server;
    part.server = place % servers;
    part.lane = (place + place / turn) % lanes;
  }
  return parts;
}

Bytes SumTraffic(const Part& part) { return part.gradient * 3; }

Bytes UpdateTraffic(const Part& part) { return part.gradient + (part.parameter + part.state) * 2; }

}  // namespace orrery::simulator::parameter_server
