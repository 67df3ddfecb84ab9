#include "ir/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "support/check.h"

namespace orrery::ir {
namespace tensor_cc {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

struct FloatFormat {
  int mantissa_bits;  // without the leading one
  int min_exponent;
  double max;
};

FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF8:
    case DType::kF8Block:
      return {.mantissa_bits = 3, .min_exponent = -6, .max = 448};
    case DType::kF4:
      return {.mantissa_bits = 1, .min_exponent = 0, .max = 6};
    case DType::kF16:
      return {.mantissa_bits = 10, .min_exponent = -14, .max = 65504};
    default:
      return {.mantissa_bits = 7, .min_exponent = -126, .max = 3.3895313892515355e38};
  }
}

int64_t WrapInteger(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0 ? 1 : 0;
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kU16:
      return static_cast<uint16_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

int64_t ToInteger(double value, DType dtype) {
  if (std::isnan(value)) return 0;
  if (dtype == DType::kU64 && value >= 9223372036854775808.0) {
    return static_cast<int64_t>(static_cast<uint64_t>(std::min(value, 18446744073709549568.0)));
  }
  return static_cast<int64_t>(std::clamp(value, -9223372036854775808.0, 9223372036854774784.0));
}

}  // namespace
}  // namespace tensor_cc

Tensor::Tensor(DType dtype, Dims dims) : dtype_(dtype), dims_(std::move(dims)) {
  const size_t count = tensor_cc::At(ElementCount(dims_));
  if (is_float()) {
    floats_.resize(count);
  } else {
    ints_.resize(count);
  }
}

Tensor Tensor::OfFloats(DType dtype, Dims dims, std::vector<double> values) {
  ORRERY_CHECK(IsFloat(dtype) && tensor_cc::At(ElementCount(dims)) == values.size())
      << values.size();
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.floats_ = std::move(values);
  return tensor;
}

Tensor Tensor::OfInts(DType dtype, Dims dims, std::vector<int64_t> values) {
  ORRERY_CHECK(!IsFloat(dtype) && tensor_cc::At(ElementCount(dims)) == values.size())
      << values.size();
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.ints_ = std::move(values);
  return tensor;
}

Tensor Tensor::OfShape(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return OfInts(DType::kI64, {count}, std::move(values));
}

double Tensor::Number(int64_t i) const {
  if (is_float()) return floats_[tensor_cc::At(i)];
  if (dtype_ == DType::kU64)
    return static_cast<double>(static_cast<uint64_t>(ints_[tensor_cc::At(i)]));
  return static_cast<double>(ints_[tensor_cc::At(i)]);
}

void Tensor::SetNumber(int64_t i, double value) {
  if (is_float()) {
    floats_[tensor_cc::At(i)] = value;
  } else if (dtype_ == DType::kBool) {
    ints_[tensor_cc::At(i)] = value != 0 ? 1 : 0;
  } else {
    ints_[tensor_cc::At(i)] = tensor_cc::ToInteger(value, dtype_);
  }
}

void Tensor::CopyElement(int64_t to, const Tensor& other, int64_t from) {
  if (is_float()) {
    floats_[tensor_cc::At(to)] = other.floats_[tensor_cc::At(from)];
  } else {
    ints_[tensor_cc::At(to)] = other.ints_[tensor_cc::At(from)];
  }
}

Tensor Tensor::Reshaped(Dims dims) const {
  ORRERY_CHECK(ElementCount(dims) == size()) << size();
  Tensor tensor = *this;
  tensor.dims_ = std::move(dims);
  return tensor;
}

void Tensor::RoundToDType() {
  for (double& value : floats_) value = RoundFloat(value, dtype_);
  for (int64_t& value : ints_) value = tensor_cc::WrapInteger(value, dtype_);
}

double RoundFloat(double value, DType dtype) {
  if (dtype == DType::kF64 || !std::isfinite(value)) return value;
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  if (value == 0) return value;
  const tensor_cc::FloatFormat format = tensor_cc::FormatOf(dtype);
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = std::nearbyint(value / unit) * unit;
  if (std::abs(rounded) <= format.max) return rounded;
  if (IsNarrow(dtype)) return std::copysign(format.max, value);
  return std::copysign(HUGE_VAL, value);
}

absl::StatusOr<std::vector<Tensor>> Evaluate(OpKind kind, const AttributeSet& attributes,
                                             std::span<const Tensor* const> operands,
                                             std::span<const TensorType> result_types,
                                             int64_t partial_over) {
  const OpInfo& info = GetOpInfo(kind);
  if (info.evaluate == nullptr) {
    return absl::UnimplementedError(absl::StrCat(info.name, " cannot be evaluated on its own"));
  }
  std::vector<Tensor> results;
  for (const TensorType& type : result_types) results.emplace_back(type.dtype, type.dims);
  Evaluation evaluation{.attributes = attributes,
                        .operands = operands,
                        .results = results,
                        .partial_over = partial_over,
                        .shares = {}};
  if (absl::Status status = info.evaluate(evaluation); !status.ok()) return status;
  for (Tensor& result : results) result.RoundToDType();
  return results;
}

