#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "search/walks/beginnings.h"

namespace orrery::search {
namespace annealing_cc {
namespace {

class AnnealingWalk final : public Walk {
 public:
  explicit AnnealingWalk(WalkQuestion question)
      : question_(std::move(question)), starts_(question_), draws_(question_.seed) {}

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
        std::swap(open[draws_.Below(open.size())], open.back());
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
      if (draws_.Unit() < std::exp((1 - ratio) / temperature_)) here_ = {*score, candidate};
    }
  }

 private:
  // Of the step time, by which a worse candidate is still taken with a chance of 1/e.
  static constexpr double kHottest = 0.2, kColdest = 0.002;

  const WalkQuestion question_;
  Beginnings starts_;
  Draws draws_;
  double temperature_ = kHottest;
  bool begins_ = false;  // the last time there was a beginning
  std::optional<std::pair<WalkScore, size_t>> here_;
};

}  // namespace
}  // namespace annealing_cc

constinit const MethodInfo kAnnealingMethod = {
    .name = "annealing",
    .summary = "neighbours of where it is, worse ones ever less often",
    .source = "Kirkpatrick, Gelatt and Vecchi 1983",
    .make = MakeWalk<annealing_cc::AnnealingWalk>,
};

}  // namespace orrery::search
