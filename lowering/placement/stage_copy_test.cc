#include "lowering/placement/stage_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "lowering/lower.h"
#include "simulator/program/program_text.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace stage_copy_test_cc {
namespace {

struct Pipelines {
  transforms::ParallelPlan plan;  // of 4 stages a chunk
  LoweringOptions lowering = {.fuse_runs = true};
  std::string cluster = "dgx-a100:1", model = "dtype=f32";
};

class Lowerings {
 public:
  explicit Lowerings(const Pipelines& test) : test_(test), schedule_(*test.plan.schedule) {
    ir::Function one = ir::BuildModel(
        "gpt", absl::StrCat("layers=8,hidden=32,heads=4,seq=16,vocab=64,", test.model), 64);
    EXPECT_TRUE(transforms::MakeTrainingStep(one, {.optimizer = "adam"}).ok());
    const auto microbatches = static_cast<int32_t>(test.plan.microbatches);
    const transforms::PlanContext context = {
        .chunks = schedule_.ShapeOf(4, microbatches, 0).chunks,
        .placement = schedule_.placement,
        .split_backward = absl::StartsWith(schedule_.name, "zb"),
        .updates_each_microbatch = schedule_.asynchronous};
    if (context.split_backward) {
      EXPECT_TRUE(transforms::SplitBackward(one).ok());
    }
    step_ = transforms::ParallelTransform3d(one, transforms::ByFlops(test.plan), context).value();
  }

  // What no other stage has, in each: none is made from another one.
  void TellApart() {
    for (size_t s = 0; s < step_.stages.size(); ++s) {
      ir::Function& function = step_.stages[s].forward.function;
      const ir::OpId op = *std::ranges::find_if(function.order(), [&](ir::OpId each) {
        return function.info(each).op_class == ir::OpClass::kCompute;
      });
      ir::AttributeSet attributes = function.attributes(op);
      attributes.Set("mark", static_cast<int64_t>(s));
      function.SetAttributes(op, function.InternAttributes(attributes));
    }
  }

  simulator::Program Lowered() const {
    return Lowered(cluster::ParseCluster(test_.cluster).value());
  }
  simulator::Program Lowered(const cluster::Cluster& cluster) const {
    const auto cost_model = cost_models::MakeCostModel("roofline").value();
    return Lower({.step = step_,
                  .schedule = schedule_,
                  .cluster = cluster,
                  .cost_model = *cost_model,
                  .options = test_.lowering})
        .value();
  }

 private:
  const Pipelines test_;
  const transforms::PipelineSchedule& schedule_;
  transforms::PipelinedStep step_;
};

// The program, each label written out where it is used: their numbers say nothing.
std::string WithLabels(const simulator::Program& program) {
  absl::flat_hash_map<std::string, std::string> labels;
  std::string text;
  for (const absl::string_view line : absl::StrSplit(simulator::Print(program), '\n')) {
    const std::pair<std::string, std::string> first = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (absl::StartsWith(first.first, "label")) {
      labels.insert(first);
      continue;
    }
    for (const absl::string_view word : absl::StrSplit(line, ' ')) {
      const auto label = labels.find(word);
      absl::StrAppend(&text, label == labels.end() ? word : label->second, " ");
    }
    text += "\n";
  }
  return text;
}

// One pipeline of 8 microbatches.
transforms::ParallelPlan One(transforms::ParallelPlan plan) {
  plan.pp = 4;
  plan.microbatches = 8;
  return plan;
}

// Two of them.
transforms::ParallelPlan Two(transforms::ParallelPlan plan) {
  plan.dp = 2;
  return One(std::move(plan));
}

std::vector<Pipelines> ManyPipelines() {
  const LoweringOptions single = {.fuse_runs = false};
  LoweringOptions blocking = {.fuse_runs = true}, unfolded = blocking, no_buckets = blocking;
  blocking.blocking = true;
  unfolded.fold = false;
  no_buckets.bucket_size = Bytes(0);
  const auto recompute = [](const char* policy) {
    return One({.recompute = transforms::ParseRecomputePolicy(policy).value()});
  };
  return {
      {One({})},
      {One({}), single},
      {One({}), blocking},
      {{.pp = 4}},
      {Two({.zero = 2})},
      {Two({.zero = 3})},
      {Two({}), no_buckets},
      {Two({}), unfolded},
      {One({.hp = 2})},
      {recompute("full")},
      {recompute("selective")},
      {One({.offload = {.activations = true}})},
      {One({.offload = {.optimizer = true}})},
      {.plan = One({.dtype = transforms::StepDType::kF8Mixed}), .model = "dtype=bf16"},
      {One({.schedule = "zb-h1"})},
      {One({.schedule = "interleaved"})},
      {.plan = One({.schedule = "pipedream"}), .model = "tied_embeddings=0"},
      {.plan = One({.schedule = "pipedream-2bw"}), .model = "tied_embeddings=0"},
      {One({.schedule = "dualpipe"})},
      {Two({.schedule = "dualpipe", .zero = 3})},
      {Two({.schedule = "dualpipe", .zero = 3}), single},
      {One({.schedule = "chimera"})},
      {Two({.schedule = "chimera", .zero = 2})},
  };
}

// What is copied is what would have been made.
TEST(StageCopier, MakesWhatIsLoweredByItself) {
  int copies = 0;
  for (const Pipelines& test : ManyPipelines()) {
    Lowerings step(test);
    const simulator::Program copied = step.Lowered();
    step.TellApart();
    const simulator::Program made = step.Lowered();
    EXPECT_TRUE(WithLabels(copied) == WithLabels(made)) << ToString(test.plan);
    // Only the numbers of labels tell: those of what is made by itself are in the order of the ops.
    copies += simulator::Print(copied) != simulator::Print(made) ? 1 : 0;
  }
  EXPECT_GE(copies, 16);
}

// Stages on other devices take other times.
TEST(StageCopier, CopiesNoStageOfAnotherKindOfDevice) {
  cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:1").value();
  cluster.other_kinds = {cluster::ParseCluster("dgx-h100:1").value().device};
  cluster.kind_by_device = {0, 0, 1, 1, 0, 0, 0, 0};
  Lowerings step({One({})});
  const simulator::Program copied = step.Lowered(cluster);
  step.TellApart();
  EXPECT_TRUE(WithLabels(copied) == WithLabels(step.Lowered(cluster)));
}

constexpr absl::string_view kForward = R"(func @forward (
  %x: f32[4,8] data,
  %w: f32[8,8] parameter
) {
  %y: f32[4,8] = MatMul(%x, %w)
  %z: f32[4,8] = Relu(%y)
  return %y: saved, %z: saved
}
)";

