#ifndef ORRERY_IR_ROLES_H_
#define ORRERY_IR_ROLES_H_

#include "ir/function.h"
#include "support/enum_names.h"

// What roles of inputs and outputs are called in text, and by ToString, and what passes ask of them
// beside IsWeight.

namespace orrery::ir {

/// Whether the input is the same for each batch of inference: a weight, trained or frozen, or a
/// buffer.
constexpr bool IsWeightOrBuffer(InputRole role) {
  return IsWeight(role) || role == InputRole::kBuffer;
}

inline constexpr EnumNames<InputRole, 7> kInputRoleNames({{"data", InputRole::kData},
                                                          {"parameter", InputRole::kParameter},
                                                          {"frozen", InputRole::kFrozen},
                                                          {"buffer", InputRole::kBuffer},
                                                          {"state", InputRole::kState},
                                                          {"saved", InputRole::kSaved},
                                                          {"accumulator",
                                                           InputRole::kAccumulator}});

inline constexpr EnumNames<OutputRole, 6> kOutputRoleNames({{"result", OutputRole::kResult},
                                                            {"loss", OutputRole::kLoss},
                                                            {"gradient", OutputRole::kGradient},
                                                            {"updated", OutputRole::kUpdated},
                                                            {"saved", OutputRole::kSaved},
                                                            {"accumulator",
                                                             OutputRole::kAccumulator}});

}  // namespace orrery::ir

#endif  // ORRERY_IR_ROLES_H_