AttributeSet ConstantAttributes(const Tensor& tensor) {
  AttributeSet attributes;
  if (tensor.size() == 0) return attributes;
  const auto all_equal = [](const auto& values) {
    return values.size() > 1 &&
           std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  };
  if (tensor.is_float()) {
    if (all_equal(tensor.floats())) {
      attributes.Set("fill", tensor.floats()[0]);
    } else {
      attributes.Set("values", tensor.floats());
    }
  } else if (all_equal(tensor.ints())) {
    attributes.Set("fill", tensor.ints()[0]);
  } else {
    attributes.Set("values", tensor.ints());
  }
  return attributes;
}

std::optional<Tensor> ConstantTensor(const AttributeSet& attributes, const TensorType& type) {
  const auto count = tensor_cc::At(ElementCount(type.dims));
  const bool is_float = IsFloat(type.dtype);
  if (count == 0) return Tensor(type.dtype, type.dims);
  if (const Attribute* fill = attributes.Find("fill"); fill != nullptr) {
    const auto* whole = std::get_if<int64_t>(fill);
    const auto* real = std::get_if<double>(fill);
    if (is_float && (whole != nullptr || real != nullptr)) {
      const double value = real != nullptr ? *real : static_cast<double>(*whole);
      return Tensor::OfFloats(type.dtype, type.dims, std::vector<double>(count, value));
    }
    if (is_float || whole == nullptr) return std::nullopt;
    return Tensor::OfInts(type.dtype, type.dims, std::vector<int64_t>(count, *whole));
  }
  const Attribute* values = attributes.Find("values");
  if (values == nullptr) return std::nullopt;
  const auto* reals = std::get_if<std::vector<double>>(values);
  const auto* wholes = std::get_if<std::vector<int64_t>>(values);
  if (is_float && reals != nullptr && reals->size() == count) {
    return Tensor::OfFloats(type.dtype, type.dims, *reals);
  }
  if (is_float || wholes == nullptr || wholes->size() != count) return std::nullopt;
  return Tensor::OfInts(type.dtype, type.dims, *wholes);
}

Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

std::optional<Dims> BroadcastDims(const Dims& x, const Dims& y) {
  const size_t rank = std::max(x.size(), y.size());
  Dims dims(rank, 1);
  for (size_t back = 1; back <= rank; ++back) {
    const int64_t a = back <= x.size() ? x[x.size() - back] : 1;
    const int64_t b = back <= y.size() ? y[y.size() - back] : 1;
    if (a != b && a != 1 && b != 1) return std::nullopt;
    dims[rank - back] = a == 1 ? b : a;
  }
  return dims;
}

Dims BroadcastStrides(const Dims& from, const Dims& to) {
  const Dims own = StridesOf(from);
  Dims strides(to.size(), 0);
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1) strides[to.size() - from.size() + d] = own[d];
  }
  return strides;
}

Odometer::Odometer(const Dims& dims, std::initializer_list<Dims> strides)
    : dims_(dims),
      at_(dims.size(), 0),
      strides_(strides.begin(), strides.end()),
      offsets_(strides.size(), 0),
      left_(ElementCount(dims)) {}

void Odometer::Next() {
  ++index_;
  if (--left_ == 0) return;
  for (size_t d = dims_.size(); d-- > 0;) {
    if (++at_[d] < dims_[d]) {
      for (size_t s = 0; s < strides_.size(); ++s) offsets_[s] += strides_[s][d];
      return;
    }
    at_[d] = 0;
    for (size_t s = 0; s < strides_.size(); ++s) offsets_[s] -= strides_[s][d] * (dims_[d] - 1);
  }
}

AroundDim SplitAround(const Dims& dims, size_t dim) {
  AroundDim around{.outer = 1, .size = dims[dim], .inner = 1};
  for (size_t d = 0; d < dim; ++d) around.outer *= dims[d];
  for (size_t d = dim + 1; d < dims.size(); ++d) around.inner *= dims[d];
  return around;
}

absl::StatusOr<size_t> NormalizeAxis(int64_t axis, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis >= -limit && axis < limit) return tensor_cc::At(axis < 0 ? axis + limit : axis);
  return absl::InvalidArgumentError(
      absl::StrCat("axis ", axis, " is none of the ", rank, " dimensions"));
}

}  // namespace orrery::ir
