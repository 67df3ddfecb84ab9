#include "search/walks/placer_walk.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "search/walks/beginnings.h"
#include "search/walks/network.h"
#include "search/walks/placer.h"

namespace orrery::search {
namespace placer_walk_cc {
namespace {

// A policy labels things, beside a base that is good so far, or a neighbour of one; it learns from
// what comes of it. So many fields: what it knows of candidates, and what its log tells.
class PlacerWalk final : public Walk {
 public:
  explicit PlacerWalk(WalkQuestion question)
      : question_(std::move(question)),
        starts_(question_),
        neighbours_(question_),
        draws_(question_.seed),
        placer_(question_.choices, draws_) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    if (best_.size() >= kFirst) {
      while (taken.size() < most && Place(taken)) {
      }
    }
    starts_.Fill(most, taken);
    return {taken.begin(), taken.end()};
  }

  void Found(size_t candidate, std::optional<WalkScore> score) override {
    if (score.has_value()) {
      best_.emplace(*score, candidate);
      if (best_.size() > kBest) best_.erase(std::prev(best_.end()));
    }
    const auto placed = std::ranges::find(placed_, candidate, &Placement::candidate);
    if (placed == placed_.end()) return;
    placer_.Learn(placed->drawn, rewards_.Of(score));
    placed_.erase(placed);
    ++updates_;
  }

  std::string Log() const override {
    return absl::StrFormat(
        "a grouper of %d things into %d groups at most, and a placer of %d labels: %d draws, %d "
        "played, %d restarts, entropy %.2f",
        placer_.things(), placer_.groups(), question_.choices.labels, drawn_, updates_, restarts_,
        placer_.entropy());
  }

 private:
  static constexpr size_t kFirst = 1, kBest = 4;

  // Labels that were drawn.
  struct Placement {
    size_t candidate = 0;
    Placer::Drawn drawn;
  };

  size_t Base() {
    constexpr double kElsewhere = 0.25;
    std::vector<size_t> best;
    for (const auto& [score, candidate] : best_) best.push_back(candidate);
    const size_t base = draws_.Of(best);
    const std::vector<size_t>& neighbours = neighbours_.Of(base);
    return neighbours.empty() || draws_.Unit() >= kElsewhere ? base : draws_.Of(neighbours);
  }

  // A policy that would have nothing but what is known is of no more use: another begins, which has
  // nothing to learn from what that one drew.
  bool Place(std::set<size_t>& taken) {
    constexpr int kPolicies = 4;
    if (PlaceByPolicy(taken)) return true;
    for (int i = 1; i < kPolicies; ++i) {
      placer_ = Placer(question_.choices, draws_);
      placed_.clear();
      ++restarts_;
      if (PlaceByPolicy(taken)) return true;
    }
    return false;
  }

  bool PlaceByPolicy(std::set<size_t>& taken) {
    constexpr int kTries = 32;
    for (int i = 0; i < kTries; ++i) {
      Placement placement{.candidate = 0, .drawn = placer_.Draw(draws_)};
      ++drawn_;
      placement.candidate = question_.choices.with(Base(), placement.drawn.labels);
      if (!question_.is_open(placement.candidate) || taken.contains(placement.candidate)) {
        placer_.Avoid(placement.drawn);
        continue;
      }
      taken.insert(placement.candidate);
      placed_.push_back(std::move(placement));
      return true;
    }
    return false;
  }

  const WalkQuestion question_;
  Beginnings starts_;
  NeighbourTable neighbours_;
  Draws draws_;
  Placer placer_;
  std::set<std::pair<WalkScore, size_t>> best_;
  std::vector<Placement> placed_;
  Rewards rewards_;
  int64_t drawn_ = 0, updates_ = 0, restarts_ = 0;
};

}  // namespace
}  // namespace placer_walk_cc

std::unique_ptr<Walk> MakePlacerWalk(WalkQuestion question) {
  return std::make_unique<placer_walk_cc::PlacerWalk>(std::move(question));
}

}  // namespace orrery::search
