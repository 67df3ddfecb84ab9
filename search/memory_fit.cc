#include "search/memory_fit.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "search/slices.h"
#include "simulator/report_details.h"
#include "support/check.h"
#include "transforms/slices.h"

namespace orrery::search {
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

constexpr int64_t kMostTimesMicrobatches = 64;
// Of those that differ by one number alone.
constexpr int kEnoughOfAKind = 2;

class NeighbourList {
 public:
  NeighbourList(const Setting& setting, const Candidate& candidate)
      : setting_(setting), candidate_(candidate) {}

  void AddMicrobatches() {
    if (SlicesSequence(candidate_.schedule)) return AddSlices();
    const int64_t samples = setting_.batch_size / (candidate_.dp * candidate_.ep);
    for (int64_t factor = 2; factor <= kMostTimesMicrobatches; factor *= 2) {
      Candidate next = candidate_;
      next.microbatches *= factor;
      if (next.microbatches > samples || samples % next.microbatches != 0) return;
      Add(absl::StrCat("--micro-batches ", next.microbatches), next,
          {.activations = 1.0 / static_cast<double>(factor)});
    }
  }

  void AddOthers() {
    AddRecompute("selective", 0.6);
    for (const int64_t stage : {1, 2, 3}) AddZero(stage);
    for (const int64_t factor : {2, 4, 8}) {
      // As many microbatches more are in flight as each stage has layers less.
      AddRanks(&Candidate::pp, "--pp ", factor, 1);
      AddRanks(&Candidate::hp, "--hp ", factor, 1.0 / static_cast<double>(factor));
    }
    AddRecompute("full", 0.1);
    AddOffload("optimizer", {.optimizer = 0});
    AddOffload("activations", {.activations = 0.2});
  }

  void AddZeroStages() {
    for (const int64_t stage : {1, 3}) AddZero(stage);
  }
  void AddRecomputes() {
    AddRecompute("selective", 0.6);
    AddRecompute("full", 0.1);
  }

  std::vector<Remedy> Take() && { return std::move(list_); }

 private:
  void Add(std::string change, const Candidate& candidate, const MemoryShares& shares) {
    list_.push_back({.change = std::move(change), .candidate = candidate, .shares = shares});
  }

  // More ranks of one axis: on devices that are free, else from those of the data-parallel axis.
  void AddRanks(int64_t Candidate::*degree, absl::string_view flag, int64_t factor,
                double activations) {
    Candidate next = candidate_;
    next.*degree *= factor;
    std::string change = absl::StrCat(flag, next.*degree);
    if (next.ranks() > setting_.cluster.size()) {
      if (candidate_.dp % factor != 0) return;
      next.dp /= factor;
      // A replica has a larger share of the batch.
      activations *= static_cast<double>(factor);
      absl::StrAppend(&change, " --dp ", next.dp);
    }
    const double part = 1.0 / static_cast<double>(factor);
    Add(std::move(change), next,
        {.parameters = part, .gradients = part, .optimizer = part, .activations = activations});
  }

  void AddZero(int64_t stage) {
    const int64_t ranks = candidate_.dp * candidate_.cp * candidate_.ep;
    if (candidate_.zero >= stage || ranks == 1) return;
    Candidate next = candidate_;
    next.zero = stage;
    const double part = 1.0 / static_cast<double>(ranks);
    Add(absl::StrCat("--zero ", stage), next,
        {.parameters = stage > 2 ? part : 1, .gradients = stage > 1 ? part : 1, .optimizer = part});
  }
  // All slices leave as much together, but what one holds while it works, logits say, is less.
  void AddSlices() {
    if (!setting_.slices.rows.empty()) return;
    const int64_t length = transforms::SequenceLength(setting_.step);
    for (const int64_t factor : {2, 4, 8}) {
      Candidate next = candidate_;
      next.microbatches *= factor;
      if (next.microbatches > length || length % next.microbatches != 0) return;
      Add(absl::StrCat("--micro-batches ", next.microbatches), next,
          {.activations = 1.0 / static_cast<double>(factor)});
    }
  }

  void AddRecompute(absl::string_view policy, double part) {
    if (candidate_.recompute == policy || candidate_.recompute == "full") return;
    Candidate next = candidate_;
    next.recompute = std::string(policy);
    Add(absl::StrCat("--recompute ", policy), next, {.activations = part});
  }
  void AddOffload(absl::string_view policy, const MemoryShares& shares) {
    if (candidate_.offload != "none") return;
    Candidate next = candidate_;
    next.offload = std::string(policy);
    Add(absl::StrCat("--offload ", policy), next, shares);
  }

