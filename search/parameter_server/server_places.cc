#include "search/parameter_server/server_places.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::search {
namespace server_places_cc {
namespace {

using cluster::DeviceId;
using simulator::ResourceId;
using simulator::parameter_server::Route;
using simulator::parameter_server::Training;
using Kind = ServerPlace::Kind;

constexpr ServerPlace kPlaces[] = {
    {"hosts", "hosts of their own, behind those of the workers", Kind::kHosts},
    {"devices", "devices of their own, behind those of the workers", Kind::kDevices},
    {"workers", "the hosts of the workers, whose network cards they share", Kind::kWorkers},
    {"mixed", "hosts of their own, and one more beside the workers of each host", Kind::kMixed}};

int32_t DevicesOfHost(const cluster::Cluster& cluster) {
  return std::max(cluster.topology.shape().devices_per_node, 1);
}

int32_t WorkerHosts(const cluster::Cluster& cluster, int32_t workers) {
  const int32_t each = DevicesOfHost(cluster);
  return (workers + each - 1) / each;
}

int32_t AllServers(const cluster::Cluster& cluster, const PlaceQuestion& question) {
  const int32_t beside =
      question.place == Kind::kMixed ? WorkerHosts(cluster, question.workers) : 0;
  return beside + question.servers;
}

absl::Status CheckRoom(const cluster::Cluster& cluster, const PlaceQuestion& question) {
  const int32_t hosts = cluster.size() / DevicesOfHost(cluster);
  const int32_t used = WorkerHosts(cluster, question.workers);
  const auto bad = [&](const std::string& found, int32_t most, absl::string_view instead) {
    return absl::InvalidArgumentError(absl::StrCat("--servers ", question.servers, ": ", found,
                                                   "; wanted at most ", most, ", ", instead));
  };
  if (question.workers > cluster.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--dp ", question.workers, ": the cluster has ",
                                                   cluster.size(),
                                                   " devices, and a worker is one"));
  }
  constexpr int64_t kMostConnections = 4'000'000;
  const int32_t servers = AllServers(cluster, question);
  if (int64_t{question.workers} * servers > kMostConnections) {
    const int64_t most = kMostConnections / question.workers - (servers - question.servers);
    return bad(absl::StrCat("with ", question.workers, " workers more than ", kMostConnections,
                            " connections"),
               static_cast<int32_t>(std::max(most, int64_t{0})), "or fewer workers");
  }
  switch (question.place) {
    case Kind::kHosts:
    case Kind::kMixed:
      if (question.servers <= hosts - used) return absl::OkStatus();
      return bad(
          absl::StrCat("of ", hosts, " hosts workers have ", used, ", which leaves ", hosts - used),
          hosts - used, "a larger --cluster, or --server-place workers");
    case Kind::kDevices:
      if (question.servers <= cluster.size() - question.workers) return absl::OkStatus();
      return bad(absl::StrCat("of ", cluster.size(), " devices workers have ", question.workers),
                 cluster.size() - question.workers,
                 "a larger --cluster, or --server-place workers");
    case Kind::kWorkers:
      if (question.servers <= used) return absl::OkStatus();
      return bad(absl::StrCat("workers are on ", used, used == 1 ? " host" : " hosts"), used,
                 "one on each, or --server-place hosts");
  }
  return absl::OkStatus();
}

// The links of a cluster that are used, as they get numbers in the network.
class Wires {
 public:
  Wires(const cluster::Cluster& cluster, Training& training)
      : cluster_(cluster), training_(training) {}

  Route Between(DeviceId from, DeviceId to) {
    std::vector<cluster::LinkNumber> links;
    cluster_.topology.AppendRoute(from, to, links);
    Route route = {.latency = cluster_.topology.Path(from, to).latency};
    for (const cluster::LinkNumber link : links) {
      const auto [found, added] = known_.try_emplace(link);
      if (added) {
        const cluster::Link is = cluster_.topology.LinkAt(link);
        found->second = Add(cluster_.topology.LinkName(link), is.kind, is.speed);
      }
      route.loads.push_back({.resource = found->second, .load = 1});
    }
    return route;
  }

  // Of a device to its host, and back; at once where nobody knows how fast it is.
  std::pair<Route, Route> ToHost(DeviceId device) {
    const cluster::PathInfo& host = cluster_.device_of(device).host;
    if (host.rate == Bandwidth(0)) return {};
    const std::string name = absl::StrCat("device", device.index());
    const ResourceId to = Add(absl::StrCat(name, " -> its host"), "host copy", host);
    const ResourceId back = Add(absl::StrCat("host -> ", name), "host copy", host);
    return {{.loads = {{to, 1}}, .latency = host.latency},
            {.loads = {{back, 1}}, .latency = host.latency}};
  }

