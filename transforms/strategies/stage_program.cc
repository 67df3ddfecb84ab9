#include "transforms/strategies/stage_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
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

// Where each stage may begin, and behind the last one where it ends: ascending.
using Places = std::vector<std::vector<int32_t>>;

Places AllPlaces(int32_t units, int32_t stages, int32_t apart) {
  Places places(At(stages) + 1);
  places.front() = {0};
  places.back() = {units};
  for (int32_t stage = 1; stage < stages; ++stage) {
    for (int32_t begin = stage * apart; begin + (stages - 1 - stage) * apart < units;
         begin += apart) {
      places[At(stage)].push_back(begin);
    }
  }
  return places;
}

// Those not farther than `reach` from `begins`.
Places PlacesNear(const std::vector<int32_t>& begins, int32_t units, int32_t reach) {
  const auto stages = static_cast<int32_t>(begins.size());
  Places places(begins.size() + 1);
  places.front() = {0};
  places.back() = {units};
  for (int32_t stage = 1; stage < stages; ++stage) {
    const int32_t first = std::max(stage, begins[At(stage)] - reach);
    const int32_t last = std::min(units - stages + stage, begins[At(stage)] + reach);
    for (int32_t begin = first; begin <= last; ++begin) places[At(stage)].push_back(begin);
  }
  return places;
}

// Goals: the least over all cuts of a value that is found stage by stage. `Extend` makes it from
// that of the stages before, or says Never(). `IsOver`: whether no stage that ends there and begins
// at `begin`, or before, makes less than `best`.

// The slowest stage, within memory.
struct Slowest {
  using Value = double;
  const StageWeights& weights;
  double limit;

  static Value None() { return 0; }
  static Value Never() { return kNever; }
  bool Fits(int32_t stage, int32_t begin, int32_t end) const {
    return limit == 0 || weights.Memory(stage, begin, end) <= limit;
  }
  bool IsFull(int32_t stage, int32_t begin, int32_t end) const {
    return limit > 0 && weights.Held(stage, begin, end) > limit;
  }
  Value Extend(Value before, int32_t stage, int32_t begin, int32_t end) const {
    return Fits(stage, begin, end) ? std::max(before, weights.Seconds(begin, end)) : kNever;
  }
  bool IsOver(Value best, int32_t stage, int32_t begin, int32_t end) const {
    return weights.Work(begin, end) >= best || IsFull(stage, begin, end);
  }
};

// With no stage slower than `cap`: bytes over boundaries, then squares of seconds.
struct Evenest {
  using Value = std::pair<double, double>;
  const StageProblem& problem;
  Slowest slowest;
  double cap;

  static Value None() { return {0, 0}; }
  static Value Never() { return {kNever, kNever}; }
  Value Extend(const Value& before, int32_t stage, int32_t begin, int32_t end) const {
    const double seconds = slowest.weights.Seconds(begin, end);
    if (seconds > cap || !slowest.Fits(stage, begin, end)) return Never();
    const double bytes = begin == 0 ? 0 : problem.boundary_bytes[At(begin)];
    return {before.first + bytes, before.second + seconds * seconds};
  }
  bool IsOver(const Value&, int32_t stage, int32_t begin, int32_t end) const {
    return slowest.weights.Work(begin, end) > cap || slowest.IsFull(stage, begin, end);
  }
};

// The fullest stage.
struct Fullest {
  using Value = double;
  const StageWeights& weights;

  static Value None() { return 0; }
  static Value Never() { return kNever; }
  Value Extend(Value before, int32_t stage, int32_t begin, int32_t end) const {
    return std::max(before, weights.Memory(stage, begin, end));
  }
  bool IsOver(Value best, int32_t stage, int32_t begin, int32_t end) const {
    return weights.Held(stage, begin, end) >= best;
  }
};

