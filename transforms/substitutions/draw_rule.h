#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_DRAW_RULE_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_DRAW_RULE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/tensor.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/rule.h"

// What a rule is tried at: sizes, leading dimensions, attributes and elements, drawn at random. A
// draw that is too narrow lets rules pass that hold there alone: so there are sizes beside the
// numbers that a rule names, fractions, and elements beyond all limits that it has.

namespace orrery::transforms::substitutions {

/// Random bits that are the same on every machine: SplitMix64.
class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  /// A whole number from `low` to `high`, both possible.
  int64_t Between(int64_t low, int64_t high);

 private:
  uint64_t state_;
};

/// Sizes beyond SizeDraw::most.
enum class LargeSizes : uint8_t {
  kNone,
  kTwo,  // two, of up to 13
  kOne,  // one, of up to 31 or beside a number that the rule names
};

/// What attributes that are variables may be.
enum class AttributeDraw : uint8_t {
  kFew,     // whole factors, one activation: what graphs are enumerated with
  kAll,     // all that are known, fractions too
  kOpaque,  // what is no default, and named by no axiom: so that a proof holds for any
};

/// What attributes that are variables may be called: those of which values are known.
inline constexpr absl::string_view kDrawnAttributes =
    "strides, dilations, pads, group, factor, activation, epsilon";

/// How variables are drawn.
struct SizeDraw {
  int64_t least = 1;
  int64_t most = 5;
  bool generic = false;      // no two sizes alike, none the sum of two others
  int64_t leading_dims = 2;  // at most so many
  int64_t least_leading_dims = 0;
  LargeSizes large = LargeSizes::kNone;
  AttributeDraw attributes = AttributeDraw::kFew;
  bool executed = true;  // only what takes a moment to execute, of what DrawVariables draws
};

/// Sizes and attributes that are drawn for the variables of a rule, whatever its sides are; nothing
/// where it is not known what an attribute may be.
std::optional<Variables> DrawAnyVariables(const Rule& rule, const SizeDraw& draw,
                                          RandomBits& random);

/// The numbers that attributes of the rule name, ascending, each once: what happens at them, and
/// beyond, says whether it holds.
std::vector<double> NumbersOf(const Rule& rule);

/// What elements of inputs are.
enum class ElementDraw : uint8_t {
  kWhole,     // whole numbers up to 4, of both signs
  kQuarters,  // quarters up to 4
  kHundred,   // quarters up to 100
  kNumbers,   // half of them beside the numbers of the rule, and beyond
};

/// How elements are drawn.
struct InputDraw {
  ElementDraw elements = ElementDraw::kWhole;
  bool positive = false;             // all above 0: some ops take no others
  std::vector<double> numbers = {};  // of kNumbers
};

/// A tensor of that type; of zeros where it is not of floating-point numbers.
ir::Tensor DrawTensor(const ir::TensorType& type, const InputDraw& draw, RandomBits& random);

/// Tensors for the inputs of a flow.
std::vector<ir::Tensor> DrawInputs(const WorkTable& works, const Dataflow& flow,
                                   const InputDraw& draw, RandomBits& random);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_DRAW_RULE_H_
