#include "search/walks/features.h"

#include <algorithm>
#include <cmath>

namespace orrery::search {

ScaledFeatures::ScaledFeatures(const WalkQuestion& question) : question_(question) {
  constexpr size_t kSome = 512;
  const size_t all = question.promising.size(), step = std::max<size_t>(1, all / kSome);
  mean_ = scale_ = Eigen::VectorXd::Zero(all == 0 ? 1 : Plain(question.promising[0]).size());
  Eigen::VectorXd squares = mean_;
  double count = 0;
  for (size_t at = 0; at < all; at += step) {
    const Eigen::VectorXd of = Plain(question.promising[at]);
    mean_ += of;
    squares += of.cwiseAbs2();
    ++count;
  }
  if (count > 0) mean_ /= count;
  for (Eigen::Index f = 0; f < size(); ++f) {
    const double variance = count > 0 ? squares[f] / count - mean_[f] * mean_[f] : 0;
    scale_[f] = variance > 1e-12 ? 1 / std::sqrt(variance) : 0;
  }
}

Eigen::VectorXd ScaledFeatures::Plain(size_t i) const {
  if (!question_.features) return Eigen::VectorXd::Zero(1);
  const std::vector<double> features = question_.features(i);
  return Eigen::Map<const Eigen::VectorXd>(features.data(),
                                           static_cast<Eigen::Index>(features.size()));
}

Eigen::VectorXd ScaledFeatures::Of(size_t i) const {
  return (Plain(i) - mean_).cwiseProduct(scale_);
}

std::vector<size_t> CandidatePool::Draw(const std::vector<size_t>& best, size_t most,
                                        const std::set<size_t>& taken) {
  std::set<size_t> pool;
  const auto add = [&](size_t i) {
    if (question_.is_open(i) && !taken.contains(i)) pool.insert(i);
  };
  for (const size_t i : best) {
    for (const size_t neighbour : neighbours_.Of(i)) {
      if (2 * pool.size() < most) add(neighbour);
    }
  }
  const size_t all = question_.promising.size();
  for (size_t tries = 0; all > 0 && tries < 4 * most && pool.size() < most; ++tries) {
    add(question_.promising[draws_.Below(all)]);
  }
  return {pool.begin(), pool.end()};
}

}  // namespace orrery::search
