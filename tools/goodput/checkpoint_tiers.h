#ifndef ORRERY_TOOLS_GOODPUT_CHECKPOINT_TIERS_H_
#define ORRERY_TOOLS_GOODPUT_CHECKPOINT_TIERS_H_

#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "simulator/goodput/run_spec.h"
#include "tools/goodput/job_facts.h"
#include "tools/goodput/run_texts.h"

namespace orrery::tools {

/// A kind of place that checkpoints go to; the table is checkpoint_tiers.def.
struct TierKind {
  absl::string_view name;
  simulator::goodput::Loss survives;
  double (*rate)(const JobFacts& facts);  // of a host, bytes/s, where nobody says; 0: copied alone
  bool over_cards = false;                // passes over network cards that steps use, too
  bool files = false;
  bool shared = false;  // a bandwidth is of all hosts together
  absl::string_view summary;
};
/// All of them, in the order of the table.
std::span<const TierKind> AllTierKinds();
/// Their names.
std::vector<absl::string_view> TierNames();

/// What a checkpoint costs that goes where `text` says: all hosts write an equal share. Its
/// interval is left open. Requires the name of a kind.
simulator::goodput::CheckpointTier MakeTier(const TierText& text, const JobFacts& facts);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_CHECKPOINT_TIERS_H_
