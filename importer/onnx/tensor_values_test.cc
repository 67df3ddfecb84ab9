#include "importer/onnx/tensor_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "importer/onnx/onnx_type.h"
#include "support/check.h"

namespace orrery::importer {
namespace tensor_values_test_cc {
namespace {

onnx::TensorProto Tensor(onnx::TensorProto_DataType type, std::initializer_list<int64_t> dims) {
  onnx::TensorProto tensor;
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  return tensor;
}

std::string Values(const onnx::TensorProto& tensor) {
  const auto type = TypeOf(tensor);
  ORRERY_CHECK(type.ok()) << type.status();
  const auto values = ValuesOf(tensor, *type);
  return values.ok() ? ir::ToString(*values) : std::string(values.status().message());
}

template <typename T>
std::string RawValues(onnx::TensorProto_DataType type, std::initializer_list<T> elements) {
  onnx::TensorProto tensor = Tensor(type, {static_cast<int64_t>(elements.size())});
  tensor.set_raw_data(
      std::string(reinterpret_cast<const char*>(elements.begin()), elements.size() * sizeof(T)));
  return Values(tensor);
}

TEST(ValuesOf, RawData) {
  EXPECT_EQ(RawValues<float>(onnx::TensorProto::FLOAT, {1.5F, -2.0F}), "{values=[1.5, -2.0]}");
  EXPECT_EQ(RawValues<double>(onnx::TensorProto::DOUBLE, {0.1}), "{values=[0.1]}");
  EXPECT_EQ(RawValues<int64_t>(onnx::TensorProto::INT64, {-1, 768}), "{values=[-1, 768]}");
  EXPECT_EQ(RawValues<int32_t>(onnx::TensorProto::INT32, {-1, 768}), "{values=[-1, 768]}");
  EXPECT_EQ(RawValues<int8_t>(onnx::TensorProto::INT8, {-1, 7}), "{values=[-1, 7]}");
  EXPECT_EQ(RawValues<uint8_t>(onnx::TensorProto::BOOL, {1, 0}), "{values=[1, 0]}");
  EXPECT_EQ(RawValues<uint8_t>(onnx::TensorProto::UINT8, {7, 200}), "{values=[7, 200]}");
  EXPECT_EQ(RawValues<uint16_t>(onnx::TensorProto::UINT16, {7, 65535}), "{values=[7, 65535]}");
}

// 1, -2, the smallest subnormal 2^-24, the largest number, minus infinity.
TEST(ValuesOf, HalfPrecision) {
  EXPECT_EQ(
      RawValues<uint16_t>(onnx::TensorProto::FLOAT16, {0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00}),
      "{values=[1.0, -2.0, 5.960464477539063e-08, 65504.0, -inf]}");
  EXPECT_EQ(RawValues<uint16_t>(onnx::TensorProto::BFLOAT16, {0x3f80, 0xc000}),
            "{values=[1.0, -2.0]}");
}

TEST(ValuesOf, TypedFields) {
  onnx::TensorProto reals = Tensor(onnx::TensorProto::FLOAT, {1, 2});
  reals.add_float_data(1);
  reals.add_float_data(2);
  EXPECT_EQ(Values(reals), "{values=[1.0, 2.0]}");
  onnx::TensorProto doubles = Tensor(onnx::TensorProto::DOUBLE, {});
  doubles.add_double_data(3);
  EXPECT_EQ(Values(doubles), "{values=[3.0]}");
  onnx::TensorProto longs = Tensor(onnx::TensorProto::INT64, {1});
  longs.add_int64_data(4);
  EXPECT_EQ(Values(longs), "{values=[4]}");
  onnx::TensorProto bytes = Tensor(onnx::TensorProto::INT8, {1});
  bytes.add_int32_data(-5);
  EXPECT_EQ(Values(bytes), "{values=[-5]}");
  onnx::TensorProto half = Tensor(onnx::TensorProto::FLOAT16, {1});
  half.add_int32_data(0x3c00);
  EXPECT_EQ(Values(half), "{values=[1.0]}");
  onnx::TensorProto brain = Tensor(onnx::TensorProto::BFLOAT16, {1});
  brain.add_int32_data(0x3f80);
  EXPECT_EQ(Values(brain), "{values=[1.0]}");
}

TEST(ValuesOf, LeftOut) {
  EXPECT_EQ(Values(Tensor(onnx::TensorProto::FLOAT, {4})), "");  // no data
  onnx::TensorProto external = Tensor(onnx::TensorProto::FLOAT, {1});
  external.set_data_location(onnx::TensorProto::EXTERNAL);
  external.set_raw_data("????");
  EXPECT_EQ(Values(external), "");
  onnx::TensorProto large = Tensor(onnx::TensorProto::INT8, {kMaxValues + 1});
  large.set_raw_data(std::string(kMaxValues + 1, 'x'));
  EXPECT_EQ(Values(large), "");
  onnx::TensorProto kept = Tensor(onnx::TensorProto::INT8, {kMaxValues});
  kept.set_raw_data(std::string(kMaxValues, 'x'));
  EXPECT_EQ(Values(kept), "{fill=120}");
  EXPECT_EQ(RawValues<float>(onnx::TensorProto::FLOAT, {std::numeric_limits<float>::quiet_NaN()}),
            "");
}

TEST(ValuesOf, WrongLength) {
  onnx::TensorProto tensor = Tensor(onnx::TensorProto::INT64, {2});
  tensor.set_raw_data(std::string(8, 'x'));
  EXPECT_EQ(Values(tensor), "holds 1 elements; its shape wants 2");
}

}  // namespace
}  // namespace tensor_values_test_cc
}  // namespace orrery::importer
