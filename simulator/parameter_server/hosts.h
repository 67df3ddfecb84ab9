#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_HOSTS_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_HOSTS_H_

#include <algorithm>
#include <cstdint>

#include "simulator/parameter_server/training.h"

namespace orrery::simulator::parameter_server {

/// Which workers are on one host, as far as they add up there, and which of them pushes and pulls a
/// part for all of them: its agent. Where workers do not add up, each is by itself.
class Hosts {
 public:
  explicit Hosts(const Training& training)
      : workers_(training.workers), lanes_(training.adding.lanes) {}

  /// How many there are.
  int32_t count() const { return (workers_ + lanes_ - 1) / lanes_; }
  /// The first worker on the host of one, and how many there are.
  int32_t FirstOf(int32_t worker) const { return worker / lanes_ * lanes_; }
  int32_t SizeOf(int32_t worker) const { return std::min(lanes_, workers_ - FirstOf(worker)); }
  /// The agent of a part of `lane` on the host of a worker. A host with fewer workers than there
  /// are lanes has agents of several.
  int32_t AgentOf(int32_t worker, int32_t lane) const {
    return FirstOf(worker) + lane % SizeOf(worker);
  }

 private:
  const int32_t workers_;
  const int32_t lanes_;
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_HOSTS_H_
