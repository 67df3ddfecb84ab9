#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_LAYOUT_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "simulator/parameter_server/training.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// What follows from a training before it is played: its segments by parts, not by keys, and what
/// each part takes a server.
struct Layout {
  std::vector<std::vector<int32_t>> needs = {};      // parts, by segment
  std::vector<std::vector<int32_t>> completes = {};  // likewise, that are pushed then
  std::vector<int32_t> priorities = {};              // by part: the least first
  std::vector<Duration> sums = {}, updates = {};     // by part: how long they take
};

/// That of a training which Check accepts. Without overlap all parts are needed at once, and pushed
/// at the end.
Layout LayoutOf(const Training& training);

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_LAYOUT_H_
