#include "transforms/plan/mesh.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/plan/axis.h"

namespace orrery::transforms {
namespace mesh_cc {
namespace {

constexpr int64_t kMaxRanks = int64_t{1} << 24;

absl::Status CheckDegrees(const ParallelPlan& plan) {
  int64_t ranks = 1;
  for (const int64_t degree : {plan.dp, plan.hp, plan.pp, plan.cp, plan.ep}) {
    if (degree < 1 || degree > kMaxRanks) {
      return absl::InvalidArgumentError(
          absl::StrCat(DegreesText(plan), "; wanted degrees from 1 to 16777216"));
    }
    ranks = std::min(ranks * degree, kMaxRanks + 1);
  }
  if (ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat(DegreesText(plan), "; wanted at most 16777216 ranks"));
  }
  if (plan.microbatches >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(plan.microbatches, " microbatches; wanted at least 1"));
}

}  // namespace
}  // namespace mesh_cc

bool Vanishes(absl::string_view axis, int64_t degree) {
  return degree == 1 && (axis == "cp" || axis == "ep");
}

std::string DegreesText(const ParallelPlan& plan) {
  std::string text;
  for (const absl::string_view axis : {"dp", "hp", "pp", "cp", "ep"}) {
    const int64_t degree = DegreeOf(plan, axis);
    if (Vanishes(axis, degree)) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", axis, "=", degree);
  }
  return text;
}

int64_t DegreeOf(const ParallelPlan& plan, absl::string_view axis) {
  const AxisInfo* info = FindAxis(axis);
  return info == nullptr || info->degree == nullptr ? 0 : info->degree(plan);
}

absl::StatusOr<ir::Mesh> MakeMesh(const ParallelPlan& plan) {
  ORRERY_RETURN_IF_ERROR(mesh_cc::CheckDegrees(plan));
  std::vector<ir::Axis> axes;
  for (const std::string& name : plan.order.Full()) {
    const int64_t size = DegreeOf(plan, name);
    if (Vanishes(name, size)) continue;
    axes.push_back({.name = name, .size = size});
  }
  std::reverse(axes.begin(), axes.end());  // a mesh has its fastest axis last
  return ir::Mesh(std::move(axes));
}

}  // namespace orrery::transforms
