#include "search/candidate.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace orrery::search {
namespace {

// A pattern may hold what a shell would read.
std::string Quoted(const std::string& text) {
  const bool plain = !absl::StartsWith(text, "match:") && !absl::StrContains(text, "activations:");
  if (plain) return text;
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string ToString(const Candidate& candidate, absl::string_view orders_file) {
  return absl::StrCat(
      "--dp ", candidate.dp, " --hp ", candidate.hp, " --pp ", candidate.pp,
      candidate.cp == 1 ? "" : absl::StrCat(" --cp ", candidate.cp),
      candidate.ep == 1 ? "" : absl::StrCat(" --ep ", candidate.ep), " --micro-batches ",
      candidate.microbatches,
      orders_file.empty() ? absl::StrCat(" --schedule ", candidate.schedule)
                          : absl::StrCat(" --schedule-file ", orders_file),
      candidate.chunks == 0 ? "" : absl::StrCat(" --chunks ", candidate.chunks),
      candidate.zero == 0 ? "" : absl::StrCat(" --zero ", candidate.zero),
      candidate.recompute == "none" ? ""
                                    : absl::StrCat(" --recompute ", Quoted(candidate.recompute)),
      candidate.offload == "none" ? "" : absl::StrCat(" --offload ", Quoted(candidate.offload)));
}

}  // namespace orrery::search
