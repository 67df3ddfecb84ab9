#include "search/walks/placer.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"

namespace orrery::search {
namespace placer_cc {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kRate = 0.1;      // of learning
constexpr double kEntropy = 0.2;   // what a nat of entropy is worth
constexpr double kRepeated = 0.3;  // deviations below what is usual, of what was drawn before
constexpr double kOwn = 0.1;       // of which thing it is, beside what it is
constexpr double kSharp = 4;       // weights with which like things begin in one group

// Features on one scale, and which thing it is, so that like ones can be told apart, too.
MatrixXd FeaturesOf(const WalkChoices& choices) {
  const auto count = static_cast<Index>(choices.things.size());
  ORRERY_CHECK(count > 0 && choices.labels > 1) << count << " things, " << choices.labels;
  const auto given = static_cast<Index>(choices.things.front().size());
  MatrixXd features = MatrixXd::Zero(given + count, count);
  for (Index i = 0; i < count; ++i) {
    const std::vector<double>& thing = choices.things[static_cast<size_t>(i)];
    features.col(i).head(given) = Eigen::Map<const VectorXd>(thing.data(), given);
    features(given + i, i) = kOwn;
  }
  for (Index f = 0; f < given; ++f) {
    const double mean = features.row(f).mean();
    features.row(f).array() -= mean;
    const double spread = std::sqrt(features.row(f).squaredNorm() / static_cast<double>(count));
    if (spread > 1e-9) features.row(f) /= spread;
  }
  return features;
}

}  // namespace
}  // namespace placer_cc

Placer::Placer(const WalkChoices& choices, Draws& draws)
    : labels_(choices.labels),
      groups_(std::clamp<Eigen::Index>((std::ssize(choices.things) + 1) / 2, 1, kMostGroups)),
      things_(placer_cc::FeaturesOf(choices)),
      grouper_(things_.rows(), groups_, draws, placer_cc::kSharp),
      placer_(things_.rows() + 1 + labels_, labels_, draws) {}

Placer::Drawn Placer::Draw(Draws& draws) const {
  using Eigen::Index;
  Drawn drawn;
  const Eigen::MatrixXd scores = grouper_.Scores(things_);
  for (Index thing = 0; thing < things(); ++thing) {
    drawn.groups.push_back(SoftmaxChoice(scores.col(thing)).Draw(draws));
  }
  drawn.labels.assign(static_cast<size_t>(things()), 0);
  Eigen::VectorXd loads = Eigen::VectorXd::Zero(labels_);  // what part of the things each has
  for (Index group = 0; group < groups_; ++group) {
    const auto members = static_cast<double>(std::ranges::count(drawn.groups, group));
    if (members == 0) continue;
    Eigen::VectorXd seen = Eigen::VectorXd::Zero(things_.rows() + 1 + labels_);
    for (Index thing = 0; thing < things(); ++thing) {
      if (drawn.groups[static_cast<size_t>(thing)] == group) {
        seen.head(things_.rows()) += things_.col(thing) / members;
      }
    }
    const double share = members / static_cast<double>(things());
    seen[things_.rows()] = share;
    seen.tail(labels_) = loads;
    const Index label = SoftmaxChoice(placer_.Scores(seen)).Draw(draws);
    loads[label] += share;
    for (size_t thing = 0; thing < drawn.labels.size(); ++thing) {
      if (drawn.groups[thing] == group) drawn.labels[thing] = static_cast<int>(label);
    }
    drawn.placed.push_back(label);
    drawn.groups_seen.push_back(std::move(seen));
  }
  return drawn;
}

void Placer::Learn(const Drawn& drawn, double reward) {
  Climb(drawn, baseline_.AdvantageOf(reward));
  baseline_.Add(reward);
}

void Placer::Avoid(const Drawn& drawn) { Climb(drawn, -placer_cc::kRepeated); }

void Placer::Climb(const Drawn& drawn, double advantage) {
  using Eigen::Index;
  const auto all = static_cast<double>(drawn.groups.size() + drawn.placed.size());
  double entropy = 0;
  const Eigen::MatrixXd scores = grouper_.Scores(things_);
  Eigen::MatrixXd by(groups_, things());
  for (Index thing = 0; thing < things(); ++thing) {
    const SoftmaxChoice choice(scores.col(thing));
    entropy += choice.entropy();
    by.col(thing) =
        choice.GradientOf(drawn.groups[static_cast<size_t>(thing)], advantage, placer_cc::kEntropy);
  }
  grouper_.Climb(things_, placer_cc::kRate * by);
  for (size_t group = 0; group < drawn.placed.size(); ++group) {
    const SoftmaxChoice choice(placer_.Scores(drawn.groups_seen[group]));
    entropy += choice.entropy();
    placer_.Climb(
        drawn.groups_seen[group],
        placer_cc::kRate * choice.GradientOf(drawn.placed[group], advantage, placer_cc::kEntropy));
  }
  entropy_ = entropy / all;
}

}  // namespace orrery::search
