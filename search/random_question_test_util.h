#ifndef ORRERY_SEARCH_RANDOM_QUESTION_TEST_UTIL_H_
#define ORRERY_SEARCH_RANDOM_QUESTION_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/drawing_test_util.h"
#include "search/settings/setting.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

// For tests only: small questions of all sorts, as a search may ask them.

namespace orrery::search {

/// The built-in model in that type, with its training step.
inline ir::Function StepInType(const std::string& family, const std::string& keys, int64_t batch,
                               ir::DType dtype) {
  ir::Function step = ir::BuildModel(family, keys, batch, dtype);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok()) << keys;
  return step;
}

/// What compilers and frameworks make of kernels, one way or another.
inline lowering::StackKernels DrawStack(Drawing& draw) {
  lowering::StackKernels stack;
  stack.fuses_pointwise = draw.Of({false, false, false, true});
  stack.copies_apart = draw.Of({false, true});
  stack.fuses_dropout_sums = draw.Of({false, true});
  stack.sum_share = draw.Of({1.0, 0.3});
  stack.recomputes_whole = draw.Of({false, true});
  stack.waits_for_sends = draw.Of({false, true});
  stack.overlaps_experts = draw.Of({false, true});
  stack.pipelines_products = draw.Of({false, true});
  stack.launch = draw.Of({Duration(0), Duration(5'000'000)});
  stack.choice.experts.present = true;
  stack.choice.experts.kernel_each = draw.Of({false, true});
  using cost_models::AttentionClass;
  stack.choice.attention =
      draw.Of({AttentionClass::kCudnn, AttentionClass::kFlash1, AttentionClass::kFlash2});
  stack.graphs = draw.Of({false, false, true});
  return stack;
}

/// A small model on up to 16 devices, of one kind or two.
inline Setting DrawQuestion(Drawing& draw) {
  using Model = std::pair<const char*, const char*>;
  const auto [family, keys] = draw.Of<Model>(
      {{"mlp", "layers=4,dim=64"},
       {"mlp", "layers=8,dim=1024"},
       {"gpt", "layers=4,hidden=64,heads=4,seq=32,vocab=128"},
       {"gpt", "layers=8,hidden=256,heads=4,seq=256,vocab=1000,flash=1"},
       {"gpt", "layers=3,hidden=64,heads=4,seq=32,vocab=64,flash=0,kv_heads=2,mlp=swiglu"},
       {"gpt", "layers=6,hidden=128,heads=8,seq=64,vocab=100,mlp=swiglu,flash=1,kv_heads=2"},
       {"gpt", "layers=2,hidden=32,heads=4,seq=16,vocab=64,experts=4,topk=2"},
       {"gpt", "layers=4,hidden=128,heads=4,seq=64,vocab=100,experts=8,topk=2,flash=1"},
       {"gpt", "layers=4,hidden=32,heads=4,seq=16,vocab=512,tied_embeddings=1"},
       {"gpt", "layers=5,hidden=64,heads=2,seq=48,vocab=96,dropout=0.1"},
       {"bert", "layers=4,hidden=64,heads=4,seq=32,vocab=128"},
       {"hybrid", "pattern=M*-,hidden=64,heads=4,seq=32,vocab=64,mamba_heads=8"}});
  const auto dtype = draw.Of({ir::DType::kBF16, ir::DType::kBF16, ir::DType::kF32});
  Setting setting;
  setting.batch_size = draw.Of<int64_t>({32, 32, 64, 24});
  setting.step = StepInType(family, keys, setting.batch_size, dtype);
  setting.model_name = absl::StrCat(family, ":", keys);
  setting.cluster =
      cluster::ParseCluster(
          draw.Of<const char*>({"uniform:16@200Gbps,device=a100-80gb", "dgx-a100:2", "dgx-h100:2",
                                "uniform:16@2000Gbps,device=h100-80gb", "uniform:16@100GB/s"}))
          .value();
  if (draw.Of({false, false, true})) {
    setting.cluster.other_kinds = {cluster::ParseCluster("dgx-h200:1").value().device};
    setting.cluster.kind_by_device.assign(16, 0);
    for (size_t i = 5; i < 16; ++i) setting.cluster.kind_by_device[i] = 1;
  }
  setting.cost_model =
      cost_models::MakeCostModel(draw.Of<const char*>({"kernels", "kernels", "roofline"})).value();
  if (draw.Of({false, true})) setting.lowering.kernels = DrawStack(draw);
  if (dtype == ir::DType::kBF16 && draw.Of({false, false, false, true})) {
    setting.made_for.dtype =
        draw.Of({transforms::StepDType::kF8Mixed, transforms::StepDType::kF8Blocks,
                 transforms::StepDType::kF4Mixed});
  }
  return setting;
}

/// A plan of up to 16 devices; what its axes contradict of each other is for Play to say.
inline ParallelPlan DrawPlanFor16(Drawing& draw, const Setting& setting) {
  ParallelPlan plan = setting.made_for;
  const auto set = [&](const char* flag, std::initializer_list<const char*> texts) {
    const char* const text = draw.Of(texts);
    EXPECT_TRUE(transforms::FindAxis(flag)->parse(text, plan).ok()) << flag << " " << text;
  };
  do {
    for (const char* degree : {"dp", "hp", "pp"}) set(degree, {"1", "1", "2", "4"});
    set("pp", {"1", "2", "4", "8"});
    for (const char* degree : {"cp", "ep"}) set(degree, {"1", "1", "1", "2"});
  } while (plan.ranks() > 16);
  set("micro-batches", {"1", "2", "4", "8", "16"});
  set("schedule",
      {"1f1b", "1f1b", "1f1b", "gpipe", "interleaved", "zb-h1", "zb-h2", "zbv", "dualpipe",
       "looped-bfs", "terapipe", "pipedream-2bw", "distir", "chimera", "v-half", "zb-1p"});
  if (plan.schedule->chunks == 0) set("chunks", {"0", "1", "2"});
  set("zero", {"0", "0", "1", "2", "3"});
  if (plan.zero > 0) set("zero-group", {"0", "0", "2"});
  set("recompute", {"none", "none", "selective", "full", "every:2", "match:act", "match:."});
  set("offload", {"none", "none", "none", "optimizer", "activations"});
  set("sharding", {"auto", "auto", "megatron", "distir"});
  set("sequence-parallel", {"auto", "auto", "1", "0"});
  set("stages-by", {"cost", "flops"});
  if (draw.Of({0, 0, 0, 1}) == 1) set("blocking", {"1"});
  if (plan.pp == 2 && draw.Of({0, 0, 1}) == 1) set("layers-per-stage", {"1,3", "3,1", "6,2"});
  return plan;
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_RANDOM_QUESTION_TEST_UTIL_H_
