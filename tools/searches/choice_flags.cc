#include "tools/searches/choice_flags.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "search/spaces/group_placements.h"
#include "search/spaces/joined_choices.h"
#include "search/spaces/weight_strategies.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/searches/plan_job.h"

namespace orrery::tools {
namespace choice_flags_cc {
namespace {

using search::ChoiceList;
using search::PlanChoices;
using Choices = absl::StatusOr<std::unique_ptr<const PlanChoices>>;

Choices StrategiesOf(const ChoiceFlags& flags, const search::Setting& setting) {
  ORRERY_ASSIGN_OR_RETURN(const search::StrategyGrain grain,
                          search::ParseStrategyGrain(flags.strategies));
  std::vector<search::WeightKind> kinds = search::WeightKinds(setting.step, grain);
  if (kinds.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        setting.model_name, " has no weight of two dimensions and a name; wanted one"));
  }
  return std::make_unique<const search::WeightStrategies>(std::move(kinds));
}

Choices PlacementsOf(const ChoiceFlags& flags, const search::Setting& setting,
                     const search::PlanList& plans) {
  constexpr int kMostGroups = 64;
  int most = 0;
  search::OpGroups groups;
  const bool fits = absl::SimpleAtoi(flags.groups, &most);
  if (fits || std::ranges::all_of(flags.groups, absl::ascii_isdigit)) {
    if (!fits || most < 2 || most > kMostGroups) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", flags.groups, "': wanted 2 to ", kMostGroups, " groups, or patterns"));
    }
    ORRERY_ASSIGN_OR_RETURN(groups, search::GroupsByName(setting.step, static_cast<size_t>(most)));
  } else {
    ORRERY_ASSIGN_OR_RETURN(groups, search::GroupsOfPatterns(setting.step, flags.groups));
  }
  int64_t most_sets = 1;
  for (const search::ParallelPlan& plan : plans) most_sets = std::max(most_sets, plan.pp);
  return std::make_unique<const search::GroupPlacements>(std::move(groups), most_sets);
}

// What a flag lets choose; `wanted`: of plans, where none has anything to choose.
Choices CheckedChoices(Choices choices, const search::PlanList& plans, absl::string_view wanted) {
  ORRERY_RETURN_IF_ERROR(choices.status());
  const auto has_some = [&](const search::ParallelPlan& plan) {
    return (*choices)->ClassOf(plan) != 0;
  };
  if (std::any_of(plans.begin(), plans.end(), has_some)) return choices;
  return absl::InvalidArgumentError(wanted);
}

Choices CheckedStrategies(const ChoiceFlags& flags, const search::Setting& setting,
                          const search::PlanList& plans) {
  return CheckedChoices(StrategiesOf(flags, setting), plans,
                        "no plan has weights that hp splits by cost; wanted some with --hp of at "
                        "least 2, --sharding auto, and without --shard");
}

Choices CheckedPlacements(const ChoiceFlags& flags, const search::Setting& setting,
                          const search::PlanList& plans) {
  return CheckedChoices(PlacementsOf(flags, setting, plans), plans,
                        "no plan has stages whose ops could be elsewhere; wanted some with --pp "
                        "of at least 2, --schedule 1f1b or gpipe, and no --cp, --ep, --chunks, "
                        "--placement, --split-at or --layers-per-stage");
}

// Of one flag or of both.
std::string NamesOf(const ChoiceFlags& flags) {
  if (flags.strategies.empty()) return "--place-groups";
  return absl::StrCat("--strategies", flags.groups.empty() ? "" : " and --place-groups");
}

absl::Status CheckMethod(const ChoiceFlags& flags, absl::string_view method) {
  if (method != kExpertMethod && method != kExactMethod) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(NamesOf(flags), ": method ", method,
                                                 " goes from no plan to another; wanted one of ",
                                                 search::MethodsText()));
}

absl::StatusOr<ChoiceList> ListOf(const ChoiceFlags& flags, absl::string_view method,
                                  const search::Setting& setting, const search::PlanList& plans) {
  ORRERY_RETURN_IF_ERROR(CheckMethod(flags, method));
  if (plans.size() > ChoiceList::kMost) {
    return absl::InvalidArgumentError(absl::StrCat(NamesOf(flags), ": ", plans.size(),
                                                   " plans; wanted ", ChoiceList::kMost,
                                                   " at most: try shorter lists of degrees"));
  }
  std::vector<std::unique_ptr<const PlanChoices>> kinds;
  if (!flags.strategies.empty()) {
    ORRERY_ASSIGN_OR_RETURN(kinds.emplace_back(),
                            Annotated(CheckedStrategies(flags, setting, plans), "--strategies"));
  }
  if (!flags.groups.empty()) {
    ORRERY_ASSIGN_OR_RETURN(kinds.emplace_back(),
                            Annotated(CheckedPlacements(flags, setting, plans), "--place-groups"));
  }
  const size_t least = kinds.size();  // one of each
  ChoiceList list(plans, std::make_unique<const search::JoinedChoices>(std::move(kinds)));
  if (list.things() < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        NamesOf(flags), ": one choice for each of ", plans.size(), " plans comes to more than ",
        ChoiceList::kMost, "; wanted fewer plans: try shorter lists of degrees"));
  }
  return list;
}

}  // namespace
}  // namespace choice_flags_cc

void AddChoiceFlags(boost::program_options::options_description& options, ChoiceFlags& flags) {
  namespace po = boost::program_options;
  options.add_options()(
      "strategies", po::value(&flags.strategies),
      "what hp does to weights is searched, too, of kinds that are alike in all layers, or of all "
      "weights: left to prices, whole, or split along a dimension")(
      "place-groups", po::value(&flags.groups),
      "which stage's devices run which group of ops is searched, too: so many groups by their "
      "names, or those of patterns, as in 'branch1x1;branch3x3'");
}

absl::StatusOr<std::optional<search::ChoiceList>> ChoicesOf(const ChoiceFlags& flags,
                                                            absl::string_view method,
                                                            const search::Setting& setting,
                                                            const search::PlanList& plans) {
  if (flags.strategies.empty() && flags.groups.empty()) return std::nullopt;
  ORRERY_ASSIGN_OR_RETURN(search::ChoiceList list,
                          choice_flags_cc::ListOf(flags, method, setting, plans));
  return list;
}

std::string ChoicesText(const ChoiceFlags& flags, const search::ChoiceList& choices) {
  const bool strategies = !flags.strategies.empty(), places = !flags.groups.empty();
  const absl::string_view both = strategies && places ? " and " : "";
  const absl::string_view weights = flags.strategies == "kinds" ? "kinds of weights" : "weights";
  const size_t left = choices.things_left();
  return absl::StrCat("with ", strategies ? "strategies" : "", both, places ? "devices" : "",
                      " of ", choices.things(), " ", strategies ? weights : "", both,
                      places ? "groups of ops" : "",
                      left > 0 ? absl::StrCat(" (of ", choices.things() + left, ")") : "", ": ",
                      choices.size(), " plans");
}

}  // namespace orrery::tools
