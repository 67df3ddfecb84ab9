#ifndef ORRERY_IR_VERIFIER_H_
#define ORRERY_IR_VERIFIER_H_

#include "absl/status/status.h"
#include "ir/function.h"

// The rules that every function keeps, and that every pass may rely on and must preserve:
//
//  1. Order. Each op stands once in the order, after the ops that make its operands.
//  2. Arity. An op has as many operands and results as its record says.
//  3. Types. The types of an op's results, shardings included, are those that its record infers.
//  4. Shardings. A mesh axis splits at most one dimension of a value, or the value is partial over
//     it; what splits a dimension divides it. Only a function with a mesh has shardings.
//  5. Sizes. Dimensions are at least 1, and a tensor has at most 30 of them and 2^60 bytes.
//  6. Names. No two values that are in use have the same name.
//  7. No dead ops. Each op has a result that something uses, or sends.
//  8. Outputs. Each is a value in use, stands once in a role (for each input that it belongs to),
//  and
//     names the input that it belongs to where its role has one: gradients and updates an input,
//     accumulations an accumulator.

namespace orrery::ir {

/// Ok, or the first rule broken and where: "mlp: op 'y0' (MatMul): inner dimensions differ; …".
absl::Status Verify(const Function& function);

}  // namespace orrery::ir

#endif  // ORRERY_IR_VERIFIER_H_
