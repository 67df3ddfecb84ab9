#include "lowering/dealt_updates.h"

#include <algorithm>

#include "support/check.h"
#include "transforms/stages/dealt_rounds.h"

namespace orrery::lowering {

DealtUpdates::DealtUpdates(const Geometry& geometry, int64_t every, Instantiator& instantiator)
    : geometry_(geometry), instantiator_(instantiator) {
  for (int32_t s = 0; s < geometry.stages(); ++s) {
    const std::vector<int32_t> none(static_cast<size_t>(geometry.RunnersOf(s)), 0);
    const int64_t own = transforms::UpdateEveryOfReplica(every, std::ssize(none));
    stages_.push_back({.backwards = none, .updates = none, .every = static_cast<int32_t>(own)});
  }
}

void DealtUpdates::AfterBackward(int32_t stage, int32_t microbatch) {
  OfStage& of = stages_[static_cast<size_t>(stage)];
  const auto replica = static_cast<size_t>(geometry_.ReplicaOf(stage, microbatch));
  const auto replicas = static_cast<int32_t>(of.backwards.size());
  const auto behind = static_cast<int32_t>(transforms::BackwardsBehind(replicas));
  const int32_t done = ++of.backwards[replica];
  ORRERY_DCHECK(microbatch / replicas + 1 == done) << "microbatch " << microbatch << " out of turn";
  // One replica begins and ends a round at once; else the update by the one before comes first.
  if (behind == 0) BeginRoundIfDone(stage);
  if ((done - behind) / of.every > of.updates[replica]) EndRound(stage, replica);
  if (behind > 0) BeginRoundIfDone(stage);
}

void DealtUpdates::BeginRoundIfDone(int32_t stage) {
  OfStage& of = stages_[static_cast<size_t>(stage)];
  if (std::ranges::min(of.backwards) / of.every == of.begun) return;
  ORRERY_CHECK(std::ranges::min(of.updates) == of.begun) << "stage " << stage << " is behind";
  const auto replicas = static_cast<int32_t>(of.updates.size());
  instantiator_.BeginRound(stage, (++of.begun * of.every - 1) * replicas);
}

void DealtUpdates::EndRound(int32_t stage, size_t replica) {
  OfStage& of = stages_[static_cast<size_t>(stage)];
  const int32_t updates = ++of.updates[replica];
  ORRERY_CHECK(updates <= of.begun) << "stage " << stage << ", replica " << replica;
  const auto replicas = static_cast<int32_t>(of.updates.size());
  const int32_t last = (updates * of.every - 1) * replicas;
  instantiator_.EndRound(stage, last + static_cast<int32_t>(replica));
}

void DealtUpdates::Drain() {
  for (size_t s = 0; s < stages_.size(); ++s) {
    OfStage& of = stages_[s];
    for (size_t r = 0; r < of.updates.size(); ++r) {
      while (of.updates[r] < of.begun) EndRound(static_cast<int32_t>(s), r);
    }
  }
}

}  // namespace orrery::lowering
