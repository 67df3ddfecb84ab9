#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_SIZE_ALGEBRA_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_SIZE_ALGEBRA_H_

#include <cstdint>
#include <optional>
#include <span>

#include "transforms/substitutions/rule.h"

// Sums and products of sizes, and the sum that numbers which were seen are.

namespace orrery::transforms::substitutions {

/// The expression that is a number.
Expression Whole(int64_t number);
/// Its terms in order, of each product of sizes one, those with sizes first. 0 is a term.
Expression Canonical(const Expression& expression);
/// a + factor * b, canonical.
Expression AddTimes(const Expression& a, int64_t factor, const Expression& b);
/// a * b, canonical.
Expression Product(const Expression& a, const Expression& b);
/// Whether it is 0 whatever the sizes.
bool IsZero(const Expression& expression);
/// less at most more, each without terms below 0.
AtMost Guard(const Expression& less, const Expression& more);

/// The sum of sizes times whole numbers, and a number, that is values[i] at draws[i]; nothing
/// where there is none. Of sizes that are sums of those before them in all draws it has none.
std::optional<Expression> FitSizes(std::span<const Variables* const> draws,
                                   std::span<const int64_t> values);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_SIZE_ALGEBRA_H_
