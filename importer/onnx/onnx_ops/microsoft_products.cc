#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/products.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Products with the activation behind them, as ONNX Runtime fuses them for CPUs.

namespace orrery::importer {
namespace microsoft_products_cc {
namespace {

// An activation that may be fused: its parameters, and what they are where nobody says it.
struct Activation {
  absl::string_view name;
  ir::OpKind kind;
  std::vector<std::pair<absl::string_view, double>> parameters = {};
};

const std::vector<Activation>& Activations() {
  static const std::vector<Activation> all = {
      {"HardSigmoid", ir::OpKind::kHardSigmoid, {{"alpha", 0.2}, {"beta", 0.5}}},
      {"LeakyRelu", ir::OpKind::kLeakyRelu, {{"alpha", 0.01}}},
      {"Relu", ir::OpKind::kRelu},
      {"Sigmoid", ir::OpKind::kSigmoid},
      {"Tanh", ir::OpKind::kTanh},
  };
  return all;
}

// What the attribute `activation` makes of x; `given` are its parameters, in their order.
absl::StatusOr<ir::ValueId> Activated(NodeContext& c, ir::ValueId x,
                                      const std::vector<double>& given) {
  const std::string name = c.String("activation", "");
  if (name.empty()) return x;
  const auto found =
      std::find_if(Activations().begin(), Activations().end(),
                   [&](const Activation& activation) { return activation.name == name; });
  if (found == Activations().end()) {
    return absl::UnimplementedError(
        absl::StrCat("activation '", name,
                     "' is not supported; wanted HardSigmoid, LeakyRelu, Relu, Sigmoid or "
                     "Tanh"));
  }
  ir::AttributeSet attributes;
  for (size_t i = 0; i < found->parameters.size(); ++i) {
    const auto& [parameter, usual] = found->parameters[i];
    attributes.Set(parameter, i < given.size() ? given[i] : usual);
  }
  return c.Op(found->kind, {x}, attributes);
}

absl::Status LowerFusedGemm(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId y, GemmOf(c));
  std::vector<double> given;
  for (const absl::string_view name : {"activation_alpha", "activation_beta"}) {
    if (c.Attribute(name) != nullptr) given.push_back(c.Float(name, 0));
  }
  return c.Return(Activated(c, y, given));
}

// Input 3 is added before the activation.
absl::Status LowerFusedConv(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId y, ConvOf(c));
  if (c.has_input(3)) {
    ORRERY_ASSIGN_OR_RETURN(y, c.Op(ir::OpKind::kAdd, {y, c.input(3)}));
  }
  return c.Return(Activated(c, y, c.Floats("activation_params")));
}

}  // namespace
}  // namespace microsoft_products_cc

extern const OnnxOp kMicrosoftFusedConvOnnxOp = {.type = "FusedConv",
                                                 .domain = kMicrosoft,
                                                 .inputs = 2,
                                                 .weights = 0b110,
                                                 .lower = microsoft_products_cc::LowerFusedConv};

extern const OnnxOp kMicrosoftFusedGemmOnnxOp = {.type = "FusedGemm",
                                                 .domain = kMicrosoft,
                                                 .inputs = 2,
                                                 .weights = 0b110,
                                                 .lower = microsoft_products_cc::LowerFusedGemm};

}  // namespace orrery::importer
