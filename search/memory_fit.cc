#include "search/memory_fit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/model_facts.h"
#include "simulator/report/report_details.h"
#include "support/check.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace memory_fit_cc {
namespace {

using simulator::MemoryKind;
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

// As PlayBudget counts it, a fifth of a second: so much advice may take whatever the run took.
constexpr int64_t kLittleWork = 2'000'000;
// Of those that differ by one number alone.
constexpr int kEnoughOfAKind = 2;

using transforms::AxisInfo;
using transforms::Pairing;
using transforms::Suggestion;

std::vector<Suggestion> SuggestionsOf(const AxisInfo& axis, const Setting& setting,
                                      const ParallelPlan& plan) {
  std::vector<Suggestion> suggestions;
  if (axis.suggest == nullptr) return suggestions;
  const transforms::SuggestionQuestion question = {.devices = setting.cluster.size(),
                                                   .batch_size = setting.batch_size,
                                                   .sequence = ir::SequenceLength(setting.step)};
  axis.suggest(axis, question, plan, suggestions);
  return suggestions;
}

// Both changes.
Suggestion Both(const Suggestion& first, Suggestion second) {
  second.change = absl::StrCat(first.change, " ", second.change);
  second.shares.parameters *= first.shares.parameters;
  second.shares.gradients *= first.shares.gradients;
  second.shares.optimizer *= first.shares.optimizer;
  second.shares.activations *= first.shares.activations;
  return second;
}

// Two changes that are each worth a try beside another, states that are sharded and activations
// that are made anew, say; then what goes with any, as more microbatches do.
std::vector<Suggestion> SecondNeighbours(const Setting& setting, const ParallelPlan& plan) {
  const std::span<const AxisInfo* const> axes = transforms::AllAxes();
  std::vector<Suggestion> seconds;
  for (size_t i = 0; i < axes.size(); ++i) {
    for (const Suggestion& first : SuggestionsOf(*axes[i], setting, plan)) {
      if (first.pairing != Pairing::kAnother) continue;
      for (const AxisInfo* other : axes.subspan(i + 1)) {
        for (const Suggestion& second : SuggestionsOf(*other, setting, first.plan)) {
          if (second.pairing == Pairing::kAnother) seconds.push_back(Both(first, second));
        }
      }
    }
  }
  for (const Suggestion& first : Neighbours(setting, plan)) {
    if (first.pairing != Pairing::kAny) continue;
    for (const Suggestion& second : Neighbours(setting, first.plan)) {
      if (second.pairing != Pairing::kAny) seconds.push_back(Both(first, second));
    }
  }
  return seconds;
}

// The change without its numbers.
std::string KindOf(const Suggestion& suggestion) {
  std::string kind = suggestion.change;
  std::erase_if(kind, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
  return kind;
}

// What `use` would be, roughly; in bytes.
double Estimate(const simulator::MemoryUse& use, const transforms::MemoryShares& shares) {
  const auto bytes = [&](MemoryKind kind, double share) {
    return share * static_cast<double>(use.of(kind).count());
  };
  return bytes(MemoryKind::kParameters, shares.parameters) +
         bytes(MemoryKind::kGradients, shares.gradients) +
         bytes(MemoryKind::kOptimizer, shares.optimizer) +
         bytes(MemoryKind::kActivations, shares.activations) + bytes(MemoryKind::kBuffers, 1) +
         bytes(MemoryKind::kOther, 1);
}

// Plays one after the other: all ways of each, but of the second half of the work the first way of
// each alone.
class SuggestionPlayer {
 public:
  SuggestionPlayer(const Setting& setting, int64_t work, size_t enough)
      : setting_(setting),
        enough_(enough),
        half_(std::max(work, kLittleWork) / 2),
        left_(2 * half_) {}

  bool done() const { return found_.fit.size() == enough_ || left_ <= 0; }
  bool hurries() const { return left_ <= half_; }
  const PlayedSuggestions& found() const { return found_; }

  // False: enough are known that are alike.
  bool Try(Suggestion suggestion) {
    int& alike = of_kind_[KindOf(suggestion)];
    if (alike == kEnoughOfAKind) return false;
    const int64_t share = hurries() ? 1 : left_ - half_;
    PlayBudget budget{.left = share};
    const absl::StatusOr<Run> played = PlayForFigures(setting_, suggestion.plan, budget);
    left_ -= share - budget.left;
    found_.work += share - budget.left;
    if (!played.ok()) return true;
    PlayedSuggestion tried{.suggestion = std::move(suggestion),
                           .peak_memory = played->report.peak_memory,
                           .step_time = played->report.step_time,
                           .at_most = !played->all_ways};
    if (played->report.fits) {
      ++alike;
      found_.fit.push_back(std::move(tried));
    } else if (!played->all_ways) {
      found_.open.push_back(tried.suggestion.change);
    } else if (!found_.least.has_value() || tried.peak_memory < found_.least->peak_memory) {
      found_.least = std::move(tried);
    }
    return true;
  }

 private:
  const Setting& setting_;
  const size_t enough_;
  const int64_t half_;  // of all work, as PlayBudget counts it
  int64_t left_;
  absl::flat_hash_map<std::string, int> of_kind_;
  PlayedSuggestions found_;
};

}  // namespace
}  // namespace memory_fit_cc

std::string MisfitText(const Run& run) {
  const simulator::RankClassId worst = memory_fit_cc::WorstRank(run);
  const simulator::RankClass& rank = run.program.rank(worst);
  const simulator::MemoryUse& use = run.report.ranks[worst].memory;
  return absl::StrCat("needs ", ToString(use.total), " on rank ", rank.members.front(),
                      "; the limit is ", ToString(rank.capacity), "; ",
                      ToString(use.total - rank.capacity),
                      " too much: ", simulator::CompositionText(use));
}

