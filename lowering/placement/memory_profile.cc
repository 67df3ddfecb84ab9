#include "lowering/placement/memory_profile.h"

#include <array>

namespace orrery::lowering {
namespace memory_profile_cc {
namespace {

using ByKind = std::array<int64_t, simulator::kAllMemoryKindCount>;

// What is given back first, so that no moment between has more than there is.
void AddChange(const ByKind& change, simulator::MemoryMoment moment, int32_t task,
               std::vector<TemplateMemory>& memory) {
  for (const bool taken : {false, true}) {
    for (size_t kind = 0; kind < change.size(); ++kind) {
      if (change[kind] == 0 || (change[kind] > 0) != taken) continue;
      memory.push_back({.task = task,
                        .kind = static_cast<simulator::MemoryKind>(kind),
                        .moment = moment,
                        .bytes = change[kind]});
    }
  }
}

}  // namespace
}  // namespace memory_profile_cc

void AddMemoryProfile(std::span<const TemplateMemory> events, int32_t task,
                      std::vector<TemplateMemory>& memory) {
  memory_profile_cc::ByKind now = {}, peak = {};
  int64_t total = 0, most = 0;
  for (const TemplateMemory& event : events) {
    if (event.growth != MemoryGrowth::kNone) {
      memory.push_back(event);
      memory.back().task = task;
      continue;
    }
    now[static_cast<size_t>(event.kind)] += event.bytes;
    total += event.bytes;
    if (total > most) {
      most = total;
      peak = now;
    }
  }
  memory_profile_cc::ByKind rest = now;
  for (size_t kind = 0; kind < rest.size(); ++kind) rest[kind] -= peak[kind];
  memory_profile_cc::AddChange(peak, simulator::MemoryMoment::kStart, task, memory);
  memory_profile_cc::AddChange(rest, simulator::MemoryMoment::kFinish, task, memory);
}

}  // namespace orrery::lowering
