#ifndef ORRERY_COST_MODELS_COLLECTIVES_SLOWER_H_
#define ORRERY_COST_MODELS_COLLECTIVES_SLOWER_H_

#include <cstdint>

#include "support/units.h"

namespace orrery::cost_models {

/// Whether some parts at a rate take longer than others: a/b > c/d, in whole numbers. Requires none
/// below 0.
inline bool Slower(int64_t parts, Bandwidth rate, int64_t other_parts, Bandwidth other_rate) {
  return static_cast<unsigned __int128>(parts) *
             static_cast<unsigned __int128>(other_rate.bytes_per_second()) >
         static_cast<unsigned __int128>(other_parts) *
             static_cast<unsigned __int128>(rate.bytes_per_second());
}

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_SLOWER_H_
