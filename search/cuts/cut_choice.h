#ifndef ORRERY_SEARCH_CUTS_CUT_CHOICE_H_
#define ORRERY_SEARCH_CUTS_CUT_CHOICE_H_

#include <cstddef>
#include <span>

#include "simulator/report/report.h"
#include "support/units.h"

namespace orrery::search {

/// Whether `a` is the better run: one that fits, of those the faster one, else what needs less.
bool IsBetter(const simulator::Report& a, const simulator::Report& b);

/// A step that is cut into stages, and played.
struct PlayedCut {
  bool fits = false;
  Duration time;
  Bytes peak;  // of the fullest rank
};

/// Which of these cuts of one step is taken: of those that fit, about as fast as the fastest and no
/// slower than the last, which has the least choice, the one that needs least memory. No other is
/// better in both. Where none fits, the one that needs least. Requires one at least.
size_t TakenCut(std::span<const PlayedCut> cuts);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_CUTS_CUT_CHOICE_H_
