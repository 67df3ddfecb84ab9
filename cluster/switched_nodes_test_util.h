#ifndef ORRERY_CLUSTER_SWITCHED_NODES_TEST_UTIL_H_
#define ORRERY_CLUSTER_SWITCHED_NODES_TEST_UTIL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

// For tests only.

namespace orrery::cluster {

/// A cluster file of nodes of four devices around a switch each, which are linked to the first;
/// `reduces` says which switches do, `degraded` which device has a link of half the rate.
inline std::string SwitchedNodes(const std::vector<bool>& reduces, int32_t degraded = -1) {
  const auto devices = static_cast<int32_t>(4 * reduces.size());
  std::string text = absl::StrCat("devices { kind: \"a100-80gb\" count: ", devices,
                                  " }\ntopology { kind: \"graph\" graph {\n");
  for (size_t i = 0; i < reduces.size(); ++i) {
    absl::StrAppend(&text, "switches { name: \"s", i, "\" reduces: ", reduces[i] ? "true" : "false",
                    " }\n");
    if (i == 0) continue;
    absl::StrAppend(&text, "links { between: [\"s0\", \"s", i,
                    "\"] rate: \"50GB/s\" latency: \"1us\" }\n");
  }
  for (int32_t device = 0; device < devices; ++device) {
    absl::StrAppend(&text, "links { between: [\"device", device, "\", \"s", device / 4,
                    "\"] rate: \"", device == degraded ? 25 : 50, "GB/s\" latency: \"1us\" }\n");
  }
  return absl::StrCat(text, "} }\n");
}

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_SWITCHED_NODES_TEST_UTIL_H_
