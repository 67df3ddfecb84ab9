#include "ir/models/mlp.h"

#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/models/model.h"

namespace orrery::ir {

constexpr int64_t kMaxLayers = 1'000'000;  // 6 values a layer, numbered in 32 bits

absl::StatusOr<Function> Mlp(const MlpShape& shape) {
  if (shape.layers < 1 || shape.layers > kMaxLayers) {
    return absl::InvalidArgumentError(
        absl::StrCat("mlp: got ", shape.layers, " layers; wanted 1 to ", kMaxLayers));
  }
  const auto layers = static_cast<size_t>(shape.layers);
  const TensorType activation{shape.dtype, {shape.batch, shape.dim}, {}};
  Builder b("mlp");
  b.function().Reserve(static_cast<int32_t>(4 * layers + 2), static_cast<int32_t>(6 * layers + 4));
  std::vector<ValueId> w(layers), y(layers), a = {b.Data("x", activation)};
  const ValueId z = b.Data("z", activation);
  for (size_t i = 0; i < layers; ++i) {
    w[i] = b.Parameter(absl::StrCat("w", i), {shape.dtype, {shape.dim, shape.dim}, {}});
  }
  for (size_t i = 0; i < layers; ++i) {
    y[i] = b.MatMul(a[i], w[i], absl::StrCat("y", i));
    a.push_back(b.Relu(y[i], absl::StrCat("a", i)));
  }
  b.Return(b.Loss(a.back(), z, shape.batch, "l"), OutputRole::kLoss);
  ValueId dy = b.LossGrad(a.back(), z, shape.batch, "dl"), dw;
  for (size_t i = layers; i-- > 0;) {
    const ValueId da = b.ReluGrad(y[i], dy, absl::StrCat("da", i));
    std::tie(dy, dw) = b.MatMulGrad(a[i], w[i], da, absl::StrCat("dy", i), absl::StrCat("dw", i));
    if (i == 0) b.Return(dy);
    b.ReturnGradient(dw, w[i]);
  }
  return std::move(b).Finalize();
}

namespace mlp_cc {
namespace {

// dim·dim and dim·batch elements of 8 bytes stay below the 2^60 bytes that a tensor may have.
constexpr ModelKey kKeys[] = {
    {.name = "layers", .fallback = "64", .summary = "products", .max = kMaxLayers},
    {.name = "dim", .fallback = "8192", .summary = "width of all layers", .max = 1 << 24},
};

absl::StatusOr<Function> Build(const ModelValues& values) {
  return Mlp({.layers = values.Int("layers"),
              .dim = values.Int("dim"),
              .batch = values.batch(),
              .dtype = values.dtype()});
}

}  // namespace
}  // namespace mlp_cc

extern constinit const ModelInfo kMlpModel = {
    .name = "mlp",
    .summary = "a training step of matrix products with ReLU, and a squared-error loss",
    .keys = mlp_cc::kKeys,
    .default_batch = 8192,
    .build = mlp_cc::Build,
};

}  // namespace orrery::ir
