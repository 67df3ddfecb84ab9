#include "ir/model_facts.h"

#include <numeric>

#include "ir/batch.h"
#include "ir/op_kind.h"

namespace orrery::ir {

int64_t SequenceLength(const Function& function) {
  int64_t length = 0;
  for (const Input& input : function.inputs()) {
    const TensorType& type = function.type(input.value);
    if (type.dims.size() < 2 || !HasBatch(function, input)) continue;
    if (!IsFloat(type.dtype)) return type.dims[1];
    if (length == 0) length = type.dims[1];
  }
  return length;
}

int64_t TokensASample(const Function& function) {
  for (const Input& input : function.inputs()) {
    const TensorType& type = function.type(input.value);
    if (input.role == InputRole::kData && type.dims.size() == 2 && !IsFloat(type.dtype)) {
      return type.dims[1];
    }
  }
  return 1;
}

std::optional<DType> ComputeType(const Function& function) {
  for (const Input& input : function.inputs()) {
    if (input.role == InputRole::kParameter) return function.type(input.value).dtype;
  }
  return std::nullopt;
}

int64_t CommonExperts(const Function& function) {
  int64_t common = 0;
  for (const OpId op : function.order()) {
    if (function.kind(op) != OpKind::kRoute) continue;
    common = std::gcd(common, function.attributes(op).Int("experts", 0));
  }
  return common;
}

}  // namespace orrery::ir
