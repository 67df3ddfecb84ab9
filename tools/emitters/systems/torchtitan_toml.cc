#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/model_facts.h"
#include "tools/emitters/emitter.h"
#include "tools/emitters/model_shape.h"

// torchtitan (pytorch/torchtitan, torchtitan/config/job_config.py): a configuration file.

namespace orrery::tools {
namespace torchtitan_toml_cc {
namespace {

using search::ParallelPlan;
using transforms::StepDType;

// Sections in the order in which they were begun.
class Toml {
 public:
  template <typename Value>
  void Set(absl::string_view section, absl::string_view key, const Value& value) {
    Lines(section) += absl::StrCat(key, " = ", value, "\n");
  }
  void SetText(absl::string_view section, absl::string_view key, absl::string_view value) {
    Set(section, key, absl::StrCat("\"", value, "\""));
  }
  std::string Text() const {
    std::string text;
    for (const auto& [section, lines] : sections_) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", "[", section, "]\n", lines);
    }
    return text;
  }

 private:
  std::string& Lines(absl::string_view section) {
    for (auto& [name, lines] : sections_) {
      if (name == section) return lines;
    }
    return sections_.emplace_back(section, "").second;
  }

  std::vector<std::pair<std::string, std::string>> sections_;
};

// What is written to at once.
struct Draft {
  const EmitQuestion& question;
  const ParallelPlan& plan;
  std::optional<ModelShape> shape;
  Toml toml = {};
  EmitNotes notes;
};

constexpr absl::string_view kParallelism = "parallelism";

// Presets of its own that are built in here.
void WriteModel(Draft& draft) {
  const std::map<std::string, std::string, std::less<>> flavors = {
      {"llama3-8b", "8B"}, {"llama3-70b", "70B"}, {"llama3-405b", "405B"}};
  const std::string& model = draft.question.setting.model_name;
  const auto flavor = flavors.find(model.substr(0, model.find(':')));
  if (flavor == flavors.end()) {
    draft.notes.Say(absl::StrCat("no counterpart: --model ", model,
                                 ": torchtitan trains models "
                                 "of its own: [model] name and flavor are yours to say"));
  } else {
    draft.toml.SetText("model", "name", "llama3");
    draft.toml.SetText("model", "flavor", flavor->second);
  }
  const std::string& optimizer = draft.question.optimizer;
  if (optimizer == "adam") {
    draft.toml.SetText("optimizer", "name", "AdamW");
  } else {
    draft.notes.Say(
        absl::StrCat("no counterpart: --optimizer ", optimizer, ": torchtitan has Adam and AdamW"));
  }
}

void WriteBatch(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  draft.notes.Take("micro-batches");
  const int64_t size = MicrobatchSize(draft.question);
  // A pipeline takes all its microbatches at once; else gradients are summed over several.
  const int64_t local = plan.pp > 1 ? size * plan.microbatches : size;
  draft.toml.Set("training", "local_batch_size", local);
  draft.toml.Set("training", "global_batch_size", draft.question.setting.batch_size);
  const int64_t sequence = ir::SequenceLength(draft.question.setting.step);
  if (sequence > 0) draft.toml.Set("training", "seq_len", sequence);
  if (plan.pp > 1) draft.toml.Set(kParallelism, "pipeline_parallel_microbatch_size", size);
}

// Which ranks share the state, and which hold it twice.
void WriteState(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"dp", "ep", "zero", "zero-group", "bucket-size"}) draft.notes.Take(flag);
  const int64_t ranks = plan.dp * plan.ep;
  int64_t shard = plan.zero > 0 ? ranks : plan.ep;
  if (plan.zero_group > 0) {
    if (plan.zero > 0 && ranks % plan.zero_group == 0) {
      shard = plan.zero_group;
    } else {
      draft.notes.Lack("zero-group",
                       "it does not divide the data-parallel ranks, or shards nothing");
    }
  }
  draft.toml.Set(kParallelism, "data_parallel_replicate_degree", ranks / shard);
  draft.toml.Set(kParallelism, "data_parallel_shard_degree", shard);
  if (shard % plan.ep != 0) {
    draft.notes.Lack("ep", "experts are shared among the ranks that shard the state");
  } else if (plan.ep > 1) {
    draft.toml.Set(kParallelism, "expert_parallel_degree", plan.ep);
    if (plan.zero == 0) draft.notes.Say("the state of all layers is sharded over the ranks of ep");
  }
  if (plan.zero == 3) draft.toml.SetText(kParallelism, "fsdp_reshard_after_forward", "always");
  if (plan.zero == 1 || plan.zero == 2) {
    draft.toml.SetText(kParallelism, "fsdp_reshard_after_forward", "never");
    draft.notes.Lack("zero",
                     "FSDP shards parameters, too, and gathers them once a step with "
                     "fsdp_reshard_after_forward = \"never\"");
  }
  if (plan.bucket_size != ParallelPlan().bucket_size) {
    draft.notes.Lack("bucket-size", "FSDP's units are layers");
  }
}

