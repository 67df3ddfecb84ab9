#include "search/slices.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/model_facts.h"
#include "search/slice_times.h"
#include "support/status.h"
#include "transforms/slices/add_slices.h"
#include "transforms/slices/slice_plan.h"
#include "transforms/slices/slices.h"

namespace orrery::search {
namespace slices_cc {
namespace {

using transforms::SliceRange;

constexpr int64_t kMostUnits = 256;
constexpr int64_t kTile = 8;  // positions of the shortest slices that are asked about
constexpr double kTolerance = 1e-3;

std::vector<SliceRange> InARow(const std::vector<int64_t>& lengths, int64_t unit) {
  std::vector<SliceRange> slices;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    slices.push_back({.begin = begin, .rows = length * unit});
    begin += length * unit;
  }
  return slices;
}

absl::StatusOr<std::vector<SliceRange>> Given(const SliceQuestion& q, int64_t length) {
  const std::vector<int64_t>& rows = q.plan.slices.rows;
  const int64_t sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  if (std::ssize(rows) == q.plan.microbatches && sum == length) return InARow(rows, 1);
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kDivisibility,
       .detail =
           absl::StrCat("slices of ", absl::StrJoin(rows, ","), " are ", rows.size(), " and have ",
                        sum, " positions; wanted ", q.plan.microbatches, " that have ", length)});
}

absl::StatusOr<std::vector<SliceRange>> Equal(const SliceQuestion& q, int64_t count) {
  absl::StatusOr<std::vector<SliceRange>> slices = transforms::EqualSlices(q.setting.step, count);
  const auto infeasible = AsInfeasible(slices.status());
  if (!infeasible.has_value() || infeasible->reason != InfeasibleReason::kDivisibility) {
    return slices;
  }
  return InfeasibleStatus(
      {.reason = infeasible->reason,
       .detail = absl::StrCat(infeasible->detail, ", or `slices` balanced; schedule ",
                              q.schedule.name, " cuts sequences, not the batch")});
}

// Parts of which slices are made: whole tiles, unless that makes too few.
int64_t UnitsOf(int64_t length, int64_t count) {
  int64_t units = 0, of_tiles = 0;
  for (int64_t parts = 1; parts <= std::min(length, kMostUnits); ++parts) {
    if (length % parts != 0) continue;
    units = parts;
    if (length / parts % kTile == 0) of_tiles = parts;
  }
  return of_tiles >= count ? of_tiles : units;
}

absl::StatusOr<std::vector<SliceRange>> Balanced(const SliceQuestion& q, int64_t length) {
  const int64_t count = q.plan.microbatches;
  const int64_t units = UnitsOf(length, count);
  if (units < count) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kDivisibility,
         .detail = absl::StrCat("a sequence of ", length, " divides into ", units,
                                " parts, of 256 at most; wanted ", count, " slices or more")});
  }
  SliceTimes times(units, count);
  ORRERY_RETURN_IF_ERROR(times.Measure(q, length / units));
  const auto exact = [&](const std::vector<int64_t>& lengths) {
    return times.OfPipeline({lengths.begin(), lengths.end()});
  };
  const std::vector<int64_t> planned = transforms::PlanSlices(
      {.units = units,
       .slices = count,
       .fill = times.Fill(),
       .tolerance = kTolerance,
       .seconds = [&](int64_t begin, int64_t rows) { return times.OfSlowest(begin, rows); },
       .exact = exact});
  // The formula is not exact, and equal slices may be better.
  const double each = static_cast<double>(units) / static_cast<double>(count);
  const std::vector<double> equal(static_cast<size_t>(count), each);
  if (length % count == 0 && times.OfPipeline(equal) <= exact(planned)) {
    return InARow(std::vector<int64_t>(equal.size(), length / count), 1);
  }
  return InARow(planned, length / units);
}

}  // namespace
}  // namespace slices_cc

absl::Status CheckSliceCount(const transforms::PipelineSchedule& schedule, int64_t microbatches,
                             int64_t ops) {
  if (!schedule.slices_sequence) return absl::OkStatus();
  return transforms::CheckSliceCount(microbatches, ops);
}

std::string SlicesText(const std::vector<transforms::SliceRange>& slices) {
  const bool alike = std::ranges::all_of(slices, [&](const transforms::SliceRange& slice) {
    return slice.rows == slices.front().rows;
  });
  if (alike) return absl::StrCat(slices.size(), " of ", slices.front().rows, " positions");
  const auto rows = [](std::string* out, const transforms::SliceRange& slice) {
    absl::StrAppend(out, slice.rows);
  };
  return absl::StrCat(absl::StrJoin(slices, ",", rows), " positions");
}

absl::StatusOr<std::vector<transforms::SliceRange>> SlicesOf(const SliceQuestion& q) {
  const int64_t count = q.plan.microbatches;
  const transforms::SliceLengths& wanted = q.plan.slices;
  const bool one = count <= 1 && wanted.rows.empty();
  if (!q.schedule.slices_sequence || one) return std::vector<transforms::SliceRange>();
  const int64_t length = ir::SequenceLength(q.setting.step);
  if (length == 0 || (!wanted.balanced && wanted.rows.empty())) {
    return slices_cc::Equal(q, count);
  }
  return wanted.balanced ? slices_cc::Balanced(q, length) : slices_cc::Given(q, length);
}

absl::StatusOr<std::vector<std::vector<transforms::SliceRange>>> SlicesToPlay(
    const SliceQuestion& q) {
  std::vector<std::vector<transforms::SliceRange>> lists;
  ORRERY_ASSIGN_OR_RETURN(lists.emplace_back(), SlicesOf(q));
  const auto count = std::ssize(lists.front());
  const int64_t length = ir::SequenceLength(q.setting.step);
  if (!q.plan.slices.balanced || count == 0 || length % count != 0) return lists;
  std::vector<transforms::SliceRange> equal =
      slices_cc::InARow(std::vector<int64_t>(static_cast<size_t>(count), length / count), 1);
  const auto is_equal = [&](const transforms::SliceRange& slice) {
    return slice.rows == equal.front().rows;
  };
  if (!std::ranges::all_of(lists.front(), is_equal)) lists.push_back(std::move(equal));
  return lists;
}

}  // namespace orrery::search
