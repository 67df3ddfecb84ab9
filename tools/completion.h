#ifndef ORRERY_TOOLS_COMPLETION_H_
#define ORRERY_TOOLS_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Scripts that have a shell complete a program's flags, made of the records of the flags.

namespace orrery::tools {

/// A flag as a shell completes it.
struct CompletedFlag {
  std::string name = {}, help = {};  // without the dashes; "" stands for what has no flag
  bool takes_value = false;
  bool takes_file = false;               // or may: names of files are offered
  std::vector<std::string> values = {};  // words that are offered; one that ends with ':' goes on
};

/// A program and its flags.
struct CompletedProgram {
  std::vector<std::string> names;  // as it is called; paths before them do not matter
  std::vector<CompletedFlag> flags = {};
};

/// The script for `shell`, "bash" or "zsh"; InvalidArgument for another one. It may be read by a
/// running shell, or stand in a folder where the shell looks for it.
absl::StatusOr<std::string> CompletionScript(absl::string_view shell,
                                             const CompletedProgram& program);

/// The names of a program that was called as `command`: "build/bin/grid_search" is "grid_search",
/// and installed "orrery-grid-search"; one that is installed has no other name.
std::vector<std::string> ProgramNames(absl::string_view command);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_COMPLETION_H_
