#ifndef ORRERY_SEARCH_MEMORY_FIT_H_
#define ORRERY_SEARCH_MEMORY_FIT_H_

#include <string>
#include <vector>

#include "search/evaluate.h"

// What does not fit: by how much, what the memory is made of, and what would make it fit.

namespace orrery::search {

/// Of a run that does not fit, the rank that exceeds its limit and needs most: "needs 45.2 GiB on
/// rank 0; the limit is 40.0 GiB; 5.2 GiB too much: optimizer 20.1 GiB, activations 18.0 GiB, …".
std::string MisfitText(const Run& run);

/// A neighbour of a candidate that fits.
struct Remedy {
  std::string change;  // "--pp 8"
  Candidate candidate;
  Bytes peak_memory = {};  // once it has been played
  Duration step_time = {};
};

/// The neighbours of `candidate` that are worth a try where it does not fit, each with one thing
/// changed: more microbatches, more pipeline stages or horizontal ranks (in place of data-parallel
/// ones, or on devices that have nothing to do), ZeRO, recomputation. By what they cost: first
/// those that are likely to cost least time.
std::vector<Remedy> Neighbours(const Setting& setting, const Candidate& candidate);

/// Those of the neighbours that fit, found by playing at most `most_tries` of them, until `enough`
/// are found.
std::vector<Remedy> FindRemedies(const Setting& setting, const Candidate& candidate,
                                 size_t enough = 4, size_t most_tries = 16);

/// "would fit with --micro-batches 32 (38.1 GiB, 1.2 s a step), --pp 8 (…)"; where there are none,
/// that none of what was tried would do.
std::string RemediesText(const std::vector<Remedy>& remedies);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_MEMORY_FIT_H_
