#include "simulator/goodput/checkpoint_cycle.h"

#include <algorithm>
#include <cmath>

namespace orrery::simulator::goodput {

CheckpointCycle::CheckpointCycle(std::span<const CheckpointTier> tiers, double step_s)
    : tiers_(tiers) {
  if (tiers.empty()) return;
  segment_s_ = static_cast<double>(tiers[0].every_steps) * step_s;
  double time_s = segment_s_;
  for (size_t i = 0; i < tiers.size(); ++i) {
    if (i > 0) {
      const int64_t times = tiers[i].every_steps / tiers[i - 1].every_steps;
      blocks_.back().in_next = times;
      time_s *= static_cast<double>(times);
    }
    time_s += tiers[i].stall_s + tiers[i].drag_s;
    blocks_.push_back({.time_s = time_s, .segments = tiers[i].every_steps / tiers[0].every_steps});
  }
}

// From the longest blocks down; the last one of those in a longer one takes longer than the others.
CheckpointCycle::Whole CheckpointCycle::WholeSegments(double elapsed_s) const {
  Whole whole{.segments = 0, .rest_s = elapsed_s};
  for (size_t i = blocks_.size(); i-- > 0;) {
    const Block& block = blocks_[i];
    auto times = static_cast<int64_t>(std::floor(whole.rest_s / block.time_s));
    if (block.in_next > 0) times = std::min(times, block.in_next - 1);
    whole.segments += times * block.segments;
    whole.rest_s -= static_cast<double>(times) * block.time_s;
  }
  whole.rest_s = std::max(whole.rest_s, 0.0);
  return whole;
}

CheckpointCycle::Position CheckpointCycle::At(double elapsed_s) const {
  if (tiers_.empty()) return {.trained_s = elapsed_s};
  const Whole whole = WholeSegments(elapsed_s);
  Position position{.trained_s = static_cast<double>(whole.segments) * segment_s_ +
                                 std::min(whole.rest_s, segment_s_)};
  double due_stall_s = 0;
  for (size_t i = 0; i < tiers_.size(); ++i) {
    const int64_t saves = whole.segments / blocks_[i].segments;
    position.stalled_s += static_cast<double>(saves) * tiers_[i].stall_s;
    position.dragged_s += static_cast<double>(saves) * tiers_[i].drag_s;
    if ((whole.segments + 1) % blocks_[i].segments == 0) due_stall_s += tiers_[i].stall_s;
  }
  const double beyond_s = std::max(whole.rest_s - segment_s_, 0.0);
  position.stalled_s += std::min(beyond_s, due_stall_s);
  position.dragged_s += std::max(beyond_s - due_stall_s, 0.0);
  return position;
}

std::optional<double> CheckpointCycle::LastSave(size_t tier, double elapsed_s) const {
  // It is written while steps beside it are slower, of which a block has the time.
  const double written_s = elapsed_s - std::max(tiers_[tier].write_s - tiers_[tier].drag_s, 0.0);
  if (written_s <= 0) return std::nullopt;
  const int64_t unit = blocks_[tier].segments;
  const int64_t saves = WholeSegments(written_s).segments / unit;
  if (saves == 0) return std::nullopt;
  return static_cast<double>(saves * unit) * segment_s_;
}

int64_t CheckpointCycle::SavesOf(size_t tier, double elapsed_s) const {
  return WholeSegments(elapsed_s).segments / blocks_[tier].segments;
}

}  // namespace orrery::simulator::goodput
