#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/walks/beginnings.h"

namespace orrery::search {
namespace evolution_cc {
namespace {

constexpr size_t kPopulation = 16, kTournament = 5;
constexpr int64_t kStranger = 4;      // of so many one is nobody's child
constexpr int kMostTries = 64;        // of a child that is to be played
constexpr double kSecondStep = 0.25;  // chance of a child of a child

// Of some of the population the best has a child, a neighbour drawn at random; the oldest goes, but
// for the best of all.
class EvolutionWalk final : public Walk {
 public:
  explicit EvolutionWalk(WalkQuestion question)
      : question_(std::move(question)),
        starts_(question_),
        neighbours_(question_),
        draws_(question_.seed) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    while (taken.size() < most) {
      // Half of a population is founded by others than its children, and some come later.
      std::optional<size_t> next;
      const bool founds = founders_ < kPopulation / 2 || (children_ + 1) % kStranger == 0;
      if (!founds && !population_.empty()) next = Child(taken);
      if (!next.has_value()) {
        next = starts_.Next(taken);
        ++founders_;
        ++children_;
      }
      if (!next.has_value()) break;
      taken.insert(*next);
    }
    return {taken.begin(), taken.end()};
  }

  void Found(size_t candidate, std::optional<WalkScore> score) override {
    if (!score.has_value()) return;
    population_.push_back({*score, candidate});
    if (population_.size() <= kPopulation) return;
    const auto best = std::ranges::min_element(
        population_, [](const Member& a, const Member& b) { return a.score < b.score; });
    population_.erase(population_.begin() + (best == population_.begin() ? 1 : 0));
  }

  std::string Log() const override {
    return absl::StrCat("a population of ", kPopulation, ", tournaments of ", kTournament, ", ",
                        children_, " children and strangers");
  }

 private:
  struct Member {
    WalkScore score;
    size_t candidate = 0;
  };

  const Member& Parent() {
    const Member* best = nullptr;
    for (size_t i = 0; i < kTournament; ++i) {
      const Member& one = population_[draws_.Below(population_.size())];
      if (best == nullptr || one.score < best->score) best = &one;
    }
    return *best;
  }

  std::optional<size_t> Child(const std::set<size_t>& taken) {
    for (int i = 0; i < kMostTries; ++i) {
      size_t child = Parent().candidate;
      for (bool again = true; again; again = draws_.Unit() < kSecondStep) {
        const std::vector<size_t>& neighbours = neighbours_.Of(child);
        if (neighbours.empty()) break;
        child = draws_.Of(neighbours);
      }
      if (!question_.is_open(child) || taken.contains(child)) continue;
      ++children_;
      return child;
    }
    return std::nullopt;
  }

  const WalkQuestion question_;
  Beginnings starts_;
  NeighbourTable neighbours_;
  Draws draws_;
  std::deque<Member> population_;  // the oldest first
  size_t founders_ = 0;
  int64_t children_ = 0;
};

}  // namespace
}  // namespace evolution_cc

constinit const MethodInfo kEvolutionMethod = {
    .name = "evolution",
    .summary = "children of the best of a population, whose oldest go",
    .source = "regularized evolution: Real, Aggarwal, Huang and Le, AAAI 2019",
    .make = MakeWalk<evolution_cc::EvolutionWalk>,
};

}  // namespace orrery::search
