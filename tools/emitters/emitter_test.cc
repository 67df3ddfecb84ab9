#include "tools/emitters/emitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "nlohmann/json.hpp"
#include "search/settings/setting_test_util.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"
#include "transforms/plan/random_plan_test_util.h"

namespace orrery::tools {
namespace emitter_test_cc {
namespace {

using search::ParallelPlan;
using testing::HasSubstr;
using testing::Not;

// Of Llama's shape, and small.
search::Setting Llama(const std::string& keys = "llama3-8b:layers=8,hidden=64,ffn=128,vocab=512") {
  search::Setting setting = search::MlpSetting();
  setting.step =
      ir::BuildModel("gpt", "layers=8,hidden=64,heads=4,seq=32,vocab=512", 64, ir::DType::kBF16);
  setting.model_name = keys;
  setting.batch_size = 1024;
  return setting;
}

ParallelPlan Plan(const std::string& text) { return transforms::ParsePlan(text).value(); }

Emitted EmitBy(const std::string& name, const search::Setting& setting, const ParallelPlan& plan,
               const std::string& optimizer = "adam") {
  return FindEmitter(name).value()->emit({setting, plan, optimizer});
}

std::string NotesOf(const Emitted& emitted) { return absl::StrJoin(emitted.notes, "\n"); }

// Leaves of the JSON: "zero_optimization.stage".
void AddKeys(const nlohmann::json& json, const std::string& path, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = path.empty() ? key : absl::StrCat(path, ".", key);
    if (value.is_object()) {
      AddKeys(value, name, keys);
    } else {
      keys.insert(name);
    }
  }
}

// All options that the text sets.
std::set<std::string> OptionsOf(const std::string& system, const std::string& text) {
  std::set<std::string> options;
  if (system == "deepspeed") {
    AddKeys(nlohmann::json::parse(text), "", options);
    return options;
  }
  std::string section;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    if (system == "megatron" && absl::StartsWith(words[0], "--")) options.insert(words[0]);
    if (system != "torchtitan") continue;
    if (words[0].front() == '[') {
      section = words[0].substr(1, words[0].size() - 2);
    } else {
      options.insert(absl::StrCat(section, ".", words[0]));
    }
  }
  return options;
}

std::set<std::string> PublishedBy(const std::string& system) {
  const std::string text =
      ReadFile(absl::StrCat(SourceDir(), "/tests/data/published_options.json")).value();
  return nlohmann::json::parse(text).at(system).at("options").get<std::set<std::string>>();
}

const char* const kModels[] = {
    "llama3-8b:layers=8,hidden=64,ffn=128,vocab=512", "mlp:layers=4,dim=64",
    "gpt:layers=12,hidden=64,heads=4,position=none,bias=0,dropout=0.1,head_dim=32",
    "gpt:layers=6,hidden=64,heads=4,experts=8,topk=2,shared_ffn=64,dense_layers=1,mlp=swiglu",
    "gpt:layers=6,hidden=64,heads=4,attention=latent,mlp=swiglu,q_rank=16,lora=0"};

// Whatever the plan, what is emitted are options that the system has published; and of those all
// are emitted by some plan, so that the list has no others.
TEST(Emitters, EmitPublishedOptionsAlone) {
  for (const Emitter* emitter : AllEmitters()) {
    const std::string system(emitter->name);
    const std::set<std::string> published = PublishedBy(system);
    std::set<std::string> seen;
    for (uint32_t seed = 0; seed < 600; ++seed) {
      search::Setting setting = Llama(kModels[seed % std::size(kModels)]);
      setting.lowering.kernels.gathers_ahead = seed % 2 == 0;
      setting.lowering.kernels.pipelines_products = seed % 3 == 0;
      const ir::DType types[] = {ir::DType::kBF16, ir::DType::kF16, ir::DType::kF32};
      if (seed % 7 == 0) {
        setting.step =
            ir::BuildModel("gpt", "layers=2,hidden=32,heads=2,seq=16,vocab=64", 8, types[seed % 3]);
      }
      const char* const optimizers[] = {"adam", "sgd", "momentum", "none"};
      // Some that are drawn hardly ever.
      const char* const rare[] = {"--dp 2 --pp 4 --micro-batches 8 --schedule interleaved",
                                  "--dp 2 --hp 2 --pp 2 --micro-batches 8 --order hp,pp,dp"};
      const ParallelPlan plan =
          seed < std::size(rare) ? Plan(rare[seed]) : transforms::RandomPlan(seed);
      const std::string text = EmitBy(system, setting, plan, optimizers[seed % 4]).text;
      for (const std::string& option : OptionsOf(system, text)) {
        EXPECT_TRUE(published.contains(option)) << system << ": " << option;
        seen.insert(option);
      }
    }
    for (const std::string& option : published) {
      EXPECT_TRUE(seen.contains(option)) << system << " is never told " << option;
    }
  }
}

// An axis that has another value than the default changes what is emitted, or has a note: nothing
// is left out silently. What auto may have chosen is excepted.
TEST(Emitters, LeaveNoAxisOutSilently) {
  search::Setting setting = Llama();
  setting.batch_size = int64_t{9} << 20;  // all numbers of microbatches divide it
  for (const Emitter* emitter : AllEmitters()) {
    for (uint32_t seed = 0; seed < 400; ++seed) {
      ParallelPlan plan = transforms::Settled(transforms::RandomPlan(seed), {});
      if (plan.dp > 64) plan.dp = 2;
      const Emitted emitted = emitter->emit({setting, plan});
      for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
        if (axis->flag == "sharding" || axis->flag == "sequence-parallel") continue;
        // Types of tensors are the setting's.
        if (axis->flag == "dtype" && transforms::CopyDType(plan.dtype) == std::nullopt) continue;
        // A group of all ranks is none; schedules with chunks of their own pass others over.
        if (axis->flag == "zero-group" && plan.zero_group == plan.dp * plan.ep) continue;
        if (axis->flag == "chunks" && plan.schedule->chunks != 0) continue;
        if (axis->flag == "chunks" && plan.chunks == 2) continue;  // as many as where nobody says
        if (axis->print(plan) == axis->print(ParallelPlan())) continue;
        if (axis->applies != nullptr && !axis->applies(plan)) continue;
        ParallelPlan usual = plan;
        axis->copy(ParallelPlan(), usual);
        const Emitted without = emitter->emit({setting, usual});
        EXPECT_TRUE(emitted.text != without.text || emitted.notes != without.notes)
            << emitter->name << ": --" << axis->flag << " " << axis->print(plan) << " of "
            << transforms::ToString(plan);
      }
    }
  }
}

