#ifndef ORRERY_SEARCH_MEMORY_FIT_H_
#define ORRERY_SEARCH_MEMORY_FIT_H_

#include <optional>
#include <string>
#include <vector>

#include "search/evaluate.h"

// What does not fit: by how much, what the memory is made of, and what would make it fit.

namespace orrery::search {

/// Of a run that does not fit, the rank that exceeds its limit and needs most: "needs 45.2 GiB on
/// rank 0; the limit is 40.0 GiB; 5.2 GiB too much: optimizer 20.1 GiB, activations 18.0 GiB, …".
std::string MisfitText(const Run& run);

/// How much of each kind of memory is left once something is changed, roughly: 0.5 is half.
struct MemoryShares {
  double parameters = 1;
  double gradients = 1;
  double optimizer = 1;
  double activations = 1;
};

/// A neighbour of a candidate.
struct Remedy {
  std::string change;  // "--pp 8"
  Candidate candidate;
  MemoryShares shares = {};
  Bytes peak_memory = {};  // once it has been played
  Duration step_time = {};
};

/// The neighbours of `candidate` that are worth a try where it does not fit, each with one thing
/// changed: more microbatches, more pipeline stages or horizontal ranks (in place of data-parallel
/// ones, or on devices that have nothing to do), ZeRO, recomputation. First those that are likely
/// to cost least time.
std::vector<Remedy> Neighbours(const Setting& setting, const Candidate& candidate);

/// What was played.
struct Remedies {
  std::vector<Remedy> fit;
  std::optional<Remedy> least = {};  // of those that do not, that of the least memory
};

/// Which of the neighbours fit, and where `enough` of them do not, of those with ZeRO and
/// recomputation, or with more microbatches besides. Plays at most `most_tries`: those of which the
/// memory of `run`, that of the candidate, lets one hope that they fit. Of those that differ by
/// numbers alone two are enough.
Remedies FindRemedies(const Setting& setting, const Candidate& candidate, const Run& run,
                      size_t enough = 4, size_t most_tries = 12);

/// "would fit with --micro-batches 32 (38.1 GiB, 1.2 s a step), --pp 8 (…)"; where there are none,
/// that none of what was tried would do, and how near it came.
std::string RemediesText(const Remedies& remedies);

/// Both texts, a line each, of a run that does not fit.
std::string MisfitAndRemedies(const Setting& setting, const Candidate& candidate, const Run& run);

/// The same of the result that comes closest to fitting, its flags first; empty where all that ran
/// fit, or none did run.
std::string ClosestMisfit(const Setting& setting, const std::vector<Result>& results);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_MEMORY_FIT_H_
