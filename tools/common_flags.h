#ifndef ORRERY_TOOLS_COMMON_FLAGS_H_
#define ORRERY_TOOLS_COMMON_FLAGS_H_

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "tools/flags.h"

// The flags that all programs have: what they are, what there is by name, how much they say.

namespace orrery::tools {

/// All flags of a program: its own, and behind them --help, --version, --quiet, --progress,
/// --completion, and --list-… of what its own flags name. As wide as the terminal for --help.
boost::program_options::options_description WithCommonFlags(const ProgramSpec& spec);

/// Answers those that ask about the program, called as `command`; nothing where none does. Sets the
/// manner of the program by the others.
std::optional<absl::Status> AnswerCommonFlags(
    const ProgramSpec& spec, const boost::program_options::options_description& all,
    const boost::program_options::variables_map& values, const std::string& command);

/// What is wrong with the command line: "unrecognised option '--shedule'; did you mean --schedule?
/// --help names all", or "…; try --help".
std::string UsageError(const boost::program_options::error& error,
                       const boost::program_options::options_description& all);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_COMMON_FLAGS_H_
