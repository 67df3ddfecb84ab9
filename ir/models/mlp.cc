#include "ir/models/mlp.h"

#include <optional>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/models/model.h"
#include "support/status.h"

namespace orrery::ir {

constexpr int64_t kMaxLayers = 1'000'000;  // 6 values a layer, numbered in 32 bits

namespace mlp_cc {
namespace {

// Columns of what goes into layer i, and of what comes out of the last one for i = layers.
int64_t Width(const MlpShape& shape, int64_t i) {
  if (i == 0) return shape.input.value_or(shape.dim);
  return (i == shape.layers ? shape.output : shape.hidden).value_or(shape.dim);
}

absl::Status Check(const MlpShape& shape) {
  if (shape.layers < 1 || shape.layers > kMaxLayers) {
    return absl::InvalidArgumentError(
        absl::StrCat("mlp: got ", shape.layers, " layers; wanted 1 to ", kMaxLayers));
  }
  if (shape.layers > 1 || !shape.hidden.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("mlp: got hidden=", *shape.hidden,
                   " with layers=1, which has nothing between input and output; wanted at least 2 "
                   "layers; try input and output alone"));
}

}  // namespace
}  // namespace mlp_cc

absl::StatusOr<Function> Mlp(const MlpShape& shape) {
  ORRERY_RETURN_IF_ERROR(mlp_cc::Check(shape));
  const auto layers = static_cast<size_t>(shape.layers);
  const auto type = [&](int64_t rows, int64_t i) {
    return TensorType{shape.dtype, {rows, mlp_cc::Width(shape, i)}, {}};
  };
  Builder b("mlp");
  b.function().Reserve(static_cast<int32_t>(4 * layers + 2), static_cast<int32_t>(6 * layers + 4));
  std::vector<ValueId> w(layers), y(layers), a = {b.Data("x", type(shape.batch, 0))};
  const ValueId z = b.Data("z", type(shape.batch, shape.layers));
  for (size_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<int64_t>(i);
    w[i] = b.Parameter(absl::StrCat("w", i), type(mlp_cc::Width(shape, layer), layer + 1));
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
    {.name = "input",
     .fallback = "",
     .summary = "width of the input, dim unless given",
     .max = 1 << 24},
    {.name = "hidden",
     .fallback = "",
     .summary = "width between layers, dim unless given",
     .max = 1 << 24},
    {.name = "output",
     .fallback = "",
     .summary = "width of the output, dim unless given",
     .max = 1 << 24},
};

std::optional<int64_t> Given(const ModelValues& values, absl::string_view key) {
  if (!values.Has(key)) return std::nullopt;
  return values.Int(key);
}

absl::StatusOr<Function> Build(const ModelValues& values) {
  return Mlp({.layers = values.Int("layers"),
              .dim = values.Int("dim"),
              .input = Given(values, "input"),
              .hidden = Given(values, "hidden"),
              .output = Given(values, "output"),
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
