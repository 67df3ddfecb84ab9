#ifndef ORRERY_LOWERING_NETWORK_LINK_CLASSES_H_
#define ORRERY_LOWERING_NETWORK_LINK_CLASSES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "cluster/topology.h"
#include "cost_models/collectives/pricing.h"

// Equal things are computed once: links that carry the same of all that travels are one resource of
// a simulation, and so a step on thousands of devices shares a handful of them.

namespace orrery::lowering {

/// A stream of a rank, as a number. Of two things that occupy one lane only one is under way.
using Lane = int32_t;

/// What a kind of flow puts on links. Flows of one kind differ in size only.
struct Traffic {
  absl::InlinedVector<Lane, 2> lanes = {};  // that each of them occupies, ascending
  std::span<const cost_models::LinkVolume> volumes = {};
};

/// Parts of one kind of traffic that a link of a class carries.
struct ClassParts {
  int32_t link_class = 0;
  int64_t parts = 0;
};

/// Links of one rate, latency and kind that carry the same parts of each kind of traffic.
struct LinkClass {
  cluster::LinkNumber first = 0;  // the one of the lowest number
  int64_t links = 0;
  /// Whether two flows that load it can be under way at once.
  bool shared = false;
};

struct LinkClasses {
  std::vector<LinkClass> classes;                              // by their first link
  std::vector<std::vector<ClassParts>> by_traffic;             // classes ascending
  absl::flat_hash_map<cluster::LinkNumber, int32_t> class_of;  // of links that carry anything
};

/// O(volumes × log).
LinkClasses ClassifyLinks(std::span<const Traffic> traffic, const cluster::Topology& topology);

/// The classes that those links belong to, ascending, each once. Groups that see other classes
/// than each other are not alike: one of them meets traffic that the other does not.
std::vector<int32_t> ClassesOf(std::span<const cost_models::LinkVolume> volumes,
                               const LinkClasses& classes);

/// The classes of links that several of those traffics load are not 0, by their numbers.
std::vector<char> LoadedBySeveral(std::span<const int32_t> traffics, const LinkClasses& classes);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_LINK_CLASSES_H_
