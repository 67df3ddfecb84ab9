#ifndef ORRERY_SEARCH_SPACES_WEIGHT_STRATEGIES_H_
#define ORRERY_SEARCH_SPACES_WEIGHT_STRATEGIES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "search/spaces/choice_list.h"

// What hp does to weights, as a choice of its own: FlexFlow's strategies of ops (Jia, Zaharia and
// Aiken, Beyond Data and Model Parallelism for Deep Neural Networks, MLSys 2019).

namespace orrery::search {

/// What has a strategy of its own: weights that are alike in all layers, or each by itself.
enum class StrategyGrain : uint8_t { kKinds, kWeights };

/// "kinds" or "weights"; InvalidArgument for another.
absl::StatusOr<StrategyGrain> ParseStrategyGrain(absl::string_view text);

/// Weights that have one strategy.
struct WeightKind {
  std::string pattern;         // RE2 of their names, as in ShardingPin
  std::vector<int64_t> sizes;  // of each dimension what all of theirs are a multiple of
  int64_t elements = 0;        // of all of them

  friend bool operator==(const WeightKind&, const WeightKind&) = default;
};

/// The weights of a step that have two dimensions and more, the largest kind first. Names are alike
/// that differ in whole numbers between dots, slashes, colons or underscores:
/// "^h\.[0-9]+\.mlp\.up\.w$". What has no name is left out, and so are names of weights of
/// different ranks.
std::vector<WeightKind> WeightKinds(const ir::Function& step, StrategyGrain grain);

/// Each kind is left to prices, kept whole, or split by hp along one of the dimensions that hp
/// divides: labels 0, 1, and 2 for dimension 0, …; pins of the plan say so. A plan without hp,
/// by Megatron's pattern, with ranks of each stage, or with pins of its own has nothing to choose;
/// others are of the class of their hp.
class WeightStrategies final : public PlanChoices {
 public:
  explicit WeightStrategies(std::vector<WeightKind> kinds) : kinds_(std::move(kinds)) {}

  size_t size() const override { return kinds_.size(); }
  int LabelsOf(size_t thing) const override;
  int64_t ClassOf(const transforms::ParallelPlan& plan) const override;
  std::vector<int> OptionsOf(int64_t plan_class, size_t thing) const override;
  /// Powers of two of its elements and of its first and last dimension.
  std::vector<double> FeaturesOf(size_t thing) const override;
  void Apply(std::span<const int> labels, transforms::ParallelPlan& plan) const override;

 private:
  const std::vector<WeightKind> kinds_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_WEIGHT_STRATEGIES_H_
