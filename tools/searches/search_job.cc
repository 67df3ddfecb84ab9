#include "tools/searches/search_job.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "search/journal/journal.h"
#include "search/journal/merge.h"
#include "support/status.h"
#include "support/threads.h"
#include "tools/searches/search_progress.h"
#include "tools/searches/search_question.h"
#include "tools/team/shared_search.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/terminal.h"

namespace orrery::tools {

int32_t Threads(const JobFlags& flags) {
  return flags.threads > 0 ? flags.threads : OwnProcessors();
}

namespace search_job_cc {
namespace {

using search::KnownResults;
using search::Result;

void WarnOfDamage(const std::string& path, const search::JournalContents& contents) {
  if (contents.damaged == 0) return;
  Warn(absl::StrCat(path, ": ", contents.damaged,
                    " damaged lines are passed over; their candidates are done again"));
}

absl::StatusOr<search::Part> PartOf(const JobFlags& flags) {
  if (flags.part.empty()) return search::Part();
  return Annotated(search::ParsePart(flags.part), "`part`");
}

// In which order, and how much.
struct Way {
  search::Method method = &search::kExhaustiveMethod;
  search::SearchBudget budget = {};
};

// Whether it says what bounds do not.
bool SaysMoreThanBounds(const Result& result) {
  return result.ran ||
         (result.infeasible.has_value() && result.infeasible->reason != InfeasibleReason::kMemory);
}

bool IsAlone(const JobFlags& flags, const Team* team) {
  return team == nullptr && flags.part.empty() && flags.merge.empty() && flags.resume.empty();
}

// Whether there are so many candidates that nobody waits for all of them who does not say so.
bool IsTooMuch(const JobFlags& flags, const SearchJob& job) {
  constexpr size_t kMany = 100'000;
  const bool all = job.top == 0 || flags.method == "exhaustive" || !flags.budget.empty();
  const bool many = job.plans.size() > kMany || !job.held.empty();
  return many && IsAlone(flags, job.team) && !all;
}

// Who has little time, and says no more, wants what is near the best soon.
absl::StatusOr<Way> WayOf(const JobFlags& flags) {
  Way way;
  if (!flags.budget.empty()) {
    ORRERY_ASSIGN_OR_RETURN(way.budget, Annotated(search::ParseBudget(flags.budget), "`budget`"));
    way.method = &search::kBeamMethod;
  }
  if (!flags.method.empty()) {
    ORRERY_ASSIGN_OR_RETURN(way.method, Annotated(search::ParseMethod(flags.method), "`method`"));
  }
  return way;
}

// A search that is done here, as far as it is this process's: plans of the part alone, by their
// places in the whole.
class LocalSearch {
 public:
  LocalSearch(const JobFlags& flags, const SearchJob& job, const search::Part& part)
      : flags_(flags),
        job_(job),
        header_{job.question, part},
        places_(part.is_whole() ? std::vector<size_t>()
                                : search::CandidatesOf(part, job.plans.size())),
        // Rows outlive this.
        plans_(part.is_whole() ? search::PlansView(job.plans) : OfPlaces(job.plans, places_)),
        progress_(plans_.size(), ShowsProgress(), !flags.budget.empty() || IsTooMuch(flags, job)) {}

