#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_CHECK_RULE_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_CHECK_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/tensor.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/rule.h"

// Rules held to what their two sides compute: sizes, leading dimensions, attributes and elements
// are drawn at random, both sides are evaluated op by op as their records say, and compared.

namespace orrery::transforms::substitutions {

/// DrawAnyVariables until both sides can be computed; nothing where no draw of many was such.
std::optional<Variables> DrawVariables(const Rule& rule, const SizeDraw& draw, RandomBits& random,
                                       WorkTable& works);

/// The inputs of a rule with these variables, as a flow without ops; nothing where a size is none.
std::optional<Dataflow> InputsOf(const Rule& rule, const Variables& variables, WorkTable& works);

/// The two sides of a rule with these variables, as flows with the same inputs of float64.
struct RuleSides {
  Dataflow left, right;
};

/// The sides; nothing where sizes are not allowed, or an op does not take its operands.
std::optional<RuleSides> SidesOf(const Rule& rule, const Variables& variables, WorkTable& works);

/// The outputs of a flow from tensors for its inputs. Errors are those of ir::Evaluate.
absl::StatusOr<std::vector<ir::Tensor>> Evaluate(const WorkTable& works, const Dataflow& flow,
                                                 const std::vector<ir::Tensor>& inputs);

/// How rules are checked.
struct RuleCheck {
  int32_t shapes = 48;
  uint64_t seed = 1;
};

/// Ok where both sides are equal at all shapes that are drawn, exactly or, behind roots and
/// exponentials, to nine digits. Else the error has the counterexample: "rule @r (line 3): not
/// equal at m=2, k=1: %x = f64[2,1] [3, -1] …; element 1 of %a is 4 on the left, 5 on the right".
absl::Status CheckRule(const Rule& rule, const RuleCheck& check = {});

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_CHECK_RULE_H_
