#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/fused_activation.h"
#include "ir/ops/kernels.h"
#include "ir/ops/unrolled_convolution.h"
#include "ir/ops/window.h"
#include "support/status.h"

// Convolutions of an image [batch, channels, ..] with weights [maps, channels/group, ..] to maps
// [batch, maps, ..], in any number of spatial dimensions; and the two products of its backward,
// of which that to the image is the transposed convolution as well.

namespace orrery::ir {
namespace convolution_cc {
namespace {

constexpr int8_t kBatch = 0;
constexpr int8_t kMaps = 1;
constexpr int8_t kChannels = 2;

// The types of one convolution, whichever two of them are operands.
struct Parts {
  TensorType image, weight, maps;
};

int64_t GroupOf(const AttributeSet& attributes) { return attributes.Int("group", 1); }

absl::Status CheckRanks(const OpTypes& op) {
  for (size_t i = 0; i < 2; ++i) {
    ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, i, 3, "[batch,channels,..]"));
  }
  ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, 1));
  const Dims &x = op.operands[0]->dims, &w = op.operands[1]->dims;
  if (x.size() == w.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got shapes ", Show(x), " and ", Show(w), "; wanted as many dimensions"));
}

absl::Status CheckGroup(const AttributeSet& attributes, int64_t channels, int64_t maps) {
  const int64_t group = GroupOf(attributes);
  if (group > 0 && channels > 0 && maps > 0 && channels % group == 0 && maps % group == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("group=", group, " does not divide ", channels,
                                                 " channels and ", maps, " maps"));
}

// Operand 2, if it is there, is [maps] or [channels]: one number for each dimension 1 of the
// result.
absl::Status CheckBias(const OpTypes& op, int64_t count) {
  if (op.operands.size() < 3) return absl::OkStatus();
  ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, 2));
  return CheckDims(op, 2, {count}, "(the bias)");
}

absl::Status InferConv(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckRanks(op));
  const Dims &x = op.operands[0]->dims, &w = op.operands[1]->dims;
  ORRERY_RETURN_IF_ERROR(CheckGroup(op.attributes, x[1], w[0]));
  if (x[1] / GroupOf(op.attributes) != w[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", x[1], " channels in ", GroupOf(op.attributes),
                     " groups and weights for ", w[1], " channels a group"));
  }
  ORRERY_RETURN_IF_ERROR(CheckBias(op, w[0]));
  ORRERY_RETURN_IF_ERROR(CheckActivation(op.attributes));
  ORRERY_ASSIGN_OR_RETURN(const Window window, WindowOf(op.attributes, SpatialDims(w)));
  ORRERY_ASSIGN_OR_RETURN(const Dims counts, WindowCounts(window, SpatialDims(x)));
  Dims dims = {x[0], w[0]};
  dims.insert(dims.end(), counts.begin(), counts.end());
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

// The list `name`, a size for each spatial dimension.
absl::StatusOr<Dims> Sizes(const AttributeSet& attributes, absl::string_view name, size_t rank) {
  const std::vector<int64_t> sizes = attributes.Ints(name);
  bool fits = sizes.size() == rank;
  for (const int64_t size : sizes) fits = fits && size > 0 && size < (int64_t{1} << 40);
  if (fits) return Dims(sizes.begin(), sizes.end());
  return absl::InvalidArgumentError(absl::StrCat(name, "=[", absl::StrJoin(sizes, ","),
                                                 "]; wanted a size for each of ", rank,
                                                 " spatial dimensions"));
}

