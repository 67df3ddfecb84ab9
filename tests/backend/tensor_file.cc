#include "tests/backend/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

namespace orrery::backend {

using ir::DType;
using ir::Tensor;
using onnx::TensorProto;

double FromBFloat16(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

std::optional<DType> DTypeOf(int type) {
  static const std::map<int, DType> kTypes = {
      {TensorProto::FLOAT, DType::kF32},   {TensorProto::DOUBLE, DType::kF64},
      {TensorProto::FLOAT16, DType::kF16}, {TensorProto::BFLOAT16, DType::kBF16},
      {TensorProto::BOOL, DType::kBool},   {TensorProto::INT8, DType::kI8},
      {TensorProto::INT16, DType::kI16},   {TensorProto::INT32, DType::kI32},
      {TensorProto::INT64, DType::kI64},   {TensorProto::UINT8, DType::kU8},
      {TensorProto::UINT16, DType::kU16},  {TensorProto::UINT32, DType::kU32},
      {TensorProto::UINT64, DType::kU64}};
  const auto found = kTypes.find(type);
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

namespace tensor_file_cc {
namespace {

double FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? HUGE_VAL : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename Stored>
void SetRaw(const std::string& raw, double (*convert)(Stored), Tensor& tensor) {
  for (size_t i = 0; i < static_cast<size_t>(tensor.size()); ++i) {
    Stored stored;
    std::memcpy(&stored, raw.data() + i * sizeof(Stored), sizeof(Stored));
    if (tensor.is_float()) {
      tensor.floats()[i] = convert(stored);
    } else {
      tensor.ints()[i] = static_cast<int64_t>(stored);
    }
  }
}

template <typename Stored>
double Plainly(Stored stored) {
  return static_cast<double>(stored);
}

void SetRaw(const std::string& raw, Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kF32:
      return SetRaw<float>(raw, Plainly, tensor);
    case DType::kF64:
      return SetRaw<double>(raw, Plainly, tensor);
    case DType::kF16:
      return SetRaw<uint16_t>(raw, FromHalf, tensor);
    case DType::kBF16:
      return SetRaw<uint16_t>(raw, FromBFloat16, tensor);
    case DType::kI8:
      return SetRaw<int8_t>(raw, Plainly, tensor);
    case DType::kI16:
      return SetRaw<int16_t>(raw, Plainly, tensor);
    case DType::kU16:
      return SetRaw<uint16_t>(raw, Plainly, tensor);
    case DType::kI32:
      return SetRaw<int32_t>(raw, Plainly, tensor);
    case DType::kU32:
      return SetRaw<uint32_t>(raw, Plainly, tensor);
    case DType::kI64:
    case DType::kU64:
      return SetRaw<int64_t>(raw, Plainly, tensor);
    default:
      return SetRaw<uint8_t>(raw, Plainly, tensor);
  }
}

// Element i of a tensor whose elements stand in the fields of their types.
void SetElement(const TensorProto& proto, int i, Tensor& tensor) {
  const auto at = static_cast<size_t>(i);
  switch (tensor.dtype()) {
    case DType::kF32:
      tensor.floats()[at] = static_cast<double>(proto.float_data(i));
      return;
    case DType::kF64:
      tensor.floats()[at] = proto.double_data(i);
      return;
    case DType::kF16:
      tensor.floats()[at] = FromHalf(static_cast<uint16_t>(proto.int32_data(i)));
      return;
    case DType::kBF16:
      tensor.floats()[at] = FromBFloat16(static_cast<uint16_t>(proto.int32_data(i)));
      return;
    case DType::kI64:
      tensor.ints()[at] = proto.int64_data(i);
      return;
    case DType::kU32:
    case DType::kU64:
      tensor.ints()[at] = static_cast<int64_t>(proto.uint64_data(i));
      return;
    default:
      tensor.ints()[at] = proto.int32_data(i);
  }
}

int CountTyped(const TensorProto& proto) {
  return std::max({proto.float_data_size(), proto.double_data_size(), proto.int32_data_size(),
                   proto.int64_data_size(), proto.uint64_data_size()});
}

}  // namespace
}  // namespace tensor_file_cc

std::optional<Tensor> TensorOf(const TensorProto& proto) {
  const std::optional<DType> dtype = DTypeOf(proto.data_type());
  if (!dtype.has_value()) return std::nullopt;
  Tensor tensor(*dtype, ir::Dims(proto.dims().begin(), proto.dims().end()));
  if (proto.has_raw_data()) {
    if (static_cast<int64_t>(proto.raw_data().size()) < tensor.size() * ir::SizeOf(*dtype)) {
      return std::nullopt;
    }
    tensor_file_cc::SetRaw(proto.raw_data(), tensor);
    return tensor;
  }
  if (tensor_file_cc::CountTyped(proto) < tensor.size()) return std::nullopt;
  for (int i = 0; i < static_cast<int>(tensor.size()); ++i)
    tensor_file_cc::SetElement(proto, i, tensor);
  return tensor;
}

}  // namespace orrery::backend
