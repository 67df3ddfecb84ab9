#ifndef ORRERY_IR_TEXT_WANTED_OP_H_
#define ORRERY_IR_TEXT_WANTED_OP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace orrery::ir {

/// What an error says was wanted in place of `found`, which is no op: "the name of an op", and
/// which it may have been. There are over a hundred, so the others are not listed.
std::string WantedOp(absl::string_view found);

}  // namespace orrery::ir

#endif  // ORRERY_IR_TEXT_WANTED_OP_H_
