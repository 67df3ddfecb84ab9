#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "search/walks/beginnings.h"

namespace orrery::search {
namespace beam_cc {
namespace {

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

}  // namespace
}  // namespace beam_cc

constinit const MethodInfo kBeamMethod = {
    .name = "beam",
    .summary = "neighbours of the best, best first, and by turns of other degrees",
    .source = "Lowerre 1976",
    .make = MakeWalk<beam_cc::BeamWalk>,
};

}  // namespace orrery::search
