#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/walks/features.h"

namespace orrery::search {
namespace bayes_cc {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Matern's kernel of smoothness 5/2, of points as far apart as so many lengths.
double Matern(double distance) {
  const double scaled = std::sqrt(5.0) * distance;
  return (1 + scaled + scaled * scaled / 3) * std::exp(-scaled);
}

// A Gaussian process of mean 0 and variance 1, of points as rows and their values (Rasmussen and
// Williams 2006, algorithm 2.1).
class GaussianProcess {
 public:
  GaussianProcess(MatrixXd points, const VectorXd& values, double length)
      : points_(std::move(points)), length_(length) {
    constexpr double kNoise = 1e-4;
    MatrixXd kernel(points_.rows(), points_.rows());
    for (Index i = 0; i < points_.rows(); ++i) {
      kernel.col(i) = KernelTo(points_.row(i).transpose());
    }
    kernel.diagonal().array() += kNoise;
    factor_.compute(kernel);
    weights_ = factor_.solve(values);
    const MatrixXd lower = factor_.matrixL();
    log_likelihood_ = -0.5 * values.dot(weights_) - lower.diagonal().array().log().sum();
  }

  double log_likelihood() const { return log_likelihood_; }

  struct Belief {
    double mean = 0, deviation = 0;
  };
  Belief At(const VectorXd& point) const {
    const VectorXd kernel = KernelTo(point);
    const VectorXd half = factor_.matrixL().solve(kernel);
    return {kernel.dot(weights_), std::sqrt(std::max(1e-12, 1 - half.squaredNorm()))};
  }

 private:
  VectorXd KernelTo(const VectorXd& point) const {
    VectorXd kernel(points_.rows());
    for (Index i = 0; i < points_.rows(); ++i) {
      kernel[i] = Matern((points_.row(i).transpose() - point).norm() / length_);
    }
    return kernel;
  }

  MatrixXd points_;
  double length_;
  Eigen::LLT<MatrixXd> factor_;
  VectorXd weights_;
  double log_likelihood_ = 0;
};

// How much below `best` a value is expected to be (Mockus 1975; Jones et al. 1998).
double ExpectedImprovement(const GaussianProcess::Belief& belief, double best) {
  const double by = best - belief.mean, z = by / belief.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double share = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return by * share + belief.deviation * density;
}

// What was played is a Gaussian process of features; of some candidates that is played next of
// which most improvement is expected. Of several at once each later one takes the earlier ones to
// be as they are expected to be.
class BayesWalk final : public Walk {
 public:
  explicit BayesWalk(WalkQuestion question)
      : question_(std::move(question)),
        starts_(question_),
        features_(question_),
        draws_(question_.seed),
        pool_(question_, draws_) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    std::vector<Point> points = PointsToKnow();
    if (points.size() >= kFirst) {
      const std::vector<size_t> pool = pool_.Draw(Best(points), kPool, {});
      while (taken.size() + FromElsewhere(most) < most) {
        const std::optional<Point> next = MostImproving(points, pool, taken);
        if (!next.has_value()) break;
        taken.insert(next->candidate);
        points.push_back(*next);
      }
    }
    starts_.Fill(most, taken);
    return {taken.begin(), taken.end()};
  }

  void Found(size_t candidate, std::optional<WalkScore> score) override {
    if (score.has_value()) played_.push_back({candidate, *score, 0});
  }

  std::string Log() const override {
    return absl::StrCat("a Gaussian process of ", played_.size(), " plans and ", features_.size(),
                        " features, length ", length_);
  }

 private:
  static constexpr size_t kFirst = 5, kPool = 256, kMostPoints = 160;

  struct Point {
    size_t candidate = 0;
    WalkScore score = {};
    double value = 0;
  };

  // Of a batch one may be from elsewhere.
  static size_t FromElsewhere(size_t most) { return most >= 8 ? 1 : 0; }

