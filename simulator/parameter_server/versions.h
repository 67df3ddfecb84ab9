#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_VERSIONS_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_VERSIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/parameter_server/training.h"

namespace orrery::simulator::parameter_server {

/// What a server does with a gradient that has come.
enum class Taken : uint8_t {
  kDropped,  // nothing: its update has been made without it
  kSummed,   // adds it to others, if it is not the first
  kApplied,  // that, and updates the parameters
};

/// Which gradients are in the parameters of each part, and who may read them: the rules of a
/// policy, without time. Steps are counted from 0; a worker that reads for step c has done c.
class Versions {
 public:
  /// Policy as Check (training.h) accepts it.
  Versions(const Policy& policy, int32_t workers, size_t parts);

  /// A gradient of step `step` has come for a part. Of what is applied, Applied follows once it is.
  Taken Take(size_t part, int32_t step);
  /// Whether the last gradient that was taken was the first of its update: there is nothing to add.
  bool first() const { return first_; }
  /// The server has made the update that this worker's gradient was the last of.
  void Applied(size_t part, int32_t worker);

  /// Whether a worker may have a part for step `step`: its own gradients before are in it, and as
  /// many of others as the policy wants. With backup workers its own may have been dropped.
  bool MayRead(size_t part, int32_t worker, int32_t step) const;
  /// Whether it may not for the bound alone: it is too far ahead of the slowest.
  bool IsAhead(size_t part, int32_t worker, int32_t step) const;
  /// Of a worker that reads a part for step `step`, how many gradients of the slowest worker its
  /// parameters lack that they had if all were in step; 0 or more. With bulk updates 0.
  int32_t Lag(size_t part, int32_t step) const;
  /// Updates that a part has had.
  int64_t updates(size_t part) const { return updates_[part]; }
  /// Of bulk updates, the steps that are complete in all parts.
  int32_t complete() const;

 private:
  size_t Row(size_t part, int32_t worker) const {
    return part * static_cast<size_t>(workers_) + static_cast<size_t>(worker);
  }

  const Policy policy_;
  const int32_t workers_;
  bool first_ = false;
  std::vector<int64_t> updates_;   // by part, that are made
  std::vector<int32_t> closed_;    // bulk: steps whose gradients have all come
  std::vector<int32_t> count_;     // bulk: gradients of the step after
  std::vector<int32_t> clocks_;    // else: by part and worker, its gradients that are applied
  std::vector<int32_t> least_;     // by part, of those the least
  std::vector<int32_t> at_least_;  // and how many workers have it
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_VERSIONS_H_
