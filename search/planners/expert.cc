#include "search/planners/expert.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "support/status.h"
#include "transforms/memory/recompute_policy.h"
#include "transforms/plan/axis.h"

namespace orrery::search {
namespace expert_cc {
namespace {

// How reluctantly an engineer takes it; of axes in the order in which they are decided.
using Reluctance = std::tuple<bool, bool, int64_t, int64_t, int64_t, int64_t, int, int64_t>;

int64_t ZeroRank(const ParallelPlan& plan) {
  if (plan.dp == 1) return plan.zero;
  return plan.zero == 1 ? 0 : 1 + plan.zero;
}

int RecomputeRank(const ParallelPlan& plan) {
  const std::string policy = transforms::FindAxis("recompute")->print(plan);
  return policy == "none" ? 0 : policy == "selective" ? 1 : policy == "full" ? 2 : 3;
}

Reluctance ReluctanceOf(const ParallelPlan& plan, int32_t changes, int64_t batch_size,
                        int64_t devices_a_node) {
  const int64_t model_parallel = plan.hp * plan.pp * plan.cp;
  const int64_t samples = batch_size / std::max<int64_t>(1, plan.dp * plan.ep * plan.microbatches);
  // Where nothing waits for a pipeline to fill, small microbatches only cost.
  const int64_t microbatch = plan.pp > 1 ? samples : -samples;
  return {changes > 0, plan.hp > devices_a_node, model_parallel,      plan.pp,
          plan.cp,     ZeroRank(plan),           RecomputeRank(plan), microbatch};
}

}  // namespace
}  // namespace expert_cc

std::vector<size_t> ExpertOrder(const PlanList& plans, int64_t batch_size, int64_t devices_a_node) {
  constexpr absl::string_view kRanked[] = {"zero", "recompute"};  // by themselves
  std::vector<expert_cc::Reluctance> reluctance;
  reluctance.reserve(plans.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    reluctance.push_back(
        expert_cc::ReluctanceOf(plans[i], plans.ChangesOf(i, kRanked), batch_size, devices_a_node));
  }
  std::vector<size_t> order(plans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return reluctance[i]; });
  return order;
}

namespace expert_cc {
namespace {

class Expert {
 public:
  Expert(const SettingOf& setting_of, const PlanList& plans, const SearchOptions& options)
      : setting_of_(setting_of), plans_(plans), options_(options) {}

  absl::StatusOr<std::optional<ExpertChoice>> Choose(const std::vector<size_t>& order) {
    using Span = std::chrono::duration<double>;
    const double seconds = options_.budget.seconds > 0 ? options_.budget.seconds : 60;
    const auto begun = std::chrono::steady_clock::now();
    for (const size_t i : order) {
      if (Span(std::chrono::steady_clock::now() - begun).count() > seconds) break;
      ORRERY_ASSIGN_OR_RETURN(std::optional<ExpertChoice> choice, Play(i));
      if (options_.stop != nullptr && *options_.stop) break;
      if (!choice.has_value()) continue;
      ORRERY_RETURN_IF_ERROR(HalveMicrobatches(*choice));
      choice->played = played_;
      return choice;
    }
    return std::nullopt;
  }

 private:
  // None where neither it nor anything in its place fits.
  absl::StatusOr<std::optional<ExpertChoice>> Play(size_t i) {
    const SearchOptions options = {
        .threads = 1, .relief = options_.relief, .top = 1, .stop = options_.stop};
    ExpertChoice choice{.place = i};
    ORRERY_ASSIGN_OR_RETURN(choice.results, RunSearch(setting_of_, {plans_[i]}, options));
    for (const Result& result : choice.results) played_ += result.ran ? 1 : 0;
    const std::vector<const Result*> ranked = Ranked(choice.results);
    if (ranked.empty()) return std::nullopt;
    choice.best = static_cast<size_t>(ranked.front() - choice.results.data());
    return choice;
  }

  absl::Status HalveMicrobatches(ExpertChoice& choice) {
    for (bool helps = true; helps;) {
      helps = false;
      ParallelPlan other = plans_[choice.place];
      if (other.microbatches % 2 != 0) break;
      other.microbatches /= 2;
      for (const size_t i : plans_.Neighbours(choice.place)) {
        if (plans_[i] != other) continue;
        ORRERY_ASSIGN_OR_RETURN(std::optional<ExpertChoice> half, Play(i));
        helps = half.has_value() && half->result().step_time < choice.result().step_time;
        if (helps) choice = *std::move(half);
        break;
      }
    }
    return absl::OkStatus();
  }

  const SettingOf& setting_of_;
  const PlanList& plans_;
  const SearchOptions& options_;
  int64_t played_ = 0;
};

}  // namespace
}  // namespace expert_cc

absl::StatusOr<std::optional<ExpertChoice>> PlayExpert(const SettingOf& setting_of,
                                                       const PlanList& plans,
                                                       const SearchOptions& options, size_t most) {
  if (plans.empty()) return std::nullopt;
  const Setting& setting = setting_of(plans.front());
  std::vector<size_t> order =
      ExpertOrder(plans, setting.batch_size, setting.cluster.topology.shape().devices_per_node);
  if (order.size() > most) order.resize(most);
  return expert_cc::Expert(setting_of, plans, options).Choose(order);
}

}  // namespace orrery::search
