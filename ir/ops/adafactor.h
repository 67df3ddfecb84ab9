#ifndef ORRERY_IR_OPS_ADAFACTOR_H_
#define ORRERY_IR_OPS_ADAFACTOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/attributes.h"
#include "ir/op_info.h"
#include "ir/tensor.h"

// Adafactor (Shazeer & Stern 2018, algorithms 4 and 5) in passes over one parameter. Of a
// matrix g, one of those of a tensor [.., rows, columns], the second moment V is that of rank one
// which its row and column means r and c say:
//
//   means     r̂ = mean over columns of g² + ε1, ĉ = mean over rows of it
//   moments   r = β r + (1 - β) r̂, t = mean over rows of r; c = β c + (1 - β) ĉ; V = r c / t
//   norms     a = mean of g² / V, b = mean of w², over all elements of the parameter
//   update    w - lr max(ε2, √b) / max(1, √a / d) g / √V
//
// Of a vector V = β V + (1 - β)(g² + ε1). Means are of the whole parameter: of a
// part of it each pass adds up what it has and divides by the size of the whole, so that the sums
// of all parts are the means.

namespace orrery::ir {

/// The numbers of the rule, as attributes say them: "lr", "beta2" (β), "epsilon1", "epsilon2" and
/// "clip" (d).
struct AdafactorNumbers {
  double rate, beta, epsilon1, epsilon2, clip;
};
AdafactorNumbers AdafactorNumbersOf(const AttributeSet& attributes);

/// Dims of r (state 0) and c (state 1) of a matrix, each 1 where it is a mean over a dimension.
Dims AdafactorState(const Dims& parameter, size_t state);
/// Dims of t.
Dims AdafactorTotal(const Dims& parameter);

/// The sizes of a whole parameter, of which a part may be at hand.
struct AdafactorWhole {
  int64_t rows = 1, columns = 1;  // the last two dimensions
  double elements = 1;
};
/// Those of operand `i`.
AdafactorWhole AdafactorWholeOf(const Evaluation& e, size_t i);

/// r̂ and ĉ of the gradient of a matrix, added to `means`; g² + ε1 of a vector.
void AdafactorMeans(const Tensor& gradient, const AdafactorWhole& whole, double epsilon1,
                    std::span<Tensor> means);
/// The next `moment`, from what it was and such a mean.
void AdafactorAverage(const Tensor& moment, const Tensor& mean, double beta, Tensor& next);
/// t of r, added to `total`.
void AdafactorMeanOfRows(const Tensor& r, int64_t whole_rows, Tensor& total);

/// g / √V, element by element: V is given as it is, or as r, c and t.
class AdafactorStep {
 public:
  /// All that is referred to lives longer.
  AdafactorStep(const Tensor& gradient, std::span<const Tensor* const> moments)
      : gradient_(gradient), moments_(moments) {}

  double At(int64_t element) const;

 private:
  const Tensor& gradient_;
  const std::span<const Tensor* const> moments_;
};

/// a and b, added to `norms`.
void AdafactorNorms(const Tensor& weights, const AdafactorStep& step, double whole_elements,
                    Tensor& norms);
/// The weights that follow, into each of `copies`.
void AdafactorUpdate(const Tensor& weights, const AdafactorStep& step, const Tensor& norms,
                     const AdafactorNumbers& numbers, std::span<Tensor* const> copies);

/// What the passes over one parameter compute and move: `parameter` and a gradient of these types,
/// `copies` of the parameter, the first of its type and those behind it of 4 bytes an element.
double AdafactorFlops(const Dims& parameter);
int64_t AdafactorBytes(const TensorType& parameter, const TensorType& gradient, size_t copies);

// Floating-point operations of each pass, an element: of a matrix, and of a vector, whose V is
// there.
inline constexpr double kAdafactorMeansFlops = 4;   // square, ε1, two sums
inline constexpr double kAdafactorSquareFlops = 2;  // of a vector
inline constexpr double kAdafactorMomentFlops = 3;  // of r, c or V; t takes a sum more
inline constexpr double kAdafactorNormsFlops = 8;   // V two, root, quotient, squares, sums
inline constexpr double kAdafactorVectorNormsFlops = 6;
inline constexpr double kAdafactorUpdateFlops = 6;  // V two, root, quotient, rate, step
inline constexpr double kAdafactorVectorUpdateFlops = 4;

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_ADAFACTOR_H_
