#ifndef ORRERY_IR_TEXT_DEAD_OPS_H_
#define ORRERY_IR_TEXT_DEAD_OPS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

namespace orrery::ir {

/// The one function of a text that may have ops whose results nothing uses, as one is written by
/// hand or by another program: without them. All that is left verifies; errors are as those of
/// ParseFunction.
absl::StatusOr<Function> ParseFunctionDroppingDeadOps(absl::string_view text);

}  // namespace orrery::ir

#endif  // ORRERY_IR_TEXT_DEAD_OPS_H_
