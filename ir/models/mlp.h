#ifndef ORRERY_IR_MODELS_MLP_H_
#define ORRERY_IR_MODELS_MLP_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::ir {

/// The numbers that Mlp is made from.
struct MlpShape {
  int64_t layers = 64;
  int64_t dim = 8192;  // of input, hidden and output alike, but for those that follow
  std::optional<int64_t> input = {}, hidden = {}, output = {};
  int64_t batch = 8192;
  DType dtype = DType::kF32;
};

/// One training step of `layers` matrix products, each followed by ReLU, with a squared-error loss
/// and explicit gradient ops: of every weight, and of the input. 4·layers + 2 ops. It is the MLP
/// that DistIR's notebook writes, and what `--model mlp:layers=64,dim=8192` builds. Of one layer,
/// which has nothing hidden, the weight is input x output: `hidden` is an error there.
absl::StatusOr<Function> Mlp(const MlpShape& shape);

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODELS_MLP_H_
