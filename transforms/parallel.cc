#include "transforms/parallel.h"

#include <algorithm>

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
  ORRERY_ASSIGN_OR_RETURN(const ir::Function microbatch,
                          Microbatch(function, degrees.microbatches));
  // An output that became smaller has the batch as its first dimension.
  std::vector<bool> batched;
  for (size_t i = 0; i < function.outputs().size(); ++i) {
    batched.push_back(!(function.type(function.outputs()[i].value).dims ==
                        microbatch.type(microbatch.outputs()[i].value).dims));
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::Function spread, Shard(microbatch, mesh));
  ORRERY_ASSIGN_OR_RETURN(PipelinedStep step,
                          PartitionStages(spread, degrees.pp, degrees.microbatches, batched));
  step.devices = degrees.devices;
  return step;
}

}  // namespace orrery::transforms
