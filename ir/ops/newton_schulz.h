#ifndef ORRERY_IR_OPS_NEWTON_SCHULZ_H_
#define ORRERY_IR_OPS_NEWTON_SCHULZ_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ir/attributes.h"
#include "ir/op_info.h"
#include "ir/type.h"

// The orthogonal matrix nearest to another, by products alone: steps of Newton and Schulz with the
// coefficients that Muon takes (Jordan et al., "Muon: An optimizer for hidden layers in neural
// networks", 2024). With X = G / |G|, of no more rows than columns, each step is
//
//   A = X X',  B = b A + c A A,  X = a X + B X      a, b, c = 3.4445, -4.7750, 2.0315
//
// so 4 m² n + 2 m³ floating-point operations.

namespace orrery::ir {

/// Steps where an op does not say how many.
inline constexpr int64_t kNewtonSchulzSteps = 5;

/// So many as the attribute "steps" says.
int64_t NewtonSchulzStepsOf(const AttributeSet& attributes);
/// An error where they are no whole number from 1 to 100.
absl::Status CheckNewtonSchulzSteps(const AttributeSet& attributes);

/// `matrix`, row by row, after so many steps. The norm that it is divided by first is its own.
std::vector<double> Orthogonal(const double* matrix, int64_t rows, int64_t columns, int64_t steps);

/// The products of these steps, of all matrices of a tensor [.., rows, columns].
ProductShapes NewtonSchulzProducts(const Dims& dims, int64_t steps);
/// Their floating-point operations.
double NewtonSchulzFlops(const Dims& dims, int64_t steps);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_NEWTON_SCHULZ_H_
