#include "cluster/level.h"
#include "cluster/topologies.h"

// A product of dimensions, each a ring, a line, a switch or all pairs: as ASTRA-sim composes its
// networks. The device number counts along the first level first. ring(4) x switch(2):
//
//     device4 - device5 - device6 - device7 - (device4)
//        |         |         |         |
//     switch0   switch1   switch2   switch3
//        |         |         |         |
//     device0 - device1 - device2 - device3 - (device0)
//
// A message goes level by level, the first one first, through devices where it turns.

namespace orrery::cluster {

constinit const TopologyKind kProductTopology = OfLevels({
    .name = "product",
    .summary = "A product of levels, each a ring, line, switch or all pairs; a message goes level "
               "by level.",
    .spelling = SizeSpelling::kProduct,
    .example = "product:ring(4)@100GB/s,switch(8)@50GB/s",
    .check = CheckLevels,
    .reduces = [](const TopologyShape& shape,
                  VertexId vertex) { return ProductReduces(shape.levels, vertex); },
});

}  // namespace orrery::cluster
