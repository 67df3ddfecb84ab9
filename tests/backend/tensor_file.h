#ifndef ORRERY_TESTS_BACKEND_TENSOR_FILE_H_
#define ORRERY_TESTS_BACKEND_TENSOR_FILE_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>

#include "ir/tensor.h"
#include "ir/type.h"

// Tensors of ONNX files, read apart from the importer, so that both must agree.

namespace orrery::backend {

/// The element type of that ONNX number; nothing for text, complex numbers and the like.
std::optional<ir::DType> DTypeOf(int type);

/// The tensor; nothing for one that is no tensor of numbers, or whose data is not there.
std::optional<ir::Tensor> TensorOf(const onnx::TensorProto& proto);

double FromBFloat16(uint16_t bits);

}  // namespace orrery::backend

#endif  // ORRERY_TESTS_BACKEND_TENSOR_FILE_H_
