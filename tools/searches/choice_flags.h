#ifndef ORRERY_TOOLS_SEARCHES_CHOICE_FLAGS_H_
#define ORRERY_TOOLS_SEARCHES_CHOICE_FLAGS_H_

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/settings/setting.h"
#include "search/spaces/choice_list.h"

// What `plan` chooses beside the axes of its plans.

namespace orrery::tools {

/// One of them, both or none.
struct ChoiceFlags {
  std::string strategies;
  std::string groups;
};

/// Adds --strategies and --place-groups.
void AddChoiceFlags(boost::program_options::options_description& options, ChoiceFlags& flags);

/// The plans with what is to be chosen for each; nothing where no flag asks for it. `plans` lives
/// longer. InvalidArgument, which names the flag, for a value that is none, a method that walks
/// through no candidates, and where no plan has anything to choose.
absl::StatusOr<std::optional<search::ChoiceList>> ChoicesOf(const ChoiceFlags& flags,
                                                            absl::string_view method,
                                                            const search::Setting& setting,
                                                            const search::PlanList& plans);

/// "with strategies of 6 kinds of weights: 48,200 plans", for people.
std::string ChoicesText(const ChoiceFlags& flags, const search::ChoiceList& choices);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_CHOICE_FLAGS_H_
