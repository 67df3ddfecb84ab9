#ifndef ORRERY_SEARCH_WALKS_PLACER_H_
#define ORRERY_SEARCH_WALKS_PLACER_H_

#include <Eigen/Dense>
#include <vector>

#include "search/walks/network.h"
#include "search/walks/walk.h"

namespace orrery::search {

/// A policy that gives labels to things: a grouper puts each into a group, and a placer gives one
/// group after another its label, knowing what it is and what the labels have by then (Mirhoseini
/// et al., A Hierarchical Model for Device Placement, ICLR 2018).
class Placer {
 public:
  /// Requires things, and two labels at least.
  Placer(const WalkChoices& choices, Draws& draws);

  /// What was drawn, and of what.
  struct Drawn {
    std::vector<int> labels;                   // of things
    std::vector<Eigen::Index> groups;          // of things
    std::vector<Eigen::Index> placed;          // labels of groups that are not empty
    std::vector<Eigen::VectorXd> groups_seen;  // what the placer saw of them, one each
  };
  /// Draws of chances that are as the policy has them now.
  Drawn Draw(Draws& draws) const;

  /// Makes what was drawn likelier where its reward is more than what such draws bring, else less
  /// likely.
  void Learn(const Drawn& drawn, double reward);
  /// Makes what was drawn less likely: nothing is to be found out there any more.
  void Avoid(const Drawn& drawn);

  Eigen::Index groups() const { return groups_; }
  Eigen::Index things() const { return things_.cols(); }
  /// Of what was learnt from last, in nats a thing or group.
  double entropy() const { return entropy_; }

 private:
  void Climb(const Drawn& drawn, double advantage);

  static constexpr Eigen::Index kMostGroups = 8;

  int labels_;
  Eigen::Index groups_;
  Eigen::MatrixXd things_;  // features as columns
  ScoreNetwork grouper_, placer_;
  Baseline baseline_;
  double entropy_ = 0;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_PLACER_H_
