#ifndef ORRERY_TOOLS_JITTER_JITTER_FLAGS_H_
#define ORRERY_TOOLS_JITTER_JITTER_FLAGS_H_

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/topology.h"
#include "search/views/disturbed_steps.h"
#include "tools/listings.h"

// The flags that disturb a step: --jitter, --slow, --seed, --steps.

namespace orrery::tools {

/// The flags as they were given.
struct JitterFlags {
  std::vector<std::string> jitter = {}, slow = {};
  std::optional<int64_t> seed = {}, steps = {};

  /// Whether any of them was given.
  bool any() const {
    return !jitter.empty() || !slow.empty() || seed.has_value() || steps.has_value();
  }
};

/// How many steps are played where --steps does not say it.
inline constexpr int32_t kUsualSteps = 200;

/// Adds them to the flags of a program.
void AddJitterFlags(boost::program_options::options_description& options, JitterFlags& flags);

/// Reads "kernel=lognormal:2%,gc=20ms/30s" into what disturbs a step; links are those of
/// `topology`. InvalidArgument says which source is unknown, named twice, or says what it cannot
/// mean, and what would be right.
absl::Status ParseJitter(absl::string_view text, const cluster::Topology& topology,
                         search::StepsQuestion& question);

/// Reads "rank=5:1.3,rank=7:1.1" of a plan with `ranks` ranks.
absl::Status ParseSlow(absl::string_view text, int64_t ranks, search::StepsQuestion& question);

/// What the flags ask; nothing where none of them was given. InvalidArgument names the flag.
absl::StatusOr<std::optional<search::StepsQuestion>> ReadJitterFlags(
    const JitterFlags& flags, const cluster::Topology& topology, int64_t ranks);

/// --list-jitter: sources of jitter, and distributions.
Listing JitterListing();

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_JITTER_JITTER_FLAGS_H_
