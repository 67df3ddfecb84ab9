#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/enum_names.h"
#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace sharding_cc {
namespace {

constexpr EnumNames<ShardingMethod, 3> kMethods({{"auto", ShardingMethod::kAuto},
                                                 {"megatron", ShardingMethod::kMegatron},
                                                 {"distir", ShardingMethod::kDistir}});
constexpr EnumNames<ContextAttention, 4> kAttentions({{"auto", ContextAttention::kAuto},
                                                      {"all-to-all", ContextAttention::kAllToAll},
                                                      {"all-gather", ContextAttention::kAllGather},
                                                      {"ring", ContextAttention::kRing}});
constexpr EnumNames<SequenceParallel, 3> kSequences({{"auto", SequenceParallel::kAuto},
                                                     {"0", SequenceParallel::kOff},
                                                     {"1", SequenceParallel::kOn}});

constexpr EnumNames<UnevenShards, 5> kUneven({{"whole", UnevenShards::kWhole},
                                              {"split", UnevenShards::kSplit},
                                              {"pad", UnevenShards::kPad},
                                              {"pad-8", UnevenShards::kPad8},
                                              {"error", UnevenShards::kError}});

absl::Status ParseUneven(absl::string_view text, ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(plan.uneven, kUneven.Parse(text));
  return absl::OkStatus();
}
std::string PrintUneven(const ParallelPlan& plan) { return std::string(kUneven.Of(plan.uneven)); }

bool UnevenApplies(const ParallelPlan& plan) {
  return plan.most_hp() > 1 && (Pads(plan.uneven) || !plan.by_pattern());
}

// What stages share, and what crosses between them, is as long on either side.
absl::Status CheckPadding(const ParallelPlan& plan) {
  if (!Pads(plan.uneven)) return absl::OkStatus();
  std::vector<int64_t> degrees;
  for (const StageMesh& stage : plan.stage_meshes.stages) degrees.push_back(stage.hp);
  for (const DeviceSet& set : plan.placement.sets) degrees.push_back(set.hp);
  for (const int64_t hp : degrees) {
    if (hp == plan.most_hp()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "pads to what hp divides, and stages have hp=", plan.most_hp(), " and hp=", hp,
        "; wanted one `hp` of all `", plan.placement.empty() ? "stage-meshes" : "placement",
        "`, or `uneven` whole"));
  }
  return absl::OkStatus();
}

absl::Status ParseMethod(absl::string_view text, ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(plan.sharding, kMethods.Parse(text));
  return absl::OkStatus();
}
std::string PrintMethod(const ParallelPlan& plan) {
  return std::string(kMethods.Of(plan.sharding));
}

absl::Status ParseSequence(absl::string_view text, ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(plan.sequence_parallel, kSequences.Parse(text));
  return absl::OkStatus();
}
std::string PrintSequence(const ParallelPlan& plan) {
  return std::string(kSequences.Of(plan.sequence_parallel));
}

absl::Status ParseAttention(absl::string_view text, ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(plan.context_attention, kAttentions.Parse(text));
  return absl::OkStatus();
}
std::string PrintAttention(const ParallelPlan& plan) {
  return std::string(kAttentions.Of(plan.context_attention));
}

// Each flag adds one; in one text there are spaces between.
absl::Status ParsePin(absl::string_view text, ParallelPlan& plan) {
  // Which parts pins from each other where they are printed.
  if (absl::StrContains(text, '\n')) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': wanted one line"));
  }
  ORRERY_ASSIGN_OR_RETURN(ShardingPin pin, ParseShardingPin(text));
  plan.pins.push_back(std::move(pin));
  return absl::OkStatus();
}
std::string PrintPins(const ParallelPlan& plan) {
  return absl::StrJoin(plan.pins, "\n", [](std::string* out, const ShardingPin& pin) {
    absl::StrAppend(out, ToString(pin));
  });
}

absl::Status CheckPins(const ParallelPlan& plan) {
  if (plan.pins.empty() || !plan.by_pattern()) return absl::OkStatus();
  return absl::InvalidArgumentError("sharding by Megatron's pattern places all; wanted auto");
}

}  // namespace
}  // namespace sharding_cc

extern const AxisInfo kShardingAxis = {
    .flag = "sharding",
    .summary =
        "what each op does along hp, cp and ep: as is fastest by the cost model, or Megatron's "
        "column and row products and whole experts",
    .values = "auto, megatron or distir",
    .page =
        "what each op does along `hp`, `cp` and `ep`: `auto`, what makes op times and "
        "redistributions the least by the cost model, or less memory where that does not fit "
        "([sharding](redistribution.md#sharding-of-a-whole-step)); `megatron`, column and row "
        "products, embeddings and loss by the vocabulary along `hp`, whole experts along `ep` "
        "([Megatron's pattern](redistribution.md#megatrons-pattern)); `distir`, column and row "
        "products along `hp` and nothing else, as DistIR has it",
    .page_default = "`auto`; `distir` with `--preset distir`",
    .examples = {"megatron", "auto", "distir"},
    .mistake = {"manual", "'manual': wanted auto, megatron or distir"},
    .parse = sharding_cc::ParseMethod,
    .print = sharding_cc::PrintMethod,
    .copy = CopyField<&ParallelPlan::sharding>,
    .applies =
        [](const ParallelPlan& plan) {
          return plan.sequence_parallel != SequenceParallel::kOn ||
                 plan.sharding == ShardingMethod::kMegatron;
        },
    .needs = "megatron beside sequence-parallel; by itself it is found where it pays",
};

