#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "ir/model_facts.h"
#include "support/number_text.h"
#include "tools/emitters/emitter.h"
#include "tools/emitters/model_shape.h"

// Megatron-LM (NVIDIA/Megatron-LM, megatron/training/arguments.py): arguments of pretrain_gpt.py.
// Which go together stands in its validate_args.

namespace orrery::tools {
namespace megatron_arguments_cc {
namespace {

using search::ParallelPlan;
using transforms::StepDType;

// A list of arguments, a line each.
class Arguments {
 public:
  void Add(absl::string_view name) { lines_.push_back(absl::StrCat("--", name)); }
  template <typename Value>
  void Add(absl::string_view name, const Value& value) {
    lines_.push_back(absl::StrCat("--", name, " ", value));
  }
  std::string Text() const {
    return absl::StrCat("MEGATRON_ARGS=(\n  ", absl::StrJoin(lines_, "\n  "), "\n)\n");
  }

 private:
  std::vector<std::string> lines_;
};

// What is written to at once.
struct Draft {
  const EmitQuestion& question;
  const ParallelPlan& plan;
  std::optional<ModelShape> shape;
  Arguments arguments = {};
  EmitNotes notes;
};

void WriteDegrees(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"dp", "hp", "pp", "cp", "ep", "micro-batches"}) draft.notes.Take(flag);
  draft.arguments.Add("tensor-model-parallel-size", plan.hp);
  draft.arguments.Add("pipeline-model-parallel-size", plan.pp);
  if (plan.cp > 1) draft.arguments.Add("context-parallel-size", plan.cp);
  if (plan.ep > 1) draft.arguments.Add("expert-model-parallel-size", plan.ep);
  draft.arguments.Add("micro-batch-size", MicrobatchSize(draft.question));
  draft.arguments.Add("global-batch-size", draft.question.setting.batch_size);
  draft.notes.Say(absl::StrCat(plan.ranks(), " ranks: ", plan.dp * plan.ep,
                               " data-parallel ones follow from how many are started"));
}

// Stages by their layers: "Et*7|t*9L".
std::string Layout(const std::vector<int64_t>& layers) {
  const std::string stages = absl::StrJoin(
      layers, "|", [](std::string* out, int64_t n) { absl::StrAppend(out, "t*", n); });
  return absl::StrCat("\"E", stages, "L\"");
}

void WritePipeline(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  const std::string name = plan.schedule.name();
  const bool interleaved = name == "interleaved";
  for (const char* flag : {"schedule", "chunks", "layers-per-stage"}) draft.notes.Take(flag);
  if (plan.pp == 1) {
    if (name != "1f1b") draft.notes.Lack("schedule", "there is no pipeline to order");
    if (plan.chunks > 0) draft.notes.Lack("chunks", "there is no pipeline");
    if (!plan.layers_per_stage.empty()) draft.notes.Lack("layers-per-stage", "there is one stage");
    return;
  }
  const int64_t chunks = interleaved ? search::ShapeOf(*plan.schedule, plan).chunks : int64_t{1};
  if (name != "1f1b" && !interleaved) {
    draft.notes.Lack("schedule", "Megatron-LM has 1f1b and interleaved; these arguments run 1f1b");
  }
  if (plan.chunks > 0 && !interleaved) draft.notes.Lack("chunks", "of interleaved alone");
  if (!plan.layers_per_stage.empty()) {
    draft.arguments.Add("pipeline-model-parallel-layout", Layout(plan.layers_per_stage));
    if (interleaved) draft.notes.Say(absl::StrCat("the layout has ", chunks, " stages a rank"));
    return;
  }
  if (interleaved) draft.arguments.Add("num-virtual-stages-per-pipeline-rank", chunks);
  const int64_t stages = plan.pp * chunks;
  if (draft.shape.has_value() && draft.shape->layers % stages != 0) {
    draft.notes.Say(absl::StrCat("no counterpart: ", draft.shape->layers,
                                 " layers are no whole "
                                 "number for each of ",
                                 stages,
                                 " stages, which Megatron-LM wants "
                                 "unless --pipeline-model-parallel-layout says where they begin; "
                                 "--layers-per-stage of simulate takes the same numbers"));
  }
}

void WriteSharding(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"sharding", "sequence-parallel", "context-attention"}) {
    draft.notes.Take(flag);
  }
  using transforms::SequenceParallel;
  if (draft.shape.has_value()) {
    SayOfHeads(draft.shape->heads, plan.hp, "Megatron-LM", draft.notes);
  }
  if (plan.hp > 1 && plan.sequence_parallel != SequenceParallel::kOff) {
    draft.arguments.Add("sequence-parallel");
  }
  if (plan.sharding == transforms::ShardingMethod::kDistir) {
    draft.notes.Lack("sharding", "Megatron-LM has its own pattern of column and row products");
  } else if (!plan.by_pattern() && plan.hp > 1) {
    draft.notes.Say(
        "tensor parallelism is Megatron-LM's own pattern there: --sharding megatron "
        "predicts it; auto may have found a faster one");
  }
  if (plan.cp == 1) return;
  using transforms::ContextAttention;
  switch (plan.context_attention) {
    case ContextAttention::kRing:
      return draft.arguments.Add("cp-comm-type", "p2p");
    case ContextAttention::kAllToAll:
      return draft.arguments.Add("cp-comm-type", "a2a");
    case ContextAttention::kAllGather:
      return draft.arguments.Add("cp-comm-type", "allgather");
    case ContextAttention::kAuto:
      draft.notes.Say(
          "--context-attention auto was the fastest of ring (--cp-comm-type p2p, the "
          "default there), all-to-all (a2a) and all-gather");
  }
}

