#include "cost_models/collectives/collective_algorithm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/names/near_names.h"

namespace orrery::cost_models {

#define ORRERY_COLLECTIVE(Name, file) extern const CollectiveAlgorithm k##Name##Collective;
#include "cost_models/collectives/collectives.def"
#undef ORRERY_COLLECTIVE

namespace collective_algorithm_cc {
namespace {

constexpr std::array kAlgorithms = {
#define ORRERY_COLLECTIVE(Name, file) &k##Name##Collective,
#include "cost_models/collectives/collectives.def"
#undef ORRERY_COLLECTIVE
};

// More chunks than this and a chunk of a large tensor is no more than what one packet train is.
constexpr double kMaxChunks = 1024;

}  // namespace
}  // namespace collective_algorithm_cc

std::span<const CollectiveAlgorithm* const> AllCollectiveAlgorithms() {
  return collective_algorithm_cc::kAlgorithms;
}

absl::StatusOr<const CollectiveAlgorithm*> FindCollectiveAlgorithm(absl::string_view name) {
  for (const CollectiveAlgorithm* algorithm : collective_algorithm_cc::kAlgorithms) {
    if (algorithm->name == name) return algorithm;
  }
  std::vector<absl::string_view> names;
  for (const CollectiveAlgorithm* algorithm : collective_algorithm_cc::kAlgorithms) {
    names.push_back(algorithm->name);
  }
  return absl::InvalidArgumentError(absl::StrCat("algorithm '", name, "' is unknown; ",
                                                 WantedNames(name, names, "list-algorithms")));
}

int64_t PipelineChunks(const CollectiveCall& call, int64_t fill, double share) {
  const double latency = call.hop.latency.seconds();
  const auto rate = static_cast<double>(call.hop.rate.bytes_per_second());
  if (call.size == Bytes(0) || fill <= 0 || rate <= 0) return 1;
  if (latency <= 0) return static_cast<int64_t>(collective_algorithm_cc::kMaxChunks);
  const double moved = static_cast<double>(call.size.count()) * share * static_cast<double>(fill);
  const double best = std::sqrt(moved / (rate * latency));
  return static_cast<int64_t>(
      std::clamp(std::round(best), 1.0, collective_algorithm_cc::kMaxChunks));
}

}  // namespace orrery::cost_models
