#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_STANDARD_RULES_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_STANDARD_RULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/substitutions/check_rule.h"
#include "transforms/substitutions/rule.h"

// The rules that come with Orrery: the files of data/substitutions/.

namespace orrery::transforms::substitutions {

extern const absl::string_view kGeneratedRules;  // by enumeration of the alphabets
extern const absl::string_view kKernelRules;     // convolutions and fused kernels, by hand
extern const absl::string_view kMutantRules;     // mutants of convolutions and products, corrected
extern const absl::string_view kAxioms;          // what proofs may use
extern const absl::string_view kAlphabets;       // what is enumerated

/// All rules of `names`, "standard", "mutants" or names of files joined by '+'. Those of files are
/// checked: an error has the counterexample of a rule that does not hold. A file has a rule at
/// least.
absl::StatusOr<std::vector<Rule>> LoadRules(absl::string_view names);

/// What is known of the rules of `names`, as a line for people, after both sides were executed and
/// proofs that they name were derived anew, from axioms that were executed likewise:
/// "2 rules: equal on 48 shapes each, 1 of them follows from axioms". An error says which rule does
/// not hold, or does not follow.
absl::StatusOr<std::string> CheckRules(absl::string_view names, const RuleCheck& check = {});

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_STANDARD_RULES_H_
