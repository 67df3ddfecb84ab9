#ifndef ORRERY_SEARCH_WALKS_NETWORK_H_
#define ORRERY_SEARCH_WALKS_NETWORK_H_

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

#include "search/walks/beginnings.h"
#include "search/walks/walk.h"

// What policies that learn are made of.

namespace orrery::search {

/// A network with one hidden layer: what has so many features gets so many scores.
class ScoreNetwork {
 public:
  /// Weights are drawn, those behind the hidden layer between -`weight` and `weight`.
  ScoreNetwork(Eigen::Index features, Eigen::Index scores, Draws& draws, double weight = 0.25)
      : in_(kHidden, features), out_(kHidden, scores) {
    const double spread = 1 / std::sqrt(static_cast<double>(features));
    for (Eigen::Index i = 0; i < in_.size(); ++i) in_.data()[i] = spread * (2 * draws.Unit() - 1);
    for (Eigen::Index i = 0; i < out_.size(); ++i) out_.data()[i] = weight * (2 * draws.Unit() - 1);
    bias_ = Eigen::VectorXd::Zero(kHidden);
  }

  static constexpr Eigen::Index kHidden = 16;

  /// Of columns of features, as columns.
  Eigen::MatrixXd Scores(const Eigen::MatrixXd& columns) const {
    return out_.transpose() * Hidden(columns);
  }

  /// A step up the gradient that is `by` for each score.
  void Climb(const Eigen::MatrixXd& columns, const Eigen::MatrixXd& by) {
    const Eigen::MatrixXd hidden = Hidden(columns);
    const Eigen::MatrixXd slope = (1 - hidden.array().square()).matrix();
    const Eigen::MatrixXd back = (out_ * by).cwiseProduct(slope);
    out_ += hidden * by.transpose();
    in_ += back * columns.transpose();
    bias_ += back.rowwise().sum();
  }

 private:
  Eigen::MatrixXd Hidden(const Eigen::MatrixXd& columns) const {
    return ((in_ * columns).colwise() + bias_).array().tanh();
  }

  Eigen::MatrixXd in_, out_;
  Eigen::VectorXd bias_;
};

/// A choice with chances by scores, from which something was drawn.
class SoftmaxChoice {
 public:
  explicit SoftmaxChoice(const Eigen::VectorXd& scores) {
    chances_ = (scores.array() - scores.maxCoeff()).exp();
    chances_ /= chances_.sum();
  }

  /// One of them.
  Eigen::Index Draw(Draws& draws) const {
    Eigen::Index drawn = 0;
    double left = draws.Unit();
    while (drawn + 1 < chances_.size() && left >= chances_[drawn]) left -= chances_[drawn++];
    return drawn;
  }

  /// In nats.
  double entropy() const { return -chances_.dot(Logs()); }

  /// By how much scores are to change so that what was drawn becomes likelier by an advantage, and
  /// the choice more open by what entropy is worth (Williams 1992).
  Eigen::VectorXd GradientOf(Eigen::Index drawn, double advantage, double entropy_bonus) const {
    Eigen::VectorXd by = -advantage * chances_;
    by[drawn] += advantage;
    by -= entropy_bonus * chances_.cwiseProduct((Logs().array() + entropy()).matrix());
    return by;
  }

 private:
  Eigen::VectorXd Logs() const { return chances_.array().max(1e-300).log(); }

  Eigen::VectorXd chances_;
};

/// What rewards are usual, by a running mean and variance.
class Baseline {
 public:
  /// How many deviations a reward is above what is usual, 3 at most.
  double AdvantageOf(double reward) const {
    constexpr double kMost = 3;
    const double beside = reward - mean_.value_or(reward);
    return std::clamp(beside / std::sqrt(variance_ + 1e-8), -kMost, kMost);
  }

  void Add(double reward) {
    constexpr double kForget = 0.9;
    const double beside = reward - mean_.value_or(reward);
    variance_ = kForget * variance_ + (1 - kForget) * beside * beside;
    mean_ = mean_.value_or(reward) + (1 - kForget) * beside;
  }

  double mean() const { return mean_.value_or(0); }

 private:
  std::optional<double> mean_;
  double variance_ = 0;
};

/// What a policy is to be rewarded for.
class Rewards {
 public:
  /// Of what takes as long as the first that fitted, of those that are asked for, 0, of half of
  /// that log 2; less than that of what does not fit, or cannot be played.
  double Of(const std::optional<WalkScore>& score) {
    constexpr double kMisfit = -2, kInfeasible = -3;
    if (!score.has_value()) return kInfeasible;
    if (!score->fits) return kMisfit;
    if (reference_ == 0) reference_ = score->size;
    return std::log(reference_ / std::max(score->size, 1e-12));
  }

 private:
  double reference_ = 0;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_NETWORK_H_