// ZeRO's stage 1 is the distributed optimizer; 2 and 3 are Megatron-FSDP.
void WriteState(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  const bool shares = plan.dp * plan.ep * plan.cp > 1;
  for (const char* flag : {"zero", "zero-group", "bucket-size", "blocking"}) draft.notes.Take(flag);
  if (plan.zero > 0) draft.arguments.Add("use-distributed-optimizer");
  if (plan.zero > 1) {
    draft.arguments.Add("use-megatron-fsdp");
    draft.arguments.Add("data-parallel-sharding-strategy",
                        plan.zero == 2 ? "optim_grads" : "optim_grads_params");
    draft.arguments.Add("ckpt-format", "fsdp_dtensor");
    draft.notes.Say("Megatron-FSDP wants CUDA_DEVICE_MAX_CONNECTIONS to be no 1");
  }
  if (plan.zero_group > 0) {
    const int64_t of_state = plan.dp * plan.ep * plan.cp;
    if (plan.zero > 0 && of_state % plan.zero_group == 0) {
      draft.arguments.Add("num-distributed-optimizer-instances", of_state / plan.zero_group);
    } else {
      draft.notes.Lack("zero-group",
                       "it does not divide the data-parallel ranks, or shards nothing");
    }
  }
  if (plan.bucket_size != ParallelPlan().bucket_size) {
    draft.arguments.Add("ddp-bucket-size", BucketElements(draft.question));
  }
  if (plan.blocking) {
    draft.notes.Lack("blocking", "nothing overlaps that is not asked for; sends of 1f1b wait");
  } else if (shares) {
    draft.arguments.Add("overlap-grad-reduce");
    const bool ahead = draft.question.setting.lowering.kernels.gathers_ahead || plan.zero == 3;
    if (ahead && plan.zero > 0) draft.arguments.Add("overlap-param-gather");
  }
  if (draft.question.setting.lowering.kernels.pipelines_products && plan.hp > 1) {
    draft.arguments.Add("tp-comm-overlap");
  }
}