TEST(Emitters, AreFoundByName) {
  EXPECT_EQ(EmitterNames(), "megatron, torchtitan or deepspeed");
  EXPECT_EQ(FindEmitter("jax").status().message(),
            "'jax': wanted megatron, torchtitan or deepspeed");
}

TEST(Megatron, HasThePlan) {
  search::Setting setting = Llama("llama3-8b");
  const Emitted emitted =
      EmitBy("megatron", setting,
             Plan("--dp 4 --hp 2 --pp 4 --micro-batches 32 --schedule interleaved --chunks 2 "
                  "--zero 1 --recompute full --sharding megatron --sequence-parallel"));
  EXPECT_EQ(emitted.text,
            "MEGATRON_ARGS=(\n"
            "  --tensor-model-parallel-size 2\n"
            "  --pipeline-model-parallel-size 4\n"
            "  --micro-batch-size 8\n"
            "  --global-batch-size 1024\n"
            "  --num-virtual-stages-per-pipeline-rank 2\n"
            "  --sequence-parallel\n"
            "  --use-distributed-optimizer\n"
            "  --overlap-grad-reduce\n"
            "  --recompute-granularity full\n"
            "  --recompute-method uniform\n"
            "  --recompute-num-layers 1\n"
            "  --bf16\n"
            "  --optimizer adam\n"
            "  --num-layers 32\n"
            "  --hidden-size 4096\n"
            "  --ffn-hidden-size 14336\n"
            "  --num-attention-heads 32\n"
            "  --group-query-attention\n"
            "  --num-query-groups 8\n"
            "  --seq-length 8192\n"
            "  --max-position-embeddings 8192\n"
            "  --vocab-size 128256\n"
            "  --swiglu\n"
            "  --normalization RMSNorm\n"
            "  --position-embedding-type rope\n"
            "  --disable-bias-linear\n"
            "  --untie-embeddings-and-output-weights\n"
            "  --hidden-dropout 0\n"
            "  --attention-dropout 0\n"
            ")\n");
  EXPECT_EQ(NotesOf(emitted), "32 ranks: 4 data-parallel ones follow from how many are started");
}

TEST(Megatron, SaysWhatItLacks) {
  const Emitted emitted =
      EmitBy("megatron", Llama(),
             Plan("--dp 2 --pp 3 --micro-batches 4 --schedule zb-h1 --order pp,dp,hp "
                  "--recompute match:gelu"));
  const std::string notes = NotesOf(emitted);
  EXPECT_THAT(notes, HasSubstr("no counterpart: --schedule zb-h1: Megatron-LM has 1f1b and "));
  EXPECT_THAT(notes, HasSubstr("no counterpart: --order pp,dp,hp: "));
  EXPECT_THAT(notes, HasSubstr("no counterpart: --recompute match:gelu: "));
  EXPECT_THAT(notes,
              HasSubstr("no counterpart: 8 layers are no whole number for each of 3 stages"));
  EXPECT_THAT(emitted.text, Not(HasSubstr("recompute")));
  const Emitted listed =
      EmitBy("megatron", Llama(), Plan("--pp 3 --micro-batches 4 --layers-per-stage 2,3,3"));
  EXPECT_THAT(listed.text, HasSubstr("--pipeline-model-parallel-layout \"Et*2|t*3|t*3L\"\n"));
}

