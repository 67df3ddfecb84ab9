#ifndef ORRERY_TRANSFORMS_PASS_PASS_H_
#define ORRERY_TRANSFORMS_PASS_PASS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// A pass takes a function that verifies and leaves one that verifies. It keeps no state and keeps
// the promise of its record.

namespace orrery::transforms {

/// Options of a pass as written in `shard{dp=2,hp=4}`: name to text.
using PassOptions = std::map<std::string, std::string, std::less<>>;

/// The one record of a pass. All that a new one needs, besides its line in passes.def.
struct PassInfo {
  absl::string_view name;     // as on the command line: "build-backward"
  absl::string_view summary;  // one sentence
  absl::string_view options;  // their names and defaults, "optimizer=sgd"; or ""
  /// Rewrites the function; true when it changed. Options have been checked against `options`. Null
  /// where there is `run_and_tell`.
  absl::StatusOr<bool> (*run)(ir::Function& function, const PassOptions& options) = nullptr;
  /// The same, for a pass that has more to tell people: lines, each with its end, added to `story`.
  absl::StatusOr<bool> (*run_and_tell)(ir::Function& function, const PassOptions& options,
                                       std::string& story) = nullptr;
  /// Running it again changes nothing.
  bool idempotent = false;
};

/// An option as a whole number of at least 1; an error that names it otherwise.
absl::StatusOr<int64_t> PositiveOption(const PassOptions& options, absl::string_view name);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PASS_PASS_H_