void WriteRecompute(Draft& draft) {
  draft.notes.Take("recompute");
  const std::string text = ToString(draft.plan.recompute);
  absl::string_view rest = text;
  if (text == "none") return;
  if (text == "full" || absl::ConsumePrefix(&rest, "every:")) {
    draft.arguments.Add("recompute-granularity", "full");
    draft.arguments.Add("recompute-method", "uniform");
    draft.arguments.Add("recompute-num-layers", text == "full" ? "1" : std::string(rest));
  } else if (text == "selective" || absl::ConsumePrefix(&rest, "modules:")) {
    draft.arguments.Add("recompute-granularity", "selective");
    draft.arguments.Add("recompute-modules", text == "selective"
                                                 ? "core_attn"
                                                 : absl::StrReplaceAll(rest, {{",", " "}}));
  } else {
    draft.notes.Lack("recompute", "Megatron-LM knows modules and layers, no names of values");
  }
}

void WriteOffload(Draft& draft) {
  const transforms::OffloadPolicy& offload = draft.plan.offload;
  draft.notes.Take("offload");
  if (offload.optimizer) {
    draft.arguments.Add("optimizer-cpu-offload");
    draft.arguments.Add("use-precision-aware-optimizer");
  }
  if (!offload.activations) return;
  if (draft.plan.pp == 1 && offload.pattern.empty() && draft.shape.has_value() &&
      draft.shape->layers > 1) {
    // All but the last, which backward wants at once.
    draft.arguments.Add("cpu-offloading-num-layers", draft.shape->layers - 1);
  } else {
    draft.notes.Lack("offload",
                     "Megatron-LM offloads activations of whole layers, and of no "
                     "pipeline");
  }
}

void WriteType(Draft& draft) {
  draft.notes.Take("dtype");
  const auto type = ir::ComputeType(draft.question.setting.step);
  if (type == ir::DType::kF16) draft.arguments.Add("fp16");
  if (type == ir::DType::kBF16) draft.arguments.Add("bf16");
  switch (draft.plan.dtype) {
    case StepDType::kF8Mixed:
      draft.arguments.Add("fp8-format", "hybrid");
      return draft.arguments.Add("fp8-recipe", "tensorwise");
    case StepDType::kF8Blocks:
      draft.arguments.Add("fp8-format", "e4m3");
      return draft.arguments.Add("fp8-recipe", "blockwise");
    case StepDType::kF4Mixed:
      draft.arguments.Add("fp4-format", "e2m1");
      return draft.arguments.Add("fp4-recipe", "nvfp4");
    case StepDType::kF8:
      return draft.notes.Lack("dtype", "parameters and activations are of 16 bits at least there");
    default:
      return;
  }
}

void WriteOrder(Draft& draft) {
  draft.notes.Take("order");
  const std::vector<std::string> order = draft.plan.order.Full();
  const std::vector<std::string> usual = {"hp", "cp", "ep", "dp", "pp"};
  if (order == usual) return;
  if (order == std::vector<std::string>{"hp", "cp", "ep", "pp", "dp"}) {
    draft.arguments.Add("use-tp-pp-dp-mapping");
  } else {
    draft.notes.Lack("order",
                     "ranks are numbered tp-cp-ep-dp-pp, or with --use-tp-pp-dp-mapping "
                     "tp-cp-ep-pp-dp");
  }
}

void WriteOptimizer(Draft& draft) {
  const std::string& name = draft.question.optimizer;
  if (name == "none") {
    draft.notes.Say("no counterpart: --optimizer none: a step there has an update");
    return;
  }
  if (name != "adam" && name != "sgd" && name != "momentum") {
    draft.notes.Say(absl::StrCat("no counterpart: --optimizer ", name,
                                 ": written are arguments of adam and sgd alone"));
    return;
  }
  draft.arguments.Add("optimizer", name == "adam" ? "adam" : "sgd");
  if (name == "sgd") draft.arguments.Add("sgd-momentum", "0");
}

