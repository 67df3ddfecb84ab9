#include "importer/onnx/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::importer {
namespace tensor_values_cc {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

using Integers = std::vector<int64_t>;
using Reals = std::vector<double>;

double FromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction == 0 ? HUGE_VAL : NAN)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double FromBFloat16(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

template <typename Out, typename Field>
std::vector<Out> Copied(const Field& field) {
  std::vector<Out> values;
  for (const auto value : field) values.push_back(static_cast<Out>(value));
  return values;
}

template <typename Stored, typename Out>
std::vector<Out> Unpacked(const std::string& raw) {
  std::vector<Out> values(raw.size() / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, raw.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<Out>(stored);
  }
  return values;
}

Reals Reals16(const Integers& bits, double (*from)(uint16_t)) {
  Reals values;
  for (const int64_t value : bits) values.push_back(from(static_cast<uint16_t>(value)));
  return values;
}

// Which field an element type lies in, when it is not in raw_data, is the table of TensorProto.
ir::Attribute Typed(const onnx::TensorProto& tensor, ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF32:
      return Copied<double>(tensor.float_data());
    case ir::DType::kF64:
      return Copied<double>(tensor.double_data());
    case ir::DType::kI64:
      return Copied<int64_t>(tensor.int64_data());
    case ir::DType::kU32:
    case ir::DType::kU64:
      return Copied<int64_t>(tensor.uint64_data());
    case ir::DType::kF16:
      return Reals16(Copied<int64_t>(tensor.int32_data()), FromHalf);
    case ir::DType::kBF16:
      return Reals16(Copied<int64_t>(tensor.int32_data()), FromBFloat16);
    default:
      return Copied<int64_t>(tensor.int32_data());
  }
}

ir::Attribute Raw(const std::string& raw, ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF32:
      return Unpacked<float, double>(raw);
    case ir::DType::kF64:
      return Unpacked<double, double>(raw);
    case ir::DType::kI64:
      return Unpacked<int64_t, int64_t>(raw);
    case ir::DType::kI32:
      return Unpacked<int32_t, int64_t>(raw);
    case ir::DType::kI16:
      return Unpacked<int16_t, int64_t>(raw);
    case ir::DType::kU8:
      return Unpacked<uint8_t, int64_t>(raw);
    case ir::DType::kU16:
      return Unpacked<uint16_t, int64_t>(raw);
    case ir::DType::kU32:
      return Unpacked<uint32_t, int64_t>(raw);
    case ir::DType::kU64:
      return Unpacked<uint64_t, int64_t>(raw);
    case ir::DType::kF16:
      return Reals16(Unpacked<uint16_t, int64_t>(raw), FromHalf);
    case ir::DType::kBF16:
      return Reals16(Unpacked<uint16_t, int64_t>(raw), FromBFloat16);
    default:
      return Unpacked<int8_t, int64_t>(raw);
  }
}

bool HasData(const onnx::TensorProto& tensor) {
  return tensor.has_raw_data() || tensor.float_data_size() > 0 || tensor.double_data_size() > 0 ||
         tensor.int32_data_size() > 0 || tensor.int64_data_size() > 0 ||
         tensor.uint64_data_size() > 0;
}

size_t Count(const ir::Attribute& values) {
  const Integers* integers = std::get_if<Integers>(&values);
  return integers != nullptr ? integers->size() : std::get<Reals>(values).size();
}

bool HasNan(const Reals& reals) {
  return std::any_of(reals.begin(), reals.end(), [](double value) { return std::isnan(value); });
}

}  // namespace
}  // namespace tensor_values_cc

absl::StatusOr<std::optional<ir::Tensor>> TensorOf(const onnx::TensorProto& tensor,
                                                   const ir::TensorType& type) {
  const int64_t count = ir::ElementCount(type.dims);
  if (count > kMaxValues || tensor.data_location() == onnx::TensorProto::EXTERNAL ||
      (count > 0 && !tensor_values_cc::HasData(tensor))) {
    return std::nullopt;
  }
  ir::Attribute values = tensor.has_raw_data()
                             ? tensor_values_cc::Raw(tensor.raw_data(), type.dtype)
                             : tensor_values_cc::Typed(tensor, type.dtype);
  if (tensor_values_cc::Count(values) != static_cast<size_t>(count)) {
    return absl::InvalidArgumentError(absl::StrCat("holds ", tensor_values_cc::Count(values),
                                                   " elements; its shape wants ", count));
  }
  if (ir::IsFloat(type.dtype)) {
    return ir::Tensor::OfFloats(type.dtype, type.dims,
                                std::get<tensor_values_cc::Reals>(std::move(values)));
  }
  return ir::Tensor::OfInts(type.dtype, type.dims,
                            std::get<tensor_values_cc::Integers>(std::move(values)));
}

ir::AttributeSet KeptValues(const ir::Tensor& tensor) {
  const bool keeps = tensor.size() <= kMaxValues && !tensor_values_cc::HasNan(tensor.floats());
  return keeps ? ir::ConstantAttributes(tensor) : ir::AttributeSet();
}

absl::StatusOr<ir::AttributeSet> ValuesOf(const onnx::TensorProto& tensor,
                                          const ir::TensorType& type) {
  ORRERY_ASSIGN_OR_RETURN(const std::optional<ir::Tensor> values, TensorOf(tensor, type));
  return values.has_value() ? KeptValues(*values) : ir::AttributeSet();
}

bool AllEqual(const onnx::TensorProto& tensor) {
  if (!tensor_values_cc::HasData(tensor)) return false;
  if (!tensor.has_raw_data()) {
    const auto equal = [](const auto& field) {
      return std::adjacent_find(field.begin(), field.end(), std::not_equal_to<>()) == field.end();
    };
    return equal(tensor.float_data()) && equal(tensor.double_data()) &&
           equal(tensor.int32_data()) && equal(tensor.int64_data()) && equal(tensor.uint64_data());
  }
  int64_t count = 1;
  for (const int64_t dim : tensor.dims()) count *= std::max<int64_t>(dim, 1);
  const std::string& raw = tensor.raw_data();
  const size_t size = raw.size() / static_cast<size_t>(count);
  return size > 0 && std::memcmp(raw.data(), raw.data() + size, raw.size() - size) == 0;
}

}  // namespace orrery::importer
