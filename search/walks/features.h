#ifndef ORRERY_SEARCH_WALKS_FEATURES_H_
#define ORRERY_SEARCH_WALKS_FEATURES_H_

#include <Eigen/Dense>
#include <cstddef>
#include <set>
#include <vector>

#include "search/walks/beginnings.h"

namespace orrery::search {

/// Features of candidates on one scale: less their mean, over their spread, of some candidates.
/// Where nobody says what they are, one that is 0.
class ScaledFeatures {
 public:
  /// `question` lives longer.
  explicit ScaledFeatures(const WalkQuestion& question);

  Eigen::Index size() const { return mean_.size(); }
  Eigen::VectorXd Of(size_t i) const;

 private:
  Eigen::VectorXd Plain(size_t i) const;

  const WalkQuestion& question_;
  Eigen::VectorXd mean_, scale_;
};

/// Open candidates that are worth a thought: neighbours of the best, and some of all at random; at
/// most `most`, each once, none of `taken`.
class CandidatePool {
 public:
  /// Both live longer.
  CandidatePool(const WalkQuestion& question, Draws& draws)
      : question_(question), draws_(draws), neighbours_(question) {}

  std::vector<size_t> Draw(const std::vector<size_t>& best, size_t most,
                           const std::set<size_t>& taken);

 private:
  const WalkQuestion& question_;
  Draws& draws_;
  NeighbourTable neighbours_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_FEATURES_H_