  absl::StatusOr<JobOutcome> Run() {
    ORRERY_RETURN_IF_ERROR(OpenJournal());
    const StopOnSignals signals;
    if (job_.team != nullptr) ORRERY_RETURN_IF_ERROR(Serve(signals.stop()));
    ORRERY_ASSIGN_OR_RETURN(Way way, WayOf(flags_));
    if (IsTooMuch(flags_, job_)) way = Limited(way);
    if (!job_.held.empty()) NoteHeld();
    search::SearchOptions options = {
        .threads = Threads(flags_),
        .relief = job_.relief,
        .top = job_.top,
        .goal = job_.goal,
        .known = &known_,
        .finished = [&](size_t i, const auto& found) { Finished(i, found); },
        .tells_unplayed = journal_.has_value(),
        .stop = &signals.stop(),
        .method = way.method,
        .budget = way.budget,
        .begun = job_.begun,
        .seed = static_cast<uint32_t>(flags_.seed),
        .stand_for_others = !job_.held.empty(),
        .neighbours = [&](size_t i) { return job_.plans.Neighbours(i); },
        .family = [&](size_t i) { return job_.plans.FamilyOf(i); },
        .changes = [&](size_t i) { return job_.plans.ChangesOf(i); },
        .features = [&](size_t i) { return job_.plans.FeaturesOf(i); }};
    if (!job_.held.empty()) options.budget = MostOf(way.budget);
    ORRERY_ASSIGN_OR_RETURN(search::SearchRows results,
                            search::SearchThrough(job_.setting_of, plans_, options));
    size_t candidates = plans_.size();
    if (!job_.held.empty() && !signals.stop()) {
      options.budget = way.budget;
      const int64_t left = way.budget.candidates - Spent(results);
      std::vector<search::ParallelPlan> variants = VariantsOfBest(results);
      candidates += variants.size();
      results = {};
      ORRERY_ASSIGN_OR_RETURN(results, SearchVariants(std::move(variants), options, left));
    }
    const bool stopped = signals.stop();
    const size_t missing = candidates - known_.size() - found_;
    return JobOutcome{.results = std::move(results),
                      .candidates = candidates,
                      .stopped = missing > 0 && (stopped || !way.budget.is_limited()),
                      .is_part = !header_.part.is_whole(),
                      .missing = missing,
                      .journal = failed_};
  }

 private:
  absl::Status OpenJournal() {
    if (flags_.resume.empty()) return absl::OkStatus();
    ORRERY_ASSIGN_OR_RETURN(search::Journal journal, search::Journal::Open(flags_.resume, header_));
    journal_.emplace(std::move(journal));
    WarnOfDamage(flags_.resume, journal_->contents());
    ORRERY_ASSIGN_OR_RETURN(
        KnownResults known,
        Annotated(search::ResultsOf(journal_->contents(), job_.plans), flags_.resume));
    for (auto& [place, results] : known) {
      progress_.Known(results);
      known_[Local(place)] = std::move(results);
    }
    return absl::OkStatus();
  }

  void NoteHeld() const {
    const auto append = [](std::string* text, const transforms::AxisInfo* axis) {
      absl::StrAppend(text, "--", axis->flag);
    };
    tools::Note(absl::StrCat(
        "too many plans to list: those that differ in ", absl::StrJoin(job_.held, ", ", append),
        " alone have one to stand for them, the first; of the best they are tried at the end"));
  }

  // What is left of it is for the variants of the best.
  static search::SearchBudget MostOf(search::SearchBudget budget) {
    constexpr double kMost = 2.0 / 3;
    budget.seconds *= kMost;
    if (budget.candidates > 1) {
      budget.candidates = static_cast<int64_t>(kMost * static_cast<double>(budget.candidates));
    }
    return budget;
  }

  // The results of the first round of candidates that ran, without what was tried in their place.
  std::vector<const Result*> Ran(const search::SearchRows& results) const {
    std::vector<const Result*> ran;
    for (size_t i = 0; i < std::min(plans_.size(), results.size()); ++i) {
      const Result* const result = results.Played(i);
      if (result != nullptr && result->ran) ran.push_back(result);
    }
    return ran;
  }

  // How many were played that count: of what is beaten by others it depends on threads whether it
  // was.
  int64_t Spent(const search::SearchRows& results) const { return std::ssize(Ran(results)); }

  // Where none fits: those that need least memory.
  std::vector<const Result*> Smallest(const search::SearchRows& results) const {
    std::vector<const Result*> smallest = Ran(results);
    std::ranges::stable_sort(smallest, {}, &Result::peak_memory);
    return smallest;
  }

  // The plans that the best stand for, those of the very best first.
  std::vector<search::ParallelPlan> VariantsOfBest(const search::SearchRows& results) const {
    std::vector<const Result*> best = search::Ranked(results);
    if (best.empty()) best = Smallest(results);
    if (std::ssize(best) > job_.top) best.resize(static_cast<size_t>(job_.top));
    std::vector<search::ParallelPlan> variants;
    for (const Result* one : best) {
      std::ranges::move(job_.variants(one->plan), std::back_inserter(variants));
    }
    return variants;
  }

