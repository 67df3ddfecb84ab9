#include "transforms/parallel.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/status.h"
#include "transforms/microbatch.h"
#include "transforms/shard.h"

namespace orrery::transforms {
namespace {

constexpr int64_t kMaxRanks = int64_t{1} << 24;

absl::Status CheckDegrees(const ParallelDegrees& degrees) {
  for (const int64_t degree : {degrees.dp, degrees.hp, degrees.pp}) {
    if (degree < 1 || degree > kMaxRanks) {
      return absl::InvalidArgumentError(absl::StrCat("dp=", degrees.dp, " hp=", degrees.hp,
                                                     " pp=", degrees.pp,
                                                     "; wanted degrees from 1 to 16777216"));
    }
  }
  if (degrees.dp * degrees.hp > kMaxRanks || degrees.ranks() > kMaxRanks) {
    return absl::InvalidArgumentError(absl::StrCat("dp=", degrees.dp, " hp=", degrees.hp, " pp=",
                                                   degrees.pp, "; wanted at most 16777216 ranks"));
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

}  // namespace

absl::StatusOr<ir::Mesh> MakeMesh(const ParallelDegrees& degrees) {
  ORRERY_RETURN_IF_ERROR(CheckDegrees(degrees));
  std::vector<ir::Axis> axes;
  for (const absl::string_view name : absl::StrSplit(degrees.order, ',')) {
    const int64_t size = name == "dp"   ? degrees.dp
                         : name == "hp" ? degrees.hp
                         : name == "pp" ? degrees.pp
                                        : 0;
    const bool twice = std::any_of(axes.begin(), axes.end(),
                                   [&](const ir::Axis& axis) { return axis.name == name; });
    if (size == 0 || twice) axes.clear();
    if (size == 0 || twice) break;
    axes.push_back({.name = std::string(name), .size = size});
  }
  if (axes.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("order '", degrees.order,
                                                   "'; wanted dp, hp and pp once each, as in "
                                                   "hp,dp,pp (fastest first)"));
  }
  std::reverse(axes.begin(), axes.end());  // a mesh has its fastest axis last
  return ir::Mesh(std::move(axes));
}

absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelDegrees& degrees) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh, MakeMesh(degrees));
  if (!function.mesh().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(function.name(), " is spread over ",
                                                   ir::ToString(function.mesh()),
                                                   " already; wanted a function of one device"));
  }
  // Copies only where there is something to change: most of the time of small searches is here.
  std::optional<ir::Function> microbatch, spread;
  if (degrees.microbatches > 1) {
    ORRERY_ASSIGN_OR_RETURN(microbatch, AsFeasible(Microbatch(function, degrees.microbatches)));
  }
  const ir::Function& part = microbatch.has_value() ? *microbatch : function;
  ORRERY_ASSIGN_OR_RETURN(const std::vector<bool> batched,
                          FindBatched(function, part, degrees.microbatches));
  if (degrees.dp * degrees.hp > 1) {
    ORRERY_ASSIGN_OR_RETURN(spread, AsFeasible(Shard(part, mesh, BatchedInputs(function))));
  }
  ORRERY_ASSIGN_OR_RETURN(PipelinedStep step, PartitionStages(spread.has_value() ? *spread : part,
                                                              mesh, degrees.microbatches, batched));
  step.devices = degrees.devices;
  step.microbatch_size = BatchSize(part).value_or(0);
  return step;
}

}  // namespace orrery::transforms
