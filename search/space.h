#ifndef ORRERY_SEARCH_SPACE_H_
#define ORRERY_SEARCH_SPACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/candidate.h"

namespace orrery::search {

/// What is varied. An empty list of dp, hp, pp or microbatches: every value that divides.
struct Space {
  std::vector<int64_t> dp = {}, hp = {}, pp = {}, microbatches = {};
  std::vector<std::string> schedules = {"1f1b"};
  std::vector<int64_t> cp = {1}, ep = {1};
  std::vector<int64_t> chunks = {0};  // of schedules with a choice; 0: as they have them
  std::vector<std::string> recompute = {"none"};
  std::vector<std::string> offload = {"none"};
  /// Stages of ZeRO. Where a candidate has no data parallelism, they are all one: the first counts.
  std::vector<int64_t> zero = {0};
  /// Positions of a sample (transforms::SequenceLength), for schedules whose microbatches are
  /// slices of them: where the list of microbatches is empty, they are cut into as many as divide
  /// them, up to 8 a stage. 0: there are none.
  int64_t sequence = 0;
  /// Into so many instead, where that list is empty; 0: left open.
  int64_t slices = 0;
  /// DistIR's own choice of microbatches where the list is empty: one without a pipeline, else the
  /// powers of two from 2 to 2^(floor(log2(batch/dp)/2) - 1).
  bool distir_microbatches = false;
};

/// The divisors of `n` >= 1, ascending.
std::vector<int64_t> Divisors(int64_t n);

/// All candidates for a cluster of `devices` and a batch of `batch_size` samples, in the order dp,
/// hp, pp, cp, ep, microbatches, schedule, chunks, zero, recompute, offload (the last one fastest);
/// schedules of slices come last, where the list of microbatches is empty.
/// Degrees that are left open multiply up to all devices; where all three are given, every
/// combination that the cluster has room for counts. An error when that leaves nothing.
absl::StatusOr<std::vector<Candidate>> Enumerate(const Space& space, int64_t devices,
                                                 int64_t batch_size);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACE_H_
