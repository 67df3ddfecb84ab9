#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "ir/op_kind.h"
#include "support/status.h"

// ONNX ops that make random numbers. Their types count; evaluated, all numbers are the mean.

namespace orrery::importer {
namespace random_cc {
namespace {

double MeanOf(NodeContext& c) {
  if (c.node().op_type().rfind("RandomNormal", 0) == 0) return c.Float("mean", 0);
  return (c.Float("low", 0) + c.Float("high", 1)) / 2;
}

// The attribute `dtype`; `fallback` without it.
absl::StatusOr<ir::DType> DTypeOf(NodeContext& c, ir::DType fallback) {
  const int64_t number = c.Int("dtype", 0);
  if (number == 0) return fallback;
  return ElementType(static_cast<int>(number));
}

absl::StatusOr<ir::ValueId> RandomLike(NodeContext& c, ir::ValueId x, ir::DType dtype) {
  ir::AttributeSet attributes = {{"to", std::string(ir::ToString(dtype))}};
  if (const double mean = MeanOf(c); mean != 0) attributes.Set("value", mean);
  return c.Op(ir::OpKind::kRandomLike, {x}, attributes);
}

absl::Status LowerRandom(NodeContext& c) {
  const std::vector<int64_t> shape = c.Ints("shape");
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, DTypeOf(c, ir::DType::kF32));
  ORRERY_ASSIGN_OR_RETURN(
      const ir::ValueId like,
      c.Constant({dtype, ir::Dims(shape.begin(), shape.end()), {}}, {{"fill", 0.0}}));
  return c.Return(RandomLike(c, like, dtype));
}

absl::Status LowerRandomLike(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, DTypeOf(c, c.input_type(0).dtype));
  return c.Return(RandomLike(c, c.input(0), dtype));
}

absl::Status LowerBernoulli(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, DTypeOf(c, c.input_type(0).dtype));
  return c.Return(
      c.Op(ir::OpKind::kRandomLike, {c.input(0)}, {{"to", std::string(ir::ToString(dtype))}}));
}

// [batch, classes] to [batch, samples]: drawn from one column that is repeated.
absl::Status LowerMultinomial(NodeContext& c) {
  const ir::Dims dims = c.input_type(0).dims;
  const int64_t samples = c.Int("sample_size", 1);
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, DTypeOf(c, ir::DType::kI32));
  if (dims.size() != 2 || dims[1] < 1 || samples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", samples, " samples and ", dims.size(),
                     " dimensions; wanted at least 1 sample, and [batch,classes]"));
  }
  const std::vector<int64_t> one = {1}, zero = {0};
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId column,
                          c.Op(ir::OpKind::kSlice, {c.input(0)},
                               {{"axes", one}, {"starts", zero}, {"ends", one}, {"steps", one}}));
  ORRERY_ASSIGN_OR_RETURN(
      column, c.Op(ir::OpKind::kExpand, {column}, {{"shape", std::vector<int64_t>{-1, samples}}}));
  return c.Return(
      c.Op(ir::OpKind::kRandomLike, {column}, {{"to", std::string(ir::ToString(dtype))}}));
}

}  // namespace
}  // namespace random_cc

extern const OnnxOp kRandomNormalOnnxOp = {
    .type = "RandomNormal", .inputs = 0, .lower = random_cc::LowerRandom};

extern const OnnxOp kRandomUniformOnnxOp = {
    .type = "RandomUniform", .inputs = 0, .lower = random_cc::LowerRandom};

extern const OnnxOp kRandomNormalLikeOnnxOp = {.type = "RandomNormalLike",
                                               .lower = random_cc::LowerRandomLike};

extern const OnnxOp kRandomUniformLikeOnnxOp = {.type = "RandomUniformLike",
                                                .lower = random_cc::LowerRandomLike};

extern const OnnxOp kBernoulliOnnxOp = {.type = "Bernoulli", .lower = random_cc::LowerBernoulli};

extern const OnnxOp kMultinomialOnnxOp = {.type = "Multinomial",
                                          .lower = random_cc::LowerMultinomial};

}  // namespace orrery::importer
