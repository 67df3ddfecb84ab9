#ifndef ORRERY_LOWERING_PLACEMENT_MAKERS_H_
#define ORRERY_LOWERING_PLACEMENT_MAKERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ir/function.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// The tasks that made the values which cross from one template of a stage to another, by
/// microbatch: one task for each rank of the stage that is simulated.
class Makers {
 public:
  using Tasks = absl::InlinedVector<simulator::TaskId, 1>;

  void Remember(ir::ValueId origin, int32_t microbatch, Tasks tasks) {
    const auto [values, is_new] = made_.try_emplace(microbatch);
    if (is_new && !spare_.empty()) {
      values->second = std::move(spare_.back());
      spare_.pop_back();
    }
    values->second[origin] = std::move(tasks);
  }
  /// Who made the value; null when nobody is known to have.
  const Tasks* Find(ir::ValueId origin, int32_t microbatch) const {
    const auto values = made_.find(microbatch);
    if (values == made_.end()) return nullptr;
    const auto found = values->second.find(origin);
    return found == values->second.end() ? nullptr : &found->second;
  }
  /// Drops a microbatch that nothing will ask for again.
  void Forget(int32_t microbatch) {
    const auto values = made_.find(microbatch);
    if (values == made_.end()) return;
    values->second.clear();
    spare_.push_back(std::move(values->second));
    made_.erase(values);
  }

 private:
  using Values = absl::flat_hash_map<ir::ValueId, Tasks>;

  absl::flat_hash_map<int32_t, Values> made_;
  std::vector<Values> spare_;  // empty; small ones keep their room
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_MAKERS_H_
