#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_CHECK_ATTRIBUTES_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_CHECK_ATTRIBUTES_H_

#include "absl/status/status.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/rule.h"

// Names of attributes in rules. Records of ops have no list of those that they read, and one that
// nobody reads changes nothing: a rule would be equal with it, and stand nowhere.

namespace orrery::transforms::substitutions {

/// Ok where each attribute of the ops of a side is one that its op reads: with another value there
/// it does not take its operands, makes something else, or costs something else. Else an error,
/// "rule @r (line 3): Relu reads no attribute 'slope'; …".
absl::Status CheckAttributes(const Rule& rule, const Dataflow& side, const WorkTable& works);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_CHECK_ATTRIBUTES_H_