// Both split heads, of which Llama() has as many as the model says.
TEST(Emitters, SayWhereHeadsDoNotDivide) {
  const std::string refuses = "attention heads do not divide over --hp 3, and ";
  const auto notes = [](const std::string& system, const std::string& plan) {
    return NotesOf(EmitBy(system, Llama(), Plan(plan)));
  };
  EXPECT_THAT(notes("megatron", "--hp 3"), HasSubstr(refuses + "Megatron-LM refuses that"));
  EXPECT_THAT(notes("torchtitan", "--hp 3"), HasSubstr(refuses + "torchtitan refuses that"));
  EXPECT_THAT(notes("megatron", "--hp 2"), Not(HasSubstr("attention heads")));
}

TEST(Megatron, HasShardedParametersAsItsFsdp) {
  const Emitted emitted = EmitBy("megatron", Llama(), Plan("--dp 8 --micro-batches 4 --zero 3"));
  EXPECT_THAT(emitted.text, HasSubstr("--use-megatron-fsdp\n"));
  EXPECT_THAT(emitted.text, HasSubstr("--data-parallel-sharding-strategy optim_grads_params\n"));
  EXPECT_THAT(emitted.text, HasSubstr("--overlap-param-gather\n"));
}

TEST(Torchtitan, HasThePlan) {
  const Emitted emitted =
      EmitBy("torchtitan", Llama("llama3-8b"),
             Plan("--dp 8 --hp 2 --micro-batches 16 --zero 3 --zero-group 4 --recompute full "
                  "--sharding megatron"));
  EXPECT_EQ(emitted.text,
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n"
            "[optimizer]\nname = \"AdamW\"\n\n"
            "[training]\nlocal_batch_size = 8\nglobal_batch_size = 1024\nseq_len = 32\n"
            "mixed_precision_param = \"bfloat16\"\n\n"
            "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
            "fsdp_reshard_after_forward = \"always\"\ntensor_parallel_degree = 2\n"
            "context_parallel_degree = 1\npipeline_parallel_degree = 1\n\n"
            "[activation_checkpoint]\nmode = \"full\"\n");
  EXPECT_EQ(NotesOf(emitted), "");
}

// A pipeline takes all microbatches of a replica at once.
TEST(Torchtitan, HasMicrobatchesOfAPipeline) {
  const Emitted emitted =
      EmitBy("torchtitan", Llama(), Plan("--dp 4 --pp 2 --micro-batches 32 --schedule zbv"));
  EXPECT_THAT(emitted.text, HasSubstr("local_batch_size = 256\n"));
  EXPECT_THAT(emitted.text, HasSubstr("pipeline_parallel_microbatch_size = 8\n"));
  EXPECT_THAT(emitted.text, HasSubstr("pipeline_parallel_schedule = \"ZBVZeroBubble\"\n"));
  EXPECT_THAT(emitted.text, HasSubstr("pipeline_parallel_layers_per_stage = 2\n"));
}

// What would run as another plan is not written.
TEST(Emit, TellsNothingOfStagesOrReplicasThatAreNotAlike) {
  const search::Setting setting = Llama();
  for (const char* text : {"--dp 2 --micro-batches 8 --shares 5,3", "--stage-meshes 2x1,1x2"}) {
    const ParallelPlan plan = Plan(text);
    for (const Emitter* emitter : AllEmitters()) {
      const Emitted emitted = Emit(*emitter, {setting, plan});
      EXPECT_EQ(emitted.text, emitter->comment.empty() ? "{}\n" : "") << emitter->name;
      EXPECT_THAT(NotesOf(emitted), HasSubstr("that are not alike"));
    }
  }
}

TEST(Deepspeed, HasThePlan) {
  const Emitted emitted = EmitBy("deepspeed", Llama(),
                                 Plan("--dp 16 --hp 4 --micro-batches 8 --zero 2 --offload "
                                      "optimizer --sharding megatron"));
  const auto json = nlohmann::json::parse(emitted.text);
  EXPECT_EQ(json["train_batch_size"], 1024);
  EXPECT_EQ(json["train_micro_batch_size_per_gpu"], 8);
  EXPECT_EQ(json["gradient_accumulation_steps"], 8);
  EXPECT_EQ(json["zero_optimization"]["stage"], 2);
  EXPECT_EQ(json["zero_optimization"]["offload_optimizer"]["device"], "cpu");
  EXPECT_EQ(json["tensor_parallel"]["autotp_size"], 4);
  EXPECT_EQ(json["bf16"]["enabled"], true);
  EXPECT_THAT(NotesOf(EmitBy("deepspeed", Llama(), Plan("--pp 4 --micro-batches 8"))),
              HasSubstr("no counterpart: --pp 4: a pipeline is code: PipelineModule"));
}

}  // namespace
}  // namespace emitter_test_cc
}  // namespace orrery::tools
