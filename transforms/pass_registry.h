#ifndef ORRERY_TRANSFORMS_PASS_REGISTRY_H_
#define ORRERY_TRANSFORMS_PASS_REGISTRY_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/pass/pass.h"

namespace orrery::transforms {

/// All passes, in the order of passes.def.
std::span<const PassInfo* const> AllPasses();

/// A pass with the options it is to run with.
struct PassCall {
  const PassInfo* pass = nullptr;
  PassOptions options;
};

/// The passes that `text` names, in its order: "build-backward,append-optimizer{optimizer=adam}";
/// none for an empty text. InvalidArgument for an unknown pass or option lists those there are.
absl::StatusOr<std::vector<PassCall>> ParsePasses(absl::string_view text);

/// Runs one call; its options that are missing take their defaults. What the pass has to tell is
/// added to `story`, if there is one. Errors name the pass.
absl::StatusOr<bool> RunPass(const PassCall& call, ir::Function& function,
                             std::string* story = nullptr);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PASS_REGISTRY_H_
