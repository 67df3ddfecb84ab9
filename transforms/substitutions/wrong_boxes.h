#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_WRONG_BOXES_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_WRONG_BOXES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/type.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/rule.h"

// Where a mutant differs from its original: both are executed on random whole numbers, and elements
// that differ are covered by boxes, as PET does (Wang et al. 2021). Its theorem says why a few
// draws do: of programs that are linear in each input, two elements that are not equal are so for
// hardly any numbers.

namespace orrery::transforms::substitutions {

/// Neighbours along an axis, all right or all wrong.
struct AxisRun {
  int64_t begin = 0, end = 0;
  bool wrong = false;

  friend bool operator==(const AxisRun&, const AxisRun&) = default;
};

/// All of an axis. What a wrong run cuts out of the tensor is a box of elements that are wrong.
struct AxisRuns {
  int32_t axis = -1;  // from the end, below 0
  std::vector<AxisRun> runs;

  friend bool operator==(const AxisRuns&, const AxisRuns&) = default;
};

/// The number from 0 of an axis of a tensor of `rank` dimensions that counts from the end, below 0.
inline size_t FromFirst(int32_t axis, size_t rank) { return rank - static_cast<size_t>(-axis); }

/// What an element of a mutant is. kNone: 0 on both sides whatever the inputs, as where a kernel
/// sees nothing but padding; boxes may have it or not.
enum class Element : uint8_t { kRight, kWrong, kNone };

/// Boxes that cover all wrong elements of a tensor of `dims`: along one axis where that leaves
/// elements that are right, else along several, each box wrong in all that those of the axes before
/// leave. One element between two boxes is made part of them. None where none is wrong; nothing
/// where along such an axis, or along any where none is wrong, a place has no elements that say
/// what it is.
std::optional<std::vector<AxisRuns>> FindBoxes(const std::vector<Element>& elements,
                                               const ir::Dims& dims);

/// A shape at which both sides of a mutant were executed.
struct MutantSample {
  Variables variables;
  ir::Dims dims, mutant_dims;     // of the two results
  std::vector<Element> elements;  // of the original's; what the mutant has not is wrong
  std::optional<std::vector<AxisRuns>> boxes;

  /// "-2:WRW", which runs there are, whatever their lengths; "?" where they are not known.
  std::string Pattern() const;
};

/// Executes both sides, which return one value each, at some sizes; nothing where the mutant's
/// result has more elements along an axis, another rank, or no numbers come of it.
std::optional<MutantSample> Sample(const Rule& mutant, const Variables& variables,
                                   RandomBits& random, WorkTable& works);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_WRONG_BOXES_H_
