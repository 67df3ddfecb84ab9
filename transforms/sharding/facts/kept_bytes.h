#ifndef ORRERY_TRANSFORMS_SHARDING_FACTS_KEPT_BYTES_H_
#define ORRERY_TRANSFORMS_SHARDING_FACTS_KEPT_BYTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// What a rank keeps under one choice of shardings, before anybody says how much of it counts: so
// one choice serves plans that differ in what they shard of it, and in how often they keep it.

namespace orrery::transforms {

/// The parts that a rank holds of its parameters, their gradients and the optimizer's state, where
/// data-parallel ranks shard them (transforms/memory/zero.h).
struct HeldParts {
  double parameters = 1, gradients = 1, states = 1;
};

/// What bytes are kept as.
enum class KeptAs : uint8_t { kNothing, kParameter, kGradient, kState, kData, kActivation };

/// How often bytes count that are kept as that, by KeptAs.
using KeptFactors = std::array<double, 6>;
/// Parameters, gradients and state so much of them, activations of so many microbatches.
inline KeptFactors FactorsOf(const HeldParts& held, int64_t in_flight) {
  return {0, held.parameters, held.gradients, held.states, 1, static_cast<double>(in_flight)};
}

/// A sum that is open in its factors: always added up in one order, so that equal factors give
/// equal sums, to the bit.
class KeptBytes {
 public:
  /// Adds a term to the group that is open.
  void Add(KeptAs as, double bytes) { terms_.push_back({.bytes = bytes, .as = as}); }
  /// Ends the group: groups are added up first.
  void EndGroup() {
    if (!terms_.empty()) terms_.back().ends_group = true;
  }

  /// The sum with those factors.
  double Sum(const KeptFactors& factors) const {
    double sum = 0, group = 0;
    for (const Term& term : terms_) {
      group += factors[static_cast<size_t>(term.as)] * term.bytes;
      if (!term.ends_group) continue;
      sum += group;
      group = 0;
    }
    return sum + group;
  }

  /// How much memory the terms take.
  int64_t held_bytes() const { return static_cast<int64_t>(terms_.capacity() * sizeof(Term)); }

 private:
  struct Term {
    double bytes = 0;
    KeptAs as = KeptAs::kNothing;
    bool ends_group = false;
  };
  std::vector<Term> terms_;
};

/// What a choice keeps, where what is gathered of activations is kept whole, and where in parts.
struct KeptMemory {
  KeptBytes whole, in_parts;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_FACTS_KEPT_BYTES_H_
