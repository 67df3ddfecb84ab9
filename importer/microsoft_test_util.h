#ifndef ORRERY_IMPORTER_MICROSOFT_TEST_UTIL_H_
#define ORRERY_IMPORTER_MICROSOFT_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx_test_util.h"
#include "ir/execution/execute.h"

// What a node of ONNX Runtime computes, executed.

namespace orrery::importer {

/// Whole numbers by the names of inputs.
using Given = std::map<std::string, std::vector<int64_t>>;

/// What a node of com.microsoft makes of inputs that differ in all elements, or are given.
class Ran {
 public:
  /// `outputs` are those of the node that are compared. Inputs of whole numbers are in `given`.
  Ran(const std::string& node, const std::string& inputs, const Given& given = {},
      const std::vector<std::string>& outputs = {"y"}) {
    std::vector<std::string> declared;
    for (const std::string& output : outputs) declared.push_back("float[N] " + output);
    onnx::ModelProto model = ModelOf(
        absl::StrCat("g (", inputs, ") => (", absl::StrJoin(declared, ", "), ") { ", node, " }"));
    for (auto& output : *model.mutable_graph()->mutable_output()) output.clear_type();
    for (auto& each : *model.mutable_graph()->mutable_node()) each.set_domain("com.microsoft");
    const std::string path = WriteTestFile("m.onnx", model.SerializeAsString());
    const absl::StatusOr<ir::Function> function = ImportOnnx(path);
    if (!function.ok()) {
      ADD_FAILURE() << function.status();
      return;
    }
    for (const ir::Input& input : function->inputs()) Fill(*function, input.value, given);
    const absl::StatusOr<ir::Execution> execution =
        ir::Execute(*function, tensors_, {.round = false});
    if (!execution.ok()) {
      ADD_FAILURE() << execution.status();
      return;
    }
    for (size_t i = 0; i < outputs.size(); ++i) tensors_[outputs[i]] = execution->outputs[i];
  }

  /// An element of an input or output.
  double At(const std::string& name, std::vector<int64_t> position) const {
    const ir::Tensor& tensor = tensors_.at(name);
    int64_t at = 0;
    for (size_t d = 0; d < position.size(); ++d) at = at * tensor.dims()[d] + position[d];
    return tensor.Number(at);
  }
  const ir::Dims& dims(const std::string& name) const { return tensors_.at(name).dims(); }
  bool ok() const { return tensors_.contains("y"); }

  /// Compares the output with what `value` says at each position.
  void Expect(const std::string& name, const ir::Dims& wanted,
              const std::function<double(const std::vector<int64_t>&)>& value) const {
    ASSERT_TRUE(tensors_.contains(name)) << name;
    ASSERT_EQ(dims(name), wanted);
    std::vector<int64_t> at(wanted.size(), 0);
    for (int64_t i = 0; i < tensors_.at(name).size(); ++i) {
      int64_t rest = i;
      for (size_t d = wanted.size(); d-- > 0; rest /= wanted[d]) at[d] = rest % wanted[d];
      ASSERT_NEAR(tensors_.at(name).Number(i), value(at), 1e-6)
          << name << " at " << absl::StrJoin(at, ",");
    }
  }

 private:
  void Fill(const ir::Function& function, ir::ValueId value, const Given& given) {
    const std::string name = ir::ExecutionName(function, value);
    ir::Tensor tensor(function.type(value).dtype, function.type(value).dims);
    const auto found = given.find(name);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.SetNumber(i, found != given.end()
                              ? static_cast<double>(found->second.at(static_cast<size_t>(i)))
                              : std::sin(1.7 * static_cast<double>(++counter_)));
    }
    tensors_[name] = tensor;
  }

  ir::NamedTensors tensors_;
  int64_t counter_ = 0;
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_MICROSOFT_TEST_UTIL_H_