 private:
  ResourceId Add(std::string name, absl::string_view kind, const cluster::PathInfo& speed) {
    return training_.network.AddResource({.name = std::move(name),
                                          .kind = std::string(kind),
                                          .capacity = speed.rate,
                                          .latency = speed.latency});
  }

  const cluster::Cluster& cluster_;
  Training& training_;
  std::map<cluster::LinkNumber, ResourceId> known_;
};

// The device by whose cards a worker and a server that is elsewhere are linked.
DeviceId EndOf(const cluster::Cluster& cluster, const PlaceQuestion& question, int32_t worker,
               int32_t server) {
  if (question.place == Kind::kDevices) return DeviceId(question.workers + server);
  const int32_t each = DevicesOfHost(cluster);
  const int32_t first = question.place == Kind::kHosts ? WorkerHosts(cluster, question.workers) : 0;
  return DeviceId((first + server) * each + worker % each);  // mixed: own hosts are behind
}

// The ways between workers of each host.
void LinkWorkers(const cluster::Cluster& cluster, const PlaceQuestion& question, Wires& wires,
                 Training& training) {
  const int32_t lanes = std::min(DevicesOfHost(cluster), question.workers);
  if (!question.adds_up || lanes == 1) return;
  training.adding.lanes = lanes;
  for (int32_t w = 0; w < question.workers; ++w) {
    for (int32_t i = 0; i < lanes; ++i) {
      const int32_t other = w / lanes * lanes + i;
      const bool there = other != w && other < question.workers;
      training.adding.routes.push_back(there ? wires.Between(DeviceId(w), DeviceId(other))
                                             : Route());
    }
  }
}

Bandwidth HostMemory(const cluster::Cluster& cluster) {
  const int64_t share = cluster.device.host_memory_bandwidth.bytes_per_second();
  return share == 0 ? kAssumedHostMemory : Bandwidth(share * DevicesOfHost(cluster));
}

}  // namespace
}  // namespace server_places_cc

std::span<const ServerPlace> AllServerPlaces() { return server_places_cc::kPlaces; }

absl::Status PlaceServers(const cluster::Cluster& cluster, const PlaceQuestion& question,
                          simulator::parameter_server::Training& training) {
  using server_places_cc::Kind;
  if (absl::Status room = server_places_cc::CheckRoom(cluster, question); !room.ok()) return room;
  training.workers = question.workers;
  training.servers = server_places_cc::AllServers(cluster, question);
  Bandwidth rate = question.rate;
  if (rate == Bandwidth(0)) {
    rate = question.place == Kind::kDevices ? cluster.device.memory_bandwidth
                                            : server_places_cc::HostMemory(cluster);
  }
  training.rates.assign(static_cast<size_t>(training.servers), rate);
  server_places_cc::Wires wires(cluster, training);
  const int32_t each = server_places_cc::DevicesOfHost(cluster);
  const int32_t beside = ServersWithWorkers(cluster, question);
  for (int32_t w = 0; w < question.workers; ++w) {
    const cluster::DeviceId worker(w);
    for (int32_t s = 0; s < training.servers; ++s) {
      if (s < beside && w / each == s) {
        auto [push, pull] = wires.ToHost(worker);
        training.push.push_back(std::move(push));
        training.pull.push_back(std::move(pull));
        continue;
      }
      const cluster::DeviceId server = server_places_cc::EndOf(cluster, question, w, s);
      training.push.push_back(wires.Between(worker, server));
      training.pull.push_back(wires.Between(server, worker));
    }
  }
  server_places_cc::LinkWorkers(cluster, question, wires, training);
  return absl::OkStatus();
}

int32_t ServersWithWorkers(const cluster::Cluster& cluster, const PlaceQuestion& question) {
  if (question.place == ServerPlace::Kind::kWorkers) return question.servers;
  return server_places_cc::AllServers(cluster, question) - question.servers;
}

bool AssumesHostMemory(const cluster::Cluster& cluster, const PlaceQuestion& question) {
  return question.rate == Bandwidth(0) && question.place != ServerPlace::Kind::kDevices &&
         cluster.device.host_memory_bandwidth == Bandwidth(0);
}

}  // namespace orrery::search
