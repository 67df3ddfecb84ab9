#include "importer/onnx/import_warnings.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx/tensor_values.h"
#include "ir/tensor.h"
#include "support/printable.h"

namespace orrery::importer {
namespace import_warnings_cc {
namespace {

// Nodes of one kind: how many, how many of them are in evaluation form, and the first of those.
struct Count {
  int all = 0, evaluates = 0;
  std::string first = {};

  void Add(const onnx::NodeProto& node, bool is) {
    ++all;
    if (is && evaluates++ == 0) {
      first = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : "";
    }
  }
};

// PyTorch names what it has computed of parameters by the op that reads it: "onnx::Conv_193". It
// does that to weight and bias at once only where it folds a batch norm into them.
bool IsComputedForConv(absl::string_view name) {
  return absl::ConsumePrefix(&name, "onnx::Conv_") && !name.empty() &&
         std::ranges::all_of(
             name, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

class FormFinder {
 public:
  FormFinder(const onnx::ModelProto& model, int64_t opset)
      : opset_(opset), of_pytorch_(model.producer_name() == "pytorch") {
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      tensors_.emplace(tensor.name(), &tensor);
      initializers_.insert(tensor.name());
    }
    for (const onnx::NodeProto& node : model.graph().node()) {
      if (node.op_type() != "Constant" || node.output_size() != 1) continue;
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.name() == "value") tensors_.emplace(node.output(0), &attribute.t());
      }
    }
    for (const onnx::NodeProto& node : model.graph().node()) {
      if (node.domain().empty() || node.domain() == "ai.onnx") Add(node);
    }
  }

  std::optional<std::string> Text() const {
    std::vector<std::string> seen;
    const auto see = [&](const Count& count, absl::string_view how) {
      if (count.evaluates == 0) return;
      seen.push_back(
          absl::StrCat(count.evaluates, " of ", count.all, " ", how, " (", Show(count.first), ")"));
    };
    see(norms_, "BatchNormalization normalize with stored statistics");
    see(folded_, "Conv hold a folded batch norm");
    see(dropouts_, "Dropout drop nothing");
    if (seen.empty()) return std::nullopt;
    return absl::StrCat(
        "is in evaluation form: ", absl::StrJoin(seen, ", "), "; a step of training made of it ",
        norms_.evaluates + folded_.evaluates > 0 ? "lacks batch statistics, and dropout if the "
                                                   "model has some"
                                                 : "lacks dropout",
        "; try an export in training form",
        of_pytorch_ ? ": torch.onnx.export(model.train(), …, "
                      "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)"
                    : "");
  }

 private:
  void Add(const onnx::NodeProto& node) {
    if (node.op_type() == "BatchNormalization") norms_.Add(node, Normalizes(node));
    if (node.op_type() == "Dropout" && opset_ >= 12) dropouts_.Add(node, DropsNothing(node));
    if (node.op_type() != "Conv" || node.input_size() < 1) return;
    folded_.Add(node, of_pytorch_ && node.input_size() == 3 && HoldsNorm(node));
  }

  // With the statistics that it holds.
  bool Normalizes(const onnx::NodeProto& node) const {
    if (opset_ < 14) {  // then the outputs say it
      return std::none_of(node.output().begin() + std::min(node.output_size(), 1),
                          node.output().end(), [](const std::string& o) { return !o.empty(); });
    }
    return std::none_of(node.attribute().begin(), node.attribute().end(),
                        [](const onnx::AttributeProto& attribute) {
                          return attribute.name() == "training_mode" && attribute.i() != 0;
                        });
  }

  bool HoldsNorm(const onnx::NodeProto& node) const {
    return std::ranges::all_of(std::array{node.input(1), node.input(2)}, [&](const auto& name) {
      return initializers_.contains(name) && IsComputedForConv(name);
    });
  }

