#include "transforms/memory/recompute.h"

#include <re2/re2.h>

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/status.h"
#include "transforms/memory/keep_plan.h"
#include "transforms/memory/run_again.h"

namespace orrery::transforms {
namespace recompute_cc {
namespace {

using Kind = RecomputePolicy::Kind;

constexpr size_t kLongestPattern = 1000;

absl::StatusOr<RecomputePolicy> ParsePattern(absl::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  const bool fits = !pattern.empty() && pattern.size() <= kLongestPattern;
  if (fits && RE2({pattern.data(), pattern.size()}, options).ok()) {
    return RecomputePolicy{.kind = Kind::kMatching, .pattern = std::string(pattern)};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'match:", pattern.substr(0, 80), "': wanted a regular expression of at most ",
                   kLongestPattern, " characters, as in match:gelu|norm"));
}

std::vector<std::vector<LayerRange>> LayersOf(const PipelinedStep& step,
                                              const RecomputePolicy& policy) {
  if (policy.kind != Kind::kLayers) return std::vector<std::vector<LayerRange>>(step.stages.size());
  std::vector<const StageFunction*> forwards;
  for (const PipelineStage& stage : step.stages) forwards.push_back(&stage.forward);
  return FindLayers(forwards);
}

// What forward keeps in a stage, and what the phases after it do for the rest. Returns how many
// values that makes fewer.
int64_t RecomputeStage(const RecomputePolicy& policy, std::span<const LayerRange> layers,
                       PipelineStage& stage) {
  const std::array<StageFunction*, 2> later = {&stage.backward, &stage.weights};
  const std::array<const StageFunction*, 1> others = {&stage.update};
  const KeepPlan plan =
      PlanToKeep(stage.forward.function, policy, layers, FindSaved(stage.forward, later));
  if (plan.dropped > 0) RunAgain(plan, later, others, stage.forward);
  return plan.dropped;
}

}  // namespace
}  // namespace recompute_cc

absl::StatusOr<RecomputePolicy> ParseRecomputePolicy(absl::string_view text) {
  if (text == "none") return RecomputePolicy{};
  if (text == "selective") return RecomputePolicy{.kind = recompute_cc::Kind::kSelective};
  if (text == "full") return RecomputePolicy{.kind = recompute_cc::Kind::kLayers};
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "match:")) return recompute_cc::ParsePattern(rest);
  RecomputePolicy policy{.kind = recompute_cc::Kind::kLayers};
  if (absl::ConsumePrefix(&rest, "every:") && absl::SimpleAtoi(rest, &policy.every) &&
      policy.every >= 1) {
    return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text.substr(0, 80),
                   "': wanted none, selective, full, every:K with K of at least 1, or "
                   "match:REGEX"));
}

std::string ToString(const RecomputePolicy& policy) {
  switch (policy.kind) {
    case recompute_cc::Kind::kNone:
      return "none";
    case recompute_cc::Kind::kSelective:
      return "selective";
    case recompute_cc::Kind::kLayers:
      return policy.every == 1 ? "full" : absl::StrCat("every:", policy.every);
    case recompute_cc::Kind::kMatching:
      return absl::StrCat("match:", policy.pattern);
  }
  return "";
}

absl::StatusOr<std::vector<std::string>> ParseRecomputeList(absl::string_view text) {
  std::vector<std::string> list;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const bool is_policy = absl::StartsWith(item, "match:") || ParseRecomputePolicy(item).ok();
    if (!is_policy && !list.empty() && absl::StartsWith(list.back(), "match:")) {
      absl::StrAppend(&list.back(), ",", item);
    } else {
      list.emplace_back(item);
    }
  }
  for (std::string& item : list) {
    ORRERY_ASSIGN_OR_RETURN(const RecomputePolicy policy, ParseRecomputePolicy(item));
    item = ToString(policy);
  }
  return list;
}

absl::Status Recompute(PipelinedStep& step, const RecomputePolicy& policy) {
  if (policy.kind == recompute_cc::Kind::kNone && !policy.gathers) return absl::OkStatus();
  int64_t dropped = 0;
  const std::vector<std::vector<LayerRange>> layers = recompute_cc::LayersOf(step, policy);
  for (size_t s = 0; s < step.stages.size(); ++s) {
    dropped += recompute_cc::RecomputeStage(policy, layers[s], step.stages[s]);
  }
  if (dropped > 0 || policy.kind != recompute_cc::Kind::kMatching) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToString(policy),
                   "': finds no value that forward keeps for backward; opt --stages names them"));
}

}  // namespace orrery::transforms
