#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "search/evaluate.h"
#include "search/settings/model_flops.h"
#include "support/parts/part_store.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

// Plans that share parts get what each makes by itself: a store is filled by plans that differ in
// axes drawn at random, makes again what it finds, and compares the two.

namespace orrery::search {
namespace shared_parts_test_cc {
namespace {

constexpr int64_t kBatch = 32;

struct Model {
  const char* family;
  const char* keys;
};
constexpr Model kModels[] = {
    {"gpt", "layers=4,hidden=64,heads=4,seq=32,vocab=256"},
    {"gpt", "layers=4,hidden=64,heads=4,kv_heads=2,seq=32,vocab=512,mlp=swiglu,flash=1"},
    {"gpt", "layers=2,hidden=64,heads=4,seq=32,vocab=256,experts=4,topk=2"},
    {"mlp", "layers=6,dim=64"}};
constexpr const char* kClusters[] = {"uniform:16@200Gbps", "dgx-a100:2", "fat-tree:16@5GB/s",
                                     "nodes:4x4@45GB/s,nic=5GB/s,nics=2,host=63GB/s"};

Setting DrawSetting(std::mt19937& random) {
  const Model& model = kModels[random() % std::size(kModels)];
  Setting setting;
  setting.batch_size = kBatch;
  setting.step = ir::BuildModel(model.family, model.keys, kBatch);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.model_name = absl::StrCat(model.family, ":", model.keys);
  setting.cluster = cluster::ParseCluster(kClusters[random() % std::size(kClusters)]).value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  setting.lowering.kernels.fuses_pointwise = random() % 4 == 0;
  setting.lowering.kernels.scatters_sends = random() % 4 == 0;
  setting.model_flops = CountModelFlops(setting.step);
  return setting;
}

// Values that go together more often than examples of records would.
std::vector<std::string> TextsOf(const transforms::AxisInfo& axis) {
  const std::string flag(axis.flag);
  if (flag == "dp" || flag == "hp" || flag == "pp") return {"1", "2", "2", "4"};
  if (flag == "cp" || flag == "ep") return {"1", "1", "1", "2"};
  if (flag == "micro-batches") return {"1", "2", "4", "8", "16"};
  if (flag == "zero") return {"0", "1", "2", "3"};
  if (flag == "recompute") return {"none", "selective", "full"};
  std::vector<std::string> texts(axis.examples.begin(), axis.examples.end());
  if (axis.form != transforms::AxisForm::kMany) texts.push_back(axis.print(ParallelPlan()));
  return texts;
}

// `plan` with other values of some axes; those that make another training step stay.
ParallelPlan Varied(ParallelPlan plan, size_t count, std::mt19937& random) {
  const auto axes = transforms::AllAxes();
  while (count > 0) {
    const transforms::AxisInfo& axis = *axes[random() % axes.size()];
    const std::vector<std::string> texts = TextsOf(axis);
    --count;
    if (axis.remakes_step || texts.empty()) continue;
    if (axis.form == transforms::AxisForm::kMany && random() % 4 != 0) continue;
    axis.parse(texts[random() % texts.size()], plan).IgnoreError();
  }
  return plan;
}

ParallelPlan DrawPlan(std::mt19937& random) {
  ParallelPlan plan;
  for (const char* const flag : {"dp", "hp", "pp", "cp", "micro-batches", "zero", "recompute"}) {
    const transforms::AxisInfo& axis = *transforms::FindAxis(flag);
    const std::vector<std::string> texts = TextsOf(axis);
    EXPECT_TRUE(axis.parse(texts[random() % texts.size()], plan).ok());
  }
  return plan;
}

std::string TextOf(const Run& run) {
  std::string text;
  for (const ir::Function& function : run.pipelined.Functions()) {
    absl::StrAppend(&text, ir::Print(function), "\n");
  }
  return text;
}

// Whether it could be played.
bool ExpectTheSame(const Setting& setting, const ParallelPlan& plan, PartStore& parts) {
  PlayBudget left_shared, left_alone;
  const auto shared = PlayForFigures(setting, plan, left_shared, &parts);
  const auto alone = PlayForFigures(setting, plan, left_alone);
  EXPECT_EQ(shared.status(), alone.status());
  EXPECT_EQ(left_shared.left, left_alone.left);
  if (!shared.ok() || !alone.ok()) return false;
  EXPECT_EQ(TextOf(*shared), TextOf(*alone));
  EXPECT_EQ(shared->report.step_time, alone->report.step_time);
  EXPECT_EQ(shared->report.peak_memory, alone->report.peak_memory);
  EXPECT_EQ(shared->report.bubble_fraction, alone->report.bubble_fraction);
  EXPECT_EQ(shared->report.simulated_tasks, alone->report.simulated_tasks);
  EXPECT_EQ(shared->work, alone->work);
  return true;
}

TEST(SharedParts, AreWhatEachPlanMakesByItself) {
  constexpr const char* kKinds[] = {"microbatch", "shardings", "shardings by memory", "stages",
                                    "step"};
  std::map<std::string, PartCounts> counts;
  int played = 0;
  const auto has_all_kinds = [&] {
    return std::ranges::all_of(
        kKinds, [&](const char* kind) { return counts[kind].found > 0 && counts[kind].made > 0; });
  };
  // Where all takes long, as many as have something to say.
  for (uint32_t seed = 0; seed < 10; ++seed) {
    if (seed >= CasesToWalk(10u) && CasesToWalk(10u) < 10 && played > 10 && has_all_kinds()) break;
    std::mt19937 random(seed);
    const Setting setting = DrawSetting(random);
    PartStore parts(Bytes(int64_t{256} << 20));
    parts.CheckWhatIsFound();
    const ParallelPlan base = DrawPlan(random);
    for (int i = 0; i < 8; ++i) {
      const ParallelPlan plan = i == 0 ? base : Varied(base, 1 + random() % 3, random);
      SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", setting.model_name, " on ",
                                setting.cluster.name, ", ", transforms::ToString(plan, {})));
      played += ExpectTheSame(setting, plan, parts) ? 1 : 0;
      if (testing::Test::HasFailure()) return;
    }
    for (const auto& [kind, of] : parts.counts()) {
      counts[kind].found += of.found;
      counts[kind].made += of.made;
    }
  }
  EXPECT_GT(played, 10);
  for (const char* const kind : kKinds) {
    EXPECT_GT(counts[kind].found, 0) << kind;
    EXPECT_GT(counts[kind].made, 0) << kind;
  }
}

// One axis after another of plans in which it counts: what a key lacks is found, and is another.
TEST(SharedParts, DependOnEachAxisThatTheyAreMadeFrom) {
  const auto plan = [](const char* text) { return transforms::ParsePlan(text).value(); };
  const std::vector<ParallelPlan> bases = {
      plan("--dp 4 --hp 2 --pp 2 --micro-batches 4 --zero 3 --zero-group 2 --recompute full "
           "--sharding megatron"),
      plan("--dp 4 --hp 2 --pp 1 --micro-batches 4 --sequence-parallel=0 --offload activations "
           "--order pp,hp,dp"),
      plan("--dp 2 --hp 2 --pp 2 --cp 2 --micro-batches 2 --sharding megatron"),
      plan("--dp 2 --hp 4 --pp 2 --micro-batches 4 --sharding distir --schedule zb-h1 --zero 1")};
  int played = 0, varied = 0;
  for (const ParallelPlan& base : CasesToWalk(bases)) {
    std::mt19937 random(static_cast<uint32_t>(base.hp));
    Setting setting = DrawSetting(random);
    // Where shardings are quickly found, with layers enough to cut in several ways.
    const int64_t layers = base.by_products() ? 6 : 2;
    setting.step = ir::BuildModel(
        "gpt", absl::StrCat("layers=", layers, ",hidden=32,heads=4,seq=32,vocab=64"), kBatch);
    ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
    setting.model_flops = CountModelFlops(setting.step);
    setting.cluster =
        cluster::ParseCluster("nodes:4x4@45GB/s,nic=5GB/s,nics=2,host=63GB/s").value();
    PartStore parts(Bytes(int64_t{256} << 20));
    parts.CheckWhatIsFound();
    for (int i = 0; i < 2; ++i) played += ExpectTheSame(setting, base, parts) ? 1 : 0;
    for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
      if (axis->remakes_step) continue;
      const std::vector<std::string> texts = TextsOf(*axis);
      for (const std::string& text : std::set<std::string>(texts.begin(), texts.end())) {
        ParallelPlan other = base;
        if (!axis->parse(text, other).ok() || other == base) continue;
        SCOPED_TRACE(transforms::ToString(other, {}));
        // The store makes again what it finds: that says enough.
        PlayBudget unlimited;
        varied += PlayForFigures(setting, other, unlimited, &parts).ok() ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(played, 2 * std::ssize(CasesToWalk(bases)));
  EXPECT_GT(varied, CasesToWalk(80));
}

// Plans that differ in stages alone, or in what is recomputed and sharded of the state, choose
// shardings once.
TEST(SharedParts, OfPlansThatDifferInWhatComesLaterAreMadeOnce) {
  std::mt19937 random(0);
  Setting setting = DrawSetting(random);
  setting.cluster = cluster::ParseCluster("uniform:16@200Gbps").value();
  const auto made_by = [&](const std::vector<ParallelPlan>& plans, const char* kind) {
    PartStore parts(Bytes(int64_t{256} << 20));
    for (const ParallelPlan& plan : plans) {
      EXPECT_TRUE(Evaluate(setting, plan, &parts).ok());
    }
    return parts.counts()[kind].made;
  };
  const ParallelPlan plan = {
      .dp = 2, .hp = 2, .microbatches = 4, .sharding = transforms::ShardingMethod::kMegatron};
  ParallelPlan stages = plan, recomputed = plan, sharded = plan, other = plan;
  stages.pp = 2;
  recomputed.recompute = transforms::ParseRecomputePolicy("full").value();
  sharded.zero = 1;
  other.microbatches = 8;
  const int64_t once = made_by({plan}, "shardings");
  EXPECT_GT(once, 0);
  EXPECT_EQ(made_by({plan, stages, recomputed, sharded}, "shardings"), once);
  EXPECT_EQ(made_by({plan, other}, "shardings"), 2 * once);
  EXPECT_EQ(made_by({plan, stages, recomputed, sharded}, "microbatch"), 1);
  ParallelPlan bucket = plan, blocking = plan;
  bucket.bucket_size = Bytes(1000);
  blocking.blocking = true;
  const int64_t steps = made_by({plan, plan}, "step");  // kept from the second on
  EXPECT_GT(steps, 0);
  EXPECT_EQ(made_by({plan, bucket, blocking}, "step"), steps);
  EXPECT_EQ(made_by({plan, recomputed, sharded}, "step"), 0);
}

}  // namespace
}  // namespace shared_parts_test_cc
}  // namespace orrery::search
