#ifndef ORRERY_CLUSTER_SPELLING_H_
#define ORRERY_CLUSTER_SPELLING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "cluster/topology.h"

// What a --cluster argument is read with: its parts, and the topologies that it names. Errors have
// no "--cluster 'spec'" yet; ParseCluster adds it.

namespace orrery::cluster {

/// What a topology's devices are unless device=NAME says otherwise.
inline constexpr absl::string_view kDefaultDevice = "v100-32gb";

/// What stands before and after the first `separator`; all of it before, when there is none.
struct Halves {
  absl::string_view before;
  absl::string_view after = {};
  bool found = false;
};
Halves SplitAt(absl::string_view text, char separator);

/// A number of things, of which `each` devices make one.
struct CountOf {
  absl::string_view things;
  int32_t each = 1;
  absl::string_view example;
};
absl::StatusOr<int32_t> ParseCount(absl::string_view text, const CountOf& count);

/// "4x4x2": that many of each, the product of which may be devices.
absl::StatusOr<std::vector<int32_t>> ParseSizes(absl::string_view text, absl::string_view example);

/// "50GB/s", "50GB/s+500ns", or the name of a link generation.
absl::StatusOr<PathInfo> ParseSpeed(absl::string_view text);

/// "device=h200,rails": each of them once. What nobody took is an error.
class OptionList {
 public:
  /// `known` has all names that may be given: "device latency". `example` stands in errors.
  static absl::StatusOr<OptionList> Parse(absl::string_view text, absl::string_view known,
                                          absl::string_view example);

  bool Has(absl::string_view name) const { return Find(name).has_value(); }
  /// Whether the option was given; an error when a value follows it.
  absl::StatusOr<bool> Flag(absl::string_view name) const;
  /// What follows "name=": empty when nothing does; nothing when the option was not given.
  std::optional<absl::string_view> Find(absl::string_view name) const;

  /// The option's value, or what stands for it; errors name the option.
  absl::StatusOr<PathInfo> Speed(absl::string_view name, const PathInfo& otherwise) const;
  absl::StatusOr<Duration> Latency(absl::string_view name, Duration otherwise) const;
  absl::StatusOr<int32_t> Count(absl::string_view name, int32_t otherwise) const;
  /// A ratio of at least 1.
  absl::StatusOr<double> Ratio(absl::string_view name) const;
  absl::StatusOr<Device> OfDevice(absl::string_view otherwise) const;

 private:
  struct Option {
    absl::string_view name, value;
  };
  std::vector<Option> options_;
  std::string example_;
};

/// A rail's link to the spine: all its NICs' bandwidth, divided by the oversubscription.
PathInfo SpineOf(const PathInfo& nic, int32_t nodes, double oversubscription);

/// The topology of that kind and its devices: "8@50GB/s,latency=500ns" of a ring.
absl::StatusOr<Cluster> ParseTopology(const TopologyKind& kind, absl::string_view text);

/// As --cluster spells it: "fat-tree".
std::string SpelledName(const TopologyKind& kind);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_SPELLING_H_
