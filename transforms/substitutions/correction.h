#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_CORRECTION_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_CORRECTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transforms/substitutions/rule.h"

// Kernels that correct a mutant: the original's op on the slices of its inputs that a box of wrong
// elements needs, whose results are put in place of the box.

namespace orrery::transforms::substitutions {

/// A run along an axis whose borders follow from sizes.
struct SizedRun {
  Expression begin, end;
  bool wrong = false;
};

/// All of an axis.
struct SizedAxis {
  int32_t axis = -1;  // from the end
  std::vector<SizedRun> runs;
  Expression mutant_size;  // of the mutant's result along it
};

/// Boxes as FindBoxes has them, with borders that follow from sizes, and sizes at which they were
/// seen: they say which side of an image's border a box begins on.
struct SizedBoxes {
  std::vector<SizedAxis> axes;
  std::vector<const Variables*> draws;
};

/// Ok where corrections of the mutant's original can be made: one MatMul, or one Conv whose
/// paddings, strides and dilations are sizes, of the rule's inputs. Else an error that says what
/// was found there.
absl::Status CheckOriginal(const Rule& mutant);

/// The rule that replaces the original by the mutant and corrections of all boxes, not checked.
/// Where the mutant ends with a kernel like the original, and one box of its result is right, it
/// computes no more than that box. An error where a box cuts what no slice of inputs gives: leading
/// dimensions, groups, an image's border that is on this side for some sizes and on that for
/// others. Requires CheckOriginal.
absl::StatusOr<Rule> Correct(const Rule& mutant, const SizedBoxes& boxes);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_CORRECTION_H_
