#ifndef ORRERY_IR_OPS_RECURRENT_ACTIVATION_H_
#define ORRERY_IR_OPS_RECURRENT_ACTIVATION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The functions of one number inside of recurrent cells.

namespace orrery::ir {

/// A function of one number, and its derivative from its result.
class Activation {
 public:
  Activation() = default;
  /// An error for an unknown name. `alpha` and `beta` mean what they do in ONNX's operator.
  static absl::StatusOr<Activation> Named(absl::string_view name, double alpha, double beta);

  /// The function of x.
  double operator()(double x) const;
  /// The derivative where the function is y: of all of them that number is enough.
  double Derivative(double y) const;

 private:
  enum class Kind {
    kSigmoid,
    kTanh,
    kRelu,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind_ = Kind::kSigmoid;
  double alpha_ = 0, beta_ = 0;
};

/// The name of an activation in ONNX's spelling, whatever its case; which numbers it takes, and
/// these when none are given.
struct ActivationDefaults {
  absl::string_view name;
  bool takes_alpha = false, takes_beta = false;
  double alpha = 1, beta = 0;
};
/// Null for an unknown name.
const ActivationDefaults* FindActivation(absl::string_view name);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_RECURRENT_ACTIVATION_H_
