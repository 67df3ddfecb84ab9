#include "transforms/strategies/pipedream_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::transforms::strategies {
namespace pipedream_plan_cc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// The dynamic program keeps a number for each pair of layers and number of members.
constexpr double kMostStates = 1 << 26;
// Splits to look at: some ten seconds.
constexpr double kMostChoices = 1e10;

size_t At(int32_t number) { return static_cast<size_t>(number); }

absl::Status Validate(const PipeDreamProblem& problem) {
  const size_t layers = problem.seconds.size();
  if (layers == 0 || problem.levels.empty()) {
    return absl::InvalidArgumentError("stages: wanted at least 1 layer and 1 level of workers");
  }
  for (const auto* column : {&problem.seconds, &problem.weight_bytes, &problem.output_bytes}) {
    if (column->size() != layers) {
      return absl::InvalidArgumentError(
          absl::StrCat("stages: got ", column->size(), " figures for ", layers, " layers"));
    }
    for (const double figure : *column) {
      if (figure >= 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("stages: got a layer of ", figure, ", wanted at least 0"));
    }
  }
  for (const PipeDreamLevel& level : problem.levels) {
    if (level.members < 1 || !(level.bytes_per_second > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("stages: got a level of ", level.members,
                                                     " members at ", level.bytes_per_second,
                                                     " bytes/s, wanted more than 0 of both"));
    }
    const double members = level.members, count = static_cast<double>(layers);
    if (count * count * members > kMostStates ||
        count * count * count * members * members > kMostChoices) {
      return absl::InvalidArgumentError(
          absl::StrCat("stages: got ", layers, " layers on ", level.members,
                       " members of a level, which takes too long to plan; try fewer layers, or a "
                       "cluster with levels of fewer members"));
    }
  }
  if (!problem.held_bytes.empty() && problem.held_bytes.size() != layers) {
    return absl::InvalidArgumentError(absl::StrCat("stages: got ", problem.held_bytes.size(),
                                                   " figures of memory for ", layers, " layers"));
  }
  return absl::OkStatus();
}

class Planner {
 public:
  explicit Planner(const PipeDreamProblem& problem)
      : problem_(problem), layers_(static_cast<int32_t>(problem.seconds.size())) {
    double weights = 0;
    for (const double bytes : problem.weight_bytes) weights_.push_back(weights += bytes);
  }

  absl::StatusOr<PipeDreamPlan> Run() {
    for (const PipeDreamLevel& level : problem_.levels) AddLevel(level);
    PipeDreamPlan plan;
    const auto top = problem_.levels.size() - 1;
    plan.seconds = Whole(top, 0, layers_ - 1);
    if (plan.seconds == kNever) {
      return InfeasibleStatus({.reason = InfeasibleReason::kMemory,
                               .detail = "stages: no division over the workers has stages that all "
                                         "fit the memory of one; try a larger `memory-limit`"});
    }
    Append(top, 0, layers_ - 1, problem_.levels[top].members, 1, plan.stages);
    return plan;
  }

 private:
  struct State {
    double seconds = kNever;
    int32_t before = -1;   // the last layer before the last stage; -1: there is one stage
    int32_t replicas = 0;  // of the last stage
  };
  using Table = std::vector<State>;  // [first][last][members - 1]

  State& state(size_t level, int32_t first, int32_t last, int32_t members) {
    const size_t row = At(first) * At(layers_) + At(last);
    return tables_[level][row * At(problem_.levels[level].members) + At(members) - 1];
  }

  // Of the layers on all members of the level.
  double Whole(size_t level, int32_t first, int32_t last) {
    return state(level, first, last, problem_.levels[level].members).seconds;
  }

  // T of the paper: one stage on `members` of the level that is being added.
  double Replicated(int32_t first, int32_t last, int32_t members) {
    const size_t level = tables_.size() - 1;
    double inner = 0;
    if (level > 0) {
      inner = Whole(level - 1, first, last);
    } else if (!Fits(first, last)) {
      return kNever;
    } else {
      for (int32_t layer = first; layer <= last; ++layer) inner += problem_.seconds[At(layer)];
    }
    const double weights = weights_[At(last)] - (first == 0 ? 0 : weights_[At(first) - 1]);
    const double sync = 2 * (members - 1) * weights / problem_.levels[level].bytes_per_second;
    return std::max(inner, sync) / members;
  }

  bool Fits(int32_t first, int32_t last) const {
    if (problem_.held_bytes.empty() || problem_.memory_limit == 0) return true;
    double held = 0;
    for (int32_t layer = first; layer <= last; ++layer) held += problem_.held_bytes[At(layer)];
    return held <= problem_.memory_limit;
  }

  void AddLevel(const PipeDreamLevel& level) {
    tables_.emplace_back(At(layers_) * At(layers_) * At(level.members));
    const size_t at = tables_.size() - 1;
    // All that is one stage, then what has one before it.
    for (int32_t first = 0; first < layers_; ++first) {
      for (int32_t last = first; last < layers_; ++last) {
        for (int32_t members = 1; members <= level.members; ++members) {
          state(at, first, last, members) = {
              .seconds = Replicated(first, last, members), .before = -1, .replicas = members};
        }
      }
    }
    const Table alone = tables_.back();
    for (int32_t first = 0; first < layers_; ++first) {
      for (int32_t last = first + 1; last < layers_; ++last) {
        for (int32_t members = 2; members <= level.members; ++members) {
          Split({first, last, members}, level, alone);
        }
      }
    }
  }

  struct Span {
    int32_t first, last, members;
  };

  void Split(const Span& span, const PipeDreamLevel& level, const Table& alone) {
    const size_t at = tables_.size() - 1;
    State& best = state(at, span.first, span.last, span.members);
    for (int32_t before = span.first; before < span.last; ++before) {
      const double send = 2 * problem_.output_bytes[At(before)] / level.bytes_per_second;
      if (send >= best.seconds) continue;
      const size_t row = (At(before + 1) * At(layers_) + At(span.last)) * At(level.members);
      for (int32_t replicas = 1; replicas < span.members; ++replicas) {
        const double seconds =
            std::max({state(at, span.first, before, span.members - replicas).seconds, send,
                      alone[row + At(replicas) - 1].seconds});
        if (seconds < best.seconds) best = {seconds, before, replicas};
      }
    }
  }

  // The stages of the layers, each as many times more as there are `copies` of this.
  void Append(size_t level, int32_t first, int32_t last, int32_t members, int32_t copies,
              std::vector<PipeDreamStage>& stages) {
    const State best = state(level, first, last, members);
    int32_t begin = first;
    if (best.before >= 0) {
      Append(level, first, best.before, members - best.replicas, copies, stages);
      begin = best.before + 1;
    }
    const int32_t replicas = copies * best.replicas;
    if (level == 0) {
      stages.push_back({.begin = begin, .end = last + 1, .replicas = replicas});
    } else {
      Append(level - 1, begin, last, problem_.levels[level - 1].members, replicas, stages);
    }
  }

  const PipeDreamProblem& problem_;
  const int32_t layers_;
  std::vector<double> weights_;  // of the layers up to each
  std::vector<Table> tables_;    // of the levels so far
};

}  // namespace
}  // namespace pipedream_plan_cc

absl::StatusOr<PipeDreamPlan> PlanPipeDream(const PipeDreamProblem& problem) {
  ORRERY_RETURN_IF_ERROR(pipedream_plan_cc::Validate(problem));
  return pipedream_plan_cc::Planner(problem).Run();
}

}  // namespace orrery::transforms::strategies
