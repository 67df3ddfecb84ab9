#include "search/walks/methods.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace orrery::search {
namespace methods_cc {
namespace {

// What both walks share: where they begin, and where they go on once they know no neighbour.
class Beginnings {
 public:
  explicit Beginnings(const WalkQuestion& question) : question_(question) {
    if (!question_.family) return;
    std::set<uint64_t> families;
    for (const uint32_t i : question_.promising) {
      if (!question_.is_open(i) || !families.insert(question_.family(i)).second) continue;
      seeds_.push_back(i);
    }
  }

  // Of the next family that is begun by none, and by one that `counts`, that one.
  template <typename Counts>
  std::optional<size_t> Seed(const std::set<size_t>& taken, const Counts& counts) {
    while (seed_ < seeds_.size() && !question_.is_open(seeds_[seed_])) ++seed_;
    for (size_t at = seed_; at < seeds_.size(); ++at) {
      if (IsUsable(seeds_[at], taken) && counts(seeds_[at])) return seeds_[at];
    }
    return std::nullopt;
  }

  // The next open one: of each family the most promising first, then all in their order.
  std::optional<size_t> Next(const std::set<size_t>& taken) {
    const auto any = [](size_t) { return true; };
    if (const std::optional<size_t> seed = Seed(taken, any)) return seed;
    // What is closed once stays so; what is only taken comes again.
    while (next_ < question_.promising.size() && !question_.is_open(question_.promising[next_])) {
      ++next_;
    }
    for (size_t at = next_; at < question_.promising.size(); ++at) {
      if (IsUsable(question_.promising[at], taken)) return question_.promising[at];
    }
    return std::nullopt;
  }

 private:
  bool IsUsable(size_t i, const std::set<size_t>& taken) const {
    return question_.is_open(i) && !taken.contains(i);
  }

  const WalkQuestion& question_;
  std::vector<size_t> seeds_;
  size_t seed_ = 0, next_ = 0;
};

// All in the order in which they promise most.
class PromisingWalk final : public Walk {
 public:
  explicit PromisingWalk(WalkQuestion question)
      : question_(std::move(question)), starts_(question_) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    while (taken.size() < most) {
      const std::optional<size_t> next = starts_.Next(taken);
      if (!next.has_value()) break;
      taken.insert(*next);
    }
    return {taken.begin(), taken.end()};
  }
  void Found(size_t /*candidate*/, std::optional<WalkScore> /*score*/) override {}

 private:
  const WalkQuestion question_;
  Beginnings starts_;
};

class BeamWalk final : public Walk {
 public:
  explicit BeamWalk(WalkQuestion question) : question_(std::move(question)), starts_(question_) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    // By turns a beginning of another family, as long as there are promising ones, and neighbours
    // of the best.
    while (taken.size() < most) {
      const size_t before = taken.size();
      for (int turn = 0; turn < 2 && taken.size() == before; ++turn) {
        begins_ = !begins_;
        Take(begins_ ? NextSeed(taken) : NextNeighbour(taken), taken);
      }
      if (taken.size() == before) Take(starts_.Next(taken), taken);
      if (taken.size() == before) break;
    }
    return {taken.begin(), taken.end()};
  }

  void Found(size_t candidate, std::optional<WalkScore> score) override {
    if (!score.has_value()) return;
    beam_.emplace(*score, candidate);
    if (beam_.size() > kWidth) beam_.erase(std::prev(beam_.end()));
  }

 private:
  static constexpr size_t kWidth = 16;
  static constexpr double kHopeless = 1.25;  // times the best, of what is likely

  bool IsHopeless(size_t i) const {
    if (!question_.likely || beam_.empty()) return false;
    const WalkScore& best = beam_.begin()->first;
    return best.fits && question_.likely(i) > kHopeless * best.size;
  }

  static void Take(std::optional<size_t> candidate, std::set<size_t>& taken) {
    if (candidate.has_value()) taken.insert(*candidate);
  }

  std::optional<size_t> NextSeed(const std::set<size_t>& taken) {
    return starts_.Seed(taken, [this](size_t i) { return !IsHopeless(i); });
  }

  // Of the best that has an open one.
  std::optional<size_t> NextNeighbour(const std::set<size_t>& taken) {
    for (const auto& [score, candidate] : beam_) {
      auto [known, is_new] = neighbours_.try_emplace(candidate);
      std::vector<size_t>& left = known->second;
      if (is_new) {
        left = question_.neighbours(candidate);
        if (question_.likely) std::ranges::stable_sort(left, {}, question_.likely);
      }
      std::erase_if(left, [&](size_t i) { return !question_.is_open(i); });
      const auto found = std::ranges::find_if(left, [&](size_t i) { return !taken.contains(i); });
      if (found != left.end()) return *found;
    }
    return std::nullopt;
  }

