#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_STAR_TEST_UTIL_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_STAR_TEST_UTIL_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/parameter_server/training.h"

namespace orrery::simulator::parameter_server {

/// Workers and servers around one switch, each with a card of its own; or, where `colocated`,
/// server s on the host of worker s, and those that are more than workers by themselves.
struct Star {
  int32_t workers = 2;
  int32_t servers = 1;
  int64_t worker_card = 1'000'000'000;  // bytes a second, each way
  int64_t server_card = 1'000'000'000;
  bool colocated = false;
  Duration latency = {};
  int64_t server_memory = 0;  // takes no time
};

/// A layer with one key.
struct Layer {
  Duration forward = {}, backward = {};
  Bytes bytes = {};
};

inline Duration Milliseconds(double milliseconds) {
  return Duration::FromSeconds(milliseconds * 1e-3);
}

inline void AddStar(const Star& star, Training& training) {
  training.workers = star.workers;
  training.servers = star.servers;
  training.rates.assign(static_cast<size_t>(star.servers), Bandwidth(star.server_memory));
  std::vector<std::pair<ResourceId, ResourceId>> workers, servers;  // out, in
  const auto card = [&](const std::string& name, int64_t rate) {
    const auto one = [&](absl::string_view way) {
      return training.network.AddResource({.name = absl::StrCat(name, way),
                                           .kind = "nic",
                                           .capacity = Bandwidth(rate),
                                           .latency = star.latency});
    };
    const ResourceId out = one(" out");
    return std::pair(out, one(" in"));
  };
  for (int32_t w = 0; w < star.workers; ++w) {
    workers.push_back(card(absl::StrCat("worker ", w), star.worker_card));
  }
  for (int32_t s = 0; s < star.servers; ++s) {
    servers.push_back(star.colocated && s < star.workers
                          ? workers[static_cast<size_t>(s)]
                          : card(absl::StrCat("server ", s), star.server_card));
  }
  for (size_t w = 0; w < workers.size(); ++w) {
    for (size_t s = 0; s < servers.size(); ++s) {
      Route push, pull;
      if (!star.colocated || w != s) {
        push = {.loads = {{workers[w].first, 1}, {servers[s].second, 1}}, .latency = star.latency};
        pull = {.loads = {{servers[s].first, 1}, {workers[w].second, 1}}, .latency = star.latency};
      }
      training.push.push_back(std::move(push));
      training.pull.push_back(std::move(pull));
    }
  }
}

inline Training MakeTraining(const Star& star, const std::vector<Layer>& layers,
                             Bytes most = Bytes(0)) {
  Training training;
  AddStar(star, training);
  const auto count = static_cast<int32_t>(layers.size());
  for (int32_t l = 0; l < count; ++l) {
    const Layer& layer = layers[static_cast<size_t>(l)];
    training.segments.push_back(
        {.name = absl::StrCat("F", l), .time = layer.forward, .needs = {l}});
    training.keys.push_back(
        {.name = absl::StrCat("k", l), .gradient = layer.bytes, .parameter = layer.bytes});
  }
  for (int32_t l = count - 1; l >= 0; --l) {
    const Layer& layer = layers[static_cast<size_t>(l)];
    training.segments.push_back({.name = absl::StrCat("B", l),
                                 .phase = Phase::kBackward,
                                 .time = layer.backward,
                                 .needs = {l},
                                 .completes = {l}});
  }
  training.parts = SpreadKeys(training.keys, star.servers, most);
  training.steps = 10;
  return training;
}

/// What a worker computes in a step, undisturbed.
inline double ComputeSeconds(const Training& training) {
  double seconds = 0;
  for (const Segment& segment : training.segments) seconds += segment.time.seconds();
  return seconds;
}

/// Bytes of all gradients; of those of the fullest server.
inline double AllBytes(const Training& training) {
  double bytes = 0;
  for (const Key& key : training.keys) bytes += static_cast<double>(key.gradient.count());
  return bytes;
}
inline double FullestServer(const Training& training) {
  std::vector<double> bytes(static_cast<size_t>(training.servers));
  for (const Part& part : training.parts) {
    bytes[static_cast<size_t>(part.server)] += static_cast<double>(part.gradient.count());
  }
  double most = 0;
  for (const double each : bytes) most = std::max(most, each);
  return most;
}

/// A whole number from `low` to `high`.
inline int Draw(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// Layers of random times and sizes.
inline std::vector<Layer> RandomLayers(std::mt19937_64& random, int count) {
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<Layer> layers;
  for (int l = 0; l < count; ++l) {
    const double forward = draw(0.1, 5);
    layers.push_back({.forward = Milliseconds(forward),
                      .backward = Milliseconds(forward * draw(1.5, 2.5)),
                      .bytes = Bytes(static_cast<int64_t>(draw(1e3, 2e7)))});
  }
  return layers;
}

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_STAR_TEST_UTIL_H_
