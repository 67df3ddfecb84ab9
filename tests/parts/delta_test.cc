#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/evaluate.h"
#include "search/settings/model_flops.h"
#include "search/spaces/choice_list.h"
#include "search/spaces/group_placements.h"
#include "search/spaces/joined_choices.h"
#include "search/spaces/space.h"
#include "search/spaces/weight_strategies.h"
#include "support/parts/part_store.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

// A chain of plans, each a change of the one before, as a method of `plan` goes: what a change does
// not touch comes from the store, and what comes of it is what playing all of it anew gives, to the
// bit.

namespace orrery::search {
namespace delta_test_cc {
namespace {

constexpr int64_t kBatch = 16;
constexpr size_t kMost = size_t{1} << 20;  // plans of a list

// ORRERY_CHANGES=10000 plays so many.
int Changes() {
  const char* const text = std::getenv("ORRERY_CHANGES");
  int changes = 0;
  if (text != nullptr && absl::SimpleAtoi(text, &changes)) return changes;
  return CasesToWalk(120);
}

struct Question {
  const char *family, *keys, *cluster;
};
constexpr std::initializer_list<Question> kQuestions = {
    {"mlp", "layers=4,dim=16", "uniform:8@200Gbps"},
    {"mlp", "layers=5,dim=512", "dgx-a100:1"},
    {"gpt", "layers=1,hidden=32,heads=4,seq=16,vocab=64,flash=1", "nodes:2x4@45GB/s,nic=5GB/s"},
    {"gpt", "layers=1,hidden=32,heads=4,seq=8,vocab=64,experts=2,topk=1", "uniform:8@200Gbps"}};

Setting SettingOf(const Question& question) {
  Setting setting;
  setting.batch_size = kBatch;
  setting.step = ir::BuildModel(question.family, question.keys, kBatch);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.model_name = absl::StrCat(question.family, ":", question.keys);
  setting.cluster = cluster::ParseCluster(question.cluster).value();
  setting.cost_model = cost_models::MakeCostModel("kernels").value();
  setting.model_flops = CountModelFlops(setting.step);
  return setting;
}

// Figures to the bit; whether there are any.
bool ExpectTheSame(const Setting& setting, const ParallelPlan& plan, PartStore& parts) {
  const auto delta = Evaluate(setting, plan, &parts);
  const auto anew = Evaluate(setting, plan);
  EXPECT_EQ(delta.status(), anew.status());
  if (!delta.ok() || !anew.ok()) return false;
  EXPECT_EQ(delta->ran, anew->ran);
  EXPECT_EQ(delta->fits, anew->fits);
  EXPECT_EQ(delta->step_time, anew->step_time);
  EXPECT_EQ(delta->peak_memory, anew->peak_memory);
  EXPECT_EQ(delta->communication_overhead, anew->communication_overhead);
  EXPECT_EQ(delta->exposed_communication_s, anew->exposed_communication_s);
  EXPECT_EQ(delta->bubble_fraction, anew->bubble_fraction);
  EXPECT_EQ(delta->simulated_tasks, anew->simulated_tasks);
  EXPECT_EQ(delta->gathered, anew->gathered);
  return delta->ran;
}

// Strategies of weights, places of groups of ops, or both.
enum class Chosen { kStrategies, kPlaces, kBoth };

std::unique_ptr<const PlanChoices> ChoicesOf(const Setting& setting, const PlanList& plans,
                                             Chosen chosen) {
  std::vector<std::unique_ptr<const PlanChoices>> kinds;
  if (chosen != Chosen::kPlaces) {
    kinds.push_back(
        std::make_unique<WeightStrategies>(WeightKinds(setting.step, StrategyGrain::kKinds)));
  }
  if (chosen != Chosen::kStrategies) {
    int64_t most = 1;
    for (const ParallelPlan& plan : plans) most = std::max(most, plan.pp);
    kinds.push_back(std::make_unique<GroupPlacements>(GroupsByName(setting.step, 6).value(), most));
  }
  return std::make_unique<JoinedChoices>(std::move(kinds));
}

struct Counts {
  int played = 0;
  int64_t found = 0, made = 0;
};

// So many changes, one after another.
Counts Walk(const Setting& setting, const PlanList& plans, const ChoiceList& list, int changes) {
  Counts counts;
  PartStore parts(Bytes(int64_t{64} << 20));
  std::mt19937 random(7);
  size_t here = list.PlaceOf(random() % plans.size());
  for (int i = 0; i < changes; ++i) {
    const ParallelPlan plan = list[here];
    SCOPED_TRACE(absl::StrCat("change ", i, ": ", setting.model_name, " on ", setting.cluster.name,
                              ", ", transforms::ToString(plan, {})));
    const bool ran = ExpectTheSame(setting, plan, parts);
    if (testing::Test::HasFailure()) return counts;
    counts.played += ran ? 1 : 0;
    const std::vector<size_t> neighbours = list.Neighbours(here);
    // From what cannot be played, and now and then, anywhere.
    const bool jumps = !ran || neighbours.empty() || random() % 64 == 0;
    here = jumps ? list.PlaceOf(random() % plans.size()) : neighbours[random() % neighbours.size()];
  }
  for (const auto& [kind, of] : parts.counts()) {
    counts.found += of.found;
    counts.made += of.made;
  }
  return counts;
}

TEST(Delta, IsWhatPlayingAnewGives) {
  const std::vector<Question> questions = CasesToWalk(kQuestions);
  constexpr Chosen kAll[] = {Chosen::kStrategies, Chosen::kPlaces, Chosen::kBoth};
  const int changes = Changes() / static_cast<int>(std::size(kAll) * questions.size());
  int all = 0, played = 0;
  int64_t found = 0, made = 0;
  for (const Question& question : questions) {
    const Setting setting = SettingOf(question);
    Space space;
    space.TakeAll();
    const PlanList plans = Enumerate(space, SpaceSizeOf(setting)).value();
    for (const Chosen chosen : kAll) {
      const ChoiceList list(plans, ChoicesOf(setting, plans, chosen), kMost);
      const Counts counts = Walk(setting, plans, list, changes);
      if (testing::Test::HasFailure()) return;
      all += changes;
      played += counts.played;
      found += counts.found;
      made += counts.made;
    }
  }
  EXPECT_GT(2 * played, all);
  EXPECT_GT(found, made / 2);
}

}  // namespace
}  // namespace delta_test_cc
}  // namespace orrery::search
