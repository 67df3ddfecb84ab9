#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/status.h"
#include "transforms/plan/mesh.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/shard.h"
#include "transforms/sharding/sharding_graph.h"
#include "transforms/sharding/sharding_memo.h"
#include "transforms/step_work.h"
#include "transforms/training/microbatch.h"

// Shardings along dp, hp, cp and ep.

namespace orrery::transforms {
namespace shard_work_cc {
namespace {

// Along the sequence only where each slice divides.
std::optional<SequenceParallel> PatternOf(const StepWork& work) {
  const ParallelPlan& plan = work.plan;
  if (!work.context.by_pattern && !plan.by_pattern()) return std::nullopt;
  const auto divides = [&](const SliceRange& slice) {
    return slice.rows % (plan.hp * plan.cp) == 0;
  };
  const bool all = std::ranges::all_of(work.context.slices, divides);
  if (plan.sequence_parallel == SequenceParallel::kAuto && !all) return SequenceParallel::kOff;
  return plan.sequence_parallel;
}

AutoShardOptions ShardingOf(const StepWork& work) {
  const ParallelPlan& plan = work.plan;
  // The first stage keeps the most: a part of the model, and that of several microbatches.
  const int64_t in_flight = work.context.in_flight > 0 ? work.context.in_flight : plan.pp;
  const int64_t most = std::numeric_limits<int64_t>::max() / plan.pp;
  return {.pins = plan.pins,
          .pattern = PatternOf(work),
          .whole_results = work.sliced(),
          .context_attention = plan.context_attention,
          .uneven = Pads(plan.uneven) ? UnevenShards::kWhole : plan.uneven,
          .microbatches = work.context.updates_each_microbatch ? 1 : plan.microbatches,
          .memory_limit = Bytes(std::min(work.context.memory_limit.count(), most) * plan.pp),
          .in_flight = std::min(in_flight, plan.microbatches),
          .gathers = GathersAgain(work),
          .held = PartsHeld(ZeroOf(plan), ZeroGroupOf(plan)),
          .memory_price = work.context.alternative.memory_price,
          .link_price = work.context.alternative.link_price};
}

bool NeedsSharding(const StepWork& work) {
  return work.plan.ranks() > work.plan.pp || !work.plan.pins.empty();
}

absl::Status Check(const StepWork& work) {
  if (!work.whole.mesh().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(work.whole.name(), " is sharded over ",
                                                   ir::ToString(work.whole.mesh()),
                                                   " already; wanted a function of one device"));
  }
  if (!NeedsSharding(work) || work.context.prices != nullptr) return absl::OkStatus();
  if (work.plan.cp * work.plan.ep == 1 && work.plan.pins.empty()) return absl::OkStatus();
  return Unsupported(absl::StrCat(DegreesText(work.plan),
                                  " by column and row products alone; wanted prices of a cluster "
                                  "for cp, ep and pins (`sharding` auto or megatron)"));
}

// Pins have a meaning by cost only.
absl::Status CheckPinned(const StepWork& work) {
  if (work.context.prices == nullptr) return absl::OkStatus();
  return CheckPins(work.whole, work.mesh, work.plan.pins);
}

// Where that is wanted: each weight has a dimension that hp divides.
absl::Status CheckWeights(const StepWork& work) {
  if (work.plan.uneven != UnevenShards::kError) return absl::OkStatus();
  for (const ir::Input& input : work.whole.inputs()) {
    const ir::Dims& dims = work.whole.type(input.value).dims;
    if (!ir::IsWeight(input.role) || dims.size() < 2) continue;
    const auto divides = [&](int64_t size) { return size % work.plan.hp == 0; };
    if (std::ranges::any_of(dims, divides)) continue;
    return UnevenSplitStatus({.axis = "hp",
                              .ranks = work.plan.hp,
                              .dim = dims.size() - 1,
                              .value = ir::PrintValue(work.whole, input.value),
                              .size = dims.back()});
  }
  return absl::OkStatus();
}

// Each microbatch has samples of every data-parallel rank; slices are of the whole batch.
absl::Status CheckDivides(const StepWork& work) {
  ORRERY_RETURN_IF_ERROR(CheckPinned(work));
  ORRERY_RETURN_IF_ERROR(CheckWeights(work));
  const int64_t microbatches = work.sliced() ? 1 : work.plan.microbatches;
  const std::vector<bool> batched = BatchedInputs(work.whole);
  for (size_t i = 0; i < batched.size(); ++i) {
    if (!batched[i]) continue;
    const ir::ValueId input = work.whole.inputs()[i].value;
    const int64_t samples = work.whole.type(input).dims[0] / microbatches;
    if (samples % work.plan.dp != 0) {
      return UnevenSplitStatus({.axis = "dp",
                                .ranks = work.plan.dp,
                                .dim = 0,
                                .value = ir::PrintValue(work.whole, input),
                                .size = samples});
    }
  }
  return absl::OkStatus();
}

// What AutoShard answered, or why it did not.
struct ShardingPart {
  absl::StatusOr<ShardingAnswer> answer;

