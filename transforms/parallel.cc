#include "transforms/parallel.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/status.h"
#include "transforms/add_slices.h"
#include "transforms/fp8_mixed.h"
#include "transforms/microbatch.h"
#include "transforms/shard.h"
#include "transforms/slice_sequence.h"
#include "transforms/slices.h"
#include "transforms/split_axis.h"

namespace orrery::transforms {
namespace {

constexpr int64_t kMaxRanks = int64_t{1} << 24;

std::string Show(const ParallelDegrees& degrees) {
  return absl::StrCat("dp=", degrees.dp, " hp=", degrees.hp, " pp=", degrees.pp,
                      degrees.cp == 1 ? "" : absl::StrCat(" cp=", degrees.cp),
                      degrees.ep == 1 ? "" : absl::StrCat(" ep=", degrees.ep));
}

absl::Status CheckDegrees(const ParallelDegrees& degrees) {
  int64_t ranks = 1;
  for (const int64_t degree : {degrees.dp, degrees.hp, degrees.pp, degrees.cp, degrees.ep}) {
    if (degree < 1 || degree > kMaxRanks) {
      return absl::InvalidArgumentError(
          absl::StrCat(Show(degrees), "; wanted degrees from 1 to 16777216"));
    }
    ranks = std::min(ranks * degree, kMaxRanks + 1);
  }
  if (ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat(Show(degrees), "; wanted at most 16777216 ranks"));
  }
  if (degrees.microbatches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(degrees.microbatches, " microbatches; wanted at least 1"));
  }
  const auto devices = static_cast<int64_t>(degrees.devices.size());
  if (devices != 0 && devices != degrees.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", devices, " devices for ", degrees.ranks(), " ranks; wanted one each"));
  }
  return absl::OkStatus();
}

// A function that fits one device and one microbatch, and cannot be cut or spread like this, makes
// the candidate infeasible; it is no error of the model.
absl::StatusOr<ir::Function> AsFeasible(absl::StatusOr<ir::Function> function) {
  if (function.ok() || AsInfeasible(function.status()).has_value()) return function;
  return InfeasibleStatus({.reason = InfeasibleReason::kUnsupported,
                           .detail = std::string(function.status().message())});
}

absl::StatusOr<ir::Function> Spread(const ir::Function& part, const ir::Mesh& mesh,
                                    const std::vector<bool>& batched,
                                    const ParallelDegrees& degrees, const SpreadOptions& options) {
  if (options.prices != nullptr) {
    AutoShardOptions sharding = options.sharding;
    sharding.microbatches = options.updates_each_microbatch ? 1 : degrees.microbatches;
    // The first stage keeps the most: a part of the model, and that of several microbatches.
    const int64_t in_flight = options.in_flight > 0 ? options.in_flight : degrees.pp;
    sharding.in_flight = std::min(in_flight, degrees.microbatches);
    const int64_t group = options.zero.group > 0 ? options.zero.group : degrees.dp;
    sharding.held = PartsHeld(options.zero, std::min(group, degrees.dp));
    const int64_t most = std::numeric_limits<int64_t>::max() / degrees.pp;
    sharding.memory_limit = Bytes(std::min(sharding.memory_limit.count(), most) * degrees.pp);
    // What is wrong with pins is an error, and none of this candidate alone.
    return AutoShard(part, mesh, batched, *options.prices, sharding);
  }
  if (degrees.cp * degrees.ep > 1 || !options.sharding.pins.empty()) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat(Show(degrees),
                                " by Megatron's pattern; wanted sharding by cost for cp, ep and "
                                "pins (--sharding auto)")});
  }
  return AsFeasible(Shard(part, mesh, batched));
}

// Which outputs have the batch as their first dimension: those that are smaller in a microbatch.
absl::StatusOr<std::vector<bool>> FindBatched(const ir::Function& whole, const ir::Function& part,
                                              int64_t microbatches) {
  std::vector<bool> batched;
  for (size_t i = 0; i < whole.outputs().size(); ++i) {
    const ir::ValueId output = whole.outputs()[i].value;
    const ir::Dims& wanted = whole.type(output).dims;
    ir::Dims dims = part.type(part.outputs()[i].value).dims;
    batched.push_back(!(wanted == dims));
    if (!batched.back()) continue;
    if (!dims.empty()) dims[0] *= microbatches;
    if (wanted == dims) continue;
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat("output ", ir::PrintValue(whole, output),
                                " has the batch in another dimension than its first; wanted one "
                                "microbatch")});
  }
  return batched;
}

// Which outputs have the rows of the slice.
std::vector<bool> FindSliced(const ir::Function& whole, const ir::Function& part) {
  std::vector<bool> sliced;
  for (size_t i = 0; i < whole.outputs().size(); ++i) {
    sliced.push_back(whole.type(whole.outputs()[i].value).dims !=
                     part.type(part.outputs()[i].value).dims);
  }
  return sliced;
}

