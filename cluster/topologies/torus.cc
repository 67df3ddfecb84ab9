#include "cluster/level.h"
#include "cluster/topologies.h"

// A torus of any number of dimensions: a ring along each. levels of 3 x 2, by device number:
//
//     3 - 4 - 5 - (3)
//     |   |   |
//     0 - 1 - 2 - (0)
//
// Dimension-order routing: a message goes along levels[0] by the shorter way round (up, where both
// are as long), then along levels[1], and so on. Two members share one link each way.

namespace orrery::cluster {

constinit const TopologyKind kTorusTopology = OfLevels({
    .name = "torus",
    .summary =
        "A ring along each dimension; a message goes along the first dimension first, the shorter "
        "way.",
    .spelling = SizeSpelling::kLevels,
    .example = "torus:4x4x4@50GB/s",
    .check = [](const TopologyShape& shape) { return CheckLevelsAre(LevelKind::kRing, shape); },
    .bisection = [](const TopologyShape& shape) { return BisectionOfLines(shape, 2); },
});

}  // namespace orrery::cluster