// Maps and weights to an image whose spatial dims the attribute `spatial` has.
absl::Status InferToImage(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckRanks(op));
  const Dims &maps = op.operands[0]->dims, &w = op.operands[1]->dims;
  if (maps[1] != w[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", maps[1], " maps and weights for ", w[0]));
  }
  ORRERY_RETURN_IF_ERROR(CheckGroup(op.attributes, 0 == w[1] ? 0 : GroupOf(op.attributes), w[0]));
  ORRERY_ASSIGN_OR_RETURN(const Dims spatial, Sizes(op.attributes, "spatial", w.size() - 2));
  ORRERY_RETURN_IF_ERROR(WindowOf(op.attributes, SpatialDims(w)).status());
  if (w[1] > (int64_t{1} << 60) / GroupOf(op.attributes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("group=", GroupOf(op.attributes), " makes too many channels"));
  }
  const int64_t channels = w[1] * GroupOf(op.attributes);
  ORRERY_RETURN_IF_ERROR(CheckBias(op, channels));
  Dims dims = {maps[0], channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

absl::Status InferWeightGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckRanks(op));
  const Dims &x = op.operands[0]->dims, &maps = op.operands[1]->dims;
  ORRERY_RETURN_IF_ERROR(CheckGroup(op.attributes, x[1], maps[1]));
  if (x[0] != maps[0]) {
    return absl::InvalidArgumentError(absl::StrCat("got batches of ", x[0], " and ", maps[0]));
  }
  ORRERY_ASSIGN_OR_RETURN(const Dims kernel, Sizes(op.attributes, "kernel", x.size() - 2));
  ORRERY_RETURN_IF_ERROR(WindowOf(op.attributes, kernel).status());
  Dims dims = {maps[1], x[1] / GroupOf(op.attributes)};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

// Two for each element of the maps and each weight that makes it.
double Flops(const Dims& maps, const Dims& weight) {
  double flops = 2.0 * static_cast<double>(ElementCount(maps));
  for (size_t d = 1; d < weight.size(); ++d) flops *= static_cast<double>(weight[d]);
  return flops;
}

// Factors of image, weight and maps. Grouped channels can be split where each is a group of its
// own and makes one map.
struct PartFactors {
  ShardingRule::Factors image, weight, maps;
};

PartFactors FactorsOf(const AttributeSet& attributes, const Dims& image, const Dims& weight) {
  const int64_t group = GroupOf(attributes);
  const ShardingRule::Factors none(image.size(), kNoFactor);
  PartFactors f = {.image = none, .weight = none, .maps = none};
  f.image[0] = kBatch;
  f.maps[0] = kBatch;
  if (group == 1) {
    f.image[1] = kChannels;
    f.weight[0] = kMaps;
    f.weight[1] = kChannels;
    f.maps[1] = kMaps;
  } else if (group == image[1] && group == weight[0]) {
    f.image[1] = kMaps;
    f.weight[0] = kMaps;
    f.maps[1] = kMaps;
  }
  return f;
}

ShardingRule WithBias(ShardingRule rule, const OpTypes& op) {
  if (op.operands.size() > 2) rule.operands.push_back({rule.results[0][1]});
  return rule;
}

// An activation needs the sum over all channels.
ShardingRule ConvSharding(const OpTypes& op, const TypeList&) {
  PartFactors f = FactorsOf(op.attributes, op.operands[0]->dims, op.operands[1]->dims);
  if (HasActivation(op.attributes) && f.image[1] == kChannels) {
    f.image[1] = f.weight[1] = kNoFactor;
  }
  return WithBias({.operands = {f.image, f.weight}, .results = {f.maps}}, op);
}

ShardingRule ToImageSharding(const OpTypes& op, const TypeList& results) {
  const PartFactors f = FactorsOf(op.attributes, results[0].dims, op.operands[1]->dims);
  return WithBias({.operands = {f.maps, f.weight}, .results = {f.image}}, op);
}

ShardingRule WeightGradSharding(const OpTypes& op, const TypeList& results) {
  const PartFactors f = FactorsOf(op.attributes, op.operands[0]->dims, results[0].dims);
  return {.operands = {f.image, f.maps}, .results = {f.weight}};
}

// Evaluation.

absl::Status CheckWork(const Evaluation& e, const Tensor& weight, const Tensor& maps) {
  const Window window = WindowOf(e.attributes, SpatialDims(weight.dims())).value();
  return CheckTaps(window, SpatialDims(maps.dims()));
}

absl::Status EvaluateConv(Evaluation& e) {
  const Tensor &x = e.operand(0), &w = e.operand(1), &y = e.results[0];
  ORRERY_RETURN_IF_ERROR(CheckWork(e, w, y));
  WithNumbersOf(y, [&](auto zero) { Convolution<decltype(zero)>(e, x, w, y).Forward(); });
  AddBias(e);
  if (HasActivation(e.attributes)) {
    for (double& value : e.results[0].floats()) value = Activated(e.attributes, value);
    for (int64_t& value : e.results[0].ints()) value = Activated(e.attributes, value);
  }
  return absl::OkStatus();
}

absl::Status EvaluateToImage(Evaluation& e) {
  const Tensor &maps = e.operand(0), &w = e.operand(1), &image = e.results[0];
  ORRERY_RETURN_IF_ERROR(CheckWork(e, w, maps));
  WithNumbersOf(image,
                [&](auto zero) { Convolution<decltype(zero)>(e, image, w, maps).ToImage(); });
  AddBias(e);
  return absl::OkStatus();
}

absl::Status EvaluateWeightGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &maps = e.operand(1), &w = e.results[0];
  ORRERY_RETURN_IF_ERROR(CheckWork(e, w, maps));
  WithNumbersOf(w, [&](auto zero) { Convolution<decltype(zero)>(e, x, w, maps).ToWeight(); });
  return absl::OkStatus();
}

// Gradients.

std::vector<int64_t> SpatialList(const Dims& dims) {
  const Dims spatial = SpatialDims(dims);
  return {spatial.begin(), spatial.end()};
}

AttributeSet With(AttributeSet attributes, absl::string_view name, std::vector<int64_t> sizes) {
  attributes.Set(name, std::move(sizes));
  return attributes;
}