// A slice of average length in the middle: what it takes is what slices take on average, whatever
// length they have.
SliceRange DecidedOn(const ir::Function& function, const SpreadOptions& options) {
  if (options.decided_on.rows > 0) return options.decided_on;
  const int64_t count = std::ssize(options.slices);
  const int64_t rows = SequenceLength(function) / count;
  return {.begin = count / 2 * rows, .rows = rows};
}

absl::Status CheckSliced(const ir::Function& function, const ParallelDegrees& degrees,
                         const SpreadOptions& options) {
  if (options.slices.empty()) return absl::OkStatus();
  if (std::ssize(options.slices) != degrees.microbatches) {
    return absl::InvalidArgumentError(absl::StrCat("got ", options.slices.size(), " slices for ",
                                                   degrees.microbatches,
                                                   " microbatches; wanted one each"));
  }
  if (options.decided_on.rows == 0) {
    ORRERY_RETURN_IF_ERROR(CheckSlices(options.slices, SequenceLength(function)));
  }
  const char* const what = degrees.cp > 1                ? "context parallelism, which splits it"
                           : options.offload.activations ? "activations on the host"
                                                         : nullptr;
  if (what == nullptr) return absl::OkStatus();
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kUnsupported,
       .detail = absl::StrCat("slices of the sequence with ", what,
                              "; try a schedule of parts of the batch, such as 1f1b")});
}

// The step of one microbatch; nothing where that is the step itself.
absl::StatusOr<std::optional<ir::Function>> StepOfOne(const ir::Function& function,
                                                      const ParallelDegrees& degrees,
                                                      const SpreadOptions& options) {
  std::optional<ir::Function> one;
  if (!options.slices.empty()) {
    ORRERY_ASSIGN_OR_RETURN(one, AsFeasible(SliceSequence(function, DecidedOn(function, options))));
    // Before all that is done to as many.
    ORRERY_RETURN_IF_ERROR(CheckSliceCount(std::ssize(options.slices), std::ssize(one->order())));
  } else if (degrees.microbatches > 1) {
    ORRERY_ASSIGN_OR_RETURN(one, AsFeasible(Microbatch(function, degrees.microbatches)));
  }
  return one;
}

absl::Status CheckFeasible(const ir::Function& function, const ParallelDegrees& degrees,
                           const SpreadOptions& options) {
  const ZeroOptions& zero = options.zero;
  ORRERY_RETURN_IF_ERROR(CheckZero(zero));
  ORRERY_RETURN_IF_ERROR(CheckSliced(function, degrees, options));
  if (zero.stage > 0 && options.updates_each_microbatch) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat("ZeRO's stage ", zero.stage,
                                " with a schedule that keeps several versions of the weights; "
                                "wanted a synchronous one, such as 1f1b")});
  }
  if (options.offload.optimizer && options.updates_each_microbatch) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = "the optimizer on the host, with a schedule that keeps several versions of the "
                   "weights; wanted a synchronous one, such as 1f1b"});
  }
  if (zero.group == 0 || degrees.dp % zero.group == 0) return absl::OkStatus();
  return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                           .detail = absl::StrCat("dp=", degrees.dp,
                                                  " does not divide into groups "
                                                  "of ",
                                                  zero.group, " ranks that share parameters")});
}

// 0 for a name that no axis has.
int64_t DegreeOf(const ParallelDegrees& degrees, absl::string_view name) {
  if (name == "dp") return degrees.dp;
  if (name == "hp") return degrees.hp;
  if (name == "pp") return degrees.pp;
  if (name == "cp") return degrees.cp;
  return name == "ep" ? degrees.ep : 0;
}

