#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "importer/builtin_models.h"
#include "search/evaluate.h"
#include "search/settings/model_flops.h"
#include "search/spaces/space.h"
#include "search/walks/methods.h"
#include "support/sanitized_test_util.h"
#include "transforms/training/training_step.h"

// How far each method of `plan` is from the best of a space after so many plans, over 20 seeds: all
// plans of the space are played before, once. The time is that of the method itself.

namespace orrery {
namespace {

// Under a sanitizer it is only seen to run.
constexpr int kSeeds = CasesToWalk(20);
constexpr const char* kCluster = kSeeds < 20 ? "dgx-a100:1" : "dgx-a100:2";
constexpr size_t kAtATime = 4, kMost = 64;

// A space of which all is known.
struct Known {
  search::PlanList plans;
  std::vector<std::optional<search::WalkScore>> scores;
  double best = std::numeric_limits<double>::infinity();  // seconds
};

// A model of four layers on two nodes, of which a part of the plans does not fit.
Known Make() {
  search::Setting setting;
  setting.step = importer::BuildBuiltinModel(
                     "gpt:layers=4,hidden=4096,heads=16,seq=1024,vocab="
                     "32000,flash=1",
                     64, ir::DType::kBF16)
                     .value();
  if (!transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok()) std::abort();
  setting.batch_size = 64;
  setting.cluster = cluster::ParseCluster(kCluster).value();
  setting.cost_model = cost_models::MakeCostModel("kernels").value();
  setting.model_flops = search::CountModelFlops(setting.step);
  setting.lowering.memory_limit = Bytes(int64_t{24} << 30);
  search::Space space({.sharding = transforms::ShardingMethod::kMegatron});
  space.SaveMemory();
  Known known;
  known.plans = search::Enumerate(space, search::SpaceSizeOf(setting)).value();
  PartStore parts(Bytes(int64_t{256} << 20));
  for (const search::ParallelPlan& plan : known.plans) {
    const search::Result result = search::Evaluate(setting, plan, &parts).value();
    std::optional<search::WalkScore>& score = known.scores.emplace_back();
    if (!result.ran) continue;
    score = {.fits = result.fits,
             .size = result.fits ? result.step_time.seconds()
                                 : static_cast<double>(result.peak_memory.count())};
    if (result.fits) known.best = std::min(known.best, score->size);
  }
  return known;
}

const Known& TheSpace() {
  static const Known& known = *new Known(Make());
  return known;
}

// How much slower than the best of all the best is after 1, 2, … plans; 10 where none fits.
std::vector<double> Distances(search::Method method, uint32_t seed) {
  constexpr double kNone = 10;
  const Known& known = TheSpace();
  std::set<size_t> played;
  search::WalkQuestion question;
  question.promising.resize(known.plans.size());
  std::iota(question.promising.begin(), question.promising.end(), uint32_t{0});
  question.neighbours = [&](size_t i) { return known.plans.Neighbours(i); };
  question.family = [&](size_t i) { return known.plans.FamilyOf(i); };
  question.features = [&](size_t i) { return known.plans.FeaturesOf(i); };
  question.is_open = [&](size_t i) { return !played.contains(i); };
  question.seed = seed;
  const auto walk = method->make(std::move(question));
  std::vector<double> distances;
  double best = std::numeric_limits<double>::infinity();
  while (played.size() < kMost) {
    const double spent = static_cast<double>(played.size()) / kMost;
    const std::vector<size_t> batch = walk->Next(kAtATime, spent);
    if (batch.empty()) break;
    played.insert(batch.begin(), batch.end());
    for (const size_t i : batch) {
      if (known.scores[i].has_value() && known.scores[i]->fits) {
        best = std::min(best, known.scores[i]->size);
      }
      distances.push_back(std::min(kNone, best / known.best - 1));
      walk->Found(i, known.scores[i]);
    }
  }
  return distances;
}

void BM_Method(benchmark::State& state, search::Method method) {
  TheSpace();
  std::map<size_t, double> mean;
  double until_best = 0;
  for (auto _ : state) {
    mean.clear();
    until_best = 0;
    for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
      const std::vector<double> distances = Distances(method, seed);
      for (const size_t plans : {size_t{8}, size_t{16}, size_t{32}, kMost}) {
        if (plans > distances.size()) continue;
        mean[plans] += 100 * distances[plans - 1] / kSeeds;
      }
      const auto found = std::ranges::find_if(distances, [](double d) { return d <= 1e-12; });
      until_best += static_cast<double>(found - distances.begin() + 1) / kSeeds;
    }
  }
  for (const auto& [plans, distance] : mean) {
    state.counters[absl::StrCat("percent_after_", plans)] = distance;
  }
  state.counters["plans_until_best"] = until_best;
  state.counters["plans"] = static_cast<double>(TheSpace().plans.size());
}

const int kRegistered = [] {
  for (const search::Method method : search::AllMethods()) {
    if (method->by_bounds) continue;  // which has them, and does not draw
    benchmark::RegisterBenchmark(absl::StrCat("BM_Method/", method->name).c_str(), BM_Method,
                                 method)
        ->Unit(benchmark::kMillisecond);
  }
  return 0;
}();

}  // namespace
}  // namespace orrery
