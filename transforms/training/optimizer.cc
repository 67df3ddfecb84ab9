#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"
#include "support/word_list.h"
#include "transforms/pass/pass.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace optimizer_cc {
namespace {

using ir::Function;
using ir::OutputRole;
using ir::ValueId;

struct Kind {
  absl::string_view name;
  ir::OpKind op;
  int moments;  // fp32 tensors of state a parameter
};

constexpr std::array<Kind, 3> kKinds = {{{"sgd", ir::OpKind::kSgd, 0},
                                         {"momentum", ir::OpKind::kMomentum, 1},
                                         {"adam", ir::OpKind::kAdam, 2}}};
constexpr std::array<absl::string_view, 2> kMomentNames = {"m", "v"};

// The op's operands, group by group: parameters, master copies where there are any, moments,
// gradients.
std::vector<ValueId> Operands(ir::Builder& b, const Kind& kind,
                              const std::vector<ir::Output>& gradients) {
  std::vector<ValueId> operands;
  bool low_precision = false;
  for (const ir::Output& gradient : gradients) {
    operands.push_back(gradient.of);
    low_precision = low_precision || ir::SizeOf(b.type(gradient.of).dtype) < 4;
  }
  const auto add_state = [&](absl::string_view suffix) {
    for (const ir::Output& gradient : gradients) {
      ir::TensorType type = b.type(gradient.of);
      type.dtype = ir::DType::kF32;
      const absl::string_view name = b.function().value_name(gradient.of);
      operands.push_back(b.AddInput(name.empty() ? "" : b.FreeName(absl::StrCat(name, ".", suffix)),
                                    type, ir::InputRole::kState));
    }
  };
  if (low_precision) add_state("master");
  for (int i = 0; i < kind.moments; ++i) add_state(kMomentNames[static_cast<size_t>(i)]);
  for (const ir::Output& gradient : gradients) operands.push_back(gradient.value);
  return operands;
}

absl::StatusOr<Function> Append(Function function, const Kind& kind) {
  std::vector<ir::Output> gradients, outputs;
  for (const ir::Output& output : function.outputs()) {
    (output.role == OutputRole::kGradient ? gradients : outputs).push_back(output);
  }
  ir::Builder b(std::move(function));
  const std::vector<ValueId> operands = Operands(b, kind, gradients);
  const auto parameters = static_cast<int64_t>(gradients.size());
  const size_t results = operands.size() - gradients.size();
  std::vector<std::string> names;
  for (size_t i = 0; i < results; ++i) {
    const absl::string_view name = b.function().value_name(operands[i]);
    names.push_back(name.empty() ? "" : b.FreeName(absl::StrCat(name, "'")));
  }
  const std::vector<absl::string_view> views(names.begin(), names.end());
  const ir::OpId op = b.Ops(kind.op, operands, views, {{ir::kParameterCount, parameters}});
  if (!op.valid()) return b.status();
  for (size_t i = 0; i < results; ++i) {
    outputs.push_back({.value = b.function().result(op, static_cast<int32_t>(i)),
                       .role = OutputRole::kUpdated,
                       .of = operands[i]});
  }
  b.function().SetOutputs(std::move(outputs));
  return std::move(b).Finalize();
}

}  // namespace
}  // namespace optimizer_cc

std::string OptimizerNames() {
  std::vector<absl::string_view> names = {"none"};
  for (const optimizer_cc::Kind& kind : optimizer_cc::kKinds) names.push_back(kind.name);
  return ListWords(names, " or ");
}

absl::StatusOr<bool> AppendOptimizer(ir::Function& function, absl::string_view optimizer) {
  bool has_gradient = false;
  for (const ir::Output& output : function.outputs()) {
    has_gradient = has_gradient || output.role == ir::OutputRole::kGradient;
  }
  if (optimizer == "none") return false;
  for (const optimizer_cc::Kind& kind : optimizer_cc::kKinds) {
    if (kind.name != optimizer) continue;
    if (!has_gradient) return false;
    ORRERY_ASSIGN_OR_RETURN(function, optimizer_cc::Append(function, kind));
    return true;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no optimizer '", optimizer, "'; wanted ", OptimizerNames()));
}

extern const PassInfo kAppendOptimizerPass = {
    .name = "append-optimizer",
    .summary = "appends the update of all parameters: sgd, momentum or adam",
    .options = "optimizer=sgd",
    .run =
        [](ir::Function& function, const PassOptions& options) {
          return AppendOptimizer(function, options.at("optimizer"));
        },
    .idempotent = true,
};

}  // namespace orrery::transforms
