#ifndef ORRERY_SEARCH_PARAMETER_SERVER_SERVER_PLACES_H_
#define ORRERY_SEARCH_PARAMETER_SERVER_SERVER_PLACES_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "simulator/parameter_server/training.h"
#include "support/units.h"

namespace orrery::search {

/// Where parameter servers run.
struct ServerPlace {
  absl::string_view name;     // "hosts"
  absl::string_view summary;  // what they are on
  /// Hosts of their own, devices of their own, the hosts of the workers, or these and hosts of
  /// their own.
  enum class Kind : uint8_t { kHosts, kDevices, kWorkers, kMixed };
  Kind kind = Kind::kHosts;
};

/// All of them; the first is the usual one.
std::span<const ServerPlace> AllServerPlaces();

/// What is asked of a cluster: worker w runs on device w.
struct PlaceQuestion {
  int32_t workers = 1;
  int32_t servers = 1;  // of kMixed those on hosts of their own
  ServerPlace::Kind place = ServerPlace::Kind::kHosts;
  Bandwidth rate = {};   // of a server's memory; 0: as the cluster has it
  bool adds_up = false;  // workers of one host, before they push
};

/// What is taken where no record of the device says how fast its host's memory is.
inline constexpr Bandwidth kAssumedHostMemory = Bandwidth(100'000'000'000);

/// Says in `training` who is linked to whom and how fast: workers, servers, rates, network, push,
/// pull and adding. A link of the cluster that any of them uses is a link there.
///
///  - Servers on hosts: server s on the s-th host behind those of the workers, whose devices idle.
///    A worker that is the i-th of its host is linked to the card of the i-th device there, so that
///    all cards of a host serve. Rate: of the host's memory.
///  - Servers on devices: server s on the s-th device behind the workers'. Rate: of its memory.
///  - Servers with workers: server s on the host of the s-th host of workers, whose cards they
///    share. On the same host a worker's link to it is that of its device to its host.
///  - Mixed: one server with the workers of each host, then `servers` of them on hosts.
///
/// InvalidArgument, of one line that begins with a flag, where there are not enough hosts or
/// devices.
absl::Status PlaceServers(const cluster::Cluster& cluster, const PlaceQuestion& question,
                          simulator::parameter_server::Training& training);

/// How many servers stand on hosts of workers: of mixed ones the first so many.
int32_t ServersWithWorkers(const cluster::Cluster& cluster, const PlaceQuestion& question);

/// Whether the rate of servers there is kAssumedHostMemory.
bool AssumesHostMemory(const cluster::Cluster& cluster, const PlaceQuestion& question);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PARAMETER_SERVER_SERVER_PLACES_H_
