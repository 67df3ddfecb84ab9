#include "transforms/strategies/inter_op.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::transforms::strategies {
namespace inter_op_cc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// The dynamic program keeps a number for each of layers × devices × stages.
constexpr int64_t kMostStates = 1 << 26;

size_t At(int32_t number) { return static_cast<size_t>(number); }

template <typename T>
bool HasShape(const std::vector<std::vector<std::vector<T>>>& table,
              const InterOpProblem& problem) {
  const auto has = [](const auto& list, size_t size) { return list.size() == size; };
  return has(table, At(problem.layers)) && std::ranges::all_of(table, [&](const auto& rows) {
           return has(rows, At(problem.layers)) &&
                  std::ranges::all_of(rows, [&](const auto& costs) {
                    return has(costs, problem.submesh_sizes.size());
                  });
         });
}

absl::Status Validate(const InterOpProblem& problem) {
  if (problem.layers < 1 || problem.devices < 1 || problem.microbatches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("stages: got ", problem.layers, " layers, ", problem.devices, " devices, ",
                     problem.microbatches, " microbatches, wanted at least 1 of each"));
  }
  for (const int32_t size : problem.submesh_sizes) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("stages: got a submesh of ", size, " devices, wanted at least 1"));
    }
  }
  if (!HasShape(problem.stage_cost, problem)) {
    return absl::InvalidArgumentError(
        "stages: the stage costs are not one for each first layer, last layer and submesh");
  }
  if (!problem.most_successors.empty() && !HasShape(problem.most_successors, problem)) {
    return absl::InvalidArgumentError(
        "stages: the successors are not one for each first layer, last layer and submesh");
  }
  const auto has_all = [&](const auto& row) { return row.size() >= At(problem.devices); };
  if (!problem.fits.empty() && (problem.fits.size() != problem.submesh_sizes.size() ||
                                !std::ranges::all_of(problem.fits, has_all))) {
    return absl::InvalidArgumentError(
        "stages: where submeshes fit is not told of each submesh and device");
  }
  for (const auto& rows : problem.stage_cost) {
    for (const auto& costs : rows) {
      for (const double cost : costs) {
        if (!(cost >= 0)) {
          return absl::InvalidArgumentError(
              absl::StrCat("stages: got a stage cost of ", cost, ", wanted at least 0"));
        }
      }
    }
  }
  return absl::OkStatus();
}

// The least Σ t_i over all stages of the layers from some layer on, with each t_i within a cap.
class CappedProgram {
 public:
  explicit CappedProgram(const InterOpProblem& problem)
      : problem_(problem),
        layers_(At(problem.layers)),
        devices_(At(problem.devices)),
        // Without limits on successors the number of stages need not be known.
        most_stages_(problem.most_successors.empty() ? 1 : std::min(layers_, devices_)),
        states_((most_stages_ + 1) * (layers_ + 1) * (devices_ + 1)) {}

  InterOpPlan Run(double cap) {
    std::ranges::fill(states_, State{});
    state(0, layers_, 0).cost = 0;
    for (size_t first = layers_; first-- > 0;) {
      for (size_t last = first; last < layers_; ++last) {
        for (size_t shape = 0; shape < problem_.submesh_sizes.size(); ++shape) {
          const double cost = problem_.stage_cost[first][last][shape];
          if (cost <= cap && cost != kNever) Extend(first, last, shape);
        }
      }
    }
    return Best();
  }

 private:
  struct State {
    double cost = kNever;
    int32_t end = 0;  // of the first stage
    int32_t shape = 0;
  };

  State& state(size_t stages, size_t first, size_t devices) {
    return states_[(stages * (layers_ + 1) + first) * (devices_ + 1) + devices];
  }

  // The number of stages once one more is put before; one row serves all where it does not matter.
  size_t OneMore(size_t stages) const {
    return problem_.most_successors.empty() ? stages : stages + 1;
  }