void WriteTensors(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"hp", "sharding", "sequence-parallel", "cp", "context-attention"}) {
    draft.notes.Take(flag);
  }
  draft.toml.Set(kParallelism, "tensor_parallel_degree", plan.hp);
  if (draft.shape.has_value()) {
    SayOfHeads(draft.shape->heads, plan.hp, "torchtitan", draft.notes);
  }
  if (plan.hp > 1) {
    if (plan.sequence_parallel == transforms::SequenceParallel::kOff) {
      draft.notes.Lack("sequence-parallel", "tensor parallelism splits the sequence there");
    }
    if (!plan.by_pattern() || plan.by_products()) {
      draft.notes.Say(
          "tensor parallelism is Megatron's pattern there: --sharding megatron "
          "predicts it");
    }
    if (draft.question.setting.lowering.kernels.pipelines_products) {
      draft.toml.Set(kParallelism, "enable_async_tensor_parallel", "true");
      draft.toml.Set("training", "compile", "true");
    }
  }
  draft.toml.Set(kParallelism, "context_parallel_degree", plan.cp);
  if (plan.cp == 1) return;
  using transforms::ContextAttention;
  if (plan.context_attention == ContextAttention::kAllGather) {
    draft.toml.SetText(kParallelism, "context_parallel_rotate_method", "allgather");
  } else if (plan.context_attention == ContextAttention::kRing) {
    draft.toml.SetText(kParallelism, "context_parallel_rotate_method", "alltoall");
  } else {
    draft.notes.Lack("context-attention",
                     "keys and values are gathered there, or passed on in a "
                     "ring (context_parallel_rotate_method)");
  }
}

void WritePipeline(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"pp", "schedule", "chunks", "layers-per-stage"}) draft.notes.Take(flag);
  draft.toml.Set(kParallelism, "pipeline_parallel_degree", plan.pp);
  const std::string name = plan.schedule.name();
  if (plan.pp == 1) {
    if (name != "1f1b") draft.notes.Lack("schedule", "there is no pipeline to order");
    if (plan.chunks > 0) draft.notes.Lack("chunks", "there is no pipeline");
    if (!plan.layers_per_stage.empty()) draft.notes.Lack("layers-per-stage", "there is one stage");
    return;
  }
  const std::map<std::string, std::string> names = {
      {"1f1b", "1F1B"},
      {"gpipe", "GPipe"},
      {"interleaved", "Interleaved1F1B"},
      {"looped-bfs", "LoopedBFS"},
      {"interleaved-zero-bubble", "InterleavedZeroBubble"},
      {"zbv", "ZBVZeroBubble"},
      {"dualpipe-v", "DualPipeV"}};
  const auto found = names.find(name);
  if (found == names.end()) {
    draft.notes.Lack("schedule",
                     "torch.distributed.pipelining has none of that name; this file "
                     "runs 1F1B");
  }
  draft.toml.SetText(kParallelism, "pipeline_parallel_schedule",
                     found == names.end() ? "1F1B" : found->second);
  const int64_t stages = plan.pp * search::ShapeOf(*plan.schedule, plan).chunks;
  if (!plan.layers_per_stage.empty()) {
    draft.notes.Lack("layers-per-stage", "pipeline_parallel_split_points names modules");
    draft.notes.Say(absl::StrCat("there are ", stages, " stages"));
  } else if (draft.shape.has_value() && draft.shape->layers % stages == 0) {
    draft.toml.Set(kParallelism, "pipeline_parallel_layers_per_stage",
                   draft.shape->layers / stages);
  } else if (plan.chunks > 0) {
    draft.notes.Lack(
        "chunks", absl::StrCat("the layers are no whole number for each of ", stages, " stages"));
  } else {
    draft.notes.Say(
        absl::StrCat("the model is cut into ", stages, " stages where torchtitan cuts it"));
  }
}

