#include "search/spaces/weight_strategies.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "search/spaces/name_parts.h"
#include "transforms/sharding/sharding_pin.h"

namespace orrery::search {
namespace weight_strategies_cc {
namespace {

constexpr int kWhole = 1, kFirstDim = 2;  // labels

bool IsNumber(absl::string_view part) {
  return !part.empty() && std::ranges::all_of(part, absl::ascii_isdigit);
}

// "^h\.[0-9]+\.mlp\.up\.w$" of "h.3.mlp.up.w".
std::string PatternOf(absl::string_view name, StrategyGrain grain) {
  std::string pattern = "^";
  while (true) {
    const size_t end = std::min(name.find_first_of(kNameSeparators), name.size());
    const absl::string_view part = name.substr(0, end);
    const bool is_any = grain == StrategyGrain::kKinds && IsNumber(part);
    absl::StrAppend(&pattern, is_any ? "[0-9]+" : QuotedName(part));
    if (end == name.size()) break;
    absl::StrAppend(&pattern, QuotedName(name.substr(end, 1)));
    name.remove_prefix(end + 1);
  }
  return absl::StrCat(pattern, "$");
}

}  // namespace
}  // namespace weight_strategies_cc

absl::StatusOr<StrategyGrain> ParseStrategyGrain(absl::string_view text) {
  if (text == "kinds") return StrategyGrain::kKinds;
  if (text == "weights") return StrategyGrain::kWeights;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': wanted kinds or weights"));
}

std::vector<WeightKind> WeightKinds(const ir::Function& step, StrategyGrain grain) {
  std::map<std::string, std::optional<WeightKind>> kinds;  // nothing: of several ranks
  for (const ir::Input& input : step.inputs()) {
    const absl::string_view name = step.value_name(input.value);
    if (!ir::IsWeight(input.role) || name.empty()) continue;
    const ir::TensorType& type = step.type(input.value);
    const std::vector<int64_t> sizes(type.dims.begin(), type.dims.end());
    const int64_t elements =
        std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    const std::string pattern = weight_strategies_cc::PatternOf(name, grain);
    const auto [found, is_new] = kinds.try_emplace(pattern, WeightKind{pattern, sizes, elements});
    std::optional<WeightKind>& kind = found->second;
    if (is_new || !kind.has_value()) continue;
    if (kind->sizes.size() != sizes.size()) {
      kind.reset();
      continue;
    }
    std::ranges::transform(kind->sizes, sizes, kind->sizes.begin(), std::gcd<int64_t, int64_t>);
    kind->elements += elements;
  }
  std::vector<WeightKind> sorted;
  for (auto& [pattern, kind] : kinds) {
    if (kind.has_value() && kind->sizes.size() >= 2) sorted.push_back(*std::move(kind));
  }
  std::ranges::stable_sort(sorted, std::ranges::greater(), &WeightKind::elements);
  return sorted;
}

int WeightStrategies::LabelsOf(size_t thing) const {
  return weight_strategies_cc::kFirstDim + static_cast<int>(kinds_[thing].sizes.size());
}

int64_t WeightStrategies::ClassOf(const transforms::ParallelPlan& plan) const {
  const bool has_some = plan.hp > 1 && !plan.unequal() && !plan.by_pattern() &&
                        !plan.by_products() && plan.pins.empty();
  return has_some ? plan.hp : 0;
}

std::vector<int> WeightStrategies::OptionsOf(int64_t plan_class, size_t thing) const {
  std::vector<int> options = {0, weight_strategies_cc::kWhole};
  int label = weight_strategies_cc::kFirstDim;
  for (const int64_t size : kinds_[thing].sizes) {
    if (size % plan_class == 0) options.push_back(label);
    ++label;
  }
  return options;
}

std::vector<double> WeightStrategies::FeaturesOf(size_t thing) const {
  const auto power = [](int64_t size) {
    return std::log2(static_cast<double>(std::max<int64_t>(1, size)));
  };
  const WeightKind& kind = kinds_[thing];
  return {power(kind.elements), power(kind.sizes.front()), power(kind.sizes.back())};
}

void WeightStrategies::Apply(std::span<const int> labels, transforms::ParallelPlan& plan) const {
  for (size_t thing = 0; thing < labels.size(); ++thing) {
    if (labels[thing] == 0) continue;
    const bool whole = labels[thing] == weight_strategies_cc::kWhole;
    plan.pins.push_back({.pattern = kinds_[thing].pattern,
                         .dim = whole ? transforms::ShardingPin::kWhole
                                      : labels[thing] - weight_strategies_cc::kFirstDim});
  }
}

}  // namespace orrery::search
