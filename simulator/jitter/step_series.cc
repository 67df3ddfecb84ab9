#include "simulator/jitter/step_series.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "simulator/engine/longest_path.h"
#include "simulator/engine/play.h"
#include "simulator/jitter/waits.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"
#include "support/numbers/quantile.h"
#include "support/status.h"
#include "support/threads.h"

namespace orrery::simulator {
namespace step_series_cc {
namespace {

// Sums of waits, by class and late rank.
class WaitSums {
 public:
  void Add(RankClassId waiting, int32_t late, Duration time) {
    Duration& sum = sums_[{waiting.index(), late}];
    sum = SaturatedSum(sum, time);
  }
  void Add(const WaitSums& other) {
    for (const auto& [key, time] : other.sums_) Add(RankClassId(key.first), key.second, time);
  }
  std::vector<Wait> Sorted() const {
    std::vector<Wait> waits;
    for (const auto& [key, time] : sums_) {
      waits.push_back({.waiting = RankClassId(key.first), .late = key.second, .time = time});
    }
    std::ranges::sort(waits, {},
                      [](const Wait& wait) { return std::pair(wait.waiting.index(), wait.late); });
    return waits;
  }

 private:
  absl::flat_hash_map<std::pair<int32_t, int32_t>, Duration> sums_;
};

// Plays steps one after the other, in memory of its own.
class Player {
 public:
  Player(const DisturbedProgram& disturbed, const SeriesOptions& options)
      : disturbed_(disturbed),
        options_(options),
        copy_(disturbed.program()),
        events_(NeedsEvents(copy_)),
        finder_(copy_) {}

  absl::Status PlayStep(int32_t step, StepSeries& series) {
    ORRERY_RETURN_IF_ERROR(Play(step, DisturbedProgram::kSlowest));
    series.times[static_cast<size_t>(step)] = trace_.makespan;
    if (options_.waits) FindWaits(step);
    if (series.at_least.empty()) return absl::OkStatus();
    Duration longest;
    for (const int32_t position : PositionsOf(step)) {
      ORRERY_RETURN_IF_ERROR(Play(step, position));
      longest = std::max(longest, trace_.makespan);
    }
    series.at_least[static_cast<size_t>(step)] = longest;
    return absl::OkStatus();
  }
  const WaitSums& waits() const { return waits_; }

 private:
  absl::Status Play(int32_t step, int32_t position) {
    disturbed_.SetTimes(step, position, copy_);
    if (events_) {
      ORRERY_ASSIGN_OR_RETURN(trace_, simulator::Play(copy_));
      return absl::OkStatus();
    }
    RunLongestPath(copy_, trace_);
    if (trace_.makespan < kEndOfTime) return absl::OkStatus();
    return absl::OutOfRangeError(
        absl::StrCat("step ", step, " goes on beyond ", ToString(kEndOfTime),
                     ", wanted one that ends before; try smaller factors"));
  }

  // Where the slowest of some class is, that of the slowest class first: the longest of these is
  // close to the longest of all. Where times are not fixed it is no bound, and one has to do.
  std::vector<int32_t> PositionsOf(int32_t step) const {
    const size_t most = events_ ? 1 : 8;
    std::vector<Pace> paces = disturbed_.PacesOf(step).rows();
    std::ranges::stable_sort(paces, std::greater(), &Pace::factor);
    std::vector<int32_t> positions;
    for (const Pace& pace : paces) {
      const bool known = std::ranges::find(positions, pace.member) != positions.end();
      if (!known && positions.size() < most) positions.push_back(pace.member);
    }
    return positions;
  }

  // For a class it is its slowest member that comes late. Within a class the others wait until that
  // one has computed.
  void FindWaits(int32_t step) {
    const IdTable<RankClassId, Pace> paces = disturbed_.PacesOf(step);
    const Program& program = disturbed_.program();
    const auto slowest = [&](RankClassId rank) {
      return program.rank(rank).members[static_cast<size_t>(paces[rank].member)];
    };
    finder_.Find(trace_, [&](RankClassId waiting, RankClassId late, Duration time) {
      const int64_t members = std::ssize(program.rank(waiting).members);
      waits_.Add(waiting, slowest(late), time * members);
    });
    for (int32_t r = 0; r < program.rank_count(); ++r) {
      const RankClassId rank(r);
      const auto members = static_cast<int32_t>(program.rank(rank).members.size());
      for (int32_t m = 0; m < members && members > 1; ++m) {
        const double less = paces[rank].factor - disturbed_.FactorOf(rank, m, step);
        if (less <= 0) continue;
        waits_.Add(rank, slowest(rank),
                   Duration::FromSeconds(less * disturbed_.KernelTime(rank).seconds()));
      }
    }
  }

  const DisturbedProgram& disturbed_;
  const SeriesOptions& options_;
  Program copy_;
  const bool events_;
  WaitFinder finder_;
  Trace trace_;
  WaitSums waits_;
};

}  // namespace
}  // namespace step_series_cc

absl::StatusOr<StepSeries> PlaySeries(const DisturbedProgram& disturbed,
                                      const SeriesOptions& options) {
  ORRERY_CHECK(options.steps >= 1) << options.steps;
  const auto steps = static_cast<size_t>(options.steps);
  StepSeries series{.times = std::vector<Duration>(steps)};
  if (options.bounds && !disturbed.exact()) series.at_least.resize(steps);
  const size_t parts = std::clamp<size_t>(options.threads, 1, steps);
  std::vector<std::pair<size_t, absl::Status>> ends(parts, {steps, absl::OkStatus()});
  std::vector<step_series_cc::WaitSums> sums(parts);
  ForEachOnThreads(parts, parts, [&](size_t part) {
    step_series_cc::Player player(disturbed, options);
    for (size_t step = part; step < steps && ends[part].second.ok(); step += parts) {
      ends[part] = {step, player.PlayStep(static_cast<int32_t>(step), series)};
    }
    if (ends[part].second.ok()) ends[part].first = steps;
    sums[part] = player.waits();
  });
  // The first step that failed, whoever played it.
  const auto first = std::ranges::min_element(ends, {}, [](const auto& end) { return end.first; });
  ORRERY_RETURN_IF_ERROR(first->second);
  step_series_cc::WaitSums all;
  for (const step_series_cc::WaitSums& of_part : sums) all.Add(of_part);
  series.waits = all.Sorted();
  return series;
}

std::vector<Wait> UndisturbedWaits(const DisturbedProgram& disturbed) {
  const Program& program = disturbed.program();
  step_series_cc::WaitSums sums;
  WaitFinder finder(program);
  finder.Find(disturbed.undisturbed(), [&](RankClassId waiting, RankClassId late, Duration time) {
    sums.Add(waiting, program.rank(late).members.front(),
             time * std::ssize(program.rank(waiting).members));
  });
  return sums.Sorted();
}

StepFigures FiguresOf(std::span<const Duration> times) {
  ORRERY_CHECK(!times.empty());
  std::vector<double> sorted;
  for (const Duration time : times) sorted.push_back(time.seconds());
  std::ranges::sort(sorted);
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  return {.mean_s = sum / static_cast<double>(sorted.size()),
          .p5_s = QuantileOf(sorted, 0.05),
          .p50_s = QuantileOf(sorted, 0.5),
          .p95_s = QuantileOf(sorted, 0.95),
          .p99_s = QuantileOf(sorted, 0.99)};
}

}  // namespace orrery::simulator
