#ifndef ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_H_
#define ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/stages/pipeline.h"

// Activation recomputation (Chen et al. 2016; Korthikanti et al. 2022): backward runs a part of
// forward again, in place of keeping what that has made.

namespace orrery::transforms {

/// What the forward of a microbatch keeps for its backward.
struct RecomputePolicy {
  enum class Kind : uint8_t {
    kNone,       // everything that backward reads
    kSelective,  // all but the core of attention: what is made from the scores, and is no output
    kLayers,     // of each `every` consecutive layers (FindLayers) only the input of the first
    kMatching,   // all but values that `pattern` finds, by their names or that of the op's result 0
  };
  Kind kind = Kind::kNone;
  int64_t every = 1;
  std::string pattern = {};  // RE2
  /// Whether an activation that forward puts together of parts on several ranks is kept in parts,
  /// and put together again, as Megatron's sequence parallelism has it.
  bool gathers = false;

  friend bool operator==(const RecomputePolicy&, const RecomputePolicy&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const RecomputePolicy& p) {
    return H::combine(std::move(h), p.kind, p.every, p.pattern, p.gathers);
  }
};

/// "none", "selective", "full" (every layer), "every:4", "match:gelu|norm"; an error for another
/// text, a number below 1, or a pattern that is no regular expression.
absl::StatusOr<RecomputePolicy> ParseRecomputePolicy(absl::string_view text);
std::string ToString(const RecomputePolicy& policy);

/// The texts of a list with commas between, each of which is a policy. What follows the comma of a
/// pattern and is no policy belongs to the pattern.
absl::StatusOr<std::vector<std::string>> ParseRecomputeList(absl::string_view text);

/// Rewrites each stage so that forward keeps what `policy` says. What backward reads beyond that,
/// it makes again from what is kept, from parameters and from data, just before its first use, by
/// the ops of forward, with their collectives. It computes the same numbers: dropout drops the same
/// elements.
///
/// Never run again is what other stages have sent, what is added up or collected over microbatches,
/// and what the update reads. A view is looked at again, and a Relu's gradient reads the result of
/// the Relu. An error when a pattern finds nothing that is kept.
absl::Status Recompute(PipelinedStep& step, const RecomputePolicy& policy);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_H_
