#ifndef ORRERY_SEARCH_VIEWS_RUN_COST_H_
#define ORRERY_SEARCH_VIEWS_RUN_COST_H_

#include <cstdint>
#include <string>

#include "search/search.h"

// What a whole training run of so many samples (Setting::run_samples) takes: steps times the step,
// and nothing else.

namespace orrery::search {

/// For people: what the run takes with each of the `top` best. Empty where nobody says how long it
/// is, or nothing is feasible.
std::string RunText(const Setting& setting, const SearchRows& rows, int64_t top);

/// A number of days, hours or a price for people: three digits at least, and no exponent.
std::string AmountText(double amount);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_RUN_COST_H_
