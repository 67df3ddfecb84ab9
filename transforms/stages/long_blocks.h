#ifndef ORRERY_TRANSFORMS_STAGES_LONG_BLOCKS_H_
#define ORRERY_TRANSFORMS_STAGES_LONG_BLOCKS_H_

#include <cstddef>

namespace orrery::transforms {

/// Whether the parts of a block that repeats are layers themselves: six or more, of half as many
/// kinds at most, as of Mamba-2 layers, feed-forwards and attention now and then.
constexpr bool HasLayersInside(size_t parts, size_t kinds) {
  return parts >= 6 && 2 * kinds <= parts;
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_LONG_BLOCKS_H_
