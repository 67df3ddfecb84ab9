#include "cluster/level.h"
#include "cluster/topologies.h"

// A mesh of any number of dimensions: a torus without the links that close its rings. A message
// goes along levels[0] first.

namespace orrery::cluster {

constinit const TopologyKind kMeshTopology = OfLevels({
    .name = "mesh",
    .summary = "A line along each dimension; a message goes along the first dimension first.",
    .usual_level = LevelKind::kLine,
    .spelling = SizeSpelling::kLevels,
    .example = "mesh:4x4@50GB/s",
    .check = [](const TopologyShape& shape) { return CheckLevelsAre(LevelKind::kLine, shape); },
    .bisection = [](const TopologyShape& shape) { return BisectionOfLines(shape, 1); },
});

}  // namespace orrery::cluster