std::vector<transforms::Suggestion> Neighbours(const Setting& setting, const ParallelPlan& plan) {
  std::vector<transforms::Suggestion> neighbours;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    for (transforms::Suggestion& suggestion : memory_fit_cc::SuggestionsOf(*axis, setting, plan)) {
      neighbours.push_back(std::move(suggestion));
    }
  }
  std::ranges::stable_sort(neighbours, {}, &transforms::Suggestion::rank);
  return neighbours;
}

PlayedSuggestions PlaySuggestions(const Setting& setting, const ParallelPlan& plan, const Run& run,
                                  size_t enough, size_t most_tries) {
  constexpr double kHope = 1.2;  // an estimate so much above the limit is still tried
  const simulator::RankClassId worst = memory_fit_cc::WorstRank(run);
  const auto limit = static_cast<double>(run.program.rank(worst).capacity.count());
  const auto estimate = [&](const transforms::Suggestion& suggestion) {
    return memory_fit_cc::Estimate(run.report.ranks[worst].memory, suggestion.shares);
  };
  std::vector<transforms::Suggestion> suggestions = Neighbours(setting, plan);
  for (transforms::Suggestion& second : memory_fit_cc::SecondNeighbours(setting, plan)) {
    suggestions.push_back(std::move(second));
  }
  std::erase_if(suggestions, [&](const transforms::Suggestion& suggestion) {
    return estimate(suggestion) > kHope * limit;
  });
  memory_fit_cc::SuggestionPlayer player(setting, run.work, enough);
  size_t tries = 0, next = 0;
  for (bool hurries = false; next < suggestions.size(); ++next) {
    if (player.done() || tries == most_tries) break;
    if (player.hurries() && !hurries) {
      hurries = true;
      std::stable_partition(suggestions.begin() + static_cast<std::ptrdiff_t>(next),
                            suggestions.end(),
                            [&](const transforms::Suggestion& s) { return estimate(s) <= limit; });
    }
    if (player.Try(std::move(suggestions[next]))) ++tries;
  }
  return player.found();
}

std::string SuggestionsText(const PlayedSuggestions& found) {
  const auto text_of = [](const PlayedSuggestion& tried) {
    return absl::StrCat(tried.suggestion.change, " (", ToString(tried.peak_memory), ", ",
                        tried.at_most ? "at most " : "", ToString(tried.step_time), " a step)");
  };
  std::string text;
  for (const PlayedSuggestion& tried : found.fit) {
    absl::StrAppend(&text, text.empty() ? "would fit with " : ", ", text_of(tried));
  }
  if (!text.empty()) return text;
  text = "nothing that was tried would make it fit";
  if (found.least.has_value()) absl::StrAppend(&text, "; least: ", text_of(*found.least));
  if (!found.open.empty()) {
    absl::StrAppend(&text, "; would take longer to try: ", absl::StrJoin(found.open, ", "));
  }
  return text;
}

std::string MisfitAndSuggestions(const Setting& setting, const ParallelPlan& plan, const Run& run) {
  return absl::StrCat(MisfitText(run), ";\n", SuggestionsText(PlaySuggestions(setting, plan, run)),
                      "\n");
}

namespace memory_fit_cc {
namespace {

// A row that lacks memory, with its play.
struct Misfit {
  std::optional<Result> row;
  std::optional<Run> run;
};

// The row that needs least. Of rows that were not played only a bound is known: they are played in
// the order of their bounds until none can need less, or so many have been.
Misfit FindClosest(const SettingOf& setting_of, const SearchRows& rows,
                   std::vector<std::pair<Bytes, size_t>> misfits) {
  constexpr int kMostPlays = 4;
  std::ranges::stable_sort(misfits, {}, &std::pair<Bytes, size_t>::first);
  Misfit closest;
  Bytes least;
  int plays = 0;
  for (const auto& [bound, i] : misfits) {
    if (closest.row.has_value() && bound >= least) break;
    const Result* const played = rows.Played(i);
    const bool ran = played != nullptr && played->ran;
    if (!ran && plays == kMostPlays) continue;
    plays += ran ? 0 : 1;
    Result row = rows[i];
    PlayBudget unlimited;
    absl::StatusOr<Run> run = PlayForFigures(setting_of(row.plan), row.plan, unlimited);
    if (!run.ok()) continue;
    const Bytes peak = ran ? bound : run->report.peak_memory;
    if (closest.row.has_value() && peak >= least) continue;
    closest = {.row = std::move(row), .run = *std::move(run)};
    least = peak;
  }
  return closest;
}

}  // namespace
}  // namespace memory_fit_cc

std::string ClosestMisfit(const SettingOf& setting_of, const SearchRows& rows) {
  std::vector<std::pair<Bytes, size_t>> misfits;  // what each needs at least, and its place
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.IsPruned(i) || rows.IsLeft(i)) continue;
    const Result* const played = rows.Played(i);
    const bool lacks_memory =
        played == nullptr ||
        (played->infeasible.has_value() && played->infeasible->reason == InfeasibleReason::kMemory);
    if (played != nullptr && (played->fits || !(played->ran || lacks_memory))) continue;
    misfits.emplace_back(rows.MemoryOf(i), i);
  }
  const memory_fit_cc::Misfit closest =
      memory_fit_cc::FindClosest(setting_of, rows, std::move(misfits));
  if (!closest.row.has_value()) return "";
  const Setting& setting = setting_of(closest.row->plan);
  return absl::StrCat("closest: ", ToString(closest.row->plan, setting.base), "\n",
                      MisfitAndSuggestions(setting, closest.row->plan, *closest.run));
}

}  // namespace orrery::search
