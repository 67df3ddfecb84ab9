#ifndef ORRERY_TESTS_IR_TEXT_EXAMPLES_H_
#define ORRERY_TESTS_IR_TEXT_EXAMPLES_H_

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/function.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"
#include "ir/text/text.h"
#include "support/check.h"
#include "tests/ir_text/golden.h"

// The examples of op kinds in ops/, each op by itself and with values to work on, for tests that
// hold for every op kind.

namespace orrery::ir::examples {

/// One op of an example: whole operands and results, sharded over nothing.
struct Example {
  std::string name;  // "Add.ir @broadcast %y"
  OpKind kind;
  AttributeSet attributes;
  std::vector<TensorType> operands;
  /// What constants of the example hold; nothing for an operand that may be anything.
  std::vector<std::optional<Tensor>> known;

  const OpInfo& info() const { return GetOpInfo(kind); }
};

inline std::vector<const TensorType*> Pointers(const std::vector<TensorType>& types) {
  std::vector<const TensorType*> pointers;
  for (const TensorType& type : types) pointers.push_back(&type);
  return pointers;
}

inline std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

/// The ops of one text that can be evaluated and whose types are inferred.
inline void AppendOps(const std::string& file, const Function& function,
                      std::vector<Example>& examples) {
  for (const OpId op : function.order()) {
    const OpInfo& info = function.info(op);
    if (info.evaluate == nullptr || info.infer == nullptr) continue;
    Example example{
        .name = absl::StrCat(
            file, " @", function.name(), " ", info.name, " ",
            function.result_count(op) > 0 ? PrintValue(function, function.result(op)) : ""),
        .kind = function.kind(op),
        .attributes = {},
        .operands = {},
        .known = {}};
    for (const auto& [name, value] : function.attributes(op).attributes()) {
      if (name != "split") example.attributes.Set(name, value);
    }
    for (const ValueId operand : function.operands(op)) {
      TensorType type = function.type(operand);
      type.sharding = {};
      const OpId producer = function.producer(operand);
      const bool constant = producer.valid() && function.kind(producer) == OpKind::kConstant;
      example.known.push_back(constant ? ConstantTensor(function.attributes(producer), type)
                                       : std::nullopt);
      example.operands.push_back(std::move(type));
    }
    examples.push_back(std::move(example));
  }
}

/// All of them, in the order of the files.
inline const std::vector<Example>& All() {
  static const auto& examples = *[] {
    auto* all = new std::vector<Example>;
    for (const std::string& path : golden::Paths()) {
      if (path.find("/ops/") == std::string::npos) continue;
      const auto functions = ParseFunctions(ReadFile(path).value());
      ORRERY_CHECK(functions.ok()) << path << ": " << functions.status().ToString();
      for (const Function& function : *functions) {
        AppendOps(std::filesystem::path(path).filename().string(), function, *all);
      }
    }
    return all;
  }();
  return examples;
}

/// Types of the results when the operands have types `operands`; nothing when they do not fit.
inline std::optional<TypeList> ResultTypes(const Example& example,
                                           const std::vector<TensorType>& operands,
                                           const Mesh& mesh = Mesh()) {
  TypeList results;
  const std::vector<const TensorType*> pointers = Pointers(operands);
  const OpTypes op{.attributes = example.attributes, .operands = pointers, .mesh = mesh};
  if (!InferTypes(example.kind, op, results).ok()) return std::nullopt;
  return results;
}

/// Between which magnitudes floats lie; with either sign or without.
struct Range {
  double low, high;
  bool negative;
};

/// What whole numbers stay below, so that they can be indices into any dimension: the smallest size
/// above 1 around.
inline int64_t IndexLimit(const Example& example) {
  int64_t limit = 1000;
  for (const TensorType& type : example.operands) {
    if (!IsFloat(type.dtype)) continue;
    for (const int64_t dim : type.dims) limit = dim > 1 ? std::min(limit, dim) : limit;
  }
  for (const char* name : {"size", "depth", "classes"}) {
    limit = std::min(limit, example.attributes.Int(name, limit));
  }
  return limit == 1000 ? 2 : std::max<int64_t>(limit, 1);
}

inline Tensor RandomTensor(const TensorType& type, const Range& range, int64_t index_limit,
                           std::mt19937& random) {
  Tensor tensor(type.dtype, type.dims);
  for (double& value : tensor.floats()) {
    const double share = static_cast<double>(random() % 100003) / 100003;
    value = range.low + share * (range.high - range.low);
    if (range.negative && random() % 2 == 0) value = -value;
  }
  const int64_t limit = type.dtype == DType::kBool ? 2 : index_limit;
  for (int64_t& value : tensor.ints()) value = static_cast<int64_t>(random()) % limit;
  return tensor;
}

/// The results on `operands`, of dtype and dims as inferred, with floats unrounded.
inline absl::StatusOr<std::vector<Tensor>> EvaluateExactly(const Example& example,
                                                           const std::vector<Tensor>& operands) {
  std::vector<TensorType> types;
  for (const Tensor& operand : operands) types.push_back(operand.type());
  const std::optional<TypeList> result_types = ResultTypes(example, types);
  if (!result_types.has_value()) return absl::InvalidArgumentError("types do not fit");
  std::vector<Tensor> results;
  for (const TensorType& type : *result_types) results.emplace_back(type.dtype, type.dims);
  const std::vector<const Tensor*> pointers = Pointers(operands);
  Evaluation evaluation{.attributes = example.attributes, .operands = pointers, .results = results};
  absl::Status status = example.info().evaluate(evaluation);
  if (!status.ok()) return status;
  return results;
}

inline bool AllFinite(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    for (const double value : tensor.floats()) {
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

/// Operands on which the results are finite, if there are any: of either sign, of moderate size,
/// between 0 and 1 and above 1, whichever does it first.
inline std::vector<Tensor> Operands(const Example& example, std::mt19937& random) {
  constexpr Range kRanges[] = {
      {0.1, 1.9, true}, {0.1, 0.9, true}, {0.1, 0.9, false}, {1.1, 1.9, false}};
  std::vector<Tensor> operands;
  for (const Range& range : kRanges) {
    operands.clear();
    for (size_t i = 0; i < example.operands.size(); ++i) {
      operands.push_back(example.known[i].has_value() ? *example.known[i]
                                                      : RandomTensor(example.operands[i], range,
                                                                     IndexLimit(example), random));
    }
    const auto results = EvaluateExactly(example, operands);
    if (results.ok() && AllFinite(*results)) break;
  }
  return operands;
}

}  // namespace orrery::ir::examples

#endif  // ORRERY_TESTS_IR_TEXT_EXAMPLES_H_
