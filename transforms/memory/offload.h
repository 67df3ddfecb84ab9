#ifndef ORRERY_TRANSFORMS_MEMORY_OFFLOAD_H_
#define ORRERY_TRANSFORMS_MEMORY_OFFLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/stages/pipeline.h"

// Offload to the memory of the host: a rank keeps there what it does not need for a while, and
// copies it over the link between the two while it computes (activations: Rhu et al., "vDNN", MICRO
// 2016; the optimizer: Ren et al., "ZeRO-Offload", USENIX ATC 2021).
//
// A copy is the op Identity with the attribute memory: "host" takes a value out, "device" brings it
// back; of an activation, "layer" says which it belongs to. An optimizer with memory="host" runs on
// the host, and its states are there.

namespace orrery::transforms {

/// What is offloaded.
struct OffloadPolicy {
  bool activations = false;  // that forward leaves for backward
  bool optimizer = false;    // states, and the update itself
  /// Of activations, those with such names (RE2); empty: all but those of the last layer of each
  /// stage, which backward wants at once.
  std::string pattern = {};

  friend bool operator==(const OffloadPolicy&, const OffloadPolicy&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const OffloadPolicy& p) {
    return H::combine(std::move(h), p.activations, p.optimizer, p.pattern);
  }
};

/// "none", "activations", "activations:REGEX", "optimizer", or "optimizer+activations…"; a comma
/// may stand for the plus, and without a pattern the two in either order. An error for another
/// text.
absl::StatusOr<OffloadPolicy> ParseOffloadPolicy(absl::string_view text);
/// The text that ParseOffloadPolicy reads.
std::string ToString(const OffloadPolicy& policy);

/// The texts of a list with commas between, each of which is a policy, with a plus where it has two
/// parts. What follows the comma of a pattern and is no policy belongs to the pattern.
absl::StatusOr<std::vector<std::string>> ParseOffloadList(absl::string_view text);

/// How activations are offloaded.
struct ActivationOffload {
  OffloadPolicy policy = {};
  /// Layers whose activations are copied back ahead of the one whose backward runs. 0: just before
  /// each is used.
  int64_t prefetch = 1;
};

/// Has forward copy out what the policy says, each value after its last use there; kernels wait
/// when those of the layer before are still on their way, as TransformerEngine has it: else memory
/// would fill up where the link is slow. Backward copies it back `prefetch` layers (FindLayers)
/// before its first use. What both parts of a split backward want, the first one brings back for
/// both.
///
/// Never offloaded is what other stages get, what is made from parameters alone, what views
/// something else, and what the update reads. An error when a pattern finds nothing.
///
/// To come after Recompute, and before ApplyZero.
absl::Status OffloadActivations(const ActivationOffload& offload, PipelinedStep& step);

/// Has the host run each optimizer that keeps states, parameter by parameter: gradients (shards,
/// where ZeRO shards them) are copied out in the order in which backward makes them, updated
/// parameters copied back. To come after ApplyZero.
absl::Status OffloadOptimizer(const OffloadPolicy& policy, PipelinedStep& step);

/// What an op has to do with the host.
enum class HostWork : uint8_t { kNone, kStore, kLoad, kUpdate };
/// What the op has to do with the host: whether it copies there, copies back, or is an optimizer
/// that the host runs.
HostWork HostWorkOf(const ir::Function& function, ir::OpId op);

/// What any op of the step has to do with the host.
struct HostWorkOfStep {
  bool copies = false;
  bool updates = false;
};
/// Looks at the ops of all stages; an update by the host counts as a copy, too.
HostWorkOfStep FindHostWork(const PipelinedStep& step);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_OFFLOAD_H_
