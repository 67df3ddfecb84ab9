#ifndef ORRERY_TOOLS_VALIDATION_STACK_FILE_H_
#define ORRERY_TOOLS_VALIDATION_STACK_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/validation/software_stack.h"

// A software stack that users describe: {"like": "megatron", "launch_us": 20, "fp16": {"loss": 8}}.
// What is not said is as in the stack that it is like; "ideal" where none is named.

namespace orrery::tools {

/// Whether a stack is asked for by its file: "my_stack.json".
bool IsStackFile(absl::string_view stack);

/// Reads such a text. Errors name `path` and the key: one that is not known, a value of another
/// kind or out of range.
absl::StatusOr<SoftwareStack> ParseStack(absl::string_view text, const std::string& path);

/// The file that says all of `stack`: ParseStack of it is the same.
std::string StackText(const SoftwareStack& stack);

/// Of that name, or from that file.
absl::StatusOr<SoftwareStack> FindStack(absl::string_view stack);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_STACK_FILE_H_
