#include "tools/validation/rows/step_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "support/status.h"
#include "tools/validation/rows/row_cluster.h"
#include "tools/validation/rows/row_models.h"
#include "tools/validation/rows/row_recompute.h"
#include "tools/validation/rows/row_stages.h"
#include "transforms/schedules/schedule.h"

namespace orrery::tools {
namespace step_setup_cc {
namespace {

absl::Status Skip(absl::string_view reason) { return absl::FailedPreconditionError(reason); }

// "torch.compile", "asyncTP torch.compile", in small letters.
std::string TorchtitanOf(absl::string_view flags) {
  return absl::StrContains(flags, "async")     ? "torchtitan-async"
         : absl::StrContains(flags, "compile") ? "torchtitan-compile"
                                               : "torchtitan";
}

std::string StackOf(const MeasuredStep& step) {
  // What a row's or a source's name has in it, and the software.
  constexpr std::pair<absl::string_view, absl::string_view> kSoftware[] = {
      {"megatron-lm", "megatron"},
      {"simumax", "megatron-core"},
      {"torchtitan", "torchtitan"},
      {"maxtext", "maxtext"},
      {"ironwood", "maxtext"},
      {"distir", "ideal"},
      {"sc21", "megatron-2021"},
      {"automodel", "nemo"},
      {"bloom", "deepspeed"},
      {"foundry", "fsdp"},
      {"nemo", "nemo"},
      {"vtrain", "megatron-deepspeed"},
      {"dgxc", "nemo"},
      {"bridge", "nemo"},
      {"mlperf", "nemo"},
      {"megascale", "nemo"}};
  for (const std::string& name : {step.id, step.source}) {
    for (const auto& [part, software] : kSoftware) {
      if (!absl::StrContains(absl::AsciiStrToLower(name), part)) continue;
      if (software == "torchtitan") return TorchtitanOf(step.flags);
      return std::string(software);
    }
  }
  return "megatron";
}

// Eager or compiled.
bool IsTorchtitan(absl::string_view stack) { return absl::StartsWith(stack, "torchtitan"); }

// Vocabularies that sources leave out: GPT-2's, padded as Megatron pads it; and BLOOM's "about
// 250k" as its tokenizer has it, padded.
int64_t VocabularyOf(const MeasuredStep& step, int64_t tp) {
  int64_t vocab = step.model.vocab > 0 ? step.model.vocab : 50257;
  if (vocab == 250000) vocab = 250680;
  const int64_t multiple = 128 * tp;
  return (vocab + multiple - 1) / multiple * multiple;
}

// Kernels of attention that keep no scores: everywhere but in Megatron before they came up. Those
// of models with sinks have them since TransformerEngine 2.8 (its pull request 2148), which is
// older than all such rows.
bool HasFlash(const MeasuredStep& step, absl::string_view stack) {
  return IsTorchtitan(stack) || stack == "fsdp" ||
         !(absl::StrContains(step.device, "A100") || absl::StrContains(step.device, "V100"));
}

// DistIR's: products and Relus.
bool IsMlp(const MeasuredStep& step) { return absl::StartsWith(step.model.name, "MLP"); }

bool HasAdapters(const MeasuredStep& step) {
  const std::string job = absl::AsciiStrToLower(absl::StrCat(step.task, " ", step.model.name));
  return absl::StrContains(job, "lora");
}

// Where a row does not say, those of NeMo's megatron_gpt_finetuning_config.yaml.
std::string AdaptersOf(const MeasuredStep& step) {
  if (!HasAdapters(step)) return "";
  const bool all = absl::StrContains(step.lora_targets, "*_proj");
  return absl::StrCat(",lora=", step.lora_rank > 0 ? step.lora_rank : 32,
                      ",lora_targets=", all ? "all" : "qkv");
}

// Where a source leaves them out: those nearest to 128 wide that tensor-parallel ranks share
// evenly, of widths that are multiples of 8.
int64_t HeadsOf(const MeasuredStep::Model& model, int64_t tp) {
  if (model.heads > 0) return model.heads;
  const int64_t wanted = std::max<int64_t>(1, model.hidden / 128);
  const auto fits = [&](int64_t heads) {
    return heads % tp == 0 && model.hidden % (8 * heads) == 0;
  };
  for (int64_t off = 0; off < wanted; ++off) {
    if (fits(wanted - off)) return wanted - off;
    if (fits(wanted + off)) return wanted + off;
  }
  return wanted;
}

// Models of these sources are Megatron's GPT, with its dropout, or Llamas.
std::string ModelOf(const MeasuredStep& step, const StepSetup& setup, int64_t tp) {
  const MeasuredStep::Model& m = step.model;
  if (!m.preset.empty()) return PresetModelOf(step);
  if (IsMlp(step)) return absl::StrCat("mlp:layers=", m.layers, ",dim=", m.hidden);
  const int64_t heads = HeadsOf(m, tp);
  const bool split = IsTorchtitan(setup.stack);  // the vocabulary is not padded
  std::string text =
      absl::StrCat("gpt:layers=", m.layers, ",hidden=", m.hidden, ",heads=", heads, ",seq=", m.seq,
                   ",vocab=", split ? m.vocab : VocabularyOf(step, tp),
                   ",flash=", HasFlash(step, setup.stack) ? 1 : 0);
  if (m.kv_heads > 0 && m.kv_heads != heads) absl::StrAppend(&text, ",kv_heads=", m.kv_heads);
  if (m.ffn > 0) absl::StrAppend(&text, ",ffn=", m.ffn);
  if (m.experts > 0) {
    absl::StrAppend(&text, ",experts=", m.experts, ",topk=", std::max<int64_t>(1, m.topk));
    if (m.shared_ffn > 0) absl::StrAppend(&text, ",shared_ffn=", m.shared_ffn);
    if (m.dense_layers > 0) absl::StrAppend(&text, ",dense_layers=", m.dense_layers);
    if (m.expert_ffn > 0) absl::StrAppend(&text, ",expert_ffn=", m.expert_ffn);
  }
  if (m.head_dim > 0) absl::StrAppend(&text, ",head_dim=", m.head_dim);
  if (m.latent) {
    absl::StrAppend(&text, ",attention=latent,q_rank=", m.q_rank, ",kv_rank=", m.kv_rank,
                    ",rope_dim=", m.rope_dim, ",v_dim=", m.v_dim);
  }
  absl::StrAppend(&text, m.swiglu                                    ? ",mlp=swiglu"
                         : absl::StartsWith(setup.stack, "megatron") ? ",dropout=0.1"
                                                                     : "");
  return text + AdaptersOf(step);
}

// Whether the precision is one that begins so, in products alone or not: "amp_" is autocast.
bool Begins(const MeasuredStep& step, absl::string_view with) {
  absl::string_view precision = step.precision;
  absl::ConsumePrefix(&precision, "amp_");
  return absl::StartsWith(precision, with);
}

// With a scale for each 128 elements: "fp8 blockwise", NeMo's "FP8-SC" (sub-channels).
bool HasBlocks(const MeasuredStep& step) {
  return absl::StrContains(step.precision, "block") || Begins(step, "fp8-sc");
}

// A scale for each 32 elements (mxfp8) or for more.
bool HasEightBits(const MeasuredStep& step) {
  return Begins(step, "fp8") || Begins(step, "float8") || Begins(step, "mxfp8");
}

absl::StatusOr<transforms::StepDType> DTypeOf(const MeasuredStep& step) {
  using transforms::StepDType;
  if (Begins(step, "bf16")) return StepDType::kBF16;
  if (Begins(step, "fp16")) return StepDType::kF16;
  if (Begins(step, "fp32")) return StepDType::kF32;
  if (HasEightBits(step)) {
    return HasBlocks(step) ? StepDType::kF8Blocks : StepDType::kF8Mixed;
  }
  if (Begins(step, "nvfp4")) return StepDType::kF4Mixed;
  return Skip(absl::StrCat("precision '", step.precision, "'"));
}

absl::StatusOr<transforms::ScheduleChoice> ScheduleOf(const MeasuredStep& step, int64_t pp) {
  using transforms::ScheduleChoice;
  if (pp == 1) return ScheduleChoice("1f1b");
  const std::string name = absl::AsciiStrToLower(step.schedule);
  const bool interleaved =
      absl::StrContains(name, "1f1b-i") || absl::StrContains(name, "interleaved");
  const bool simple = name.empty() || absl::StrContains(name, "1f1b");
  if (interleaved || (step.chunks > 1 && simple)) return ScheduleChoice("interleaved");
  // Under twice the memory of 1F1B, which is what this one takes.
  if (name == "zb-2p") return ScheduleChoice("zb-h2");
  if (transforms::FindSchedule(name).ok()) return ScheduleChoice::Parse(name);
  if (simple) return ScheduleChoice("1f1b");
  return Skip(absl::StrCat("schedule '", step.schedule, "'"));
}

// Tensor parallelism as in Megatron: vocabulary, heads and feed-forward are split, the rest is
// whole, or with sequence parallelism split by tokens.
absl::StatusOr<std::vector<transforms::ShardingPin>> Pins(const MeasuredStep& step) {
  const absl::string_view stream = step.sequence_parallel.value_or(false) ? "1" : "whole";
  const std::string texts[] = {
      "^wte\\.weight$=hp@0", "(attn\\.(q|k|v)|mlp\\.(up|gate))\\.weight$=hp@1",
      "(attn\\.proj|mlp\\.down)\\.weight$=hp@0",
      "^d?(h\\.[0-9]+\\.(attn\\.(q|k|v|q_rot|k_rot|core)|mlp\\.(gate|up|act))|lm_head)$=hp@2",
      absl::StrCat("^d?(wte|wpe|drop|h\\.[0-9]+\\.(ln_[12]|attn\\.(proj|drop|residual)|"
                   "mlp\\.(down|drop|residual))|ln_f)$=hp@",
                   stream)};
  std::vector<transforms::ShardingPin> pins;
  for (const std::string& text : texts) {
    ORRERY_ASSIGN_OR_RETURN(transforms::ShardingPin pin, transforms::ParseShardingPin(text));
    pins.push_back(std::move(pin));
  }
  return pins;
}

// Of torchtitan's plan no more is known than what it splits; others are Megatron's pattern.
absl::Status SetTensorParallelism(const MeasuredStep& step, absl::string_view stack,
                                  transforms::ParallelPlan& plan) {
  if (IsTorchtitan(stack) && plan.hp > 1) {
    ORRERY_ASSIGN_OR_RETURN(plan.pins, Pins(step));
    return absl::OkStatus();
  }
  plan.sharding = transforms::ShardingMethod::kMegatron;
  // NeMo's recipes have it with tensor parallelism.
  const bool split = step.sequence_parallel.value_or(stack == "nemo");
  plan.sequence_parallel =
      split ? transforms::SequenceParallel::kOn : transforms::SequenceParallel::kOff;
  return absl::OkStatus();
}

absl::Status CheckRow(const MeasuredStep& step) {
  const MeasuredStep::Model& m = step.model;
  if (step.seconds <= 0 && step.bytes <= 0 && !step.compared) {
    return Skip("neither a time nor memory was measured");
  }
  const bool mlp = IsMlp(step);
  if (m.layers == 0 || m.hidden == 0 || (m.seq == 0 && !mlp))
    return Skip("the model's shape is not said");
  if (m.heads == 0 && m.hidden % 128 != 0 && !mlp) return Skip("the model's heads are not said");
  if (step.devices == 0) return Skip("the number of devices is not said");
  if (step.global_batch == 0) return Skip("the batch is not said");
  return absl::OkStatus();
}

// The degrees, and the microbatches.
absl::Status SetSharding(const MeasuredStep& step, transforms::ParallelPlan& c) {
  const auto degree = [](int64_t n) { return std::max<int64_t>(1, n); };
  c.hp = degree(step.tp);
  c.pp = degree(step.pp);
  c.cp = degree(step.cp);
  const int64_t dp = step.dp > 0 ? step.dp : step.devices / c.hp / c.pp / c.cp;
  int64_t left = step.devices;
  for (const int64_t ranks : {c.hp, c.pp, c.cp, dp}) {
    if (ranks < 1 || left % ranks != 0) return Skip("degrees do not multiply up to the devices");
    left /= ranks;
  }
  if (left != 1) return Skip("degrees do not multiply up to the devices");
  c.ep = degree(step.model.experts > 0 ? step.ep : 1);
  // Experts that are whole on tensor-parallel ranks, too (Megatron's etp 1), are split over those
  // instead: as many weights a rank, and messages inside of a node in place of some between.
  if (c.ep > dp && c.ep % dp == 0 && c.hp % (c.ep / dp) == 0) c.ep = dp;
  if (dp % c.ep != 0) return Skip("experts are spread over more than data-parallel ranks");
  c.dp = dp / c.ep;
  c.microbatches = IsMlp(step) ? 1 : step.microbatches;
  if (c.microbatches == 0 && step.micro_batch > 0) {
    c.microbatches = step.global_batch / (dp * step.micro_batch);
  }
  // The smallest bubble, which is what those who have a pipeline want.
  if (c.microbatches == 0 && c.pp > 1) c.microbatches = step.global_batch / dp;
  if (c.microbatches == 0) return Skip("the microbatch is not said");
  if (step.global_batch % (dp * c.microbatches) != 0) return Skip("the batch does not divide");
  c.zero = dp * c.cp > 1 ? step.zero : 0;
  // Beside tensor parallelism an all-to-all does not keep to Megatron's pattern here.
  if (step.context == "a2a" && c.hp == 1) {
    c.context_attention = transforms::ContextAttention::kAllToAll;
  }
  if (step.context == "p2p") c.context_attention = transforms::ContextAttention::kRing;
  c.blocking = !step.overlaps;
  return absl::OkStatus();
}

// What is taken on a device beside tensors, by what the measurement counts. Fragmentation is
// fitted on the rows for calibration, the rest is not: docs/validation_memory.md.
std::string OverheadOf(const MeasuredStep& step, absl::string_view stack) {
  switch (step.measure) {
    case MemoryMeasure::kAllocated:
      return "none";
    case MemoryMeasure::kReserved:
      return "fragmentation=0.05";
    case MemoryMeasure::kDevice:
      break;
  }
  // CUDA 11.4; and DeepSpeed's bucket of 5e8 gradients of 16 bits.
  return stack == "deepspeed" ? "usual,framework=2GiB,fragmentation=0.12" : "usual";
}

}  // namespace
}  // namespace step_setup_cc

absl::StatusOr<StepSetup> SetupOf(const MeasuredStep& step) {
  ORRERY_RETURN_IF_ERROR(step_setup_cc::CheckRow(step));
  StepSetup setup;
  setup.stack = step_setup_cc::StackOf(step);
  setup.graphs = step.graphs;
  setup.mixture = MixtureRecipeOf(step);
  setup.attention_in_8_bits = step.attention_in_8_bits;
  ORRERY_RETURN_IF_ERROR(step_setup_cc::SetSharding(step, setup.plan));
  transforms::ParallelPlan& c = setup.plan;
  ORRERY_ASSIGN_OR_RETURN(c.schedule, step_setup_cc::ScheduleOf(step, c.pp));
  MeasuredStep recomputed = step;
  if (step.recompute.empty()) recomputed.recompute = std::string(setup.mixture.recomputed);
  ORRERY_RETURN_IF_ERROR(SetRecompute(recomputed, c));
  if (c.schedule.name() == "interleaved") {
    const bool said = step.chunks > 1;
    c.chunks = said                                       ? step.chunks
               : step_setup_cc::IsTorchtitan(setup.stack) ? 2
                                                          : MostChunks(step, c.pp);
  }
  ModelFlags& flags = setup.flags;
  flags.model = step_setup_cc::ModelOf(step, setup, c.hp);
  flags.batch_size = step.global_batch;
  if (step_setup_cc::IsMlp(step))
    flags.optimizer = "none";  // backward is the end of what was measured
  ORRERY_ASSIGN_OR_RETURN(c.dtype, step_setup_cc::DTypeOf(step));
  ORRERY_ASSIGN_OR_RETURN(flags.cluster, ClusterOf(step));
  if (c.hp > 1 || c.ep > 1) {
    ORRERY_RETURN_IF_ERROR(step_setup_cc::SetTensorParallelism(step, setup.stack, c));
  }
  flags.memory_limit = "none";
  flags.memory_overhead = step_setup_cc::OverheadOf(step, setup.stack);
  SetStages(step, setup.stack, c.pp * std::max<int64_t>(1, c.chunks), c);
  return setup;
}

}  // namespace orrery::tools
