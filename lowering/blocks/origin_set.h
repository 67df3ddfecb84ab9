#ifndef ORRERY_LOWERING_BLOCKS_ORIGIN_SET_H_
#define ORRERY_LOWERING_BLOCKS_ORIGIN_SET_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// The origins of the values of one part of a stage. What is of no origin, such as a sum over
/// microbatches, is in no part.
class OriginSet {
 public:
  /// Null: of nothing.
  explicit OriginSet(const transforms::StageFunction* part) {
    if (part == nullptr) return;
    int32_t limit = 0;
    for (const ir::ValueId origin : part->origins) {
      if (origin.valid()) limit = std::max(limit, origin.index() + 1);
    }
    has_.resize(static_cast<size_t>(limit));
    for (const ir::ValueId origin : part->origins) {
      if (origin.valid()) has_[static_cast<size_t>(origin.index())] = true;
    }
  }

  bool contains(ir::ValueId origin) const {
    const auto position = static_cast<size_t>(origin.index());
    return origin.valid() && position < has_.size() && has_[position];
  }

 private:
  std::vector<bool> has_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_ORIGIN_SET_H_
