#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"
#include "support/word_list.h"
#include "transforms/pass/pass.h"
#include "transforms/training/hidden_matrices.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace optimizer_cc {
namespace {

using ir::Function;
using ir::OutputRole;
using ir::ValueId;

// A state of the parameter, as the optimizer of that kind keeps it, or a master copy of it.
ir::TensorType StateOf(ir::TensorType parameter, ir::OpKind kind, std::optional<size_t> state) {
  parameter.dtype = ir::DType::kF32;
  const auto dims = ir::GetOpInfo(kind).state_dims;
  if (state.has_value() && dims != nullptr) parameter.dims = dims(parameter.dims, *state);
  return parameter;
}

// The kind of the optimizer of that name; false: there is none.
bool Find(absl::string_view name, ir::OpKind& kind) {
  for (int k = 0; k < ir::OpKindCount(); ++k) {
    kind = static_cast<ir::OpKind>(k);
    const ir::OpInfo& info = ir::GetOpInfo(kind);
    if (!info.chosen_as.empty() && info.chosen_as == name) return true;
  }
  return false;
}

// The op's operands, group by group: parameters, master copies where there are any, moments,
// gradients.
std::vector<ValueId> Operands(ir::Builder& b, ir::OpKind kind,
                              const std::vector<ir::Output>& gradients) {
  std::vector<ValueId> operands;
  bool low_precision = false;
  for (const ir::Output& gradient : gradients) {
    operands.push_back(gradient.of);
    low_precision = low_precision || ir::SizeOf(b.type(gradient.of).dtype) < 4;
  }
  const auto add_state = [&](absl::string_view suffix, std::optional<size_t> state) {
    for (const ir::Output& gradient : gradients) {
      const ir::TensorType type = StateOf(b.type(gradient.of), kind, state);
      const absl::string_view name = b.function().value_name(gradient.of);
      operands.push_back(b.AddInput(name.empty() ? "" : b.FreeName(absl::StrCat(name, ".", suffix)),
                                    type, ir::InputRole::kState));
    }
  };
  if (low_precision) add_state("master", std::nullopt);
  size_t number = 0;
  for (const absl::string_view state :
       absl::StrSplit(ir::GetOpInfo(kind).states, ',', absl::SkipEmpty())) {
    add_state(state, number++);
  }
  for (const ir::Output& gradient : gradients) operands.push_back(gradient.value);
  return operands;
}

// One op for all of `gradients`, whose results become outputs.
void Append(ir::Builder& b, ir::OpKind kind, const std::vector<ir::Output>& gradients,
            std::vector<ir::Output>& outputs) {
  if (gradients.empty()) return;
  const std::vector<ValueId> operands = Operands(b, kind, gradients);
  const auto parameters = static_cast<int64_t>(gradients.size());
  const size_t results = operands.size() - gradients.size();
  std::vector<std::string> names;
  for (size_t i = 0; i < results; ++i) {
    const absl::string_view name = b.function().value_name(operands[i]);
    names.push_back(name.empty() ? "" : b.FreeName(absl::StrCat(name, "'")));
  }
  const std::vector<absl::string_view> views(names.begin(), names.end());
  const ir::OpId op = b.Ops(kind, operands, views, {{ir::kParameterCount, parameters}});
  if (!op.valid()) return;
  for (size_t i = 0; i < results; ++i) {
    outputs.push_back({.value = b.function().result(op, static_cast<int32_t>(i)),
                       .role = OutputRole::kUpdated,
                       .of = operands[i]});
  }
}

// What updates the parameters that an optimizer is not for.
ir::OpKind KindForOthers(const ir::OpInfo& info) {
  return info.of_vectors.empty() ? ir::OpKind::kAdam : *ir::FindOp(info.of_vectors);
}

// Marks the parameters that an optimizer is for.
IdTable<ValueId, char> FindOwn(const Function& function, const ir::OpInfo& info) {
  if (info.of_matrices) return FindHiddenMatrices(function);
  IdTable<ValueId, char> own(function.value_limit(), 1);
  for (const ir::Output& output : function.outputs()) {
    if (info.of_vectors.empty() || output.role != OutputRole::kGradient) continue;
    own[output.of] = function.type(output.of).dims.size() >= 2 ? 1 : 0;
  }
  return own;
}

absl::StatusOr<Function> AppendTo(Function function, ir::OpKind kind) {
  const ir::OpInfo& info = ir::GetOpInfo(kind);
  const IdTable<ValueId, char> own = FindOwn(function, info);
  std::vector<ir::Output> gradients, others, outputs;
  for (const ir::Output& output : function.outputs()) {
    if (output.role != OutputRole::kGradient) {
      outputs.push_back(output);
    } else {
      (own[output.of] != 0 ? gradients : others).push_back(output);
    }
  }
  if (gradients.empty() && info.of_matrices) {
    return absl::InvalidArgumentError(absl::StrCat(
        function.name(), ": `optimizer` ", info.chosen_as,
        ": it trains no matrix between hidden layers, so that all were Adam's; wanted a model that "
        "does, or `optimizer` adam"));
  }
  ir::Builder b(std::move(function));
  Append(b, kind, gradients, outputs);
  Append(b, KindForOthers(info), others, outputs);
  b.function().SetOutputs(std::move(outputs));
  return std::move(b).Finalize();
}

}  // namespace
}  // namespace optimizer_cc

std::string OptimizerNames() {
  std::vector<absl::string_view> names = {"none"};
  for (int k = 0; k < ir::OpKindCount(); ++k) {
    const absl::string_view name = ir::GetOpInfo(static_cast<ir::OpKind>(k)).chosen_as;
    if (!name.empty()) names.push_back(name);
  }
  return ListWords(names, " or ");
}

absl::StatusOr<bool> AppendOptimizer(ir::Function& function, absl::string_view optimizer) {
  if (optimizer == "none") return false;
  ir::OpKind kind = {};
  if (!optimizer_cc::Find(optimizer, kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no optimizer '", optimizer, "'; wanted ", OptimizerNames()));
  }
  bool has_gradient = false;
  for (const ir::Output& output : function.outputs()) {
    has_gradient = has_gradient || output.role == ir::OutputRole::kGradient;
  }
  if (!has_gradient) return false;
  ORRERY_ASSIGN_OR_RETURN(function, optimizer_cc::AppendTo(function, kind));
  return true;
}

extern const PassInfo kAppendOptimizerPass = {
    .name = "append-optimizer",
    .summary = "appends the update of all parameters, by the optimizer that is named",
    .options = "optimizer=sgd",
    .run =
        [](ir::Function& function, const PassOptions& options) {
          return AppendOptimizer(function, options.at("optimizer"));
        },
    .idempotent = true,
};

}  // namespace orrery::transforms
