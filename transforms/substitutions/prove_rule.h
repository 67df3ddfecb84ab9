#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_PROVE_RULE_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_PROVE_RULE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "transforms/substitutions/rule.h"

// Rules derived from axioms: rules themselves, few, each plain by itself. From both sides of a rule
// axioms are applied, in either direction, until they meet. Sizes are distinct numbers that nothing
// depends on, so that a derivation holds for any.

namespace orrery::transforms::substitutions {

/// How far a derivation is looked for.
struct ProofLimits {
  int32_t graphs = 3000;    // from both sides together
  int32_t more_ops = 3;     // than the larger side has
  bool from_right = false;  // from the right side alone, as who replaces it has to
};

/// Names of the axioms that lead from the left side of the rule to its right one, in their order;
/// nothing where none were found. An axiom proves itself.
std::optional<std::vector<std::string>> Prove(const Rule& rule, std::span<const Rule> axioms,
                                              const ProofLimits& limits = {});

/// Ok where the rule follows from the axioms that it names, as Prove finds it with these alone, and
/// from no fewer of them. A rule that names none claims nothing.
absl::Status CheckProof(const Rule& rule, std::span<const Rule> axioms);

/// Whether one of `rules`, applied once, makes the right side of the left one, or the left of the
/// right.
bool FollowsInOneStep(const Rule& rule, std::span<const Rule> rules);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_PROVE_RULE_H_
