#ifndef ORRERY_TESTS_SEMANTICS_COMPARE_H_
#define ORRERY_TESTS_SEMANTICS_COMPARE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/semantics/shard.h"

namespace orrery::semantics {

/// Outputs that are computed in two ways may differ by so much of the largest element.
inline constexpr double kTolerance = 1e-9;

/// Every output of `expected` is there in `ours`, and equal relative to its size.
inline void ExpectSame(const Named& ours, const Named& expected, double tolerance = kTolerance) {
  for (const auto& [name, tensor] : expected) {
    const auto found = ours.find(name);
    const bool partial = found == ours.end();
    const auto mine = partial ? ours.find(absl::StrCat(name, ".partial")) : found;
    ASSERT_NE(mine, ours.end()) << name << " is missing";
    double largest = 1;
    for (const double value : tensor.floats()) largest = std::max(largest, std::abs(value));
    EXPECT_LE(ir::Distance(mine->second, tensor), tolerance * largest) << name;
  }
}

}  // namespace orrery::semantics

#endif  // ORRERY_TESTS_SEMANTICS_COMPARE_H_
