#include "search/journal/merge.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::search {
namespace merge_cc {
namespace {

std::string PartOf(const NamedJournal& journal) { return ToString(journal.contents.header.part); }

// The journals by their parts.
using Parts = std::map<int64_t, const NamedJournal*>;

// Whether the parts are those of one search, none twice.
absl::StatusOr<Parts> Arranged(std::span<const NamedJournal> journals) {
  Parts parts;
  for (const NamedJournal& journal : journals) {
    const Part& part = journal.contents.header.part;
    if (const NamedJournal& first = journals.front();
        part.count != first.contents.header.part.count) {
      return absl::InvalidArgumentError(
          absl::StrCat(journal.path, ": is part ", PartOf(journal), ", and ", first.path,
                       " is part ", PartOf(first), "; wanted parts of one number of parts"));
    }
    const auto [other, is_new] = parts.try_emplace(part.index, &journal);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat(journal.path, ": is part ", PartOf(journal),
                                                   ", as ", other->second->path,
                                                   " is; wanted each part once"));
  }
  return parts;
}

absl::Status CheckAllThere(const Parts& parts, int64_t count) {
  std::vector<int64_t> missing;
  for (int64_t i = 1; i <= count && missing.size() < 4; ++i) {
    if (!parts.contains(i)) missing.push_back(i);
  }
  if (missing.empty()) return absl::OkStatus();
  std::string names;
  for (const int64_t i : missing) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToString(Part{.index = i, .count = count}));
  }
  return absl::InvalidArgumentError(absl::StrCat("of ", count, " parts there are ", parts.size(),
                                                 " journals; wanted that of ", "part ", names,
                                                 ", too"));
}

}  // namespace
}  // namespace merge_cc

absl::StatusOr<KnownResults> MergeJournals(std::span<const NamedJournal> journals,
                                           const Question& question, const PlansView& plans) {
  if (journals.empty()) return absl::InvalidArgumentError("wanted the journals of all parts");
  for (const NamedJournal& journal : journals) {
    const std::string differ = Differences(journal.contents.header.question, question);
    if (differ.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(journal.path,
                                                   ": is the journal of another search: ", differ,
                                                   "; wanted those of the parts of one search"));
  }
  ORRERY_ASSIGN_OR_RETURN(const merge_cc::Parts parts, merge_cc::Arranged(journals));
  ORRERY_RETURN_IF_ERROR(
      merge_cc::CheckAllThere(parts, journals.front().contents.header.part.count));
  KnownResults all;
  for (const NamedJournal& journal : journals) {
    ORRERY_ASSIGN_OR_RETURN(KnownResults known,
                            Annotated(ResultsOf(journal.contents, plans), journal.path));
    const Part& part = journal.contents.header.part;
    const size_t wanted = CandidatesOf(part, plans.size()).size();
    if (known.size() < wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat(journal.path, ": has ", known.size(), " of the ", wanted,
                       " candidates of part ", ToString(part), "; try `part` ", ToString(part),
                       " with `resume` ", journal.path, ", which does the others"));
    }
    all.merge(known);
  }
  return all;
}

}  // namespace orrery::search
