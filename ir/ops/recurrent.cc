#include "ir/ops/recurrent.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/op_info.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

namespace orrery::ir {
namespace recurrent_cc {
namespace {

constexpr size_t kAlways = 3;  // x, w and r

absl::StatusOr<RecurrentShape> ShapeOf(const Cell& cell, const OpTypes& op) {
  for (size_t i = 0; i < kAlways; ++i) {
    ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
    if (op.operands[i]->dims.size() == 3) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "operand ", i, " has shape ", Show(op.operands[i]->dims), "; wanted 3 dimensions"));
  }
  const std::string direction = op.attributes.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return absl::InvalidArgumentError(
        absl::StrCat("direction is \"", direction, "\"; wanted forward, reverse or bidirectional"));
  }
  const Dims &x = op.operands[0]->dims, &r = op.operands[2]->dims;
  const RecurrentShape shape = {.steps = x[0],
                                .batch = x[1],
                                .input = x[2],
                                .directions = direction == "bidirectional" ? 2 : 1,
                                .hidden = r[2]};
  if (shape.hidden > (int64_t{1} << 40)) {
    return absl::InvalidArgumentError(absl::StrCat("got a hidden size of ", shape.hidden));
  }
  const int64_t rows = cell.gates * shape.hidden;
  ORRERY_RETURN_IF_ERROR(
      CheckDims(op, 1, {shape.directions, rows, shape.input}, "[directions,gates·hidden,input]"));
  ORRERY_RETURN_IF_ERROR(
      CheckDims(op, 2, {shape.directions, rows, shape.hidden}, "[directions,gates·hidden,hidden]"));
  return shape;
}

Dims DimsOf(const Cell& cell, const RecurrentShape& shape, absl::string_view name) {
  if (name == "bias") return {shape.directions, 2 * cell.gates * shape.hidden};
  if (name == "sequence_lens") return {shape.batch};
  if (name == "peepholes") return {shape.directions, 3 * shape.hidden};
  return shape.Last();
}

absl::Status CheckGiven(const Cell& cell, const OpTypes& op, const RecurrentShape& shape,
                        const std::vector<std::string>& given) {
  for (size_t g = 0; g < given.size(); ++g) {
    const size_t i = kAlways + g;
    if (std::find(cell.given.begin(), cell.given.end(), given[g]) == cell.given.end() ||
        std::find(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(g), given[g]) !=
            given.begin() + static_cast<std::ptrdiff_t>(g)) {
      return absl::InvalidArgumentError(
          absl::StrCat("given names \"", given[g], "\", which is no operand of it, or twice"));
    }
    ORRERY_RETURN_IF_ERROR(given[g] == "sequence_lens" ? CheckInteger(op, i) : CheckFloat(op, i));
    ORRERY_RETURN_IF_ERROR(
        CheckDims(op, i, DimsOf(cell, shape, given[g]), absl::StrCat("(", given[g], ")")));
  }
  return absl::OkStatus();
}

absl::Status CheckReset(const Cell& cell, const AttributeSet& attributes) {
  if (cell.has_reset || attributes.Int("linear_before_reset", 0) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("linear_before_reset=1; wanted 0, as there is no reset");
}

absl::Status CheckActivations(const Cell& cell, const OpTypes& op, const RecurrentShape& shape) {
  const std::vector<std::string> names = NameList(op.attributes, "activations");
  const size_t wanted = cell.activations.size() * static_cast<size_t>(shape.directions);
  if (!names.empty() && names.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", names.size(), " activations; wanted ", wanted));
  }
  for (const std::string& name : names) {
    if (FindActivation(name) != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat("activation \"", name, "\" is unknown"));
  }
  return absl::OkStatus();
}

Dims ResultDims(const Cell& cell, const AttributeSet& attributes, const RecurrentShape& shape,
                absl::string_view name) {
  if (name == "y_h" || name == "y_c") return shape.Last();
  Dims dims = shape.Output();
  if (name == "gates") dims.back() *= SavedGates(cell, attributes);
  return dims;
}

absl::StatusOr<RecurrentShape> CheckForward(const Cell& cell, const OpTypes& op,
                                            const std::vector<std::string>& names) {
  if (op.operands.size() != names.size()) {
    return absl::InvalidArgumentError(absl::StrCat("got ", op.operands.size(), " operands; wanted ",
                                                   names.size(), ", as the attributes name them"));
  }
  ORRERY_ASSIGN_OR_RETURN(const RecurrentShape shape, ShapeOf(cell, op));
  ORRERY_RETURN_IF_ERROR(CheckReset(cell, op.attributes));
  ORRERY_RETURN_IF_ERROR(CheckActivations(cell, op, shape));
  ORRERY_RETURN_IF_ERROR(CheckGiven(cell, op, shape, NameList(op.attributes, "given")));
  return shape;
}

}  // namespace
}  // namespace recurrent_cc

