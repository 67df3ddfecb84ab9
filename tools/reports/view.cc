#include "tools/reports/view.h"

namespace orrery::tools {

void DropUnusedKinds(TimelineView& view) {
  std::vector<int32_t> place(view.kinds.size(), -1);
  for (const Slice& slice : view.slices) place[static_cast<size_t>(slice.kind)] = 0;
  std::vector<std::string> kinds;
  for (size_t kind = 0; kind < place.size(); ++kind) {
    if (place[kind] < 0) continue;
    place[kind] = static_cast<int32_t>(kinds.size());
    kinds.push_back(view.kinds[kind]);
  }
  view.kinds = std::move(kinds);
  for (Slice& slice : view.slices) slice.kind = place[static_cast<size_t>(slice.kind)];
}

}  // namespace orrery::tools
