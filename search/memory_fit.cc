#include "search/memory_fit.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "simulator/report_details.h"
#include "support/check.h"

namespace orrery::search {
namespace {

using simulator::RankClassId;

RankClassId WorstRank(const Run& run) {
  RankClassId worst;
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankReport& report = run.report.ranks[RankClassId(r)];
    if (report.fits) continue;
    if (!worst.valid() || report.memory.total > run.report.ranks[worst].memory.total) {
      worst = RankClassId(r);
    }
  }
  ORRERY_CHECK(worst.valid()) << "every rank fits";
  return worst;
}

class NeighbourList {
 public:
  NeighbourList(const Setting& setting, const Candidate& candidate)
      : setting_(setting), candidate_(candidate) {}

  std::vector<Remedy> Make() && {
    AddMicrobatches();
    AddRecompute(candidate_, "selective");
    for (int64_t stage = 1; stage <= 3; ++stage) AddZero(candidate_, stage);
    for (int64_t factor = 2; factor <= 8; factor *= 2) {
      AddRanks(&Candidate::pp, "--pp ", factor);
      AddRanks(&Candidate::hp, "--hp ", factor);
    }
    AddRecompute(candidate_, "full");
    return std::move(list_);
  }

 private:
  void Add(std::string change, const Candidate& candidate) {
    list_.push_back({.change = std::move(change), .candidate = candidate});
  }

  void AddMicrobatches() {
    const int64_t samples = setting_.batch_size / (candidate_.dp * candidate_.ep);
    for (int64_t factor : {2, 4, 8}) {
      Candidate next = candidate_;
      next.microbatches *= factor;
      if (next.microbatches > samples || samples % next.microbatches != 0) return;
      Add(absl::StrCat("--micro-batches ", next.microbatches), next);
    }
  }

  // More ranks of one axis: on devices that are free, else from those of the data-parallel axis.
  void AddRanks(int64_t Candidate::*degree, absl::string_view flag, int64_t factor) {
    Candidate next = candidate_;
    next.*degree *= factor;
    std::string change = absl::StrCat(flag, next.*degree);
    if (next.ranks() > setting_.cluster.size()) {
      if (candidate_.dp % factor != 0) return;
      next.dp /= factor;
      absl::StrAppend(&change, " --dp ", next.dp);
    }
    Add(std::move(change), next);
  }

  // Generic, since not every version of a candidate has these fields.
  template <typename C>
  void AddZero(const C& candidate, int64_t stage) {
    if constexpr (requires(C c) { c.zero; }) {
      if (candidate.zero >= stage || candidate.dp == 1) return;
      C next = candidate;
      next.zero = stage;
      Add(absl::StrCat("--zero ", stage), next);
    }
  }
  template <typename C>
  void AddRecompute(const C& candidate, absl::string_view policy) {
    if constexpr (requires(C c) { c.recompute; }) {
      if (candidate.recompute == policy || candidate.recompute == "full") return;
      C next = candidate;
      next.recompute = policy;
      Add(absl::StrCat("--recompute ", policy), next);
    }
  }

  const Setting& setting_;
  const Candidate& candidate_;
  std::vector<Remedy> list_;
};

}  // namespace

std::string MisfitText(const Run& run) {
  const RankClassId worst = WorstRank(run);
  const simulator::RankClass& rank = run.program.rank(worst);
  const simulator::MemoryUse& use = run.report.ranks[worst].memory;
  return absl::StrCat("needs ", ToString(use.total), " on rank ", rank.members.front(),
                      "; the limit is ", ToString(rank.capacity), "; ",
                      ToString(use.total - rank.capacity),
                      " too much: ", simulator::CompositionText(use));
}

std::vector<Remedy> Neighbours(const Setting& setting, const Candidate& candidate) {
  return NeighbourList(setting, candidate).Make();
}

std::vector<Remedy> FindRemedies(const Setting& setting, const Candidate& candidate, size_t enough,
                                 size_t most_tries) {
  std::vector<Remedy> found;
  size_t tries = 0;
  for (Remedy& remedy : Neighbours(setting, candidate)) {
    if (found.size() == enough || tries++ == most_tries) break;
    const absl::StatusOr<Run> run = Play(setting, remedy.candidate);
    if (!run.ok() || !run->report.fits) continue;
    remedy.peak_memory = run->report.peak_memory;
    remedy.step_time = run->report.step_time;
    found.push_back(std::move(remedy));
  }
  return found;
}

std::string RemediesText(const std::vector<Remedy>& remedies) {
  if (remedies.empty()) return "nothing that was tried would make it fit";
  std::string text;
  for (const Remedy& remedy : remedies) {
    absl::StrAppend(&text, text.empty() ? "would fit with " : ", ", remedy.change, " (",
                    ToString(remedy.peak_memory), ", ", ToString(remedy.step_time), " a step)");
  }
  return text;
}

}  // namespace orrery::search