std::vector<std::string> NameList(const AttributeSet& attributes, absl::string_view name) {
  return absl::StrSplit(attributes.String(name, ""), ',', absl::SkipEmpty());
}

std::vector<std::string> ForwardNames(const AttributeSet& attributes) {
  std::vector<std::string> names = {"x", "w", "r"};
  for (std::string& name : NameList(attributes, "given")) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> SavedNames(const Cell& cell) {
  std::vector<std::string> names = {"y"};
  if (cell.has_gates) names.push_back("gates");
  if (cell.has_cells) names.push_back("cells");
  return names;
}

std::vector<std::string> ResultNames(const Cell& cell) {
  std::vector<std::string> names = {"y", "y_h"};
  if (cell.has_cells) names.push_back("y_c");
  if (cell.has_gates) names.push_back("gates");
  if (cell.has_cells) names.push_back("cells");
  return names;
}

std::vector<std::string> DifferentiatedNames(const AttributeSet& attributes) {
  std::vector<std::string> names = ForwardNames(attributes);
  std::erase(names, "sequence_lens");
  for (const std::string& name : NameList(attributes, "without")) std::erase(names, name);
  return names;
}

std::vector<std::string> BackwardNames(const Cell& cell, const AttributeSet& attributes) {
  std::vector<std::string> names = ForwardNames(attributes);
  for (std::string& name : SavedNames(cell)) names.push_back(std::move(name));
  for (const std::string& name : NameList(attributes, "gradients")) {
    names.push_back(absl::StrCat("d", name));
  }
  return names;
}

int64_t SavedGates(const Cell& cell, const AttributeSet& attributes) {
  return cell.gates + (attributes.Int("linear_before_reset", 0) != 0 ? 1 : 0);
}

absl::Status InferRecurrent(const Cell& cell, const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const RecurrentShape shape,
                          recurrent_cc::CheckForward(cell, op, ForwardNames(op.attributes)));
  for (const std::string& name : ResultNames(cell)) {
    AddResult(results, op.operands[0]->dtype,
              recurrent_cc::ResultDims(cell, op.attributes, shape, name));
  }
  return absl::OkStatus();
}

