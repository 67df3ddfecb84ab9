#ifndef ORRERY_SEARCH_CANDIDATE_H_
#define ORRERY_SEARCH_CANDIDATE_H_

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace orrery::search {

/// One configuration: what a search varies. A value that hashes, compares and prints.
struct Candidate {
  int64_t dp = 1;
  int64_t hp = 1;
  int64_t pp = 1;
  int64_t microbatches = 1;
  std::string schedule = "1f1b";
  int64_t cp = 1;
  int64_t ep = 1;
  int64_t chunks = 0;              // stages that a rank holds; 0: as the schedule has them
  int64_t zero = 0;                // the stage of ZeRO: transforms/zero.h
  std::string recompute = "none";  // as transforms::ParseRecomputePolicy reads it
  std::string offload = "none";    // as transforms::ParseOffloadPolicy reads it

  int64_t ranks() const { return dp * hp * pp * cp * ep; }

  friend auto operator<=>(const Candidate&, const Candidate&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Candidate& c) {
    return H::combine(std::move(h), c.dp, c.hp, c.pp, c.microbatches, c.schedule, c.cp, c.ep,
                      c.chunks, c.zero, c.recompute, c.offload);
  }
};

/// The candidate as flags that `simulate` takes: "--dp 4 --hp 2 --pp 2 --micro-batches 8 --schedule
/// 1f1b"; cp and ep only where they are more than 1, chunks where they are not left open, zero
/// where it is not 0, recompute and offload where they are not "none".
/// `orders_file`: that the orders come from, in place of a schedule's name; empty: none.
std::string ToString(const Candidate& candidate, absl::string_view orders_file = "");

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_CANDIDATE_H_
