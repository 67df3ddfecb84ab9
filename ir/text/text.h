#ifndef ORRERY_IR_TEXT_TEXT_H_
#define ORRERY_IR_TEXT_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// The text form of the IR. What Print writes, ParseFunctions reads, and printing that again gives
// the same bytes.
//
//   func @step mesh(dp=2, hp=2) (
//     %x: f32[64@dp,16] data,
//     %w: f32[16,16@hp] parameter
//   ) {
//     %y: f32[64@dp,16@hp] = MatMul(%x, %w)
//     %dx: f32[64@dp,16], %dw: f32[16,16@hp] partial(dp) = MatMulGrad(%x, %w, %y)
//     return %dx: result, %dw: gradient(%w)
//   }
//
// Attributes follow the operands: `AllReduce(%y) {axes="hp"}`. A value without a name prints as its
// position among the values, inputs first. `//` starts a comment.

namespace orrery::ir {

/// The text of one function, which ParseFunction reads; of several, one after the other.
std::string Print(const Function& function);
std::string Print(const std::vector<Function>& functions);

/// All functions of a text, verified. Errors name line and column: "12:7: found ')', wanted a
/// type".
absl::StatusOr<std::vector<Function>> ParseFunctions(absl::string_view text);

/// The one function of a text; an error when there are none or several.
absl::StatusOr<Function> ParseFunction(absl::string_view text);

}  // namespace orrery::ir

#endif  // ORRERY_IR_TEXT_TEXT_H_