  // All rows again, behind those of the first round the variants.
  absl::StatusOr<search::SearchRows> SearchVariants(std::vector<search::ParallelPlan> variants,
                                                    search::SearchOptions options, int64_t left) {
    const size_t first = plans_.size(), all = first + variants.size();
    const auto further =
        std::make_shared<const std::vector<search::ParallelPlan>>(std::move(variants));
    // Places stay the same.
    const search::PlansView plans(all, [listed = plans_, further](size_t i) {
      return i < listed.size() ? listed[i] : (*further)[i - listed.size()];
    });
    known_ = std::exchange(played_, {});
    found_ = 0;
    counted_ = first;
    progress_.More(all - first);
    size_t at = first;
    const bool counts = options.budget.candidates > 0;
    options.next = [&]() -> std::optional<size_t> {
      if (at == all || (counts && left-- <= 0)) return std::nullopt;
      return at++;
    };
    return search::SearchThrough(job_.setting_of, plans, options);
  }

  Way Limited(const Way& way) const {
    constexpr double kSeconds = 8, kSecondsEach = 6e-6;
    const auto candidates = static_cast<double>(plans_.size());
    const search::SearchBudget budget = {.seconds =
                                             std::round(kSeconds + kSecondsEach * candidates)};
    tools::Note(absl::StrCat(plans_.size(), " candidates: the most promising within ",
                             ToString(budget),
                             "; --budget 10min tries more of them, --method exhaustive all"));
    return {.method = flags_.method.empty() ? &search::kBeamMethod : way.method, .budget = budget};
  }

  static search::PlansView OfPlaces(const search::PlanList& plans,
                                    const std::vector<size_t>& places) {
    return {places.size(), [&plans, own = std::make_shared<const std::vector<size_t>>(places)](
                               size_t i) { return plans[(*own)[i]]; }};
  }

  size_t Place(size_t i) const { return header_.part.is_whole() ? i : places_[i]; }
  size_t Local(size_t place) const {
    if (header_.part.is_whole()) return place;
    return static_cast<size_t>(std::ranges::lower_bound(places_, place) - places_.begin());
  }

  void Note(const std::string& record) {
    if (!journal_.has_value() || !failed_.ok()) return;
    failed_ = journal_->Append(record);
    if (!failed_.ok()) Warn(absl::StrCat(failed_.message(), "; the search goes on"));
  }

  void Finished(size_t i, const std::vector<Result>& results) {
    ++found_;
    if (!job_.held.empty() && std::ranges::any_of(results, search_job_cc::SaysMoreThanBounds)) {
      played_[i] = results;
    }
    if (journal_.has_value()) Note(search::RecordText({Place(i), results}, plans_[i]));
    if (i >= counted_) progress_.Done(results);
  }

  // Others of the team find what is not known.
  absl::Status Serve(const std::atomic<bool>& stop) {
    SharedWork work = {.question = search::HeaderText(header_), .left = {}, .stop = &stop};
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (!known_.contains(i)) work.left.push_back(Place(i));
    }
    work.record = [&](const std::string& record) -> absl::Status {
      ORRERY_ASSIGN_OR_RETURN(search::CandidateResults done,
                              search::ParseRecord(record, job_.plans));
      if (!search::Has(header_.part, done.candidate)) {
        return absl::InternalError(absl::StrCat("candidate ", done.candidate, " was not asked"));
      }
      Note(record);
      progress_.Done(done.results);
      known_[Local(done.candidate)] = std::move(done.results);
      return absl::OkStatus();
    };
    return ServeTeam(*job_.team, std::move(work));
  }