// Stages that update after each microbatch do not wait for each other.
absl::Status CheckUpdatesAlone(const PipelinedStep& step) {
  absl::flat_hash_map<std::string, size_t> stage_of;
  for (size_t s = 0; s < step.stages.size(); ++s) {
    for (const StageFunction* part : step.stages[s].parts()) {
      for (const ir::Input& input : part->function.inputs()) {
        if (input.role != ir::InputRole::kParameter) continue;
        const std::string name(part->function.value_name(input.value));
        const auto [found, is_new] = stage_of.emplace(name, s);
        if (is_new || found->second == s) continue;
        return InfeasibleStatus(
            {.reason = InfeasibleReason::kUnsupported,
             .detail = absl::StrCat(
                 "parameter %", name, " is of stages ", found->second, " and ", s,
                 ", and each updates by itself; try a synchronous schedule, or "
                 "embeddings that are not tied, tied_embeddings=0 of built-in models")});
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FullOrder(absl::string_view order) {
  std::vector<std::string> names = absl::StrSplit(order, ',');
  auto after = std::ranges::find(names, "hp");
  if (after != names.end()) ++after;
  for (const char* name : {"cp", "ep"}) {
    const bool there = std::ranges::find(names, name) != names.end();
    if (!there) after = names.insert(after, name) + 1;
  }
  return names;
}

absl::StatusOr<ir::Mesh> MakeMesh(const ParallelDegrees& degrees) {
  ORRERY_RETURN_IF_ERROR(CheckDegrees(degrees));
  const std::vector<absl::string_view> names = absl::StrSplit(degrees.order, ',');
  const auto times = [&](absl::string_view name) { return std::ranges::count(names, name); };
  const bool known = std::ranges::all_of(names, [&](absl::string_view name) {
    return times(name) == 1 && DegreeOf(degrees, name) > 0;
  });
  if (!known || times("dp") != 1 || times("hp") != 1 || times("pp") != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("order '", degrees.order,
                     "'; wanted dp, hp and pp once each, and cp and ep at most once, as in "
                     "hp,dp,pp or hp,cp,ep,dp,pp (fastest first)"));
  }
  std::vector<ir::Axis> axes;
  for (const std::string& name : FullOrder(degrees.order)) {
    const int64_t size = DegreeOf(degrees, name);
    if (size == 1 && (name == "cp" || name == "ep")) continue;
    axes.push_back({.name = name, .size = size});
  }
  std::reverse(axes.begin(), axes.end());  // a mesh has its fastest axis last
  return ir::Mesh(std::move(axes));
}

absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelDegrees& degrees,
                                                  const SpreadOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(ir::Mesh mesh, MakeMesh(degrees));
  if (!function.mesh().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(function.name(), " is spread over ",
                                                   ir::ToString(function.mesh()),
                                                   " already; wanted a function of one device"));
  }
  ORRERY_RETURN_IF_ERROR(CheckFeasible(function, degrees, options));
  // Copies only where there is something to change: most of the time of small searches is here.
  std::optional<ir::Function> spread;
  ORRERY_ASSIGN_OR_RETURN(const std::optional<ir::Function> one,
                          StepOfOne(function, degrees, options));
  const ir::Function& part = one.has_value() ? *one : function;
  const bool sliced = !options.slices.empty();
  std::vector<bool> batched;
  if (sliced) {
    batched = FindSliced(function, part);
  } else {
    ORRERY_ASSIGN_OR_RETURN(batched, FindBatched(function, part, degrees.microbatches));
  }
  if (degrees.ranks() > degrees.pp || !options.sharding.pins.empty()) {
    ORRERY_ASSIGN_OR_RETURN(spread, Spread(part, mesh, BatchedInputs(function), degrees, options));
  }
  if (options.fp8_mixed) {
    if (!spread.has_value()) spread = part;
    ORRERY_RETURN_IF_ERROR(Fp8Mixed(*spread).status());
    batched.resize(spread->outputs().size(), false);  // copies of weights are no results
  }
  PartitionOptions stages = options.stages;
  std::optional<SplitAxisPrices> prices;
  const int64_t group = options.zero.group;
  if (spread.has_value() && group > 0 && group < degrees.dp) {
    spread = SplitAxis(*spread, {.axis = "dp", .inner = kZeroAxis, .size = group});
    mesh = spread->mesh();
    const ShardingPrices*& used = stages.choice.prices;
    if (used != nullptr) used = &prices.emplace(*used, mesh.Find(kZeroAxis).value());
  }
  stages.collect_dim = sliced ? 1 : 0;
  ORRERY_ASSIGN_OR_RETURN(PipelinedStep step,
                          PartitionStages(spread.has_value() ? *spread : part, mesh,
                                          degrees.microbatches, batched, stages));
  if (options.updates_each_microbatch) ORRERY_RETURN_IF_ERROR(CheckUpdatesAlone(step));
  RecomputePolicy recompute = options.recompute;
  recompute.gathers = options.prices != nullptr && options.sharding.sequence_parallel;
  ORRERY_RETURN_IF_ERROR(Recompute(step, recompute));
  ORRERY_RETURN_IF_ERROR(OffloadActivations(options.offload, step));
  ORRERY_RETURN_IF_ERROR(ApplyZero(options.zero, step));
  ORRERY_RETURN_IF_ERROR(OffloadOptimizer(options.offload, step));
  if (sliced) {
    ORRERY_RETURN_IF_ERROR(AddSlices(function, options.slices, step));
    step.slice = DecidedOn(function, options);
  }
  step.devices = degrees.devices;
  step.microbatch_size = BatchSize(part).value_or(0);
  return step;
}

}  // namespace orrery::transforms
