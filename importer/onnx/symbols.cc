#include "importer/onnx/symbols.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {

std::string SymbolOf(const onnx::ValueInfoProto& value, int dim) {
  const std::string& name = value.type().tensor_type().shape().dim(dim).dim_param();
  return name.empty() ? absl::StrCat(value.name(), ".", dim) : name;
}

bool SaysBatch(const std::string& symbol) {
  return absl::StrContains(absl::AsciiStrToLower(symbol), "batch");
}

namespace symbols_cc {
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

bool IsIn(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// The data inputs whose dimension 0 is fixed.
std::set<std::string> FixedInputs(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::ValueInfoProto* input : DataInputs(graph)) {
    const onnx::TensorShapeProto& shape = input->type().tensor_type().shape();
    if (shape.dim_size() > 0 && shape.dim(0).has_dim_value()) names.insert(input->name());
  }
  return names;
}

struct BatchSymbols {
  std::vector<std::string> all;  // the first one is that of the first data input with dimensions
  bool plain = true;             // no input starts with another one
};

// Inputs that share no name have symbols of their own.
BatchSymbols FindBatchSymbols(const onnx::GraphProto& graph) {
  BatchSymbols symbols;
  bool starts_fixed = false;  // with a table, say: then the batch must say that it is one
  for (const onnx::ValueInfoProto* input : DataInputs(graph)) {
    const std::string symbol = FirstSymbol(*input);
    const bool scalar = input->type().tensor_type().shape().dim_size() == 0;
    starts_fixed |= symbols.all.empty() && symbol.empty() && !scalar;
    const bool first = symbols.all.empty() && !starts_fixed;
    if (!symbol.empty() && !IsIn(symbols.all, symbol) && (first || SaysBatch(symbol))) {
      symbols.all.push_back(symbol);
    }
    symbols.plain &= symbols.all.size() == 1 && symbol == symbols.all[0];
  }
  return symbols;
}

absl::Status CheckGiven(const ImportOptions& options, const onnx::GraphProto& graph) {
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
  return absl::OkStatus();
}

// "dimension 1 of 'x'": where the symbol stands first.
std::string PositionOf(const std::string& symbol, const onnx::GraphProto& graph) {
  for (const onnx::ValueInfoProto* input : DataInputs(graph)) {
    const onnx::TensorShapeProto& shape = input->type().tensor_type().shape();
    for (int d = 0; d < shape.dim_size(); ++d) {
      if (shape.dim(d).has_dim_value() || SymbolOf(*input, d) != symbol) continue;
      return absl::StrCat("dimension ", d, " of ", Show(input->name()));
    }
  }
  return "no dimension";
}

absl::Status Disagreement(const std::string& symbol, const SymbolValues& symbols,
                          int64_t batch_size, const onnx::GraphProto& graph) {
  return absl::InvalidArgumentError(absl::StrCat(
      "batch ", batch_size, " and symbol ", Show(symbol), "=", symbols.values.at(symbol),
      " disagree about ", PositionOf(symbol, graph),
      ", which is the batch; try one of both, or batch_first=True where dimension 0 is time"));
}

// All at once, and what to try.
absl::Status CheckAllSet(const SymbolValues& symbols, const std::vector<std::string>& batch,
                         const onnx::GraphProto& graph) {
  std::set<std::string> seen;
  std::vector<std::string> missing, advice;
  for (const onnx::ValueInfoProto* input : DataInputs(graph)) {
    const onnx::TensorShapeProto& shape = input->type().tensor_type().shape();
    for (int d = 0; d < shape.dim_size(); ++d) {
      if (shape.dim(d).has_dim_value()) continue;
      const std::string symbol = SymbolOf(*input, d);
      if (symbols.values.contains(symbol) || !seen.insert(symbol).second) continue;
      missing.push_back(
          absl::StrCat(Show(symbol), " (dimension ", d, " of ", Show(input->name()), ")"));
      const std::string choice =
          IsIn(batch, symbol)
              ? "`batch-size` N"
              : absl::StrCat("`symbol` ", ShellWord(absl::StrCat(symbol, "=VALUE")));
      if (!IsIn(advice, choice)) advice.push_back(choice);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no value for the dynamic dimension", missing.size() > 1 ? "s " : " ",
                   absl::StrJoin(missing, ", "), "; try ", absl::StrJoin(advice, " ")));
}

}  // namespace
}  // namespace symbols_cc

absl::StatusOr<SymbolValues> FindSymbols(const ImportOptions& options,
                                         const onnx::GraphProto& graph) {
  ORRERY_RETURN_IF_ERROR(symbols_cc::CheckGiven(options, graph));
  SymbolValues symbols = {.values = options.symbols};
  const symbols_cc::BatchSymbols batch = symbols_cc::FindBatchSymbols(graph);
  std::vector<std::string> settable;
  for (const std::string& symbol : batch.all) {
    if (batch.plain || SaysBatch(symbol)) settable.push_back(symbol);
  }
  if (options.batch_size > 0) {
    for (const std::string& symbol : settable) symbols.values.emplace(symbol, options.batch_size);
    for (const std::string& symbol : batch.all) {
      const auto found = symbols.values.find(symbol);
      if (found == symbols.values.end() || found->second == options.batch_size) continue;
      return symbols_cc::Disagreement(symbol, symbols, options.batch_size, graph);
    }
  }
  ORRERY_RETURN_IF_ERROR(symbols_cc::CheckAllSet(symbols, settable, graph));
  for (const std::string& symbol : batch.all) {
    if (symbols.values.at(symbol) == symbols.values.at(batch.all[0])) {
      symbols.batch.push_back(symbol);
    }
  }
  if (!batch.all.empty()) symbols.fixed = symbols_cc::FixedInputs(graph);
  return symbols;
}

bool MakeBatchDynamic(onnx::GraphProto& graph, SymbolValues& symbols) {
  constexpr char kSymbol[] = "the batch";
  int64_t batch = 0;
  absl::flat_hash_set<std::string> inputs;
  for (const onnx::ValueInfoProto* input : symbols_cc::DataInputs(graph))
    inputs.insert(input->name());
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    if (!inputs.contains(input.name())) continue;
    onnx::TensorShapeProto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    if (shape.dim_size() == 0) continue;
    if (!shape.dim(0).has_dim_value() && batch == 0) return false;
    if (batch == 0) batch = shape.dim(0).dim_value();
    if (batch < 1) return false;
    if (shape.dim(0).dim_value() == batch) shape.mutable_dim(0)->set_dim_param(kSymbol);
  }
  symbols.values[kSymbol] = batch;
  symbols.batch = {kSymbol};
  return batch > 0;
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
