#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_GENERATE_RULES_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_GENERATE_RULES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/substitutions/rule.h"

// Rules found by enumeration, as TASO does (Jia et al. 2019): all graphs of up to so many ops of an
// alphabet are evaluated on random whole numbers; two whose results are the same are candidates,
// which are checked at other shapes. Of graphs that are equal, each is held against the first one,
// unless a rule that there is already leads from it to one that came before: so there are neither
// renamed rules, nor such that have a subgraph in common, nor such that follow from smaller ones.

namespace orrery::transforms::substitutions {

/// How rules are generated.
struct Generation {
  int32_t shapes = 48;  // on which each is checked
  uint64_t seed = 1;
  int64_t most_graphs = 2'000'000;  // of one alphabet: where to give up
};

/// What came of it.
struct Generated {
  std::vector<Rule> rules;
  int64_t graphs = 0;    // enumerated
  int64_t equal = 0;     // with the results of one that was there
  int64_t special = 0;   // equal by chance, or at the sizes of the enumeration alone
  int64_t unproven = 0;  // equal wherever they were checked, and not derived from axioms: left out
};

/// The rules of an alphabet that do not follow in a few steps from `known` and from those before,
/// by increasing size, with the shapes on which they were checked and the axioms that they follow
/// from. An error where an attribute has no known values, or there are too many graphs.
absl::StatusOr<Generated> GenerateRules(const Alphabet& alphabet, std::span<const Rule> known,
                                        std::span<const Rule> axioms,
                                        const Generation& options = {});

/// What a generation goes on from.
struct KnownRules {
  std::span<const Rule> rules, axioms;
};

/// The same with the sizes and attributes at which graphs are compared.
absl::StatusOr<Generated> GenerateRulesAt(const Variables& variables, const Alphabet& alphabet,
                                          const KnownRules& known, const Generation& options);

/// The section of generated.rules that an alphabet has: what came of it, in figures and rules.
std::string SectionOf(const Alphabet& alphabet, const Generated& generated);

/// The text of generated.rules: what comes of all alphabets of a text, one after the other, each
/// without what follows from those before. Of a text of mutants that of mutants.rules
/// (correct_mutant.h).
absl::StatusOr<std::string> GenerateText(absl::string_view alphabets, absl::string_view axioms,
                                         const Generation& options = {});

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_GENERATE_RULES_H_