// Empty where it is Never().
template <typename Goal>
std::vector<int32_t> BestBegins(const Places& places, const Goal& goal) {
  using Value = typename Goal::Value;
  const size_t stages = places.size() - 1;
  std::vector<Value> before = {Goal::None()}, best;
  std::vector<std::vector<int32_t>> from(stages);  // number of the begin, by stage and end
  for (size_t stage = 0; stage < stages; ++stage) {
    const std::vector<int32_t>&begins = places[stage], &ends = places[stage + 1];
    best.assign(ends.size(), Goal::Never());
    from[stage].assign(ends.size(), -1);
    size_t count = 0;  // of begins before the end
    for (size_t e = 0; e < ends.size(); ++e) {
      while (count < begins.size() && begins[count] < ends[e]) ++count;
      for (size_t b = count; b-- > 0;) {
        const auto number = static_cast<int32_t>(stage);
        if (goal.IsOver(best[e], number, begins[b], ends[e])) break;
        if (!(before[b] < Goal::Never())) continue;
        const Value value = goal.Extend(before[b], number, begins[b], ends[e]);
        if (!(value < best[e])) continue;
        best[e] = value;
        from[stage][e] = static_cast<int32_t>(b);
      }
    }
    std::swap(before, best);
  }
  if (!(before[0] < Goal::Never())) return {};
  std::vector<int32_t> divided(stages);
  int32_t end = 0;
  for (size_t stage = stages; stage-- > 0;) {
    end = from[stage][At(end)];
    divided[stage] = places[stage][At(end)];
  }
  return divided;
}

// One stage a rank: the least slowest stage, then the least of the rest with no stage slower.
// Empty where nothing keeps to `limit` of memory for a stage.
std::vector<int32_t> FastestBegins(const StageProblem& problem, const Slowest& slowest,
                                   const Places& places) {
  const std::vector<int32_t> fastest = BestBegins(places, slowest);
  if (fastest.empty()) return fastest;
  const double cap = slowest.weights.Weigh(fastest).slowest_stage * (1 + kAlike);
  return BestBegins(places, Evenest{.problem = problem, .slowest = slowest, .cap = cap});
}

// The fastest within memory, or else the smallest.
std::vector<int32_t> BestOf(const StageProblem& problem, const StageWeights& weights, double limit,
                            const Places& places) {
  std::vector<int32_t> begins =
      FastestBegins(problem, {.weights = weights, .limit = limit}, places);
  return begins.empty() ? BestBegins(places, Fullest{weights}) : begins;
}

// Of too many units to try all: runs of equally many first, then what is near where stages begin,
// and farther off where one has come to the end of that.
std::vector<int32_t> Begins(const StageProblem& problem, const StageWeights& weights,
                            double limit) {
  constexpr int kMostTries = 8;
  const int32_t units = weights.units(), stages = problem.stages;
  const int32_t most = std::max(kMostExact, stages);
  const int32_t apart = std::max(1, std::min(units / most, units / stages));
  std::vector<int32_t> begins = BestOf(problem, weights, limit, AllPlaces(units, stages, apart));
  if (apart == 1) return begins;
  for (int i = 0; i < kMostTries; ++i) {
    std::vector<int32_t> moved =
        BestOf(problem, weights, limit, PlacesNear(begins, units, 2 * apart));
    if (moved == begins) break;
    begins = std::move(moved);
  }
  return begins;
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

// Moves `stride` units from stage to stage, through all between them; whether that helped.
bool Move(const StageProblem& problem, const StageWeights& weights, int32_t stride,
          StageDivision& best) {
  bool better = false;
  for (int32_t first = 1; first < problem.stages; ++first) {
    for (int32_t last = first; last < problem.stages; ++last) {
      for (const int32_t by : {-stride, stride}) {
        std::vector<int32_t> begins = best.begins;
        for (int32_t stage = first; stage <= last; ++stage) begins[At(stage)] += by;
        const int32_t end = last + 1 < problem.stages ? begins[At(last) + 1] : weights.units();
        if (begins[At(first)] <= begins[At(first) - 1] || begins[At(last)] >= end) continue;
        StageDivision moved = weights.Weigh(std::move(begins));
        if (!IsBetter(problem, moved, best)) continue;
        best = std::move(moved);
        better = true;
      }
    }
  }
  return better;
}

// As long as that helps.
StageDivision Improved(const StageProblem& problem, const StageWeights& weights,
                       StageDivision best) {
  for (int32_t stride = FirstStride(weights.units(), problem.stages); stride > 0; stride /= 2) {
    while (Move(problem, weights, stride, best)) continue;
  }
  return best;
}

}  // namespace
}  // namespace stage_program_cc

