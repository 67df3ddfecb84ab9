#include "search/space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/slices.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {
namespace {

// The values of the list, or the divisors of `n` when it is empty.
std::vector<int64_t> Choices(const std::vector<int64_t>& list, int64_t n) {
  return list.empty() ? Divisors(n) : list;
}

std::vector<int64_t> DistirMicrobatches(int64_t share, int64_t pp) {
  if (pp == 1) return {1};
  int64_t log2 = 0;
  while ((share >> (log2 + 1)) > 0) ++log2;
  std::vector<int64_t> counts;
  for (int64_t power = 1; power <= log2 / 2 - 1; ++power) counts.push_back(int64_t{1} << power);
  return counts;
}

std::vector<int64_t> Microbatches(const Space& space, int64_t batch_size, const Candidate& c) {
  if (!space.microbatches.empty()) return space.microbatches;
  const int64_t share = std::max<int64_t>(1, batch_size / c.dp / c.ep);
  return space.distir_microbatches ? DistirMicrobatches(share, c.pp) : Divisors(share);
}

// Beyond 8 a stage the pipeline is full for nine tenths of the time, and kernels only get smaller.
std::vector<int64_t> SliceCounts(const Space& space, const Candidate& c) {
  if (space.slices > 0) return {space.slices};
  std::vector<int64_t> counts = Divisors(std::max<int64_t>(space.sequence, 1));
  std::erase_if(counts, [&](int64_t count) { return count > 8 * c.pp; });
  return counts;
}

// The ranks of the candidate, or something above `most` when they are more.
int64_t RanksOf(const Candidate& candidate, int64_t most) {
  int64_t ranks = 1;
  for (const int64_t degree :
       {candidate.dp, candidate.hp, candidate.pp, candidate.cp, candidate.ep}) {
    if (degree > most / ranks) return most + 1;
    ranks *= degree;
  }
  return ranks;
}

// Only some schedules leave it open how many stages a rank holds.
std::vector<int64_t> ChunksOf(const Space& space, const std::string& schedule) {
  const auto found = transforms::FindSchedule(schedule);
  return found.ok() && (*found)->chunks == 0 ? space.chunks : std::vector<int64_t>{0};
}

// Whether several ranks do the same to different data.
bool SharesData(const Candidate& candidate) {
  return candidate.dp * candidate.cp * candidate.ep > 1;
}

// The candidate with all chunks, stages of ZeRO, and all that may be computed again or offloaded.
void AddOptions(const Space& space, Candidate candidate, std::vector<Candidate>& candidates) {
  for (const int64_t chunks : ChunksOf(space, candidate.schedule)) {
    candidate.chunks = chunks;
    for (const int64_t zero : space.zero) {
      if (zero != space.zero.front() && !SharesData(candidate)) continue;
      candidate.zero = zero;
      for (const std::string& recompute : space.recompute) {
        candidate.recompute = recompute;
        for (const std::string& offload : space.offload) {
          candidate.offload = offload;
          candidates.push_back(candidate);
        }
      }
    }
  }
}

// The same with all numbers of microbatches and all schedules.
void AddVariants(const Space& space, int64_t batch_size, Candidate candidate,
                 std::vector<Candidate>& candidates) {
  const bool open = space.microbatches.empty();
  for (const bool slices : {false, true}) {
    if (slices && !open) break;
    const std::vector<int64_t> counts =
        slices ? SliceCounts(space, candidate) : Microbatches(space, batch_size, candidate);
    for (const int64_t microbatches : counts) {
      candidate.microbatches = microbatches;
      for (const std::string& schedule : space.schedules) {
        if (open && SlicesSequence(schedule) != slices) continue;
        candidate.schedule = schedule;
        AddOptions(space, candidate, candidates);
      }
    }
  }
}

}  // namespace

std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

absl::StatusOr<std::vector<Candidate>> Enumerate(const Space& space, int64_t devices,
                                                 int64_t batch_size) {
  const bool open = space.dp.empty() || space.hp.empty() || space.pp.empty();
  const auto fits = [&](int64_t ranks) { return open ? ranks == devices : ranks <= devices; };
  std::vector<Candidate> candidates;
  for (const int64_t dp : Choices(space.dp, devices)) {
    for (const int64_t hp : Choices(space.hp, devices)) {
      for (const int64_t pp : Choices(space.pp, devices)) {
        for (const int64_t cp : space.cp) {
          for (const int64_t ep : space.ep) {
            Candidate candidate{.dp = dp, .hp = hp, .pp = pp, .cp = cp, .ep = ep};
            if (fits(RanksOf(candidate, devices))) {
              AddVariants(space, batch_size, std::move(candidate), candidates);
            }
          }
        }
      }
    }
  }
  if (!candidates.empty()) return candidates;
  return absl::InvalidArgumentError(absl::StrCat(
      "no degrees dp, hp, pp, cp, ep in the lists make ", open ? "" : "at most ", devices,
      " devices; try leaving one of --dp, --hp, --pp out, or smaller --cp and --ep"));
}

}  // namespace orrery::search
