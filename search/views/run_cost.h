#ifndef ORRERY_SEARCH_VIEWS_RUN_COST_H_
#define ORRERY_SEARCH_VIEWS_RUN_COST_H_

#include <cstdint>
#include <string>

#include "search/search.h"

// What a whole training run of so many samples (Setting::run_samples) takes: steps times the step,
// and nothing else.

namespace orrery::search {

/// Of one plan. No stops, checkpoints or evaluations are in it.
struct RunCost {
  int64_t steps = 0;  // whole ones, so that the last may be of fewer samples
  double seconds = 0;
  double device_hours = 0;
  double price = 0;  // in the currency of Setting::device_hour; 0: nobody says

  double days() const { return seconds / 86'400; }
};

/// What the run takes with the plan of a result that ran; all 0 where nobody says how long it is.
RunCost CostOfRun(const Setting& setting, const Result& result);

/// For people: what the run takes with each of the `top` best. Empty where nobody says how long it
/// is, or nothing is feasible.
std::string RunText(const Setting& setting, const SearchRows& rows, int64_t top);

/// A number of days, hours or a price for people: three digits at least, and no exponent.
std::string AmountText(double amount);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_RUN_COST_H_
