#ifndef ORRERY_SEARCH_RECOMPUTATIONS_THAT_HELP_H_
#define ORRERY_SEARCH_RECOMPUTATIONS_THAT_HELP_H_

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "search/settings/setting.h"

namespace orrery::search {

/// Which recomputations leave the forward of a whole step less to keep: of attention that keeps no
/// scores `selective` leaves all, so that a plan with it needs what it is to relieve. For several
/// threads.
class RecomputationsThatHelp {
 public:
  /// Whether that of the plan does. The setting lives longer.
  bool Has(const Setting& setting, const ParallelPlan& plan);

 private:
  std::mutex mutex_;
  std::map<std::pair<const Setting*, std::string>, bool> helps_;  // looked up
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_RECOMPUTATIONS_THAT_HELP_H_
