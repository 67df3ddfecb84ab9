#include "tools/goodput/checkpoint_tiers.h"

#include <algorithm>

namespace orrery::tools {

using simulator::goodput::CheckpointTier;
using simulator::goodput::Loss;

namespace checkpoint_tiers_cc {
namespace {

// What software adds to a checkpoint of files that is written in the background: 7B parameters on
// 128 devices stood still for 6.3 s, of which copying is a tenth of a second (Pasqualin et al.,
// Reducing Model Checkpointing Times by Over 10x with PyTorch Distributed Asynchronous
// Checkpointing, 2024).
constexpr double kFilesOverhead = 6;

constexpr TierKind kKinds[] = {
#define ORRERY_TIER(name, survives, rate, over_cards, files, shared, summary) \
  {#name,                                                                     \
   Loss::survives,                                                            \
   []([[maybe_unused]] const JobFacts& facts) -> double { return rate; },                  \
   over_cards,                                                                \
   files,                                                                     \
   shared,                                                                    \
   summary},
#include "tools/goodput/checkpoint_tiers.def"
#undef ORRERY_TIER
};

}  // namespace
}  // namespace checkpoint_tiers_cc

std::span<const TierKind> AllTierKinds() { return checkpoint_tiers_cc::kKinds; }

std::vector<absl::string_view> TierNames() {
  std::vector<absl::string_view> names;
  for (const TierKind& kind : AllTierKinds()) names.push_back(kind.name);
  return names;
}

CheckpointTier MakeTier(const TierText& text, const JobFacts& facts) {
  const TierKind& kind = *std::ranges::find(AllTierKinds(), text.name, &TierKind::name);
  const auto hosts = static_cast<double>(facts.shape.hosts);
  const double of_host = facts.checkpoint_bytes / hosts;
  const double copy_s =
      of_host / (facts.host_copy_rate * static_cast<double>(facts.shape.devices_per_host));
  double rate = kind.rate(facts);
  if (text.bytes_per_second.has_value()) rate = *text.bytes_per_second / (kind.shared ? hosts : 1);
  const bool over_cards = kind.over_cards && !text.own_network;
  // Steps that want the cards, too, leave it half of them.
  if (over_cards) rate = std::min(rate, facts.card_rate / 2);
  const double write_s = text.write_s.value_or(rate > 0 ? of_host / rate : 0);
  const double begin_s = kind.files ? checkpoint_tiers_cc::kFilesOverhead : 0;
  CheckpointTier tier{.name = text.name, .survives = kind.survives};
  tier.stall_s =
      text.stall_s.value_or(begin_s + (text.blocking ? std::max(copy_s, write_s) : copy_s));
  tier.write_s = text.blocking ? 0 : write_s;
  tier.load_s = text.load_s.value_or(std::max(copy_s, write_s));
  if (over_cards && tier.write_s > 0 && facts.slow_step_s > facts.step_s) {
    const double share = std::min(of_host / write_s / (facts.card_rate / 2), 1.0);
    const double slower = share * (facts.slow_step_s / facts.step_s - 1);
    tier.drag_s = tier.write_s * slower / (1 + slower);
  }
  return tier;
}

}  // namespace orrery::tools