  const JobFlags& flags_;
  const SearchJob& job_;
  const search::JournalHeader header_;
  const std::vector<size_t> places_;  // of a part
  const search::PlansView plans_;     // of the part
  KnownResults known_;                // by their places in the part
  KnownResults played_;               // where plans stand for others: of the first round
  size_t found_ = 0;
  size_t counted_ = 0;  // candidates before it are, as progress
  std::optional<search::Journal> journal_;
  absl::Status failed_;
  SearchProgress progress_;
};

// What ranks but the first do.
absl::StatusOr<JobOutcome> Help(const JobFlags& flags, const SearchJob& job,
                                const search::Part& part) {
  const StopOnSignals signals;
  TeamMember member(*job.team, search::HeaderText({job.question, part}));
  const auto finished = [&](size_t i, const std::vector<Result>& results) {
    member.Send(search::RecordText({i, results}, job.plans[i]));
  };
  const auto found = search::SearchThrough(job.setting_of, job.plans,
                                           {.threads = Threads(flags),
                                            .relief = job.relief,
                                            .top = job.top,
                                            .goal = job.goal,
                                            .finished = finished,
                                            .stop = &signals.stop(),
                                            .next = [&] { return member.Next(); }});
  member.End(found.status());
  return JobOutcome{.results = {}, .is_told = false};
}

absl::StatusOr<JobOutcome> Merge(const JobFlags& flags, const SearchJob& job) {
  std::vector<search::NamedJournal> journals;
  for (const std::string& path : JournalFiles(flags.merge)) {
    ORRERY_ASSIGN_OR_RETURN(search::JournalContents contents, search::ReadJournal(path));
    journals.push_back({path, std::move(contents)});
  }
  ORRERY_ASSIGN_OR_RETURN(const KnownResults known,
                          search::MergeJournals(journals, job.question, job.plans));
  ORRERY_ASSIGN_OR_RETURN(search::SearchRows results,
                          search::SearchThrough(job.setting_of, job.plans,
                                                {.threads = Threads(flags),
                                                 .relief = job.relief,
                                                 .top = job.top,
                                                 .goal = job.goal,
                                                 .known = &known}));
  return JobOutcome{.results = std::move(results), .candidates = job.plans.size()};
}

}  // namespace
}  // namespace search_job_cc

absl::Status CheckJob(const JobFlags& flags) {
  if (!flags.merge.empty() && (!flags.part.empty() || !flags.resume.empty())) {
    return absl::InvalidArgumentError(
        "`merge` puts together what is done; wanted no `part` and no `resume` beside it");
  }
  ORRERY_ASSIGN_OR_RETURN(const search_job_cc::Way way, search_job_cc::WayOf(flags));
  if (flags.seed < 0 || flags.seed > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("`seed` ", flags.seed,
                                                   ": wanted a number from 0 to ",
                                                   std::numeric_limits<uint32_t>::max()));
  }
  const bool walks = way.budget.is_limited() || !way.method->by_bounds;
  if (walks && (!flags.merge.empty() || !flags.part.empty())) {
    return absl::InvalidArgumentError(
        "`method` and `budget` choose among all candidates; wanted no `part` and no `merge` beside "
        "them");
  }
  return search_job_cc::PartOf(flags).status();
}

bool PlaysSome(const JobFlags& flags, int64_t top, const Team* team) {
  const bool all = top == 0 || (flags.method == "exhaustive" && flags.budget.empty());
  return search_job_cc::IsAlone(flags, team) && !all;
}

bool NeedsQuestion(const JobFlags& flags, const Team* team) {
  return team != nullptr || !flags.resume.empty() || !flags.merge.empty();
}

absl::StatusOr<JobOutcome> RunJob(const JobFlags& flags, const SearchJob& job) {
  ORRERY_ASSIGN_OR_RETURN(const search::Part part, search_job_cc::PartOf(flags));
  ORRERY_ASSIGN_OR_RETURN(const search_job_cc::Way way, search_job_cc::WayOf(flags));
  if (job.team != nullptr && (way.budget.is_limited() || !way.method->by_bounds)) {
    return absl::InvalidArgumentError(
        "`method` and `budget` are of one process; wanted neither beside MPI");
  }
  if (job.team != nullptr && job.team->rank() > 0) {
    if (!flags.merge.empty()) return JobOutcome{.results = {}, .is_told = false};
    return search_job_cc::Help(flags, job, part);
  }
  if (!flags.merge.empty()) return search_job_cc::Merge(flags, job);
  return search_job_cc::LocalSearch(flags, job, part).Run();
}

}  // namespace orrery::tools
