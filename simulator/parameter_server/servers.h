#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_SERVERS_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/parameter_server/training.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// What a server does with a gradient.
struct Work {
  int32_t priority = 0;   // the least first
  uint32_t sequence = 0;  // then the first
  int32_t worker = 0;
  int32_t part = 0;
  int32_t step = 0;
  bool updates = false;  // else it adds up
  Time arrived = {};     // the gradient had
  Duration length = {};
  Time start = {};
};

/// The memories of servers, each of which works on one gradient after the other.
class Servers {
 public:
  explicit Servers(int32_t servers) : servers_(static_cast<size_t>(servers)) {}

  /// Queues work; where the server was idle, it begins at once, and its end is returned.
  std::optional<Time> Add(int32_t server, const Work& work, Time now);
  /// Takes what the server has done by `now`, which Add or Next named.
  Work Take(int32_t server, Time now);
  /// Begins with the next; its end, or nothing where there is none.
  std::optional<Time> Next(int32_t server, Time now);

  void Forget(Time now);
  /// Of each server, for which share of so many seconds since the last Forget it has worked, as far
  /// as work has ended.
  std::vector<double> Use(double seconds) const;

 private:
  struct Server {
    std::vector<Work> queue = {};  // a heap
    std::optional<Work> now = {};
    Duration busy = {};
  };

  std::vector<Server> servers_;
  Time forgotten_ = {};
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_SERVERS_H_
