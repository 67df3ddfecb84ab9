#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "search/walks/features.h"
#include "search/walks/network.h"
#include "search/walks/placer_walk.h"
#include "search/walks/registry.h"

namespace orrery::search {
namespace reinforce_cc {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kRate = 0.2;      // of learning
constexpr double kEntropy = 0.01;  // what a nat of entropy is worth

// A policy draws a candidate of a pool, by how a network scores them; what comes of it is a reward,
// and what brought more than usual is made likelier (Williams 1992), with a bonus for entropy.
// So many fields: the policy, what it is to learn from, and what its log tells.
class ReinforceWalk final : public Walk {
 public:
  explicit ReinforceWalk(WalkQuestion question)
      : question_(std::move(question)),
        starts_(question_),
        features_(question_),
        draws_(question_.seed),
        pool_(question_, draws_),
        policy_(features_.size(), /*scores=*/1, draws_) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    if (best_.size() >= kFirst) {
      while (taken.size() < most && Act(taken)) {
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
    const double reward = rewards_.Of(score);
    const auto asked = std::ranges::find(asked_, candidate, &Action::candidate);
    if (asked != asked_.end()) {
      Learn(*asked, baseline_.AdvantageOf(reward));
      asked_.erase(asked);
    }
    baseline_.Add(reward);
  }

  std::string Log() const override {
    return absl::StrFormat(
        "a policy of %d features and %d hidden units, %d updates, baseline %.3f, entropy %.2f",
        features_.size(), ScoreNetwork::kHidden, updates_, baseline_.mean(), entropy_);
  }

 private:
  static constexpr size_t kFirst = 3, kBest = 4, kPool = 48;

  // What was drawn, and of what.
  struct Action {
    size_t candidate = 0;
    MatrixXd pool;  // features as columns
    Index drawn = 0;
  };

  bool Act(std::set<size_t>& taken) {
    std::vector<size_t> best;
    for (const auto& [score, candidate] : best_) best.push_back(candidate);
    const std::vector<size_t> pool = pool_.Draw(best, kPool, taken);
    if (pool.empty()) return false;
    Action action{.pool = MatrixXd(features_.size(), static_cast<Index>(pool.size()))};
    for (size_t i = 0; i < pool.size(); ++i) {
      action.pool.col(static_cast<Index>(i)) = features_.Of(pool[i]);
    }
    action.drawn = SoftmaxChoice(policy_.Scores(action.pool).transpose()).Draw(draws_);
    action.candidate = pool[static_cast<size_t>(action.drawn)];
    taken.insert(action.candidate);
    asked_.push_back(std::move(action));
    return true;
  }

  void Learn(const Action& action, double advantage) {
    const SoftmaxChoice choice(policy_.Scores(action.pool).transpose());
    entropy_ = choice.entropy();
    const VectorXd by = choice.GradientOf(action.drawn, advantage, kEntropy);
    policy_.Climb(action.pool, kRate * by.transpose());
    ++updates_;
  }

  const WalkQuestion question_;
  Beginnings starts_;
  const ScaledFeatures features_;
  Draws draws_;
  CandidatePool pool_;
  ScoreNetwork policy_;
  std::set<std::pair<WalkScore, size_t>> best_;
  std::vector<Action> asked_;
  Rewards rewards_;
  Baseline baseline_;
  double entropy_ = 0;
  int64_t updates_ = 0;
};

std::unique_ptr<Walk> Make(WalkQuestion question) {
  const bool labels = !question.choices.things.empty() && question.choices.labels > 1;
  return labels ? MakePlacerWalk(std::move(question))
                : std::make_unique<ReinforceWalk>(std::move(question));
}

}  // namespace
}  // namespace reinforce_cc

constinit const MethodInfo kReinforceMethod = {
    .name = "reinforce",
    .summary = "a policy that learns from step times which to draw",
    .source = "Williams 1992; Mirhoseini et al., ICML 2017 (ColocRL) and ICLR 2018",
    .make = reinforce_cc::Make,
};

}  // namespace orrery::search
