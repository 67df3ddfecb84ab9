#include "transforms/slices/slice_plan.h"

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace orrery::transforms {
namespace slice_plan_cc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class SlicePlanner {
 public:
  explicit SlicePlanner(const SlicePlanProblem& problem)
      : problem_(problem),
        units_(static_cast<size_t>(problem.units)),
        count_(static_cast<size_t>(problem.slices)),
        seconds_((units_ + 1) * (units_ + 1), kNever) {
    // Each slice leaves one unit at least for each of the others.
    for (size_t begin = 0; begin < units_; ++begin) {
      for (size_t end = begin + 1; end <= units_ && end - begin + count_ - 1 <= units_; ++end) {
        At(begin, end) =
            problem.seconds(static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
        bounds_.push_back(At(begin, end));
      }
    }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }

  std::vector<int64_t> Run() {
    Best best = Weighed(bounds_.back());
    const double least_sum = best.sum;
    Best chosen = best;
    for (size_t i = FirstThatCanBe(); i < bounds_.size(); ++i) {
      if (least_sum + problem_.fill * bounds_[i] >= best.seconds) break;
      // The largest of those that are as good as this one.
      const double alike = bounds_[i] + problem_.tolerance * least_sum / (1 + problem_.fill);
      while (i + 1 < bounds_.size() && bounds_[i + 1] <= alike) ++i;
      Best next = Weighed(bounds_[i]);
      if (next.exact < chosen.exact) chosen = next;
      if (next.seconds < best.seconds) best = std::move(next);
    }
    return chosen.lengths;
  }

 private:
  struct Best {
    std::vector<int64_t> lengths;
    double sum = kNever, seconds = kNever, exact = kNever;
  };

  // There are slices with that bound.
  Best Weighed(double bound) {
    Best best = WithBound(bound);
    best.seconds = best.sum + problem_.fill * Longest(best.lengths);
    best.exact = problem_.exact == nullptr ? best.seconds : problem_.exact(best.lengths);
    return best;
  }

  // The first bound under which there are slices.
  size_t FirstThatCanBe() {
    size_t low = 0, high = bounds_.size() - 1;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (WithBound(bounds_[middle]).sum == kNever) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  double& At(size_t begin, size_t end) { return seconds_[begin * (units_ + 1) + end]; }

  double Longest(const std::vector<int64_t>& lengths) {
    double longest = 0;
    size_t begin = 0;
    for (const int64_t length : lengths) {
      const size_t end = begin + static_cast<size_t>(length);
      longest = std::max(longest, At(begin, end));
      begin = end;
    }
    return longest;
  }

  // The slices with the least sum of those no longer than the bound; a sum of kNever: none.
  Best WithBound(double bound) {
    const size_t row = units_ + 1;
    std::vector<double> least((count_ + 1) * row, kNever);  // by slices, then end of the last
    std::vector<size_t> from(least.size(), 0);
    least[0] = 0;
    for (size_t slice = 1; slice <= count_; ++slice) {
      for (size_t begin = slice - 1; begin < units_; ++begin) {
        const double before = least[(slice - 1) * row + begin];
        if (before == kNever) continue;
        for (size_t end = begin + 1; end <= units_; ++end) {
          const double seconds = At(begin, end);
          if (seconds > bound || before + seconds >= least[slice * row + end]) continue;
          least[slice * row + end] = before + seconds;
          from[slice * row + end] = begin;
        }
      }
    }
    Best best{.lengths = {}, .sum = least.back()};
    if (best.sum == kNever) return best;
    for (size_t slice = count_, end = units_; slice > 0; --slice) {
      const size_t begin = from[slice * row + end];
      best.lengths.push_back(static_cast<int64_t>(end - begin));
      end = begin;
    }
    std::reverse(best.lengths.begin(), best.lengths.end());
    return best;
  }

  const SlicePlanProblem& problem_;
  const size_t units_, count_;
  std::vector<double> seconds_;  // by begin, then end
  std::vector<double> bounds_;   // that the longest may have
};

}  // namespace
}  // namespace slice_plan_cc

std::vector<int64_t> PlanSlices(const SlicePlanProblem& problem) {
  ORRERY_CHECK(problem.slices >= 1 && problem.slices <= problem.units && problem.units <= 256)
      << problem.slices << " slices of " << problem.units << " units";
  return slice_plan_cc::SlicePlanner(problem).Run();
}

}  // namespace orrery::transforms
