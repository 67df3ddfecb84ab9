#ifndef ORRERY_SEARCH_SLICE_TIMES_H_
#define ORRERY_SEARCH_SLICE_TIMES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "search/slices.h"

namespace orrery::search {

/// What each stage takes for slices of a sequence. Found out for some lengths from one unit up to
/// all, each at the begin and at the end of the sequence; between these it lies on a line.
class SliceTimes {
 public:
  /// A sequence of so many units, 1 or more. What equal slices take, where units divide into
  /// `count` of them, is found out, too: kernels of round sizes are faster than those beside them.
  SliceTimes(int64_t units, int64_t count);

  /// Lowers the step of the question with slices of all these lengths, in units of `unit`
  /// positions. Infeasible where the step cannot be parallelized so. To be called first.
  absl::Status Measure(const SliceQuestion& question, int64_t unit);

  /// Seconds of the slowest stage, forward and backward, for a slice from unit `begin` on.
  double OfSlowest(int64_t begin, int64_t length) const;

  /// What all stages but the slowest take for the whole sequence, by what the slowest takes: stages
  /// - 1 where they are alike.
  double Fill() const;

  /// Seconds of the whole pipeline with slices of so many units, which need not be whole: forwards
  /// in their order, then backwards in the opposite one, each when its stage is free and the stage
  /// before has done its part. Sends take none.
  double OfPipeline(const std::vector<double>& lengths) const;

 private:
  using Phases = std::array<double, 2>;  // seconds of forward and of backward

  size_t StageCount() const { return seconds_.size(); }
  Phases Of(size_t stage, double begin, double length) const;
  Phases At(size_t stage, size_t sample, double begin) const;

  double units_;
  std::vector<int64_t> lengths_;              // samples, ascending
  std::vector<std::vector<Phases>> seconds_;  // by stage, then sample: at the begin, at the end
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SLICE_TIMES_H_
