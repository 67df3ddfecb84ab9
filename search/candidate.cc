#include "search/candidate.h"

#include "absl/strings/str_cat.h"

namespace orrery::search {

std::string ToString(const Candidate& candidate) {
  return absl::StrCat("--dp ", candidate.dp, " --hp ", candidate.hp, " --pp ", candidate.pp,
                      " --micro-batches ", candidate.microbatches, " --schedule ",
                      candidate.schedule);
}

}  // namespace orrery::search