  const Setting& setting_;
  const Candidate& candidate_;
  std::vector<Remedy> list_;
};

std::vector<Remedy> MoreMicrobatches(const Setting& setting, const Candidate& candidate) {
  NeighbourList list(setting, candidate);
  list.AddMicrobatches();
  return std::move(list).Take();
}

// What `add` adds to neighbours of each of `firsts`, with both changes.
void AddPairs(const Setting& setting, const std::vector<Remedy>& firsts,
              void (NeighbourList::*add)(), std::vector<Remedy>& pairs) {
  for (const Remedy& first : firsts) {
    NeighbourList list(setting, first.candidate);
    (list.*add)();
    for (Remedy& second : std::move(list).Take()) {
      second.change = absl::StrCat(first.change, " ", second.change);
      second.shares.parameters *= first.shares.parameters;
      second.shares.gradients *= first.shares.gradients;
      second.shares.optimizer *= first.shares.optimizer;
      second.shares.activations *= first.shares.activations;
      pairs.push_back(std::move(second));
    }
  }
}

// States that are shared out and activations that are made anew; then those with more microbatches
// and one thing more.
std::vector<Remedy> SecondNeighbours(const Setting& setting, const Candidate& candidate) {
  std::vector<Remedy> pairs;
  NeighbourList zero(setting, candidate);
  zero.AddZeroStages();
  AddPairs(setting, std::move(zero).Take(), &NeighbourList::AddRecomputes, pairs);
  AddPairs(setting, MoreMicrobatches(setting, candidate), &NeighbourList::AddOthers, pairs);
  return pairs;
}

// The change without its numbers.
std::string KindOf(const Remedy& remedy) {
  std::string kind = remedy.change;
  std::erase_if(kind, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
  return kind;
}

// What `use` would be, roughly; in bytes.
double Estimate(const simulator::MemoryUse& use, const MemoryShares& shares) {
  const auto bytes = [&](MemoryKind kind, double share) {
    return share * static_cast<double>(use.of(kind).count());
  };
  return bytes(MemoryKind::kParameters, shares.parameters) +
         bytes(MemoryKind::kGradients, shares.gradients) +
         bytes(MemoryKind::kOptimizer, shares.optimizer) +
         bytes(MemoryKind::kActivations, shares.activations) + bytes(MemoryKind::kBuffers, 1) +
         bytes(MemoryKind::kOther, 1);
}

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
  NeighbourList list(setting, candidate);
  list.AddMicrobatches();
  list.AddOthers();
  return std::move(list).Take();
}

Remedies FindRemedies(const Setting& setting, const Candidate& candidate, const Run& run,
                      size_t enough, size_t most_tries) {
  constexpr double kHope = 1.2;  // an estimate so much above the limit is still tried
  const RankClassId worst = WorstRank(run);
  const double limit = kHope * static_cast<double>(run.program.rank(worst).capacity.count());
  std::vector<Remedy> candidates = Neighbours(setting, candidate);
  for (Remedy& pair : SecondNeighbours(setting, candidate)) candidates.push_back(std::move(pair));
  Remedies remedies;
  absl::flat_hash_map<std::string, int> of_kind;
  size_t tries = 0;
  for (Remedy& remedy : candidates) {
    if (Estimate(run.report.ranks[worst].memory, remedy.shares) > limit) continue;
    if (remedies.fit.size() == enough || tries == most_tries) break;
    int& alike = of_kind[KindOf(remedy)];
    if (alike == kEnoughOfAKind) continue;
    ++tries;
    const absl::StatusOr<Run> played = Play(setting, remedy.candidate);
    if (!played.ok()) continue;
    remedy.peak_memory = played->report.peak_memory;
    remedy.step_time = played->report.step_time;
    if (played->report.fits) {
      ++alike;
      remedies.fit.push_back(std::move(remedy));
    } else if (!remedies.least.has_value() || remedy.peak_memory < remedies.least->peak_memory) {
      remedies.least = std::move(remedy);
    }
  }
  return remedies;
}

std::string RemediesText(const Remedies& remedies) {
  const auto text_of = [](const Remedy& remedy) {
    return absl::StrCat(remedy.change, " (", ToString(remedy.peak_memory), ", ",
                        ToString(remedy.step_time), " a step)");
  };
  std::string text;
  for (const Remedy& remedy : remedies.fit) {
    absl::StrAppend(&text, text.empty() ? "would fit with " : ", ", text_of(remedy));
  }
  if (!text.empty()) return text;
  return absl::StrCat(
      "nothing that was tried would make it fit",
      remedies.least.has_value() ? absl::StrCat("; least: ", text_of(*remedies.least)) : "");
}

std::string MisfitAndRemedies(const Setting& setting, const Candidate& candidate, const Run& run) {
  return absl::StrCat(MisfitText(run), ";\n", RemediesText(FindRemedies(setting, candidate, run)),
                      "\n");
}

std::string ClosestMisfit(const Setting& setting, const std::vector<Result>& results) {
  const Result* closest = nullptr;
  for (const Result& result : results) {
    if (!result.ran || result.fits) continue;
    if (closest == nullptr || result.peak_memory < closest->peak_memory) closest = &result;
  }
  if (closest == nullptr) return "";
  const absl::StatusOr<Run> run = Play(setting, closest->candidate);
  if (!run.ok()) return "";
  return absl::StrCat("closest: ", ToString(closest->candidate), "\n",
                      MisfitAndRemedies(setting, closest->candidate, *run));
}

}  // namespace orrery::search
