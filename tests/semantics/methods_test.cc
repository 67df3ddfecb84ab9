#include "search/walks/methods.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/models/model_test_util.h"
#include "ir/op_kind.h"
#include "ir/verifier.h"
#include "search/evaluate.h"
#include "search/settings/model_flops.h"
#include "search/settings/settings.h"
#include "search/spaces/choice_list.h"
#include "search/spaces/group_placements.h"
#include "search/spaces/joined_choices.h"
#include "search/spaces/space.h"
#include "search/spaces/weight_strategies.h"
#include "support/sanitized_test_util.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "tools/searches/plan_job.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"
#include "transforms/stages/placed_orders.h"
#include "transforms/training/training_step.h"

// Plans that `plan` finds, by whichever method, on reduced sizes: the step that is played for them
// computes what one device does, and their text is read back as the same plan.

namespace orrery::semantics {
namespace methods_test_cc {
namespace {

using search::ParallelPlan;

constexpr int64_t kBatch = 8;
constexpr size_t kMost = 8192;  // plans of a list

struct Question {
  const char *family, *keys, *cluster, *microbatches;
};

// Two branches that meet at the end.
ir::Function Towers() {
  constexpr int64_t kDim = 64;
  ir::Builder builder("towers");
  const auto type = [](int64_t rows) { return ir::TensorType{ir::DType::kF32, {rows, kDim}, {}}; };
  const auto tower = [&](const std::string& name) {
    ir::ValueId x = builder.Data(name, type(kBatch));
    for (const char* layer : {".h0", ".h1", ".h2"}) {
      const ir::ValueId w = builder.Parameter(absl::StrCat(name, layer, ".w"), type(kDim));
      x = builder.Op(ir::OpKind::kMatMul, {x, w}, absl::StrCat(name, layer));
    }
    return x;
  };
  const ir::ValueId user = tower("user"), item = tower("item");
  builder.Return(builder.Op(ir::OpKind::kMul, {user, item}, "match"));
  return std::move(builder).Finalize().value();
}

search::Setting SettingOf(const Question& question) {
  search::Setting setting;
  setting.batch_size = kBatch;
  const bool towers = absl::string_view(question.family) == "towers";
  setting.step = towers ? Towers() : ir::BuildModel(question.family, question.keys, kBatch);
  transforms::StepOptions options = {.optimizer = "adam"};
  if (towers) options.loss.kind = "mse";
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, options).ok());
  setting.model_name = absl::StrCat(question.family, ":", question.keys);
  setting.cluster = cluster::ParseCluster(question.cluster).value();
  setting.cost_model = cost_models::MakeCostModel("kernels").value();
  setting.model_flops = search::CountModelFlops(setting.step);
  return setting;
}

search::ChoiceList BothChoices(const search::Setting& setting, const search::PlanList& plans) {
  int64_t most = 1;
  for (const ParallelPlan& plan : plans) most = std::max(most, plan.pp);
  std::vector<std::unique_ptr<const search::PlanChoices>> kinds;
  kinds.push_back(std::make_unique<search::WeightStrategies>(
      search::WeightKinds(setting.step, search::StrategyGrain::kKinds)));
  kinds.push_back(std::make_unique<search::GroupPlacements>(
      search::GroupsByName(setting.step, 4).value(), most));
  return {plans, std::make_unique<search::JoinedChoices>(std::move(kinds)), kMost};
}

transforms::RankOrders OrdersOf(const ParallelPlan& plan, const transforms::PipelinedStep& step) {
  if (plan.placement.empty()) return semantics::OrdersOf(plan.schedule.name(), step);
  return transforms::PlacedOrders(transforms::PlacedStagesOf(step),
                                  static_cast<int32_t>(step.microbatches),
                                  plan.schedule.name() == "gpipe");
}

// Where placements and strategies have something to choose; of one microbatch branches gain by
// devices of their own.
search::Space PipelinedPlans(const char* microbatches) {
  search::Space space;
  space.SaveMemory();
  for (const auto& [axis, values] : std::vector<std::pair<const char*, const char*>>{
           {"dp", "1,2"}, {"hp", "1,2"}, {"pp", "2,4"}, {"micro-batches", microbatches}}) {
    EXPECT_TRUE(space.List(*transforms::FindAxis(axis), values).ok()) << axis;
  }
  return space;
}

// What one device computes with the inputs.
struct Expected {
  Named inputs, outputs;
};

void ExpectSame(const search::Setting& setting, const ParallelPlan& plan,
                const Expected& expected) {
  const std::string text = transforms::ToString(plan, setting.base);
  EXPECT_EQ(transforms::ParsePlan(text, setting.base).value(), plan) << text;
  const auto run = search::Play(setting, plan);
  ASSERT_TRUE(run.ok()) << run.status();
  const transforms::PipelinedStep& step = run->pipelined;
  for (const ir::Function& function : step.Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
  const PipelinedOutcome outcome = RunPipelined(step, OrdersOf(plan, step), expected.inputs);
  semantics::ExpectSame(outcome.outputs, expected.outputs);
  EXPECT_LE(outcome.disagreement, kTolerance);
  EXPECT_EQ(outcome.lost, 0);
}

// How many plans of each kind were executed.
using Kinds = std::map<std::string, int>;

void Count(const ParallelPlan& plan, Kinds& kinds) {
  ++kinds[plan.placement.empty() ? plan.unequal() ? "unequal" : "equal" : "placed"];
  kinds["pinned"] += plan.pins.empty() ? 0 : 1;
  kinds["pipelined"] += plan.pp > 1 ? 1 : 0;
}

// What each of the methods finds in a space, without choices beside the axes and, where it takes
// them, with both kinds.
void ExpectSame(const Question& question, const search::Space& space,
                const std::vector<std::string>& methods, Kinds& kinds) {
  const auto make = [&](const ParallelPlan&) { return SettingOf(question); };
  const auto settings = search::Settings::Make(space, make).value();
  const search::Setting& setting = settings.front();
  const search::PlanList plans = Enumerate(space, SpaceSizeOf(setting)).value();
  const search::ChoiceList choices = BothChoices(setting, plans);
  Expected expected = {.inputs = RandomInputs(setting.step, 7), .outputs = {}};
  expected.outputs = RunAll(setting.step, expected.inputs).outputs;
  for (const std::string& method : methods) {
    for (const bool chooses : {false, true}) {
      if (chooses && (method == tools::kExpertMethod || method == tools::kExactMethod)) continue;
      SCOPED_TRACE(absl::StrCat(method, ", ", setting.model_name, chooses ? ", choices" : ""));
      const auto found = tools::FindPlan({.space = space,
                                          .settings = settings,
                                          .plans = plans,
                                          .choices = chooses ? &choices : nullptr,
                                          .method = method,
                                          .budget = {.candidates = 8}});
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_TRUE(found->best.has_value());
      SCOPED_TRACE(transforms::ToString(found->best->plan, setting.base));
      ExpectSame(setting, found->best->plan, expected);
      Count(found->best->plan, kinds);
    }
  }
}

TEST(Methods, FindPlansThatComputeWhatOneDeviceDoes) {
  std::vector<std::string> walks;
  for (const search::Method method : search::AllMethods()) walks.emplace_back(method->name);
  Kinds kinds;
  for (const Question& question :
       {Question{"towers", "", "dgx-a100:1", "1"},
        Question{"mlp", "layers=4,dim=16", "nodes:2x4@45GB/s,nic=5GB/s", "1,2,4"},
        Question{"gpt", "layers=2,hidden=16,heads=4,seq=4,vocab=16", "uniform:8@200Gbps", "2"}}) {
    ExpectSame(question, search::Space(),
               {std::string(tools::kExpertMethod), std::string(tools::kExactMethod)}, kinds);
    ExpectSame(question, PipelinedPlans(question.microbatches), CasesToWalk(walks), kinds);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(kinds["unequal"], 0) << "by exact";
  EXPECT_GT(kinds["pipelined"], CasesToWalk(20));
  EXPECT_GE(kinds["placed"] + 1, CasesToWalk(2));  // one at least, by all methods
}

}  // namespace
}  // namespace methods_test_cc
}  // namespace orrery::semantics