  Bytes held() const {
    if (!answer.ok()) return Bytes(0);
    const KeptMemory& kept = *answer->report.kept;
    return Bytes(answer->sharded->held_bytes() + kept.whole.held_bytes() +
                 kept.in_parts.held_bytes());
  }
  // What is reported of memory is summed up for each plan anew, of terms that are the same.
  uint64_t number() const {
    if (!answer.ok()) return NumberOf(answer.status());
    const AutoShardReport& report = answer->report;
    const KeptFactors factors = FactorsOf({}, 1);
    return absl::HashOf(answer->number, report.nodes, report.edges, report.labels, report.composed,
                        report.solved, report.seconds, report.optimal, report.choice,
                        report.kept->whole.Sum(factors), report.kept->in_parts.Sum(factors));
  }
};

std::string PinsText(const std::vector<ShardingPin>& pins) {
  return absl::StrJoin(pins, " ", [](std::string* text, const ShardingPin& pin) {
    absl::StrAppend(text, KeyOf(ToString(pin)));
  });
}

// To the bit: %a. What is in flight and what is held only counts where memory does; what is
// reported of it follows from the answer.
std::string OptionsText(const AutoShardOptions& options) {
  std::string text =
      absl::StrFormat("pattern %d attention %d uneven %d microbatches %d links %a pins %s%s",
                      options.pattern.has_value() ? static_cast<int>(*options.pattern) : -1,
                      static_cast<int>(options.context_attention), static_cast<int>(options.uneven),
                      options.microbatches, options.link_price, PinsText(options.pins),
                      options.whole_results ? " whole results" : "");
  if (!WeighsMemory(options)) return text;
  const HeldParts& held = options.held;
  absl::StrAppendFormat(&text, " memory %a limit %d in flight %d held %a %a %a%s",
                        options.memory_price, options.memory_limit.count(), options.in_flight,
                        held.parameters, held.gradients, held.states,
                        options.gathers ? " in parts" : "");
  return text;
}

std::string ReadsFor(const StepWork& work, const AutoShardOptions& options) {
  return absl::StrCat(PlacesInStage(work.mesh), " prices ", KeyOf(work.plan.algorithm.ToString()),
                      " ", OptionsText(options));
}

std::string Reads(const StepWork& work) {
  return work.context.prices == nullptr ? PlacesInStage(work.mesh)
                                        : ReadsFor(work, ShardingOf(work));
}

absl::StatusOr<ShardingAnswer> Choose(const StepWork& work, AutoShardOptions options) {
  ShardingAnswer answer;
  ShardingMemo* const memo = work.context.alternative.memo;
  if (memo != nullptr) options.frames = &memo->frames();
  // What is wrong with pins is an error, and none of this plan alone.
  ORRERY_ASSIGN_OR_RETURN(ir::Function sharded,
                          AutoShard(work.part(), work.mesh, BatchedInputs(work.whole),
                                    *work.context.prices, options, &answer.report));
  answer.sharded = std::make_shared<const ir::Function>(std::move(sharded));
  answer.number = work.key.empty() ? 0 : NumberOfAll(*answer.sharded);
  return answer;
}

// The same on the mesh of this plan, which may have other stages.
std::shared_ptr<const ir::Function> OnMesh(std::shared_ptr<const ir::Function> function,
                                           const ir::Mesh& mesh) {
  if (function->mesh() == mesh) return function;
  const auto moved = std::make_shared<ir::Function>(*function);
  moved->SetMesh(mesh);
  return moved;
}

// The key of the work, up to what sharding reads.
std::string KeyBefore(const StepWork& work) {
  return work.key.substr(0, work.key.size() - Reads(work).size());
}

// What was chosen for a plan that shares the work's key is chosen here.
absl::StatusOr<ShardingAnswer> ChooseOnce(const StepWork& work, const AutoShardOptions& options) {
  if (work.key.empty()) return Choose(work, options);
  const std::string key = absl::StrCat(KeyBefore(work), ReadsFor(work, options));
  PartStore& store = *work.context.parts.store;
  const auto make = [&] { return ShardingPart{Choose(work, options)}; };
  // A price of memory follows from a plan's own figures: few plans have the same.
  const auto part = WeighsMemory(options)
                        ? store.FindOrMakeFromSecond<ShardingPart>("shardings by memory", key, make)
                        : store.FindOrMake<ShardingPart>("shardings", key, make);
  ORRERY_ASSIGN_OR_RETURN(ShardingAnswer answer, part->answer);
  answer.sharded = OnMesh(std::move(answer.sharded), work.mesh);
  SumKept(options, answer.report);
  return answer;
}

// Other questions have the same answer: what is made of it is shared with those, too.
void KeyByAnswer(const ShardingAnswer& answer, StepWork& work) {
  if (work.key.empty()) return;
  work.key = absl::StrCat(KeyBefore(work), "as ", absl::Hex(answer.number));
}

absl::StatusOr<ShardingAnswer> Answer(const StepWork& work, const AutoShardOptions& options);

// The pattern's residual stream whole and in parts: of both the one that takes less, of equal ones
// that with parts. Ways of a plan ask for each of the two by itself as well.
absl::StatusOr<ShardingAnswer> CheaperStream(const StepWork& work, AutoShardOptions options) {
  options.pattern = SequenceParallel::kOff;
  ORRERY_ASSIGN_OR_RETURN(ShardingAnswer whole, Answer(work, options));
  options.pattern = SequenceParallel::kOn;
  ORRERY_ASSIGN_OR_RETURN(ShardingAnswer in_parts, Answer(work, options));
  ShardingAnswer& cheaper = in_parts.report.seconds <= whole.report.seconds ? in_parts : whole;
  cheaper.report.solved = 0;  // for this question
  return std::move(cheaper);
}

// What is known of this step already, or is chosen now.
absl::StatusOr<ShardingAnswer> Answer(const StepWork& work, const AutoShardOptions& options) {
  ShardingMemo* const memo = work.context.alternative.memo;
  const ShardingAnswer* const known = memo != nullptr ? memo->Find(options) : nullptr;
  if (known != nullptr) return *known;
  const bool both =
      memo != nullptr && options.pattern == SequenceParallel::kAuto && !WeighsMemory(options);
  absl::StatusOr<ShardingAnswer> answer;
  if (both) answer = CheaperStream(work, options);
  if (!answer.ok()) answer = ChooseOnce(work, options);
  if (answer.ok() && memo != nullptr) memo->Add(options, *answer);
  return answer;
}

absl::Status ShardByProducts(StepWork& work) {
  ORRERY_ASSIGN_OR_RETURN(
      work.sharded, SharedFunction(work, "products", [&] {
        return AsFeasible(Shard(work.part(), work.mesh, BatchedInputs(work.whole)));
      }));
  work.sharded = OnMesh(std::move(work.sharded), work.mesh);
  return absl::OkStatus();
}

absl::Status ShardStep(StepWork& work) {
  if (work.context.prices == nullptr) return ShardByProducts(work);
  ORRERY_ASSIGN_OR_RETURN(ShardingAnswer answer, Answer(work, ShardingOf(work)));
  const ShardingAlternative& wanted = work.context.alternative;
  work.sharded = std::move(answer.sharded);
  KeyByAnswer(answer, work);
  if (wanted.wants && !wanted.wants(answer.report)) {
    return absl::CancelledError("this sharding is not wanted");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace shard_work_cc

extern const StepStage kShardStepStage = {
    .name = "shard",
    .summary = "shardings along dp, hp, cp and ep, by cost or by Megatron's pattern",
    .applies = shard_work_cc::NeedsSharding,
    .check = shard_work_cc::Check,
    .divides = shard_work_cc::CheckDivides,
    .run = shard_work_cc::ShardStep,
    .reads = shard_work_cc::Reads,
};

}  // namespace orrery::transforms
