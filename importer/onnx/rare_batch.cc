#include "importer/onnx/rare_batch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace orrery::importer {
namespace rare_batch_cc {
namespace {

constexpr std::array<int64_t, 8> kPrimes = {10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079};

class PrimeFinder {
 public:
  void Add(int64_t number) {
    for (size_t i = 0; number != 0 && i < kPrimes.size(); ++i) {
      divides_[i] |= number % kPrimes[i] == 0;
    }
  }

  void Add(const onnx::GraphProto& graph) {
    for (const onnx::ValueInfoProto& input : graph.input()) {
      for (const auto& dim : input.type().tensor_type().shape().dim()) Add(dim.dim_value());
    }
    for (const onnx::TensorProto& tensor : graph.initializer()) Add(tensor);
    for (const onnx::NodeProto& node : graph.node()) {
      for (const onnx::AttributeProto& attribute : node.attribute()) Add(attribute);
    }
  }

  int64_t Found() const {
    const auto free = std::find(divides_.begin(), divides_.end(), false);
    return free == divides_.end() ? kPrimes[0]
                                  : kPrimes[static_cast<size_t>(free - divides_.begin())];
  }

 private:
  void Add(const onnx::AttributeProto& attribute) {
    Add(attribute.i());
    for (const int64_t number : attribute.ints()) Add(number);
    if (attribute.has_t()) Add(attribute.t());
    if (attribute.has_g()) Add(attribute.g());
  }

  void Add(const onnx::TensorProto& tensor) {
    for (const int64_t dim : tensor.dims()) Add(dim);
    for (const int64_t number : tensor.int64_data()) Add(number);
    for (const int32_t number : tensor.int32_data()) Add(number);
    if (tensor.data_type() == onnx::TensorProto::INT64) AddRaw<int64_t>(tensor.raw_data());
    if (tensor.data_type() == onnx::TensorProto::INT32) AddRaw<int32_t>(tensor.raw_data());
  }

  template <typename Number>
  void AddRaw(const std::string& raw) {
    for (size_t at = 0; at + sizeof(Number) <= raw.size(); at += sizeof(Number)) {
      Number number;
      std::memcpy(&number, raw.data() + at, sizeof(Number));
      Add(static_cast<int64_t>(number));
    }
  }

  std::array<bool, kPrimes.size()> divides_ = {};
};

}  // namespace
}  // namespace rare_batch_cc

int64_t RareBatch(const onnx::GraphProto& graph, const SymbolValues& symbols) {
  rare_batch_cc::PrimeFinder finder;
  finder.Add(graph);
  for (const auto& [name, value] : symbols.values) finder.Add(value);
  return finder.Found();
}

bool HasSizeOf(const ir::Function& function, int64_t batch) {
  const auto has = [&](ir::ValueId value) {
    const ir::Dims& dims = function.type(value).dims;
    return std::any_of(dims.begin(), dims.end(),
                       [&](int64_t dim) { return dim != 0 && dim % batch == 0; });
  };
  for (const ir::Input& input : function.inputs()) {
    if (has(input.value)) return true;
  }
  for (const ir::OpId op : function.order()) {
    for (int32_t j = 0; j < function.result_count(op); ++j) {
      if (has(function.result(op, j))) return true;
    }
  }
  return false;
}

}  // namespace orrery::importer
