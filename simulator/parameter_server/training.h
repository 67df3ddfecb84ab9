#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_TRAINING_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "simulator/jitter/disturbances.h"
#include "simulator/program/program.h"
#include "support/units.h"

// Training by way of parameter servers (Li et al., "Scaling Distributed Machine Learning with the
// Parameter Server", OSDI 2014): workers compute gradients and push them to the servers that hold
// the parameters; servers update these, and workers pull them for their next step. What is said
// here knows no model and no cluster: kernels are seconds, parameters are bytes, networks are
// links.

namespace orrery::simulator::parameter_server {

/// Kernels of a worker that run in a row whatever happens: they begin once the parameters that they
/// need have come, and gradients that they complete can be pushed once they end.
struct Segment {
  std::string name = {};
  Phase phase = Phase::kForward;
  Duration time = {};
  double spread_left = 1;               // as in TaskLabel
  std::vector<int32_t> needs = {};      // keys
  std::vector<int32_t> completes = {};  // keys: the last kernel that adds to their gradients
};

/// A parameter tensor, as far as servers go.
struct Key {
  std::string name = {};
  Bytes gradient = {};   // that a worker pushes
  Bytes parameter = {};  // that it pulls
  Bytes state = {};      // that the optimizer keeps of it at the servers
};

/// What of a key lies on one server.
struct Part {
  int32_t key = 0;
  int32_t server = 0;
  int32_t lane = 0;  // which worker of a host pushes and pulls it, where these add up
  Bytes gradient = {}, parameter = {}, state = {};
};

/// The way between a worker and a server, one way: a message loads all its links at once.
struct Route {
  std::vector<Load> loads = {};  // each link once; none: it arrives at once
  Duration latency = {};
};

/// How workers of one host add up their gradients before they push, and share what they pull: for
/// each part one of them gets the gradients of the others, pushes the sum, pulls, and gives it to
/// the others. So a host pushes and pulls each part once (BytePS; MXNet's dist_device_sync).
struct Adding {
  int32_t lanes = 1;  // workers of a host: worker w is on host w / lanes; 1: each pushes by itself
  /// With lanes > 1, from worker w to the i-th of its host at w * lanes + i.
  std::vector<Route> routes = {};
};

/// Which gradients an update waits for, and which updates a worker waits for.
enum class Sync : uint8_t {
  kBulk,   // bulk synchronous: one update of all workers' gradients, which all wait for
  kAsync,  // asynchronous: each gradient is an update, nobody waits for others
  kStale,  // stale synchronous (Ho et al., NIPS 2013): likewise, but nobody gets too far ahead
};

/// Which message of a connection, or work of a server, comes first.
enum class Order : uint8_t {
  kNeed,  // what forward needs first (Jayarajan et al., P3, MLSys 2019; Peng et al., SOSP 2019)
  kFifo,  // what was there first
};

/// How a run is synchronized.
struct Policy {
  Sync sync = Sync::kBulk;
  int32_t bound = 0;   // of kStale: steps that a worker may be ahead of the slowest
  int32_t backup = 0;  // of kBulk: gradients that an update does not wait for, and drops
  Order order = Order::kNeed;
  /// Whether pushes run beside backward and pulls beside forward, key by key; else a worker pulls
  /// all, computes, pushes all, and pulls again once all keys are updated.
  bool overlap = true;
};

/// Workers, servers and what lies between them. So many fields: a run in all its parts.
struct Training {
  int32_t workers = 1;
  int32_t servers = 1;
  std::vector<Segment> segments = {};  // of a step of each worker
  std::vector<Key> keys = {};
  std::vector<Part> parts = {};       // of all keys, each in the order of its bytes
  std::vector<Bandwidth> rates = {};  // of servers, of their memory; 0: it takes no time
  /// By server, of the keys, to each other: where links are full its connections share them so, as
  /// those of workers do that send from one queue. Empty: all alike.
  std::vector<double> shares = {};
  Program network = {};          // its resources are the links
  std::vector<Route> push = {};  // from worker w to server s at w * servers + s
  std::vector<Route> pull = {};  // likewise, back
  Adding adding = {};            // of bulk updates without backup workers
  Policy policy = {};
  Disturbances disturbances = {};  // of the kernels; rank r is worker r
  /// The run ends once workers have done `workers` times as many in all; with a bound, up to four
  /// fifths later: what is measured begins anew when it holds one of them up for the first time.
  int32_t steps = 1;
};

/// InvalidArgument where something is not as it is said above: a key that no segment needs or none
/// completes, or several do; a worker that nobody has; a bound below zero; as many backup workers
/// as workers.
absl::Status Check(const Training& training);

/// Cuts keys of more than `most` bytes into equal parts of at most that, as many for each server,
/// and spreads all parts over servers: the largest first, each to the server that has least (Graham
/// 1969), so that no two servers differ by more than the largest part. `most` 0: keys are not cut.
/// Requires servers >= 1.
std::vector<Part> SpreadKeys(const std::vector<Key>& keys, int32_t servers, Bytes most);
/// Likewise to servers that are to have unequal shares: each part to the one that has least for its
/// share with it, so that none has more than its share would be of all bytes and a part a server.
/// Shares are 0 or more, one above 0; a server of share 0 has nothing.
std::vector<Part> SpreadKeys(const std::vector<Key>& keys, const std::vector<double>& shares,
                             Bytes most);

/// Likewise to the servers of a training, by their shares, and to the lanes of each, all alike:
/// keys that are cut have as many parts for each lane.
std::vector<Part> SpreadKeys(const Training& training, Bytes most);

/// Bytes that a server moves in its memory to add the gradient of a part to others: both are read,
/// the sum is written.
Bytes SumTraffic(const Part& part);
/// Likewise to update the part: its gradient is read; parameters and state are read and written.
Bytes UpdateTraffic(const Part& part);

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_TRAINING_H_
