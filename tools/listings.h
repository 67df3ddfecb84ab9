#ifndef ORRERY_TOOLS_LISTINGS_H_
#define ORRERY_TOOLS_LISTINGS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// What there is by name, a line each: --list-models, --list-clusters and so on. Errors name these
// flags, and shells complete the names.

namespace orrery::tools {

/// Something with a name, and what it is.
struct NamedThing {
  std::string name, summary;
};

/// All of a kind.
struct Listing {
  absl::string_view flag;             // that prints it: "list-schedules"
  absl::string_view about;            // "names all schedules of pipelines"
  std::vector<absl::string_view> of;  // flags that take such a name
  std::vector<NamedThing> (*things)() = nullptr;
  absl::string_view beside =
      "";  // a flag whose programs have it, too, as names are parts of values
};

/// Those of what the library knows: models, clusters, devices, schedules, algorithms of
/// collectives, cost models and presets. A program has those of which it has a flag; of software
/// stacks there is one beside them (tools/validation/software_stack.h).
std::span<const Listing> AllListings();

/// A line each: the name, and beside it what it is.
std::string ListingText(const Listing& listing);

/// The values that a flag takes which are words of their own, for a shell to complete: names of a
/// listing among `listings`, or those of an axis of plans, or of another flag that takes one of a
/// few words. None where it takes numbers, names of files, or anything.
std::vector<std::string> KnownValues(absl::string_view flag, std::span<const Listing> listings);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_LISTINGS_H_
