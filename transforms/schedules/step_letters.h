#ifndef ORRERY_TRANSFORMS_SCHEDULES_STEP_LETTERS_H_
#define ORRERY_TRANSFORMS_SCHEDULES_STEP_LETTERS_H_

#include "support/enum_names.h"
#include "transforms/schedules/schedule.h"

namespace orrery::transforms {

/// The kinds of steps as torch writes them.
inline constexpr EnumNames<StepKind, 4> kStepLetters({{"F", StepKind::kForward},
                                                      {"B", StepKind::kBackward},
                                                      {"I", StepKind::kInputGradient},
                                                      {"W", StepKind::kWeightGradient}});

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_STEP_LETTERS_H_
