#ifndef ORRERY_LOWERING_SAVED_H_
#define ORRERY_LOWERING_SAVED_H_

#include <algorithm>

#include "ir/function.h"
#include "transforms/pipeline.h"

namespace orrery::lowering {

/// Whether the function leaves the value for another one.
inline bool IsSaved(const ir::Function& function, ir::ValueId value) {
  return std::any_of(function.outputs().begin(), function.outputs().end(),
                     [&](const ir::Output& output) {
                       return output.value == value && output.role == ir::OutputRole::kSaved;
                     });
}

/// Whether a value of that origin is in `part`; null: in none.
inline bool HasOrigin(const transforms::StageFunction* part, ir::ValueId origin) {
  return part != nullptr &&
         std::find(part->origins.begin(), part->origins.end(), origin) != part->origins.end();
}

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_SAVED_H_
