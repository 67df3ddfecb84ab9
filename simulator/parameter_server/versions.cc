#include "simulator/parameter_server/versions.h"

#include <algorithm>

namespace orrery::simulator::parameter_server {

Versions::Versions(const Policy& policy, int32_t workers, size_t parts)
    : policy_(policy), workers_(workers), updates_(parts) {
  if (policy.sync == Sync::kBulk) {
    closed_.resize(parts);
    count_.resize(parts);
    return;
  }
  clocks_.resize(parts * static_cast<size_t>(workers));
  least_.resize(parts);
  at_least_.resize(parts, workers);
}

Taken Versions::Take(size_t part, int32_t step) {
  first_ = true;
  if (policy_.sync != Sync::kBulk) return Taken::kApplied;
  if (step < closed_[part]) return Taken::kDropped;
  first_ = count_[part] == 0;
  if (++count_[part] < workers_ - policy_.backup) return Taken::kSummed;
  count_[part] = 0;
  ++closed_[part];
  return Taken::kApplied;
}

void Versions::Applied(size_t part, int32_t worker) {
  ++updates_[part];
  if (policy_.sync == Sync::kBulk) return;
  const int32_t before = clocks_[Row(part, worker)]++;
  if (before > least_[part] || --at_least_[part] > 0) return;
  const auto begin = clocks_.begin() + static_cast<std::ptrdiff_t>(Row(part, 0));
  const auto end = begin + workers_;
  least_[part] = *std::min_element(begin, end);
  at_least_[part] = static_cast<int32_t>(std::count(begin, end, least_[part]));
}

bool Versions::MayRead(size_t part, int32_t worker, int32_t step) const {
  if (policy_.sync == Sync::kBulk) return updates_[part] >= step;
  if (clocks_[Row(part, worker)] < step) return false;
  return policy_.sync == Sync::kAsync || least_[part] >= step - policy_.bound;
}

bool Versions::IsAhead(size_t part, int32_t worker, int32_t step) const {
  return policy_.sync == Sync::kStale && clocks_[Row(part, worker)] >= step &&
         least_[part] < step - policy_.bound;
}

int32_t Versions::Lag(size_t part, int32_t step) const {
  return policy_.sync == Sync::kBulk ? 0 : std::max(step - least_[part], 0);
}

int32_t Versions::complete() const {
  return static_cast<int32_t>(*std::ranges::min_element(updates_));
}

}  // namespace orrery::simulator::parameter_server
