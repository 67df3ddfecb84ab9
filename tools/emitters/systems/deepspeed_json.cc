#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/model_facts.h"
#include "nlohmann/json.hpp"
#include "tools/emitters/emitter.h"

// DeepSpeed (deepspeedai/DeepSpeed, docs/_pages/config-json.md): a configuration file. What is code
// there, as pipelines and checkpointed layers, is a note.

namespace orrery::tools {
namespace deepspeed_json_cc {
namespace {

using search::ParallelPlan;
using transforms::StepDType;

// What is written to at once.
struct Draft {
  const EmitQuestion& question;
  const ParallelPlan& plan;
  nlohmann::ordered_json json = {};
  EmitNotes notes;
};

void WriteBatch(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"dp", "micro-batches"}) draft.notes.Take(flag);
  draft.json["train_batch_size"] = draft.question.setting.batch_size;
  draft.json["train_micro_batch_size_per_gpu"] = MicrobatchSize(draft.question);
  draft.json["gradient_accumulation_steps"] = plan.microbatches;
  const std::string& optimizer = draft.question.optimizer;
  if (optimizer == "adam") {
    draft.json["optimizer"]["type"] = "AdamW";
  } else {
    draft.notes.Say(absl::StrCat("no counterpart: --optimizer ", optimizer,
                                 ": one of torch is handed to deepspeed.initialize"));
  }
}

void WriteDegrees(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"hp", "sharding", "sequence-parallel", "pp", "schedule", "chunks", "cp",
                           "context-attention", "ep", "layers-per-stage"}) {
    draft.notes.Take(flag);
  }
  if (plan.hp > 1) {
    draft.json["tensor_parallel"]["autotp_size"] = plan.hp;
    draft.notes.Say(
        "tensor parallelism is column and row products there: --sharding megatron "
        "--sequence-parallel=0 predicts it");
  }
  if (plan.pp > 1) {
    draft.notes.Lack("pp",
                     "a pipeline is code: PipelineModule(num_stages=…), whose engine trains "
                     "1f1b");
    if (plan.zero > 1) draft.notes.Say("DeepSpeed's pipelines go with ZeRO's stages 0 and 1 alone");
  }
  if (plan.schedule.name() != "1f1b") {
    draft.notes.Lack("schedule", "the pipeline engine trains 1f1b");
  }
  if (plan.chunks > 0) draft.notes.Lack("chunks", "a rank of its pipelines has one stage");
  if (!plan.layers_per_stage.empty()) {
    draft.notes.Lack("layers-per-stage", "PipelineModule(partition_method=…) cuts the model");
  }
  if (plan.cp > 1) {
    draft.notes.Lack("cp",
                     "sequence parallelism is code: Ulysses (all-to-all) in place of "
                     "attention, with a process group of so many ranks");
    if (plan.context_attention != transforms::ContextAttention::kAllToAll) {
      draft.notes.Lack("context-attention", "Ulysses has all-to-all");
    }
  }
  if (plan.ep == 1) return;
  draft.json["expert_parallel"]["enabled"] = true;
  draft.json["expert_parallel"]["autoep_size"] = plan.ep;
  if (plan.hp > 1)
    draft.notes.Say("DeepSpeed's AutoEP does not go with AutoTP: ep and hp of over 1");
}

void WriteState(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"zero", "zero-group", "bucket-size", "blocking"}) draft.notes.Take(flag);
  nlohmann::ordered_json& zero = draft.json["zero_optimization"];
  zero["stage"] = plan.zero;
  zero["overlap_comm"] = !plan.blocking;
  if (plan.blocking) draft.notes.Say("sends of stages wait in any case");
  if (plan.bucket_size != ParallelPlan().bucket_size) {
    zero["reduce_bucket_size"] = BucketElements(draft.question);
  }
  if (plan.zero_group == 0) return;
  if (plan.zero == 3) {
    zero["zero_hpz_partition_size"] = plan.zero_group;
    draft.notes.Lack("zero-group",
                     "ZeRO++ gathers parameters within such groups, and shards the "
                     "optimizer over all ranks");
  } else {
    draft.notes.Lack("zero-group", "groups are of stage 3 there (zero_hpz_partition_size)");
  }
}

void WriteMemory(Draft& draft) {
  const ParallelPlan& plan = draft.plan;
  for (const char* flag : {"offload", "recompute"}) draft.notes.Take(flag);
  if (plan.offload.optimizer) {
    draft.json["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"},
                                                            {"pin_memory", true}};
    if (plan.zero == 0) draft.notes.Lack("offload", "it wants ZeRO's stage 1, 2 or 3 there");
  }
  const std::string recompute = ToString(plan.recompute);
  if (recompute != "none") {
    draft.json["activation_checkpointing"]["partition_activations"] = false;
    draft.notes.Lack("recompute",
                     "what is run again is code: deepspeed.checkpointing.checkpoint "
                     "around it");
  }
  if (!plan.offload.activations) return;
  draft.json["activation_checkpointing"]["cpu_checkpointing"] = true;
  draft.notes.Lack("offload", "the inputs of checkpoints go to the host, and nothing else");
}

void WriteType(Draft& draft) {
  draft.notes.Take("dtype");
  const auto type = ir::ComputeType(draft.question.setting.step);
  if (type == ir::DType::kBF16) draft.json["bf16"]["enabled"] = true;
  if (type == ir::DType::kF16) draft.json["fp16"]["enabled"] = true;
  switch (draft.plan.dtype) {
    case StepDType::kF8Mixed:
    case StepDType::kF8Blocks:
    case StepDType::kF4Mixed:
    case StepDType::kF8:
      return draft.notes.Lack("dtype",
                              "products of 8 and 4 bits are of the model's code "
                              "(TransformerEngine)");
    default:
      return;
  }
}

Emitted Emit(const EmitQuestion& question) {
  Draft draft = {.question = question, .plan = question.plan, .notes = EmitNotes(question.plan)};
  WriteBatch(draft);
  WriteDegrees(draft);
  WriteState(draft);
  WriteMemory(draft);
  WriteType(draft);
  return {absl::StrCat(draft.json.dump(2), "\n"), draft.notes.All("DeepSpeed")};
}

}  // namespace
}  // namespace deepspeed_json_cc

extern constinit const Emitter kDeepspeedEmitter = {
    .name = "deepspeed",
    .summary = "a configuration file of DeepSpeed, JSON; notes stand beside it",
    .comment = "",
    .emit = deepspeed_json_cc::Emit,
};

}  // namespace orrery::tools