AttributeSet SlidingAttributes(const AttributeSet& attributes) {
  AttributeSet sliding;
  for (const absl::string_view name : {"strides", "pads", "dilations", "group"}) {
    if (const Attribute* found = attributes.Find(name)) sliding.Set(name, *found);
  }
  return sliding;
}

void SetBiasGradient(GradientContext& c, ValueId dy) {
  if (c.operand_count() < 3 || !c.needs(2)) return;
  std::vector<int64_t> axes = {0};
  const size_t rank = c.operand_type(0).dims.size();
  for (size_t d = 2; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  c.SetOperandGradient(
      2, c.builder().Op(OpKind::kReduceSum, {dy}, c.GradientName(2), {{"axes", axes}}));
}

absl::Status ConvGradient(GradientContext& c) {
  const AttributeSet sliding = SlidingAttributes(c.attributes());
  const ValueId dy = BeforeActivation(c, c.result_gradient());
  if (!dy.valid()) return c.builder().status();
  if (c.needs(0)) {
    const auto spatial = SpatialList(c.operand_type(0).dims);
    c.SetOperandGradient(0, c.builder().Op(OpKind::kConvDataGrad, {dy, c.operand(1)},
                                           c.GradientName(0), With(sliding, "spatial", spatial)));
  }
  if (c.needs(1)) {
    const auto kernel = SpatialList(c.operand_type(1).dims);
    c.SetOperandGradient(1, c.builder().Op(OpKind::kConvWeightGrad, {c.operand(0), dy},
                                           c.GradientName(1), With(sliding, "kernel", kernel)));
  }
  SetBiasGradient(c, dy);
  return c.builder().status();
}

absl::Status ToImageGradient(GradientContext& c) {
  const AttributeSet sliding = SlidingAttributes(c.attributes());
  const ValueId dimage = c.result_gradient();
  if (c.needs(0)) {
    c.SetOperandGradient(
        0, c.builder().Op(OpKind::kConv, {dimage, c.operand(1)}, c.GradientName(0), sliding));
  }
  if (c.needs(1)) {
    const auto kernel = SpatialList(c.operand_type(1).dims);
    c.SetOperandGradient(1, c.builder().Op(OpKind::kConvWeightGrad, {dimage, c.operand(0)},
                                           c.GradientName(1), With(sliding, "kernel", kernel)));
  }
  SetBiasGradient(c, c.result_gradient());
  return c.builder().status();
}

double ToImageFlops(const OpTypes& op, const TypeList&) {
  return Flops(op.operands[0]->dims, op.operands[1]->dims);
}

}  // namespace
}  // namespace convolution_cc

extern const OpInfo kConvOp = {
    .name = "Conv",
    .summary =
        "image [batch,channels,..] convolved with weights [maps,channels/group,..] [plus "
        "bias] [, then `activation`]: [batch,maps,..]",
    .operands = 3,
    .optional = 1,
    .infer = convolution_cc::InferConv,
    .flops =
        [](const OpTypes& op, const TypeList& results) {
          return convolution_cc::Flops(results[0].dims, op.operands[1]->dims);
        },
    .sharding = convolution_cc::ConvSharding,
    .evaluate = convolution_cc::EvaluateConv,
    .gradient = convolution_cc::ConvGradient,
    .matrix_product = true,
};

extern const OpInfo kConvDataGradOp = {
    .name = "ConvDataGrad",
    .summary =
        "gradient of the image of Conv, of the dims `spatial`, from that of the maps, and "
        "weights",
    .operands = 2,
    .infer = convolution_cc::InferToImage,
    .flops = convolution_cc::ToImageFlops,
    .sharding = convolution_cc::ToImageSharding,
    .evaluate = convolution_cc::EvaluateToImage,
    .gradient = convolution_cc::ToImageGradient,
    .matrix_product = true,
};

extern const OpInfo kConvWeightGradOp = {
    .name = "ConvWeightGrad",
    .summary =
        "gradient of the weights of Conv, of the size `kernel`, from the image and the "
        "gradient of the maps",
    .operands = 2,
    .infer = convolution_cc::InferWeightGrad,
    .flops =
        [](const OpTypes& op, const TypeList& results) {
          return convolution_cc::Flops(op.operands[1]->dims, results[0].dims);
        },
    .sharding = convolution_cc::WeightGradSharding,
    .evaluate = convolution_cc::EvaluateWeightGrad,
    .matrix_product = true,
};

extern const OpInfo kConvTransposeOp = {
    .name = "ConvTranspose",
    .summary =
        "maps [batch,maps,..] to an image of the dims `spatial`, as the gradient of Conv "
        "runs, with weights [maps,channels/group,..] [plus bias]",
    .operands = 3,
    .optional = 1,
    .infer = convolution_cc::InferToImage,
    .flops = convolution_cc::ToImageFlops,
    .sharding = convolution_cc::ToImageSharding,
    .evaluate = convolution_cc::EvaluateToImage,
    .gradient = convolution_cc::ToImageGradient,
    .matrix_product = true,
};

}  // namespace orrery::ir
