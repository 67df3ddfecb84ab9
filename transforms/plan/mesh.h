#ifndef ORRERY_TRANSFORMS_PLAN_MESH_H_
#define ORRERY_TRANSFORMS_PLAN_MESH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/mesh.h"
#include "transforms/plan/parallel_plan.h"

namespace orrery::transforms {

/// Whether a mesh axis is left out at that degree, of meshes and of what people read: cp and ep are
/// there only where they are more than 1.
bool Vanishes(absl::string_view axis, int64_t degree);

/// The mesh that the degrees of `plan` describe, without axes that vanish.
/// InvalidArgument where a degree is below 1, or there are more than 2^24 ranks.
absl::StatusOr<ir::Mesh> MakeMesh(const ParallelPlan& plan);

/// The degree of the mesh axis of that name; 0 where there is no such axis.
int64_t DegreeOf(const ParallelPlan& plan, absl::string_view axis);

/// "dp=4 hp=2 pp=2", without axes that vanish: for messages.
std::string DegreesText(const ParallelPlan& plan);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_MESH_H_
