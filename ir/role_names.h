#ifndef ORRERY_IR_ROLE_NAMES_H_
#define ORRERY_IR_ROLE_NAMES_H_

#include "ir/function.h"
#include "support/enum_names.h"

// How roles are called in text, and by ToString.

namespace orrery::ir {

inline constexpr EnumNames<InputRole, 6> kInputRoleNames({{"data", InputRole::kData},
                                                          {"parameter", InputRole::kParameter},
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

#endif  // ORRERY_IR_ROLE_NAMES_H_