  // Though it has a ratio.
  bool DropsNothing(const onnx::NodeProto& node) const {
    const auto number = [&](int i, double otherwise) -> std::optional<double> {
      if (node.input_size() <= i || node.input(i).empty()) return otherwise;
      const auto found = tensors_.find(node.input(i));
      if (found == tensors_.end()) return std::nullopt;
      return ScalarOf(*found->second);
    };
    const std::optional<double> ratio = number(1, 0.5), training = number(2, 0);
    return training.has_value() && *training == 0 && (!ratio.has_value() || *ratio > 0);
  }

  static std::optional<double> ScalarOf(const onnx::TensorProto& tensor) {
    const absl::StatusOr<ir::TensorType> type = TypeOf(tensor);
    if (!type.ok() || ir::ElementCount(type->dims) != 1) return std::nullopt;
    const absl::StatusOr<ir::AttributeSet> values = ValuesOf(tensor, *type);
    if (!values.ok()) return std::nullopt;
    const std::optional<ir::Tensor> constant = ir::ConstantTensor(*values, *type);
    return constant.has_value() ? std::optional<double>(constant->Number(0)) : std::nullopt;
  }

  const int64_t opset_;
  const bool of_pytorch_;
  absl::flat_hash_map<absl::string_view, const onnx::TensorProto*> tensors_;
  absl::flat_hash_set<absl::string_view> initializers_;
  Count norms_, folded_, dropouts_;
};

// Whether the file fixes a batch of one sample.
bool HasOneSample(const onnx::GraphProto& graph) {
  if (graph.input_size() == 0) return false;
  const onnx::TensorShapeProto& shape = graph.input(0).type().tensor_type().shape();
  return shape.dim_size() > 0 && shape.dim(0).dim_value() == 1;
}

}  // namespace
}  // namespace import_warnings_cc

std::optional<std::string> EvaluationForm(const onnx::ModelProto& model, int64_t opset) {
  return import_warnings_cc::FormFinder(model, opset).Text();
}

std::optional<std::string> InputsThatMayBeWeights(const onnx::GraphProto& graph,
                                                  const ir::Function& function,
                                                  const RolePatterns& roles) {
  if (!import_warnings_cc::HasOneSample(graph)) return std::nullopt;
  if (!roles.parameters.empty() || !roles.data.empty()) return std::nullopt;
  absl::flat_hash_set<absl::string_view> given;
  for (const onnx::ValueInfoProto& input : graph.input()) given.insert(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) given.erase(tensor.name());
  bool any = false, first = true;
  std::vector<std::string> names;
  for (const ir::Input& input : function.inputs()) {
    const absl::string_view name = function.value_name(input.value);
    const ir::TensorType& type = function.type(input.value);
    any |= input.role == ir::InputRole::kParameter && given.contains(name);
    if (std::exchange(first, false) || input.role != ir::InputRole::kData) continue;
    if (ir::IsFloat(type.dtype) && !type.dims.empty()) names.push_back(Show(name));
  }
  if (!any || names.empty()) return std::nullopt;
  return absl::StrCat(
      "has weights among its inputs and a batch of 1, which ", absl::StrJoin(names, ", "),
      names.size() == 1 ? " has" : " have",
      " too: taken as data; where that is a weight that all samples share (a class token, "
      "positions), say so with --parameters REGEX, or --data REGEX where it is none, or export a "
      "dynamic batch");
}

std::string BatchFoundElsewhere(const BatchDimOfInput& dims, const ir::Function& function,
                                absl::string_view why) {
  std::vector<std::string> where, says;
  for (const ir::Input& input : function.inputs()) {
    const std::string name(function.value_name(input.value));
    const auto found = dims.find(name);
    if (found == dims.end()) continue;
    const auto dim = static_cast<size_t>(found->second);
    where.push_back(absl::StrCat("dimension ", dim, " of ", Show(name), ", of ",
                                 function.type(input.value).dims[dim], ","));
    says.push_back(absl::StrCat("'", Printable(name), "': {", dim, ": 'batch'}"));
  }
  return absl::StrCat(
      "was read with the batch in ", absl::StrJoin(where, " and "), " as ", why,
      "; to say which it is, export the model with a dynamic batch: torch.onnx.export(…, "
      "dynamic_axes={",
      absl::StrJoin(says, ", "), "})");
}

}  // namespace orrery::importer
