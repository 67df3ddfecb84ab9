#ifndef ORRERY_LOWERING_SAVED_H_
#define ORRERY_LOWERING_SAVED_H_

#include <algorithm>

#include "ir/function.h"
#include "transforms/pipeline.h"

namespace orrery::lowering {

/// Whether a value of that origin is in `part`; null: in none.
inline bool HasOrigin(const transforms::StageFunction* part, ir::ValueId origin) {
  return part != nullptr &&
         std::find(part->origins.begin(), part->origins.end(), origin) != part->origins.end();
}

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_SAVED_H_