extern const AxisInfo kSequenceParallelAxis = {
    .flag = "sequence-parallel",
    .summary =
        "Megatron's products, with the residual stream split along the sequence (=0: never; "
        "=auto: beside --sharding megatron, where it costs no time)",
    .values = "auto, 0 or 1",
    .page =
        "`1` or no value: `megatron`, and its residual stream split along the sequence; what is "
        "gathered of it is kept in parts and gathered again in backward. `auto`: beside "
        "`--sharding megatron` the stream is split where `hp` divides the sequence and that takes "
        "no longer, and what is gathered is kept. `=0`: it is not split",
    .examples = {"1", "auto", "0"},
    .mistake = {"yes", "'yes': wanted auto, 0 or 1"},
    .form = AxisForm::kSwitch,
    .parse = sharding_cc::ParseSequence,
    .print = sharding_cc::PrintSequence,
    .copy = CopyField<&ParallelPlan::sequence_parallel>,
    .applies = [](const ParallelPlan& plan) { return plan.most_hp() > 1; },
    .needs = "a horizontal degree (hp) of at least 2",
};

extern const AxisInfo kContextAttentionAxis = {
    .flag = "context-attention",
    .summary = "how attention gets by with sequences that cp splits; auto: the fastest",
    .values = "auto, all-to-all, all-gather or ring",
    .page =
        "how attention gets by with `--cp`: `all-to-all` (heads change places with rows), "
        "`all-gather` (of keys and values), `ring`, or `auto`: all are played, and the fastest "
        "counts",
    .examples = {"ring", "auto", "all-to-all", "all-gather"},
    .mistake = {"none", "'none': wanted auto, all-to-all, all-gather or ring"},
    .parse = sharding_cc::ParseAttention,
    .print = sharding_cc::PrintAttention,
    .copy = CopyField<&ParallelPlan::context_attention>,
    .applies = [](const ParallelPlan& plan) { return plan.cp > 1; },
    .needs = "a context-parallel degree (cp) of at least 2",
    .detail = true,
};

extern const AxisInfo kUnevenAxis = {
    .flag = "uneven",
    .summary =
        "what becomes of a dimension that hp does not divide: whole, split into uneven "
        "parts, padded, or an error where a weight has no other",
    .values = "whole, split, pad, pad-8 or error",
    .page =
        "what becomes of a dimension that `hp` does not divide: `whole`, it is not split; `split`, "
        "it may be, into parts as `torch.chunk` makes them, and the fullest rank counts "
        "([uneven shards](redistribution.md#uneven-shards)); `pad`, heads, vocabularies and widths "
        "are "
        "padded to what it divides, by Megatron's pattern, too; `pad-8`, likewise, and parts of "
        "vocabularies and widths are multiples of 8; `error`, a plan is infeasible where a weight "
        "of several dimensions has none that divides",
    .examples = {"split", "whole", "error", "pad", "pad-8"},
    .mistake = {"even", "'even': wanted whole, split, pad, pad-8 or error"},
    .parse = sharding_cc::ParseUneven,
    .print = sharding_cc::PrintUneven,
    .copy = CopyField<&ParallelPlan::uneven>,
    .applies = sharding_cc::UnevenApplies,
    .needs = "a horizontal degree (hp) of at least 2, sharded by cost where it does not pad",
    .check = sharding_cc::CheckPadding,
    .detail = true,
};

extern const AxisInfo kPinsAxis = {
    .flag = "shard",
    .summary =
        "axis hp splits dimension 1 of the values whose names match, or hp@whole; the rest "
        "is chosen around it (repeat for more)",
    .values = "REGEX=hp@1, or batch=hp",
    .page =
        "`REGEX=hp@1`: axis `hp` splits dimension 1 of every value whose name the expression "
        "finds; `@whole`: it splits none. Also of `cp` and `ep`. The rest is chosen around it. "
        "`batch=hp`: `hp` may split the batch, as `dp` does, which it does not else. May be "
        "repeated; of several that find a name the first counts",
    .examples = {"w0=hp@1", "h\\.[0-9]+\\.attn$=cp@whole", "a=b=ep@0", "it's \"it\"=ep@2",
                 "batch=hp"},
    .mistake = {"w0", "'w0': wanted "},
    .form = AxisForm::kMany,
    .lists = false,
    .parse = sharding_cc::ParsePin,
    .print = sharding_cc::PrintPins,
    .copy = CopyField<&ParallelPlan::pins>,
    .check = sharding_cc::CheckPins,
    .detail = true,
};

}  // namespace orrery::transforms
