#include "cluster/resize.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "cluster/spelling.h"
#include "cluster/topologies.h"
#include "support/status.h"

namespace orrery::cluster {
namespace resize_cc {
namespace {

absl::Status NoSize(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(why,
                   "; wanted a cluster whose size is one number, as uniform:16@200Gbps, "
                   "dgx-h100:8 or fat-tree:64@50GB/s, or a list of `cluster`"));
}

// What is wrong with so many devices where nodes have `each`.
absl::Status NoNodes(int64_t devices, int64_t each) {
  return absl::InvalidArgumentError(
      absl::StrCat(devices, " devices are no whole number of nodes; wanted a multiple of ", each));
}

// "8", nodes of `each` devices, with options behind a comma.
struct NodesSpec {
  absl::string_view kind, options;
  int64_t each = 1;
  bool uses_part = false;  // whether used=N may say that a node has fewer
};

// The options without used=N, and with another one in its place where `used` is not 0.
std::string WithUsed(absl::string_view options, int64_t used) {
  std::vector<std::string> kept;
  for (const absl::string_view option : absl::StrSplit(options, ',', absl::SkipEmpty())) {
    if (used == 0 || !absl::StartsWith(option, "used=")) kept.emplace_back(option);
  }
  if (used > 0) kept.push_back(absl::StrCat("used=", used));
  return kept.empty() ? "" : absl::StrCat(",", absl::StrJoin(kept, ","));
}

absl::StatusOr<std::string> ResizeNodes(const NodesSpec& spec, int64_t devices) {
  if (devices % spec.each == 0) {
    return absl::StrCat(spec.kind, ":", devices / spec.each, WithUsed(spec.options, 0));
  }
  if (devices > spec.each || !spec.uses_part) return NoNodes(devices, spec.each);
  return absl::StrCat(spec.kind, ":1", WithUsed(spec.options, devices));
}

absl::StatusOr<std::string> ResizePreset(const ClusterPreset& preset, absl::string_view text,
                                         int64_t devices) {
  const Halves size_options = SplitAt(text, ',');
  if (size_options.before.find('x') != absl::string_view::npos) {
    return NoSize("its shape says more than its size");
  }
  NodesSpec spec = {.kind = preset.name,
                    .options = size_options.after,
                    .each = preset.devices_per_node,
                    .uses_part = preset.torus_dimensions == 0 && !preset.pairs};
  for (absl::string_view option : absl::StrSplit(size_options.after, ',', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&option, "used=") && !absl::SimpleAtoi(option, &spec.each)) {
      return NoSize(absl::StrCat("used=", option, " is no number"));
    }
  }
  return ResizeNodes(spec, devices);
}

absl::StatusOr<std::string> ResizeTopology(const TopologyKind& kind, absl::string_view text,
                                           int64_t devices) {
  const Halves sizes_rest = SplitAt(text, '@');
  const std::string rest = absl::StrCat("@", sizes_rest.after);
  switch (kind.spelling) {
    case SizeSpelling::kDevices:
    case SizeSpelling::kTree:
      return absl::StrCat(SpelledName(kind), ":", devices, rest);
    case SizeSpelling::kNodes: {
      const Halves sizes = SplitAt(sizes_rest.before, 'x');
      int64_t each = 0;
      if (!absl::SimpleAtoi(sizes.after, &each) || each < 1) break;
      if (devices % each != 0 && devices > each) return NoNodes(devices, each);
      const int64_t of_a_node = std::min(each, devices);
      return absl::StrCat(SpelledName(kind), ":", devices / of_a_node, "x", of_a_node, rest);
    }
    case SizeSpelling::kLevels:
    case SizeSpelling::kProduct:
    case SizeSpelling::kNone:
      break;
  }
  return NoSize("its shape says more than its size");
}

absl::StatusOr<std::string> Resize(absl::string_view spec, int64_t devices) {
  const Halves kind_rest = SplitAt(spec, ':');
  if (kind_rest.before == "uniform") {
    return absl::StrCat("uniform:", devices, "@", SplitAt(kind_rest.after, '@').after);
  }
  for (const ClusterPreset& preset : AllClusterPresets()) {
    if (kind_rest.before == preset.name) return ResizePreset(preset, kind_rest.after, devices);
  }
  for (const TopologyKind* kind : AllTopologies()) {
    if (kind->spelling == SizeSpelling::kNone || kind_rest.before != SpelledName(*kind)) continue;
    return ResizeTopology(*kind, kind_rest.after, devices);
  }
  return NoSize("a file has a size of its own");
}

}  // namespace
}  // namespace resize_cc

absl::StatusOr<std::string> ResizedSpec(absl::string_view spec, int64_t devices) {
  const auto where = [&](const absl::Status& status) {
    return Annotate(status, absl::StrCat("`cluster` '", spec, "' with ", devices, " devices"));
  };
  if (devices < 1 || devices > kMaxDevices) {
    return where(absl::InvalidArgumentError(absl::StrCat("wanted 1 to ", kMaxDevices)));
  }
  ORRERY_ASSIGN_OR_RETURN(const Cluster own, ParseCluster(spec));
  if (own.size() == devices) return std::string(spec);
  absl::StatusOr<std::string> resized = resize_cc::Resize(spec, devices);
  if (!resized.ok()) return where(resized.status());
  // As the shape of a node may not go with fewer devices.
  const absl::StatusOr<Cluster> cluster = ParseCluster(*resized);
  if (!cluster.ok()) return where(cluster.status());
  if (cluster->size() != devices) {
    return where(absl::InternalError(absl::StrCat(*resized, " has ", cluster->size())));
  }
  return resized;
}

absl::StatusOr<std::vector<int64_t>> SmallerSizes(absl::string_view spec) {
  ORRERY_ASSIGN_OR_RETURN(const Cluster own, ParseCluster(spec));
  std::vector<int64_t> sizes;
  absl::Status first_error;
  for (int64_t devices = 1; devices < own.size(); ++devices) {
    if (own.size() % devices != 0) continue;
    const absl::Status resized = ResizedSpec(spec, devices).status();
    if (resized.ok()) sizes.push_back(devices);
    first_error.Update(resized);
  }
  if (sizes.empty() && !first_error.ok()) return first_error;
  sizes.push_back(own.size());
  return sizes;
}

}  // namespace orrery::cluster
