#ifndef ORRERY_TRANSFORMS_PLAN_STAGE_MESHES_H_
#define ORRERY_TRANSFORMS_PLAN_STAGE_MESHES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Stages that are not alike in their ranks: docs/unequal_plans.md.

namespace orrery::transforms {

/// The ranks of one stage: replicas, each of so many ranks, on devices that follow each other.
struct StageMesh {
  int64_t dp = 1;
  int64_t hp = 1;
  int64_t first = 0;  // device of its first rank, by its number in the cluster

  int64_t ranks() const { return dp * hp; }

  friend bool operator==(const StageMesh&, const StageMesh&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StageMesh& mesh) {
    return H::combine(std::move(h), mesh.dp, mesh.hp, mesh.first);
  }
};

/// The ranks of each stage; empty: all stages are as dp and hp of the plan say.
struct StageMeshes {
  std::vector<StageMesh> stages = {};

  bool empty() const { return stages.empty(); }
  /// Of all stages.
  int64_t ranks() const;
  /// The largest degree of a stage; 1 without stages.
  int64_t most_dp() const;
  int64_t most_hp() const;

  friend bool operator==(const StageMeshes&, const StageMeshes&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StageMeshes& meshes) {
    return H::combine(std::move(h), meshes.stages);
  }
};

/// Reads "4x2,8x1@16": dp and hp of each stage, and the device of its first rank where that is not
/// the next one. Errors: another form, degrees or devices out of range, and a device of two stages:
/// "device 3 is of stages 0 and 1; wanted each of one".
absl::StatusOr<StageMeshes> ParseStageMeshes(absl::string_view text);
/// What that reads.
std::string ToString(const StageMeshes& meshes);

/// Which replicas of a stage run which microbatches.
struct ReplicaShares {
  /// How it is told.
  enum class Kind : uint8_t {
    kSplit,  // each microbatch is shared out to all
    kEven,   // each has as many whole ones, in turn
    kSpeed,  // in proportion to how fast its devices are
    kGiven,  // as `counts` say
  };
  Kind kind = Kind::kSplit;
  std::vector<int64_t> counts = {};  // of each replica, of all microbatches of the batch

  bool dealt() const { return kind != Kind::kSplit; }

  friend bool operator==(const ReplicaShares&, const ReplicaShares&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ReplicaShares& shares) {
    return H::combine(std::move(h), shares.kind, shares.counts);
  }
};

/// Reads "split", "round-robin", "speed" or "3,5".
absl::StatusOr<ReplicaShares> ParseReplicaShares(absl::string_view text);
/// What that reads.
std::string ToString(const ReplicaShares& shares);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_STAGE_MESHES_H_