  const WalkQuestion question_;
  Beginnings starts_;
  bool begins_ = false;  // the last was a beginning, or would have been
  std::set<std::pair<WalkScore, size_t>> beam_;
  std::map<size_t, std::vector<size_t>> neighbours_;  // looked up
};

class AnnealingWalk final : public Walk {
 public:
  explicit AnnealingWalk(WalkQuestion question)
      : question_(std::move(question)), starts_(question_), random_(question_.seed) {}

  std::vector<size_t> Next(size_t most, double spent) override {
    temperature_ = kHottest * std::pow(kColdest / kHottest, std::clamp(spent, 0.0, 1.0));
    std::set<size_t> taken;
    // One beginning each time, what lies elsewhere is seen, too; or by turns, where there is room
    // for one.
    begins_ = most > 1 || !begins_;
    if (here_.has_value()) {
      std::vector<size_t> open = question_.neighbours(here_->second);
      std::erase_if(open, [&](size_t i) { return !question_.is_open(i); });
      for (; !open.empty() && taken.size() + (begins_ ? 1 : 0) < most; open.pop_back()) {
        std::swap(open[random_() % open.size()], open.back());
        taken.insert(open.back());
      }
    }
    while (taken.size() < most) {
      const std::optional<size_t> start = starts_.Next(taken);
      if (!start.has_value()) break;
      taken.insert(*start);
      if (here_.has_value()) break;
    }
    return {taken.begin(), taken.end()};
  }

  void Found(size_t candidate, std::optional<WalkScore> score) override {
    if (!score.has_value()) return;
    if (!here_.has_value() || *score < here_->first) {
      here_ = {*score, candidate};
    } else if (score->fits == here_->first.fits) {
      const double ratio = score->size / std::max(here_->first.size, 1e-12);
      // Not by distributions of the standard library, of which each has its own.
      const double drawn = static_cast<double>(random_()) * 0x1p-32;
      if (drawn < std::exp((1 - ratio) / temperature_)) here_ = {*score, candidate};
    }
  }

 private:
  // Of the step time, by which a worse candidate is still taken with a chance of 1/e.
  static constexpr double kHottest = 0.2, kColdest = 0.002;

  const WalkQuestion question_;
  Beginnings starts_;
  std::mt19937 random_;
  double temperature_ = kHottest;
  bool begins_ = false;  // the last time there was a beginning
  std::optional<std::pair<WalkScore, size_t>> here_;
};

}  // namespace
}  // namespace methods_cc

absl::StatusOr<Method> ParseMethod(absl::string_view text) {
  for (const Method method : {Method::kExhaustive, Method::kBeam, Method::kAnnealing}) {
    if (text == ToString(method)) return method;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted exhaustive, beam or annealing"));
}

std::string ToString(Method method) {
  switch (method) {
    case Method::kExhaustive:
      return "exhaustive";
    case Method::kBeam:
      return "beam";
    case Method::kAnnealing:
      return "annealing";
  }
  return "";
}

absl::StatusOr<SearchBudget> ParseBudget(absl::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "': wanted a time, as in 60s, 10min or 2h, or a number of "
                     "candidates, as in 500"));
  };
  constexpr double kMost = 1e9;  // seconds: 30 years
  const std::pair<absl::string_view, double> units[] = {
      {"min", 60}, {"h", 3600}, {"s", 1}};  // the longest that fits first
  for (const auto& [unit, seconds] : units) {
    absl::string_view number = text;
    double value = 0;
    if (!absl::ConsumeSuffix(&number, unit)) continue;
    if (!absl::SimpleAtod(number, &value) || !(value > 0) || value * seconds > kMost) {
      return error();
    }
    return SearchBudget{.seconds = value * seconds};
  }
  int64_t candidates = 0;
  if (!absl::SimpleAtoi(text, &candidates) || candidates < 1) return error();
  return SearchBudget{.candidates = candidates};
}

std::string ToString(const SearchBudget& budget) {
  if (budget.candidates > 0) return absl::StrCat(budget.candidates);
  return absl::StrCat(budget.seconds, "s");
}

std::unique_ptr<Walk> MakeWalk(Method method, WalkQuestion question) {
  switch (method) {
    case Method::kExhaustive:
      question.family = {};
      break;
    case Method::kBeam:
      return std::make_unique<methods_cc::BeamWalk>(std::move(question));
    case Method::kAnnealing:
      return std::make_unique<methods_cc::AnnealingWalk>(std::move(question));
  }
  return std::make_unique<methods_cc::PromisingWalk>(std::move(question));
}

}  // namespace orrery::search
