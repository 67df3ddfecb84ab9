#include "cluster/names/named_links.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace orrery::cluster {
namespace named_links_cc {
namespace {

// A second of a processor.
constexpr int64_t kMostLinks = int64_t{1} << 23;

}  // namespace
}  // namespace named_links_cc

absl::StatusOr<std::vector<LinkNumber>> FindLinks(const Topology& topology,
                                                  absl::string_view name) {
  if (topology.link_count() > named_links_cc::kMostLinks) {
    return absl::InvalidArgumentError(absl::StrCat("link '", name, "': the cluster has ",
                                                   topology.link_count(), " links; wanted at most ",
                                                   named_links_cc::kMostLinks, " to look for it"));
  }
  const bool whole = absl::StrContains(name, " -> ");
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('/', 1));
  std::vector<LinkNumber> found;
  std::set<std::string> kinds;
  for (LinkNumber number = 0; number < topology.link_count(); ++number) {
    const Link link = topology.LinkAt(number);
    if (kinds.size() < 16) kinds.insert(std::string(link.kind));
    if (whole) {
      if (topology.LinkName(number) == name) found.push_back(number);
      continue;
    }
    const auto is_at = [&](VertexId vertex) { return topology.VertexName(vertex) == parts.first; };
    const bool of_kind = link.kind == (parts.second.empty() ? name : parts.second);
    if (parts.second.empty() ? of_kind || is_at(link.from) || is_at(link.to)
                             : of_kind && (is_at(link.from) || is_at(link.to))) {
      found.push_back(number);
    }
  }
  if (!found.empty()) return found;
  return absl::InvalidArgumentError(absl::StrCat(
      "link '", name, "' is none of the cluster's; wanted a kind (", absl::StrJoin(kinds, ", "),
      "), a device or switch, such as device0, both, device0/",
      kinds.empty() ? "nic" : *kinds.begin(), ", or a whole name as --explain prints it"));
}

}  // namespace orrery::cluster
