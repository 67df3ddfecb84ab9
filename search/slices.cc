#include "search/slices.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lowering/lower.h"
#include "simulator/time_alone.h"
#include "support/status.h"
#include "transforms/slice_plan.h"
#include "transforms/slices.h"

namespace orrery::search {
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
  const std::vector<int64_t>& rows = q.setting.slices.rows;
  const int64_t sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  if (std::ssize(rows) == q.degrees.microbatches && sum == length) return InARow(rows, 1);
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kDivisibility,
       .detail = absl::StrCat("slices of ", absl::StrJoin(rows, ","), " are ", rows.size(),
                              " and have ", sum, " positions; wanted ", q.degrees.microbatches,
                              " that have ", length)});
}

// What each stage takes for slices of some lengths, at both ends of the sequence.
class SliceTimes {
 public:
  explicit SliceTimes(int64_t units) : units_(units) {
    for (int64_t length = 1; length <= units;) {
      lengths_.push_back(length);
      const int64_t next = length < 4 ? length + 1 : length + length / 2;
      length = length < units ? std::min(next, units) : next;
    }
  }

  absl::Status Measure(const SliceQuestion& q, int64_t unit) {
    transforms::SpreadOptions options = q.options;
    for (const int64_t length : lengths_) {
      options.slices.push_back({.begin = 0, .rows = length * unit});
      options.slices.push_back({.begin = (units_ - length) * unit, .rows = length * unit});
    }
    options.slices_apart = true;
    options.stages.choice.schedule = nullptr;  // is of other microbatches
    transforms::ParallelDegrees degrees = q.degrees;
    degrees.microbatches = std::ssize(options.slices);
    ORRERY_ASSIGN_OR_RETURN(const transforms::PipelinedStep step,
                            transforms::ParallelTransform3d(q.setting.step, degrees, options));
    std::vector<lowering::PlacedStep> placed;
    lowering::LoweringOptions lowering = q.setting.lowering;
    lowering.fuse_runs = true;
    lowering.every_link = false;
    ORRERY_ASSIGN_OR_RETURN(const simulator::Program program,
                            lowering::Lower({.step = step,
                                             .schedule = q.schedule,
                                             .cluster = q.setting.cluster,
                                             .cost_model = *q.setting.cost_model,
                                             .options = lowering,
                                             .placed = &placed}));
    seconds_.assign(step.stages.size(), std::vector<double>(options.slices.size(), 0));
    for (const lowering::PlacedStep& row : placed) {
      seconds_[static_cast<size_t>(row.step.stage)][static_cast<size_t>(row.step.microbatch)] +=
          SecondsOf(row, program);
    }
    return absl::OkStatus();
  }

  // Of the slowest stage.
  double Of(int64_t begin, int64_t length) const {
    const auto above = std::ranges::lower_bound(lengths_, length);
    const auto i = static_cast<size_t>(above - lengths_.begin());
    double slowest = 0;
    for (const std::vector<double>& seconds : seconds_) {
      double own = At(seconds, i, begin);
      if (*above != length) {
        const double share = static_cast<double>(length - lengths_[i - 1]) /
                             static_cast<double>(lengths_[i] - lengths_[i - 1]);
        own = share * own + (1 - share) * At(seconds, i - 1, begin);
      }
      slowest = std::max(slowest, own);
    }
    return slowest;
  }

 private:
  // What computes, and what a stage's own ranks exchange while they wait.
  static double SecondsOf(const lowering::PlacedStep& row, const simulator::Program& program) {
    double seconds = 0;
    for (simulator::TaskId task = row.begin; task != row.end;
         task = simulator::TaskId(task.index() + 1)) {
      const auto kind = program.stream(program.streams_of(task)[0]).kind;
      const bool counts =
          kind == simulator::StreamKind::kCompute || kind == simulator::StreamKind::kHorizontal;
      if (!counts) continue;
      const simulator::FlowId flow = program.flow_of(task);
      seconds += flow.valid() ? simulator::TimeAlone(program.flow(flow), program).seconds()
                              : program.duration(task).seconds();
    }
    return seconds;
  }

  // Of the slice of sample length i that begins at `begin`: keys grow with it. Beyond the last
  // place where that slice could begin the line goes on.
  double At(const std::vector<double>& seconds, size_t i, int64_t begin) const {
    const int64_t last = units_ - lengths_[i];
    const double first = seconds[2 * i];
    if (last == 0) return first;
    return first +
           (seconds[2 * i + 1] - first) * static_cast<double>(begin) / static_cast<double>(last);
  }

  const int64_t units_;
  std::vector<int64_t> lengths_;              // samples, ascending
  std::vector<std::vector<double>> seconds_;  // by stage, then sample: at the begin, at the end
};

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
  const int64_t count = q.degrees.microbatches;
  const int64_t units = UnitsOf(length, count);
  if (units < count) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kDivisibility,
         .detail = absl::StrCat("a sequence of ", length, " divides into ", units,
                                " parts, of 256 at most; wanted ", count, " slices or more")});
  }
  SliceTimes times(units);
  ORRERY_RETURN_IF_ERROR(times.Measure(q, length / units));
  return InARow(
      transforms::PlanSlices(
          {.units = units,
           .slices = count,
           .stages = q.degrees.pp,
           .tolerance = kTolerance,
           .seconds = [&](int64_t begin, int64_t rows) { return times.Of(begin, rows); }}),
      length / units);
}

}  // namespace

absl::StatusOr<SliceLengths> ParseSliceLengths(absl::string_view text) {
  if (text.empty() || text == "equal") return SliceLengths{};
  if (text == "balanced") return SliceLengths{.balanced = true};
  SliceLengths lengths;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int64_t rows = 0;
    if (!absl::SimpleAtoi(item, &rows) || rows < 1 || rows > (int64_t{1} << 40)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text.substr(0, 80),
                       "': wanted equal, balanced, or the positions of each slice, as in "
                       "1024,640,384"));
    }
    lengths.rows.push_back(rows);
  }
  return lengths;
}

std::string SlicesText(const std::vector<SliceRange>& slices) {
  const bool alike = std::ranges::all_of(
      slices, [&](const SliceRange& slice) { return slice.rows == slices.front().rows; });
  if (alike) return absl::StrCat(slices.size(), " of ", slices.front().rows, " positions");
  const auto rows = [](std::string* out, const SliceRange& slice) {
    absl::StrAppend(out, slice.rows);
  };
  return absl::StrCat(absl::StrJoin(slices, ",", rows), " positions");
}

absl::StatusOr<std::vector<SliceRange>> SlicesOf(const SliceQuestion& q) {
  const int64_t count = q.degrees.microbatches;
  const SliceLengths& wanted = q.setting.slices;
  const bool one = count <= 1 && wanted.rows.empty();
  if (!q.schedule.slices_sequence || one) return std::vector<SliceRange>();
  const int64_t length = transforms::SequenceLength(q.setting.step);
  if (length == 0 || (!wanted.balanced && wanted.rows.empty())) {
    return transforms::EqualSlices(q.setting.step, count);
  }
  return wanted.balanced ? Balanced(q, length) : Given(q, length);
}

}  // namespace orrery::search
