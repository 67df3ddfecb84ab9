#include "search/candidate.h"

#include "absl/strings/str_cat.h"

namespace orrery::search {

std::string ToString(const Candidate& candidate) {
  return absl::StrCat("--dp ", candidate.dp, " --hp ", candidate.hp, " --pp ", candidate.pp,
                      candidate.cp == 1 ? "" : absl::StrCat(" --cp ", candidate.cp),
                      candidate.ep == 1 ? "" : absl::StrCat(" --ep ", candidate.ep),
                      " --micro-batches ", candidate.microbatches, " --schedule ",
                      candidate.schedule,
                      candidate.chunks == 0 ? "" : absl::StrCat(" --chunks ", candidate.chunks),
                      candidate.zero == 0 ? "" : absl::StrCat(" --zero ", candidate.zero));
}

}  // namespace orrery::search
