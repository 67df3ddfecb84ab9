#include "transforms/strategies/stage_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::transforms::strategies {
namespace stage_program_cc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Sums of the same seconds in another order are the same.
constexpr double kAlike = 1e-9;

size_t At(int32_t number) { return static_cast<size_t>(number); }

absl::Status Validate(const StageProblem& problem) {
  const size_t units = problem.seconds.size();
  for (const auto* column : {&problem.boundary_seconds, &problem.boundary_bytes,
                             &problem.state_bytes, &problem.kept_bytes}) {
    if (column->size() == units) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("stages: got ", column->size(), " figures for ", units, " units"));
  }
  if (problem.stages < 1 || units < At(problem.stages)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stages: got ", units, " units for ", problem.stages, " stages, wanted at least 1 each"));
  }
  const auto fits = [&](const auto& list) {
    return list.empty() || list.size() == At(problem.stages);
  };
  if (!fits(problem.ranks) || !fits(problem.in_flight) || !fits(problem.more_versions) ||
      (!problem.more_versions.empty() && problem.weight_bytes.size() != units)) {
    return absl::InvalidArgumentError(
        "stages: wanted ranks, microbatches in flight and versions of all stages, or none");
  }
  return absl::OkStatus();
}

std::vector<double> Sums(const std::vector<double>& values) {
  std::vector<double> sums = {0};
  for (const double value : values) sums.push_back(sums.back() + value);
  return sums;
}

// What a stage of the units begin..end-1 takes, in constant time.
class StageWeights {
 public:
  explicit StageWeights(const StageProblem& problem)
      : problem_(problem),
        units_(static_cast<int32_t>(problem.seconds.size())),
        seconds_(Sums(problem.seconds)),
        state_(Sums(problem.state_bytes)),
        kept_(Sums(problem.kept_bytes)),
        weights_(Sums(problem.weight_bytes)) {}

  double Seconds(int32_t begin, int32_t end) const {
    return seconds_[At(end)] - seconds_[At(begin)] + Boundary(begin) + Boundary(end);
  }
  double Memory(int32_t stage, int32_t begin, int32_t end) const {
    const double in_flight = problem_.in_flight.empty() ? 1 : problem_.in_flight[At(stage)];
    const double kept =
        kept_[At(end)] - kept_[At(begin)] + (begin == 0 ? 0 : problem_.boundary_bytes[At(begin)]);
    const double state = state_[At(end)] - state_[At(begin)] + in_flight * kept;
    if (problem_.more_versions.empty()) return state;
    return state + problem_.more_versions[At(stage)] * (weights_[At(end)] - weights_[At(begin)]);
  }
  int32_t units() const { return units_; }

 private:
  double Boundary(int32_t unit) const {
    return unit == 0 || unit == units_ ? 0 : problem_.boundary_seconds[At(unit)];
  }

  const StageProblem& problem_;
  const int32_t units_;
  const std::vector<double> seconds_, state_, kept_, weights_;
};

StageDivision WeighBy(const StageProblem& problem, const StageWeights& weights,
                      std::vector<int32_t> begins) {
  StageDivision division;
  std::vector<double> seconds(At(problem.stages)), memory(At(problem.stages));  // by rank
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    const int32_t begin = begins[At(stage)];
    const int32_t end = stage + 1 < problem.stages ? begins[At(stage) + 1] : weights.units();
    const int32_t rank = problem.ranks.empty() ? stage : problem.ranks[At(stage)];
    const double lasts = weights.Seconds(begin, end);
    seconds[At(rank)] += lasts;
    memory[At(rank)] += weights.Memory(stage, begin, end);
    division.slowest_stage = std::max(division.slowest_stage, lasts);
    if (begin > 0) division.boundary_bytes += problem.boundary_bytes[At(begin)];
  }
  for (const double lasts : seconds) division.squares += lasts * lasts;
  division.slowest_rank = *std::ranges::max_element(seconds);
  division.most_memory = *std::ranges::max_element(memory);
  division.begins = std::move(begins);
  return division;
}

// Fastest last stage and so on: the least, over all cuts, of a value that is found stage by stage.
// `Value` has an operator< and `extend(before, stage, begin, end)` makes it from that of the stages
// before, or says nothing.
template <typename Value, typename Extend>
std::vector<int32_t> BestBegins(const StageProblem& problem, const Value& none, const Value& never,
                                const Extend& extend) {
  const auto units = static_cast<int32_t>(problem.seconds.size());
  std::vector<Value> before(At(units) + 1, never), best(before);
  std::vector<std::vector<int32_t>> from(At(problem.stages),
                                         std::vector<int32_t>(At(units) + 1, -1));
  before[0] = none;
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    std::ranges::fill(best, never);
    const int32_t last_end = units - (problem.stages - 1 - stage);
    for (int32_t end = stage + 1; end <= last_end; ++end) {
      for (int32_t begin = end - 1; begin >= stage; --begin) {
        if (!(before[At(begin)] < never)) continue;
        const Value value = extend(before[At(begin)], stage, begin, end);
        if (!(value < best[At(end)])) continue;
        best[At(end)] = value;
        from[At(stage)][At(end)] = begin;
      }
    }
    std::swap(before, best);
  }
  if (!(before[At(units)] < never)) return {};
  std::vector<int32_t> begins(At(problem.stages));
  for (int32_t stage = problem.stages - 1, end = units; stage >= 0; --stage) {
    end = begins[At(stage)] = from[At(stage)][At(end)];
  }
  return begins;
}

