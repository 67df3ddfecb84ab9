#ifndef ORRERY_SEARCH_VIEWS_FRONT_H_
#define ORRERY_SEARCH_VIEWS_FRONT_H_

#include <cstdint>
#include <string>

#include "search/search.h"

// What a search found beside the fastest plan, for people: what the next best trade for it, and who
// is on the Pareto front.

namespace orrery::search {

/// How the `top` best differ, each from the one before: time, where it goes, memory, devices and
/// the axes. Empty where there are fewer than two.
std::string TradesText(const SearchRows& rows, int64_t top);

/// The Pareto front over step time, peak memory and devices, the fastest first, at most `most` rows
/// of it, spread evenly, with what a sample costs where the setting has a price, and days and price
/// of a whole run that it knows of. (Price is time times devices: it makes no front larger.) Empty
/// where it is one plan.
std::string FrontText(const Setting& setting, const SearchRows& rows, int64_t most);

/// How sure the best is of a search that did not play all that it might have, by the bounds of what
/// is left; empty where nothing is, or nothing fits.
std::string GapText(const SearchRows& rows);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_FRONT_H_
