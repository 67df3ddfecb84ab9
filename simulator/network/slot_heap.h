#ifndef ORRERY_SIMULATOR_NETWORK_SLOT_HEAP_H_
#define ORRERY_SIMULATOR_NETWORK_SLOT_HEAP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "support/units.h"

namespace orrery::simulator {

/// A moment for each of some slots (small numbers that are used again), the first moment first: a
/// binary heap that knows where each slot is, so that its moment can change.
class SlotHeap {
 public:
  /// A slot with its moment.
  struct Entry {
    Time time;
    int32_t slot = 0;
  };

  bool empty() const { return heap_.empty(); }
  /// One of the first moment; there must be one.
  const Entry& top() const { return heap_.front(); }
  /// Drops the top; there must be one.
  void Pop();
  /// Gives each slot of `entries`, in the heap or not, another moment. No slot comes twice.
  void Set(std::span<const Entry> entries);

 private:
  static constexpr int32_t kNowhere = -1;

  int32_t& PositionOf(int32_t slot) { return positions_[static_cast<size_t>(slot)]; }
  void Put(size_t position, const Entry& entry);
  void Rise(size_t position);
  void Sink(size_t position);

  std::vector<Entry> heap_;
  std::vector<int32_t> positions_;  // by slot
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_SLOT_HEAP_H_