// A stage of nothing but a forward.
transforms::PipelineStage OneForward(const std::string& text, const std::vector<int32_t>& origins) {
  transforms::PipelineStage stage;
  stage.forward.function = ir::ParseFunction(text).value();
  for (const int32_t origin : origins) stage.forward.origins.emplace_back(origin);
  return stage;
}

TEST(StageCopier, CopiesWhatDiffersByNamesAndOriginsAlone) {
  simulator::Program program;
  StageCopier copier(program);
  const transforms::PipelineStage stage = OneForward(std::string(kForward), {0, 1, 2, 3});
  const Stage made;
  const auto copies = [&](const transforms::PipelineStage& other) {
    return copier.Copy({.parts = stage, .made = made, .other_parts = other, .other = 1})
        .has_value();
  };
  const auto with = [&](absl::string_view old, absl::string_view text) {
    const std::string changed = absl::StrReplaceAll(kForward, {{old, text}});
    EXPECT_NE(changed, kForward);
    return OneForward(changed, {0, 1, 2, 3});
  };
  EXPECT_TRUE(copies(stage));
  EXPECT_TRUE(copies(OneForward(std::string(kForward), {10, 11, 12, 13})));
  EXPECT_TRUE(copies(OneForward(std::string(kForward), {1, 2, 3, 4}))) << "pairs are of one call";
  EXPECT_TRUE(copies(with("%y", "%other")));
  EXPECT_FALSE(copies(with("[4,8]", "[5,8]"))) << "types";
  EXPECT_FALSE(copies(with("Relu(%y)", "Relu(%x)"))) << "operands";
  EXPECT_FALSE(copies(with("Relu", "Tanh"))) << "kinds";
  EXPECT_FALSE(copies(with("%x, %w)", "%x, %w) {transpose_w=1}"))) << "attributes";
  EXPECT_FALSE(copies(with("parameter", "buffer"))) << "roles of inputs";
  EXPECT_FALSE(copies(with("%z: saved", "%z: result"))) << "roles of outputs";
  EXPECT_FALSE(copies(with("%y: saved, %z: saved", "%z: saved, %y: saved"))) << "outputs";
  EXPECT_FALSE(copies(OneForward(std::string(kForward), {0, 1, 2, 2}))) << "two have one origin";
  EXPECT_FALSE(copies(OneForward(std::string(kForward), {0, 1, 2, -1}))) << "one has no origin";
}

// A send makes nothing that a later op or an output could differ by.
TEST(StageCopier, CopiesNoStageThatSendsAnotherValue) {
  simulator::Program program;
  StageCopier copier(program);
  const auto sending = [](absl::string_view value) {
    return OneForward(
        absl::StrReplaceAll(kForward,
                            {{"  return", absl::StrCat("  Send(", value, ") {peer=1}\n  return")},
                             {"(\n  %x", "mesh(pp=2) (\n  %x"}}),
        {0, 1, 2, 3});
  };
  const transforms::PipelineStage y = sending("%y"), z = sending("%z");
  const Stage made;
  const auto copies = [&](const transforms::PipelineStage& other) {
    return copier.Copy({.parts = y, .made = made, .other_parts = other, .other = 1}).has_value();
  };
  EXPECT_TRUE(copies(y));
  EXPECT_FALSE(copies(z));
}

}  // namespace
}  // namespace stage_copy_test_cc
}  // namespace orrery::lowering
