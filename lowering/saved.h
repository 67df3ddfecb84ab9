#ifndef ORRERY_LOWERING_SAVED_H_
#define ORRERY_LOWERING_SAVED_H_

#include <vector>

#include "ir/function.h"
#include "transforms/pipeline.h"

namespace orrery::lowering {

/// The origins of the values of one part of a stage. What is of no origin, such as a sum over
/// microbatches, is in no part.
class OriginSet {
 public:
  /// Null: of nothing.
  explicit OriginSet(const transforms::StageFunction* part) {
    if (part == nullptr) return;
    for (const ir::ValueId origin : part->origins) {
      if (!origin.valid()) continue;
      const auto place = static_cast<size_t>(origin.index());
      if (has_.size() <= place) has_.resize(place + 1);
      has_[place] = true;
    }
  }

  bool contains(ir::ValueId origin) const {
    const auto place = static_cast<size_t>(origin.index());
    return origin.valid() && place < has_.size() && has_[place];
  }

 private:
  std::vector<bool> has_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_SAVED_H_