namespace recurrent_cc {
namespace {

// `gradients` names results, each once: the operands of a gradient are found by these names.
absl::Status CheckGradientNames(const Cell& cell, const AttributeSet& attributes) {
  std::vector<std::string> seen;
  for (const std::string& name : NameList(attributes, "gradients")) {
    const bool known = name == "y" || name == "y_h" || (name == "y_c" && cell.has_cells);
    if (!known || absl::c_linear_search(seen, name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "gradients names \"", name, known ? "\" twice; " : "\"; ", "wanted y, y_h or y_c"));
    }
    seen.push_back(name);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace recurrent_cc

absl::Status InferRecurrentGrad(const Cell& cell, const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(recurrent_cc::CheckGradientNames(cell, op.attributes));
  const std::vector<std::string> names = BackwardNames(cell, op.attributes);
  ORRERY_ASSIGN_OR_RETURN(const RecurrentShape shape, recurrent_cc::CheckForward(cell, op, names));
  const std::vector<std::string> forward = ForwardNames(op.attributes);
  for (size_t i = forward.size(); i < names.size(); ++i) {
    absl::string_view name = names[i];
    if (name[0] == 'd') name.remove_prefix(1);
    ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
    ORRERY_RETURN_IF_ERROR(CheckDims(op, i,
                                     recurrent_cc::ResultDims(cell, op.attributes, shape, name),
                                     absl::StrCat("(", names[i], ")")));
  }
  for (const std::string& name : NameList(op.attributes, "without")) {
    if (std::find(forward.begin(), forward.end(), name) != forward.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("without names \"", name, "\", which is no operand of the forward"));
  }
  const std::vector<std::string> differentiated = DifferentiatedNames(op.attributes);
  for (size_t i = 0; i < forward.size(); ++i) {
    if (!absl::c_linear_search(differentiated, forward[i])) continue;
    AddResult(results, op.operands[i]->dtype, op.operands[i]->dims);
  }
  return absl::OkStatus();
}

namespace recurrent_cc {
namespace {

// Two for each sample, step and element of a gate, and for so many columns of the weights.
double FlopsOfColumns(const Cell& cell, const RecurrentShape& s, int64_t columns) {
  return 2.0 * static_cast<double>(s.steps) * static_cast<double>(s.batch) *
         static_cast<double>(s.directions * cell.gates * s.hidden) * static_cast<double>(columns);
}

}  // namespace
}  // namespace recurrent_cc

double RecurrentFlops(const Cell& cell, const OpTypes& op) {
  const absl::StatusOr<RecurrentShape> s = recurrent_cc::ShapeOf(cell, op);
  return s.ok() ? recurrent_cc::FlopsOfColumns(cell, *s, s->input + s->hidden) : 0;
}

double RecurrentGradFlops(const Cell& cell, const OpTypes& op) {
  const absl::StatusOr<RecurrentShape> s = recurrent_cc::ShapeOf(cell, op);
  if (!s.ok()) return 0;
  int64_t columns = s->hidden;  // back through the steps, whatever is wanted
  for (const std::string& name : DifferentiatedNames(op.attributes)) {
    if (name == "x" || name == "w") columns += s->input;
    if (name == "r") columns += s->hidden;
  }
  return recurrent_cc::FlopsOfColumns(cell, *s, columns);
}

ShardingRule RecurrentSharding(const Cell& cell, const OpTypes& op, const TypeList& results,
                               bool backward) {
  const auto factors = [](const std::string& name, size_t rank) {
    ShardingRule::Factors row(rank, kNoFactor);
    if (name == "w" || name == "r" || name == "bias" || name == "peepholes") return row;
    row[rank == 4 ? 2 : rank == 3 ? 1 : 0] = 0;
    return row;
  };
  const std::vector<std::string> names =
      backward ? BackwardNames(cell, op.attributes) : ForwardNames(op.attributes);
  ShardingRule rule;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    rule.operands.push_back(factors(names[i], op.operands[i]->dims.size()));
  }
  std::vector<std::string> of_results = ResultNames(cell);
  if (backward) of_results = DifferentiatedNames(op.attributes);
  for (size_t j = 0; j < results.size(); ++j) {
    rule.results.push_back(factors(of_results[j], results[j].dims.size()));
  }
  return rule;
}

absl::Status RecurrentGradient(const Cell& cell, GradientContext& c) {
  const std::vector<std::string> forward = ForwardNames(c.attributes());
  const std::vector<std::string> of_results = ResultNames(cell), saved = SavedNames(cell);
  std::vector<ValueId> operands;
  for (int i = 0; i < c.operand_count(); ++i) operands.push_back(c.operand(i));
  std::string gradients;
  std::vector<ValueId> incoming;
  for (size_t j = 0; j < of_results.size(); ++j) {
    const auto result = static_cast<int>(j);
    if (std::find(saved.begin(), saved.end(), of_results[j]) != saved.end()) {
      operands.push_back(c.result(result));
    }
    if (!c.result_gradient(result).valid()) continue;
    if (of_results[j][0] != 'y') {
      return absl::UnimplementedError(
          absl::StrCat("no gradient of ", of_results[j], ", which are there for the backward"));
    }
    absl::StrAppend(&gradients, gradients.empty() ? "" : ",", of_results[j]);
    incoming.push_back(c.result_gradient(result));
  }
  operands.insert(operands.end(), incoming.begin(), incoming.end());
  AttributeSet attributes = c.attributes();
  attributes.Set("gradients", gradients);
  std::string without;
  std::vector<std::string> names;
  std::vector<int> wanted;
  for (size_t i = 0; i < forward.size(); ++i) {
    const auto operand = static_cast<int>(i);
    if (forward[i] == "sequence_lens") continue;
    if (c.needs(operand)) {
      names.push_back(c.GradientName(operand));
      wanted.push_back(operand);
    } else {
      absl::StrAppend(&without, without.empty() ? "" : ",", forward[i]);
    }
  }
  if (wanted.empty()) return absl::OkStatus();
  if (!without.empty()) attributes.Set("without", without);
  const std::vector<absl::string_view> views(names.begin(), names.end());
  const OpId op = c.builder().Ops(cell.gradient, operands, views, attributes);
  if (!op.valid()) return c.builder().status();
  for (size_t j = 0; j < wanted.size(); ++j) {
    c.SetOperandGradient(wanted[j], c.builder().function().result(op, static_cast<int32_t>(j)));
  }
  return absl::OkStatus();
}

}  // namespace orrery::ir
