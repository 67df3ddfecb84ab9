#include "importer/symbols.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/printable.h"

namespace orrery::importer {

std::string SymbolOf(const onnx::ValueInfoProto& value, int dim) {
  const std::string& name = value.type().tensor_type().shape().dim(dim).dim_param();
  return name.empty() ? absl::StrCat(value.name(), ".", dim) : name;
}

namespace {

// The symbols of the dynamic dimensions of all inputs.
std::set<std::string> InputSymbols(const onnx::GraphProto& graph) {
  std::set<std::string> symbols;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
    for (int d = 0; d < shape.dim_size(); ++d) {
      if (!shape.dim(d).has_dim_value()) symbols.insert(SymbolOf(input, d));
    }
  }
  return symbols;
}

// The inputs that are no initializers too.
std::vector<const onnx::ValueInfoProto*> DataInputs(const onnx::GraphProto& graph) {
  std::set<absl::string_view> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::vector<const onnx::ValueInfoProto*> inputs;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (!initializers.contains(input.name())) inputs.push_back(&input);
  }
  return inputs;
}

// The symbol that is dimension 0; "" when that is fixed or there is none.
std::string FirstSymbol(const onnx::ValueInfoProto& input) {
  const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
  return shape.dim_size() == 0 || shape.dim(0).has_dim_value() ? "" : SymbolOf(input, 0);
}

// The one symbol that is dimension 0 of all data inputs; "" when there is none.
std::string CommonSymbol(const onnx::GraphProto& graph) {
  std::set<std::string> symbols;
  for (const onnx::ValueInfoProto* input : DataInputs(graph)) symbols.insert(FirstSymbol(*input));
  return symbols.size() == 1 ? *symbols.begin() : "";
}

// The symbol that is dimension 0 of the first data input with dimensions; "" when that is fixed.
std::string BatchSymbol(const onnx::GraphProto& graph) {
  for (const onnx::ValueInfoProto* input : DataInputs(graph)) {
    if (input->type().tensor_type().shape().dim_size() > 0) return FirstSymbol(*input);
  }
  return "";
}

}  // namespace

absl::StatusOr<SymbolValues> FindSymbols(const ImportOptions& options,
                                         const onnx::GraphProto& graph) {
  const std::set<std::string> known = InputSymbols(graph);
  for (const auto& [name, value] : options.symbols) {
    if (value < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("symbol ", Show(name), " is ", value, "; wanted a value of at least 1"));
    }
    if (known.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "symbol ", Show(name), " is no dynamic dimension of an input; ",
        known.empty() ? std::string("all dimensions are fixed")
                      : absl::StrCat("wanted one of ", Printable(absl::StrJoin(known, ", ")))));
  }
  SymbolValues symbols = {.values = options.symbols};
  const std::string common = CommonSymbol(graph);
  if (options.batch_size > 0 && !common.empty()) symbols.values.emplace(common, options.batch_size);
  const std::string batch = BatchSymbol(graph);
  if (symbols.values.contains(batch)) symbols.batch = batch;
  return symbols;
}

onnx::ValueInfoProto Bound(const SymbolValues& symbols, onnx::ValueInfoProto input) {
  if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) return input;
  onnx::TensorShapeProto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int d = 0; d < shape.dim_size(); ++d) {
    if (shape.dim(d).has_dim_value()) continue;
    const auto found = symbols.values.find(SymbolOf(input, d));
    if (found != symbols.values.end()) shape.mutable_dim(d)->set_dim_value(found->second);
  }
  return input;
}

}  // namespace orrery::importer