void WriteRecompute(Draft& draft) {
  draft.notes.Take("recompute");
  const std::string text = ToString(draft.plan.recompute);
  constexpr absl::string_view kSection = "activation_checkpoint";
  draft.toml.SetText(kSection, "mode",
                     text == "none"        ? "none"
                     : text == "selective" ? "selective"
                                           : "full");
  if (text == "selective") {
    draft.toml.SetText(kSection, "selective_ac_option", "op");
    draft.notes.Lack("recompute", "selective there keeps every other product, and drops the rest");
  } else if (text != "none" && text != "full") {
    draft.notes.Lack("recompute", "this file runs each layer again, as full does");
  }
}

void WriteMemoryAndType(Draft& draft) {
  draft.notes.Take("offload");
  draft.notes.Take("dtype");
  if (draft.plan.offload.optimizer) {
    draft.toml.Set("training", "enable_cpu_offload", "true");
    draft.notes.Lack("offload", "parameters and gradients go to the host with the optimizer");
  } else if (draft.plan.offload.activations) {
    draft.notes.Lack("offload", "torchtitan keeps activations on the device");
  }
  const auto type = ir::ComputeType(draft.question.setting.step);
  draft.toml.SetText("training", "mixed_precision_param",
                     type == ir::DType::kF32 ? "float32" : "bfloat16");
  if (type == ir::DType::kF16) draft.notes.Lack("dtype", "torchtitan has no fp16");
  switch (draft.plan.dtype) {
    case StepDType::kF8Mixed:
      draft.toml.Set("model", "converters", "[\"float8\"]");
      return draft.toml.SetText("float8", "recipe_name", "tensorwise");
    case StepDType::kF8Blocks:
    case StepDType::kF4Mixed:
    case StepDType::kF8:
      return draft.notes.Lack("dtype", "torchtitan has float8 by tensors and rows, and mxfp8");
    default:
      return;
  }
}

void WriteOrder(Draft& draft) {
  draft.notes.Take("order");
  const std::vector<std::string> usual = {"hp", "cp", "ep", "dp", "pp"};
  if (draft.plan.order.Full() != usual) {
    draft.notes.Lack("order", "ranks are numbered tp, cp, dp_shard, dp_replicate, pp there");
  }
}

Emitted Emit(const EmitQuestion& question) {
  Draft draft = {.question = question,
                 .plan = question.plan,
                 .shape = ShapeOfModel(question.setting.model_name),
                 .notes = EmitNotes(question.plan)};
  WriteModel(draft);
  WriteBatch(draft);
  WriteState(draft);
  WriteTensors(draft);
  WritePipeline(draft);
  WriteRecompute(draft);
  WriteMemoryAndType(draft);
  WriteOrder(draft);
  return {draft.toml.Text(), draft.notes.All("torchtitan")};
}

}  // namespace
}  // namespace torchtitan_toml_cc

extern constinit const Emitter kTorchtitanEmitter = {
    .name = "torchtitan",
    .summary = "a configuration file of torchtitan, TOML",
    .comment = "# ",
    .emit = torchtitan_toml_cc::Emit,
};

}  // namespace orrery::tools
