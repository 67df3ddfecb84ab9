#ifndef ORRERY_TRANSFORMS_PASS_H_
#define ORRERY_TRANSFORMS_PASS_H_

#include <map>
#include <span>
#include <string>
#include <vector>

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
  /// Rewrites the function; true when it changed. Options have been checked against `options`.
  absl::StatusOr<bool> (*run)(ir::Function& function, const PassOptions& options) = nullptr;
  /// Running it again changes nothing.
  bool idempotent = false;
};

/// All passes, in the order of passes.def.
std::span<const PassInfo* const> AllPasses();

/// A pass with the options it is to run with.
struct PassCall {
  const PassInfo* pass = nullptr;
  PassOptions options;
};

/// Reads "build-backward,append-optimizer{optimizer=adam}". An unknown pass or option is an error
/// that lists those there are.
absl::StatusOr<std::vector<PassCall>> ParsePasses(absl::string_view text);

/// Runs one call; its options that are missing take their defaults. Errors name the pass.
absl::StatusOr<bool> RunPass(const PassCall& call, ir::Function& function);

/// An option as a whole number of at least 1; an error that names it otherwise.
absl::StatusOr<int64_t> PositiveOption(const PassOptions& options, absl::string_view name);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PASS_H_