using stage_program_cc::At;

StageWeights::StageWeights(const StageProblem& problem)
    : problem_(problem),
      units_(static_cast<int32_t>(problem.seconds.size())),
      seconds_(stage_program_cc::Sums(problem.seconds)),
      state_(stage_program_cc::Sums(problem.state_bytes)),
      kept_(stage_program_cc::Sums(problem.kept_bytes)),
      weights_(stage_program_cc::Sums(problem.weight_bytes)) {}

double StageWeights::Boundary(int32_t unit) const {
  return unit == 0 || unit == units_ ? 0 : problem_.boundary_seconds[At(unit)];
}

double StageWeights::Work(int32_t begin, int32_t end) const {
  return seconds_[At(end)] - seconds_[At(begin)];
}

double StageWeights::Seconds(int32_t begin, int32_t end) const {
  return Work(begin, end) + Boundary(begin) + Boundary(end);
}

double StageWeights::InFlight(int32_t stage) const {
  return problem_.in_flight.empty() ? 1 : problem_.in_flight[At(stage)];
}

double StageWeights::Held(int32_t stage, int32_t begin, int32_t end) const {
  const double state =
      state_[At(end)] - state_[At(begin)] + InFlight(stage) * (kept_[At(end)] - kept_[At(begin)]);
  if (problem_.more_versions.empty()) return state;
  return state + problem_.more_versions[At(stage)] * (weights_[At(end)] - weights_[At(begin)]);
}

double StageWeights::Memory(int32_t stage, int32_t begin, int32_t end) const {
  const double received = begin == 0 ? 0 : problem_.boundary_bytes[At(begin)];
  return Held(stage, begin, end) + InFlight(stage) * received;
}

StageDivision StageWeights::Weigh(std::vector<int32_t> begins) const {
  StageDivision division;
  std::vector<double> seconds(At(problem_.stages)), memory(At(problem_.stages));  // by rank
  for (int32_t stage = 0; stage < problem_.stages; ++stage) {
    const int32_t begin = begins[At(stage)];
    const int32_t end = stage + 1 < problem_.stages ? begins[At(stage) + 1] : units_;
    const int32_t rank = problem_.ranks.empty() ? stage : problem_.ranks[At(stage)];
    const double lasts = Seconds(begin, end);
    seconds[At(rank)] += lasts;
    memory[At(rank)] += Memory(stage, begin, end);
    division.slowest_stage = std::max(division.slowest_stage, lasts);
    if (begin > 0) division.boundary_bytes += problem_.boundary_bytes[At(begin)];
  }
  for (const double lasts : seconds) division.squares += lasts * lasts;
  division.slowest_rank = *std::ranges::max_element(seconds);
  division.most_memory = *std::ranges::max_element(memory);
  division.begins = std::move(begins);
  return division;
}

StageDivision Weigh(const StageProblem& problem, std::vector<int32_t> begins) {
  return StageWeights(problem).Weigh(std::move(begins));
}

// A stage of fewer units than 16 is moved unit by unit.
int32_t FirstStride(int32_t units, int32_t stages) {
  constexpr int32_t kFew = 16;
  return static_cast<int32_t>(
      std::bit_floor(static_cast<uint32_t>(std::max(1, units / stages / kFew))));
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
  const StageWeights weights(problem);
  const auto chunks = [&] {
    int32_t ranks = 0;
    for (const int32_t rank : problem.ranks) ranks = std::max(ranks, rank + 1);
    return ranks == 0 ? 1 : problem.stages / ranks;
  }();
  // What a rank has, its stages share.
  StageDivision best =
      weights.Weigh(stage_program_cc::Begins(problem, weights, problem.memory_limit / chunks));
  if (chunks == 1) return best;
  best = stage_program_cc::Improved(problem, weights, std::move(best));
  StageDivision other = stage_program_cc::Improved(
      problem, weights, weights.Weigh(EqualBegins(weights.units(), problem.stages)));
  return stage_program_cc::IsBetter(problem, other, best) ? other : best;
}

}  // namespace orrery::transforms::strategies