  // The best and the last of what was played; values are logarithms of sizes, and those of what
  // does not fit are above all others.
  std::vector<Point> PointsToKnow() const {
    std::vector<Point> points = played_;
    if (points.size() > kMostPoints) {
      const auto later = points.end() - kMostPoints / 2;
      std::stable_sort(points.begin(), later,
                       [](const Point& a, const Point& b) { return a.score < b.score; });
      points.erase(points.begin() + kMostPoints / 2, later);
    }
    double worst = 0, least_misfit = 0;
    bool any = false;
    for (const Point& point : points) {
      const double value = std::log(std::max(point.score.size, 1e-12));
      if (point.score.fits) worst = any ? std::max(worst, value) : value;
      any = any || point.score.fits;
      if (!point.score.fits && (least_misfit == 0 || value < least_misfit)) least_misfit = value;
    }
    for (Point& point : points) {
      const double value = std::log(std::max(point.score.size, 1e-12));
      point.value = point.score.fits ? value : worst + 0.1 + (value - least_misfit);
    }
    return points;
  }

  static std::vector<size_t> Best(std::vector<Point> points) {
    constexpr size_t kSome = 4;
    std::ranges::stable_sort(points, {}, &Point::value);
    std::vector<size_t> best;
    for (size_t i = 0; i < std::min(kSome, points.size()); ++i) best.push_back(points[i].candidate);
    return best;
  }

  std::optional<Point> MostImproving(const std::vector<Point>& points,
                                     const std::vector<size_t>& pool,
                                     const std::set<size_t>& taken) {
    const auto count = static_cast<Index>(points.size());
    MatrixXd rows(count, features_.size());
    VectorXd values(count);
    for (Index i = 0; i < count; ++i) {
      const Point& point = points[static_cast<size_t>(i)];
      rows.row(i) = features_.Of(point.candidate).transpose();
      values[i] = point.value;
    }
    const double mean = values.mean();
    const double spread = std::max(1e-9, std::sqrt((values.array() - mean).square().mean()));
    const VectorXd scaled = (values.array() - mean) / spread;
    const GaussianProcess process = Fit(rows, scaled);
    std::optional<Point> best;
    std::pair<double, double> most;
    for (const size_t i : pool) {
      if (taken.contains(i)) continue;
      const GaussianProcess::Belief belief = process.At(features_.Of(i));
      // Where nothing is to be gained, what is likely to be good comes first all the same.
      const std::pair promise(std::max(ExpectedImprovement(belief, scaled.minCoeff()), 1e-9),
                              -belief.mean);
      if (best.has_value() && promise <= most) continue;
      most = promise;
      best = Point{i, {}, mean + spread * belief.mean};
    }
    return best;
  }

  // Of some lengths the likeliest.
  GaussianProcess Fit(const MatrixXd& rows, const VectorXd& values) {
    const double all = std::sqrt(static_cast<double>(std::max<Index>(1, features_.size())));
    std::optional<GaussianProcess> best;
    for (const double share : {0.25, 0.5, 1.0, 2.0}) {
      GaussianProcess one(rows, values, share * all);
      if (best.has_value() && one.log_likelihood() <= best->log_likelihood()) continue;
      best.emplace(std::move(one));
      length_ = share * all;
    }
    return *std::move(best);
  }

  const WalkQuestion question_;
  Beginnings starts_;
  const ScaledFeatures features_;
  Draws draws_;
  CandidatePool pool_;
  std::vector<Point> played_;
  double length_ = 0;
};

}  // namespace
}  // namespace bayes_cc

constinit const MethodInfo kBayesMethod = {
    .name = "bayes",
    .summary = "where a Gaussian process of what was played expects most improvement",
    .source = "Mockus 1975; Jones, Schonlau and Welch 1998; Snoek, Larochelle and Adams 2012",
    .make = MakeWalk<bayes_cc::BayesWalk>,
};

}  // namespace orrery::search
