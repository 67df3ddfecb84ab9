#ifndef ORRERY_TOOLS_PLANNING_COMMANDS_H_
#define ORRERY_TOOLS_PLANNING_COMMANDS_H_

#include <string>
#include <vector>

#include "search/search.h"
#include "tools/flags.h"

// Commands that go on from an answer of grid_search, as one pastes them into a shell.

namespace orrery::tools {

/// What was asked.
struct AskedCommand {
  std::string program;               // of grid_search, as it was called: "build/bin/grid_search"
  std::vector<FlagText> given = {};  // its flags
  ModelFlags model = {};             // of one question
  search::ParallelPlan base = {};    // what its preset chooses
};

/// The call of `simulate` that plays the plan: with all flags that the search was given and that
/// change what is played, so that it says the same.
std::string SimulateCommand(const AskedCommand& asked, const search::ParallelPlan& plan);

/// The call of `grid_search` whose lists have the values of the two plans and no others, so that it
/// plays both, and what lies between; where a value that differs cannot be listed, the call of
/// `simulate` that plays the second.
std::string CompareCommand(const AskedCommand& asked, const search::ParallelPlan& first,
                           const search::ParallelPlan& second);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLANNING_COMMANDS_H_
