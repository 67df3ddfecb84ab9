#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_CORRECT_MUTANT_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_CORRECT_MUTANT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/substitutions/generate_rules.h"
#include "transforms/substitutions/rule.h"

// Rules made of mutants, as PET does (Wang et al., "PET: Optimizing Tensor Programs with Partially
// Equivalent Transformations and Automated Corrections", OSDI 2021). A mutant differs from its
// original in boxes of elements. Where these are is found by executing both at some hundred shapes:
// shapes with boxes side by side in the same order are a regime, in which borders of boxes are sums
// of sizes. Each regime becomes a rule: the mutant, with kernels that compute the boxes anew
// (correction.h), for the sizes that the regime has.

namespace orrery::transforms::substitutions {

/// What came of a mutant. Of a convolution without bias there are rules without and with one.
struct CorrectedMutant {
  std::vector<Rule> rules;  // checked by execution; named after the mutant, with numbers
  int32_t samples = 0;      // shapes at which it was executed
  int32_t regimes = 0;      // with elements that are right, of which there were enough shapes
  /// Why there is no rule of a regime: its pattern and what is wrong.
  std::vector<std::string> refused = {};
};

/// The rules of a mutant. An error where the original is none that can be corrected, or no shape
/// was found at which both sides can be computed.
absl::StatusOr<CorrectedMutant> CorrectMutant(const Rule& mutant, const Generation& options = {});

/// The section of mutants.rules that a mutant has: what came of it, in figures and rules.
std::string SectionOf(const Rule& mutant, const CorrectedMutant& corrected);

/// The text of mutants.rules: what comes of all mutants of a text.
absl::StatusOr<std::string> GenerateMutants(absl::string_view mutants,
                                            const Generation& options = {});

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_CORRECT_MUTANT_H_
