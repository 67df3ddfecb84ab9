#ifndef ORRERY_SEARCH_MEMORY_FIT_H_
#define ORRERY_SEARCH_MEMORY_FIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/evaluate.h"
#include "search/search_rows.h"
#include "transforms/plan/axis.h"

// What does not fit: by how much, what the memory is made of, and what would make it fit.

namespace orrery::search {

/// Of a run that does not fit, the rank that exceeds its limit and needs most: "needs 45.2 GiB on
/// rank 0; the limit is 40.0 GiB; 5.2 GiB too much: optimizer 20.1 GiB, activations 18.0 GiB, …".
std::string MisfitText(const Run& run);

/// A neighbour of a plan that has been played.
struct PlayedSuggestion {
  transforms::Suggestion suggestion;
  Bytes peak_memory = {};
  Duration step_time = {};
  bool at_most = false;  // so long a step: not all ways were played
};

/// The neighbours of `plan` that are worth a try where it does not fit, each with one thing
/// changed, as the axes of plans suggest them: more microbatches, more pipeline stages or
/// horizontal ranks (instead of data-parallel ones, or on devices that have nothing to do), ZeRO,
/// recomputation. First those that are likely to cost least time.
std::vector<transforms::Suggestion> Neighbours(const Setting& setting, const ParallelPlan& plan);

/// What was played.
struct PlayedSuggestions {
  std::vector<PlayedSuggestion> fit;
  std::optional<PlayedSuggestion> least = {};  // of those that do not, that of the least memory
  std::vector<std::string> open = {};          // changes of which there was too little time to tell
  int64_t work = 0;                            // of all plays, as PlayBudget counts it
};

/// Which of the neighbours fit, and where `enough` of them do not, of those with ZeRO and
/// recomputation, or with more microbatches besides. Plays at most `most_tries`: those of which the
/// memory of `run`, that of the plan, lets one hope that they fit. Of those that differ by
/// numbers alone two are enough.
/// All of them together do no more work than the run took, where that is more than a little
/// (PlayBudget counts it): of the second half the first way of each alone, those first that would
/// fit by what the run tells.
PlayedSuggestions PlaySuggestions(const Setting& setting, const ParallelPlan& plan, const Run& run,
                                  size_t enough = 4, size_t most_tries = 12);

/// "would fit with --micro-batches 32 (38.1 GiB, 1.2 s a step), --pp 8 (…)"; where there are none,
/// that none of what was tried would do, how near it came, and what would have taken too long.
std::string SuggestionsText(const PlayedSuggestions& found);

/// Both texts, a line each, of a run that does not fit.
std::string MisfitAndSuggestions(const Setting& setting, const ParallelPlan& plan, const Run& run);

/// The same of the result that comes closest to fitting, its flags first; one that did not run is
/// played. Empty where none lacks memory.
std::string ClosestMisfit(const SettingOf& setting_of, const SearchRows& rows);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_MEMORY_FIT_H_