  void Extend(size_t first, size_t last, size_t shape) {
    const double cost = problem_.stage_cost[first][last][shape];
    const auto size = At(problem_.submesh_sizes[shape]);
    size_t most = most_stages_ - 1;
    if (!problem_.most_successors.empty()) {
      const int32_t successors = problem_.most_successors[first][last][shape];
      if (successors < 0) return;
      most = std::min(most, At(successors));
    }
    for (size_t stages = 0; stages <= most; ++stages) {
      for (size_t devices = size; devices <= devices_; ++devices) {
        // Stages take devices in their order: the first of these has so many before it.
        if (!problem_.fits.empty() && problem_.fits[shape][devices_ - devices] == 0) continue;
        const double rest = state(stages, last + 1, devices - size).cost;
        State& best = state(OneMore(stages), first, devices);
        if (cost + rest >= best.cost) continue;
        best = {.cost = cost + rest,
                .end = static_cast<int32_t>(last + 1),
                .shape = static_cast<int32_t>(shape)};
      }
    }
  }

  InterOpPlan Best() {
    size_t stages = 0;
    for (size_t s = 1; s <= most_stages_; ++s) {
      if (state(s, 0, devices_).cost < state(stages, 0, devices_).cost) stages = s;
    }
    InterOpPlan plan{.stages = {}, .cost = kNever};
    if (state(stages, 0, devices_).cost == kNever) return plan;
    double sum = 0, slowest = 0;
    for (size_t first = 0, devices = devices_; first < layers_;) {
      const State& best = state(stages, first, devices);
      const double cost = problem_.stage_cost[first][At(best.end) - 1][At(best.shape)];
      plan.stages.push_back(
          {.begin = static_cast<int32_t>(first), .end = best.end, .submesh = best.shape});
      sum += cost;
      slowest = std::max(slowest, cost);
      devices -= At(problem_.submesh_sizes[At(best.shape)]);
      first = At(best.end);
      if (!problem_.most_successors.empty()) --stages;
    }
    plan.cost = sum + static_cast<double>(problem_.microbatches - 1) * slowest;
    return plan;
  }

  const InterOpProblem& problem_;
  const size_t layers_, devices_, most_stages_;
  std::vector<State> states_;  // [stages][first layer][devices]
};

std::vector<double> Caps(const InterOpProblem& problem) {
  std::vector<double> caps;
  for (const auto& rows : problem.stage_cost) {
    for (const auto& costs : rows) {
      std::ranges::copy_if(costs, std::back_inserter(caps), [](double c) { return c != kNever; });
    }
  }
  std::ranges::sort(caps);
  caps.erase(std::unique(caps.begin(), caps.end()), caps.end());
  return caps;
}

}  // namespace
}  // namespace inter_op_cc

absl::StatusOr<std::optional<InterOpPlan>> PlanInterOp(const InterOpProblem& problem) {
  ORRERY_RETURN_IF_ERROR(inter_op_cc::Validate(problem));
  const int64_t rows =
      problem.most_successors.empty() ? 2 : std::min(problem.layers, problem.devices) + 1;
  if ((int64_t{problem.layers} + 1) * (int64_t{problem.devices} + 1) >
      inter_op_cc::kMostStates / rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("stages: got ", problem.layers, " layers on ", problem.devices,
                     " devices, which is more than fits memory; group layers or devices"));
  }
  inter_op_cc::CappedProgram program(problem);
  std::optional<InterOpPlan> best;
  for (const double cap : inter_op_cc::Caps(problem)) {
    // The slowest stage is this slow, unless an earlier cap has found the plan.
    const double least = cap * static_cast<double>(problem.microbatches);
    if (best.has_value() && least >= best->cost) break;
    InterOpPlan plan = program.Run(cap);
    if (plan.cost == inter_op_cc::kNever) continue;
    if (!best.has_value() || plan.cost < best->cost) best = std::move(plan);
  }
  return best;
}

}  // namespace orrery::transforms::strategies