// One stage a rank: the least slowest stage, then the least of the rest with no stage slower.
// Empty where nothing keeps to `limit` of memory for a stage.
std::vector<int32_t> FastestBegins(const StageProblem& problem, const StageWeights& weights,
                                   double limit) {
  const auto fits = [&](int32_t stage, int32_t begin, int32_t end) {
    return limit == 0 || weights.Memory(stage, begin, end) <= limit;
  };
  const std::vector<int32_t> fastest = BestBegins<double>(
      problem, 0, kNever, [&](double before, int32_t stage, int32_t begin, int32_t end) {
        return fits(stage, begin, end) ? std::max(before, weights.Seconds(begin, end)) : kNever;
      });
  if (fastest.empty()) return fastest;
  const double cap = WeighBy(problem, weights, fastest).slowest_stage * (1 + kAlike);
  using Rest = std::pair<double, double>;  // bytes over boundaries; squares of seconds
  const Rest never(kNever, kNever);
  return BestBegins<Rest>(problem, Rest(0, 0), never,
                          [&](const Rest& before, int32_t stage, int32_t begin, int32_t end) {
                            const double seconds = weights.Seconds(begin, end);
                            if (seconds > cap || !fits(stage, begin, end)) return never;
                            const double bytes = begin == 0 ? 0 : problem.boundary_bytes[At(begin)];
                            return Rest(before.first + bytes, before.second + seconds * seconds);
                          });
}

std::vector<int32_t> SmallestBegins(const StageProblem& problem, const StageWeights& weights) {
  return BestBegins<double>(problem, 0, kNever,
                            [&](double before, int32_t stage, int32_t begin, int32_t end) {
                              return std::max(before, weights.Memory(stage, begin, end));
                            });
}

bool Less(double a, double b) { return a < b - kAlike * std::abs(b); }

// Whether `a` is the better division: within memory first.
bool IsBetter(const StageProblem& problem, const StageDivision& a, const StageDivision& b) {
  const auto excess = [&](const StageDivision& division) {
    return problem.memory_limit == 0 ? 0
                                     : std::max(0.0, division.most_memory - problem.memory_limit);
  };
  const std::pair<double, double> pairs[] = {{excess(a), excess(b)},
                                             {a.slowest_rank, b.slowest_rank},
                                             {a.slowest_stage, b.slowest_stage},
                                             {a.boundary_bytes, b.boundary_bytes},
                                             {a.squares, b.squares}};
  for (const auto& [mine, other] : pairs) {
    if (Less(mine, other)) return true;
    if (Less(other, mine)) return false;
  }
  return false;
}

// Moves units from stage to stage, through all between them, as long as that helps.
StageDivision Improved(const StageProblem& problem, const StageWeights& weights,
                       StageDivision best) {
  for (bool better = true; better;) {
    better = false;
    for (int32_t first = 1; first < problem.stages; ++first) {
      for (int32_t last = first; last < problem.stages; ++last) {
        for (const int32_t by : {-1, 1}) {
          std::vector<int32_t> begins = best.begins;
          for (int32_t stage = first; stage <= last; ++stage) begins[At(stage)] += by;
          const int32_t end = last + 1 < problem.stages ? begins[At(last) + 1] : weights.units();
          if (begins[At(first)] <= begins[At(first) - 1] || begins[At(last)] >= end) continue;
          StageDivision moved = WeighBy(problem, weights, std::move(begins));
          if (!IsBetter(problem, moved, best)) continue;
          best = std::move(moved);
          better = true;
        }
      }
    }
  }
  return best;
}

}  // namespace
}  // namespace stage_program_cc

StageDivision Weigh(const StageProblem& problem, std::vector<int32_t> begins) {
  return stage_program_cc::WeighBy(problem, stage_program_cc::StageWeights(problem),
                                   std::move(begins));
}

std::vector<int32_t> EqualBegins(int32_t units, int32_t stages) {
  std::vector<int32_t> begins;
  // The first unit u with ⌊u · stages / units⌋ = s.
  for (int64_t s = 0; s < stages; ++s) {
    begins.push_back(static_cast<int32_t>((s * units + stages - 1) / stages));
  }
  return begins;
}

absl::StatusOr<StageDivision> DivideByCost(const StageProblem& problem) {
  ORRERY_RETURN_IF_ERROR(stage_program_cc::Validate(problem));
  const stage_program_cc::StageWeights weights(problem);
  const auto chunks = [&] {
    int32_t ranks = 0;
    for (const int32_t rank : problem.ranks) ranks = std::max(ranks, rank + 1);
    return ranks == 0 ? 1 : problem.stages / ranks;
  }();
  // What a rank has, its stages share.
  std::vector<int32_t> begins =
      stage_program_cc::FastestBegins(problem, weights, problem.memory_limit / chunks);
  if (begins.empty()) begins = stage_program_cc::SmallestBegins(problem, weights);
  StageDivision best = stage_program_cc::WeighBy(problem, weights, std::move(begins));
  if (chunks == 1) return best;
  best = stage_program_cc::Improved(problem, weights, std::move(best));
  StageDivision other = stage_program_cc::Improved(
      problem, weights,
      stage_program_cc::WeighBy(problem, weights, EqualBegins(weights.units(), problem.stages)));
  return stage_program_cc::IsBetter(problem, other, best) ? other : best;
}

}  // namespace orrery::transforms::strategies