void WriteExperts(const ModelShape& shape, Draft& draft) {
  if (shape.experts == 0) return;
  Arguments& arguments = draft.arguments;
  arguments.Add("num-experts", shape.experts);
  arguments.Add("moe-router-topk", shape.topk);
  arguments.Add("moe-ffn-hidden-size", shape.expert_ffn);
  if (draft.plan.ep > 1) arguments.Add("moe-token-dispatcher-type", "alltoall");
  arguments.Add("moe-grouped-gemm");
  if (shape.shared_ffn > 0) arguments.Add("moe-shared-expert-intermediate-size", shape.shared_ffn);
  if (shape.dense_layers > 0) {
    arguments.Add("moe-layer-freq", absl::StrCat("\"([0]*", shape.dense_layers, "+[1]*",
                                                 shape.layers - shape.dense_layers, ")\""));
  }
}

void WriteAttention(const ModelShape& shape, Arguments& arguments) {
  arguments.Add("num-attention-heads", shape.heads);
  if (shape.latent) {
    arguments.Add("multi-latent-attention");
    if (shape.q_rank > 0) arguments.Add("q-lora-rank", shape.q_rank);
    arguments.Add("kv-lora-rank", shape.kv_rank);
    arguments.Add("qk-head-dim", shape.head_dim);
    arguments.Add("qk-pos-emb-head-dim", shape.rope_dim);
    arguments.Add("v-head-dim", shape.v_dim);
    return;
  }
  if (shape.kv_heads != shape.heads) {
    arguments.Add("group-query-attention");
    arguments.Add("num-query-groups", shape.kv_heads);
  }
  if (shape.head_dim * shape.heads != shape.hidden) arguments.Add("kv-channels", shape.head_dim);
}

void WriteModel(Draft& draft) {
  if (!draft.shape.has_value()) {
    draft.notes.Say(absl::StrCat("no counterpart: --model ", draft.question.setting.model_name,
                                 ": what it is made of (--num-layers, --hidden-size, …) is known "
                                 "of built-in decoders alone"));
    return;
  }
  const ModelShape& shape = *draft.shape;
  Arguments& arguments = draft.arguments;
  arguments.Add("num-layers", shape.layers);
  arguments.Add("hidden-size", shape.hidden);
  arguments.Add("ffn-hidden-size", shape.ffn);
  WriteAttention(shape, arguments);
  arguments.Add("seq-length", shape.sequence);
  arguments.Add("max-position-embeddings", shape.sequence);
  arguments.Add("vocab-size", shape.vocab);
  if (shape.swiglu) arguments.Add("swiglu");
  if (shape.rms) arguments.Add("normalization", "RMSNorm");
  if (!shape.learned) {
    arguments.Add("position-embedding-type", shape.rotary ? "rope" : "none");
  }
  if (!shape.bias) arguments.Add("disable-bias-linear");
  if (!shape.tied) arguments.Add("untie-embeddings-and-output-weights");
  arguments.Add("hidden-dropout", ShortestText(shape.dropout));
  arguments.Add("attention-dropout", ShortestText(shape.attention_dropout));
  WriteExperts(shape, draft);
  if (shape.adapters)
    draft.notes.Say("no counterpart: adapters (lora=…) are not of pretrain_gpt.py");
}

Emitted Emit(const EmitQuestion& question) {
  Draft draft = {.question = question,
                 .plan = question.plan,
                 .shape = ShapeOfModel(question.setting.model_name),
                 .notes = EmitNotes(question.plan)};
  WriteDegrees(draft);
  WritePipeline(draft);
  WriteSharding(draft);
  WriteState(draft);
  WriteRecompute(draft);
  WriteOffload(draft);
  WriteType(draft);
  WriteOrder(draft);
  WriteOptimizer(draft);
  WriteModel(draft);
  return {draft.arguments.Text(), draft.notes.All("Megatron-LM")};
}

}  // namespace
}  // namespace megatron_arguments_cc

extern constinit const Emitter kMegatronEmitter = {
    .name = "megatron",
    .summary = "arguments of Megatron-LM's pretrain_gpt.py, as an array of bash",
    .comment = "# ",
    .emit = megatron_arguments_cc::Emit,
};

}  // namespace orrery::tools
