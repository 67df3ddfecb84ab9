#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/walks/features.h"

namespace orrery::search {
namespace reinforce_cc {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kHidden = 16;
constexpr double kRate = 0.2;       // of learning
constexpr double kEntropy = 0.01;   // what a nat of entropy is worth
constexpr double kForget = 0.9;     // of the baseline
constexpr double kMisfit = -2;      // reward of what does not fit
constexpr double kInfeasible = -3;  // of what cannot be played

// A network of one hidden layer that scores a candidate by its features.
class ScoreNetwork {
 public:
  ScoreNetwork(Index features, Draws& draws) : in_(kHidden, features), out_(kHidden) {
    const double spread = 1 / std::sqrt(static_cast<double>(features));
    for (Index i = 0; i < in_.size(); ++i) in_.data()[i] = spread * (2 * draws.Unit() - 1);
    for (Index i = 0; i < kHidden; ++i) out_[i] = 0.5 * draws.Unit() - 0.25;
    bias_ = VectorXd::Zero(kHidden);
  }

  // Of candidates as columns.
  VectorXd Scores(const MatrixXd& candidates) const {
    return Hidden(candidates).transpose() * out_;
  }

  // A step up the gradient that is `by` for each score.
  void Climb(const MatrixXd& candidates, const VectorXd& by) {
    const MatrixXd hidden = Hidden(candidates);
    const MatrixXd slope = (1 - hidden.array().square()).matrix();
    const MatrixXd back = (out_ * by.transpose()).cwiseProduct(slope);
    out_ += hidden * by;
    in_ += back * candidates.transpose();
    bias_ += back.rowwise().sum();
  }

 private:
  MatrixXd Hidden(const MatrixXd& candidates) const {
    return ((in_ * candidates).colwise() + bias_).array().tanh();
  }

  MatrixXd in_;
  VectorXd out_, bias_;
};

VectorXd Softmax(const VectorXd& scores) {
  const VectorXd powers = (scores.array() - scores.maxCoeff()).exp();
  return powers / powers.sum();
}

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
        policy_(features_.size(), draws_) {}

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
    const double reward = RewardOf(score);
    const auto asked =
        std::ranges::find(asked_, candidate, [](const Action& action) { return action.candidate; });
    if (asked != asked_.end()) {
      Learn(*asked, Advantage(reward));
      asked_.erase(asked);
    }
    const double beside = reward - baseline_.value_or(reward);
    variance_ = kForget * variance_ + (1 - kForget) * beside * beside;
    baseline_ = baseline_.value_or(reward) + (1 - kForget) * beside;
  }

  std::string Log() const override {
    return absl::StrFormat(
        "a policy of %d features and %d hidden units, %d updates, baseline %.3f, entropy %.2f",
        features_.size(), kHidden, updates_, baseline_.value_or(0), entropy_);
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
    const VectorXd chances = Softmax(policy_.Scores(action.pool));
    double left = draws_.Unit();
    while (action.drawn + 1 < chances.size() && left >= chances[action.drawn]) {
      left -= chances[action.drawn++];
    }
    action.candidate = pool[static_cast<size_t>(action.drawn)];
    taken.insert(action.candidate);
    asked_.push_back(std::move(action));
    return true;
  }

  // Of what takes as long as the first that fitted 0, of half of that log 2.
  double RewardOf(std::optional<WalkScore> score) {
    if (!score.has_value()) return kInfeasible;
    if (!score->fits) return kMisfit;
    if (reference_ == 0) reference_ = score->size;
    return std::log(reference_ / std::max(score->size, 1e-12));
  }

  // How many deviations a reward is above what is usual.
  double Advantage(double reward) const {
    constexpr double kMost = 3;
    const double beside = reward - baseline_.value_or(reward);
    return std::clamp(beside / std::sqrt(variance_ + 1e-8), -kMost, kMost);
  }

  void Learn(const Action& action, double advantage) {
    const VectorXd chances = Softmax(policy_.Scores(action.pool));
    const VectorXd logs = chances.array().max(1e-300).log();
    entropy_ = -chances.dot(logs);
    VectorXd by = -advantage * chances;
    by[action.drawn] += advantage;
    by -= kEntropy * chances.cwiseProduct((logs.array() + entropy_).matrix());
    policy_.Climb(action.pool, kRate * by);
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
  double reference_ = 0;
  std::optional<double> baseline_;  // a running mean of rewards
  double variance_ = 0;             // around it
  double entropy_ = 0;
  int64_t updates_ = 0;
};

}  // namespace
}  // namespace reinforce_cc

constinit const MethodInfo kReinforceMethod = {
    .name = "reinforce",
    .summary = "a policy that learns from step times which to draw",
    .source = "Williams 1992; ColocRL: Mirhoseini et al., ICML 2017",
    .make = MakeWalk<reinforce_cc::ReinforceWalk>,
};

}  // namespace orrery::search
