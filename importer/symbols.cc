#include "importer/symbols.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/printable.h"

namespace orrery::importer {

std::string SymbolOf(const onnx::ValueInfoProto& value, int dim) {
  const std::string& name = value.type().tensor_type().shape().dim(dim).dim_param();
  return name.empty() ? absl::StrCat(value.name(), ".", dim) : name;
}

namespace {

void Bind(const std::map<std::string, int64_t>& symbols, onnx::ValueInfoProto& value) {
  if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) return;
  onnx::TensorShapeProto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int d = 0; d < shape.dim_size(); ++d) {
    if (shape.dim(d).has_dim_value()) continue;
    const auto found = symbols.find(SymbolOf(value, d));
    if (found != symbols.end()) shape.mutable_dim(d)->set_dim_value(found->second);
  }
}

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

// The one symbol that is dimension 0 of all data inputs; "" when there is none.
std::string BatchSymbol(const onnx::GraphProto& graph) {
  std::set<absl::string_view> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::string batch;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initializers.contains(input.name())) continue;
    const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
    if (shape.dim_size() == 0 || shape.dim(0).has_dim_value()) return "";
    const std::string symbol = SymbolOf(input, 0);
    if (!batch.empty() && symbol != batch) return "";
    batch = symbol;
  }
  return batch;
}

}  // namespace

absl::Status BindSymbols(const ImportOptions& options, onnx::GraphProto& graph) {
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
  std::map<std::string, int64_t> symbols = options.symbols;
  const std::string batch = BatchSymbol(graph);
  if (options.batch_size > 0 && !batch.empty()) symbols.emplace(batch, options.batch_size);
  for (onnx::ValueInfoProto& value : *graph.mutable_input()) Bind(symbols, value);
  for (onnx::ValueInfoProto& value : *graph.mutable_output()) Bind(symbols, value);
  for (onnx::ValueInfoProto& value : *graph.mutable_value_info()) Bind(symbols, value);
  return absl::OkStatus();
}

}  // namespace orrery::importer
