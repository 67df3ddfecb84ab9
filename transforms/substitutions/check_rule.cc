#include "transforms/substitutions/check_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/substitutions/check_attributes.h"
#include "transforms/substitutions/match_rule.h"

namespace orrery::transforms::substitutions {
namespace check_rule_cc {
namespace {

using ir::Tensor;

constexpr int kDraws = 2000;  // of which one at least has to be taken
constexpr int kTries = 20;    // for elements at which both sides are numbers
constexpr double kTolerance = 1e-9;
constexpr double kRounding = 1e-11;  // of the largest number on the way
constexpr size_t kShownElements = 24;
// What both sides together may take to be executed: a tenth of a second.
constexpr double kMostElements = 1 << 18, kMostFlops = 4e6;

std::optional<Dataflow> SideOf(const Rule& rule, const RuleSide& side, const Variables& variables,
                               const Dataflow& inputs, WorkTable& works) {
  std::vector<Port> ports;
  for (int32_t i = 0; i < inputs.inputs; ++i) ports.push_back({.node = i});
  std::optional<Instance> instance = Instantiate(rule, side, ports, variables, inputs, works);
  if (!instance.has_value()) return std::nullopt;
  Dataflow flow = inputs;
  flow.nodes.insert(flow.nodes.end(), instance->nodes.begin(), instance->nodes.end());
  flow.outputs = instance->returns;
  return Replace(works, flow, {});
}

// What executing a flow takes.
struct Effort {
  double elements = 0, flops = 0;
};

Effort EffortOf(const WorkTable& works, const Dataflow& flow) {
  Effort effort;
  for (const Node& node : flow.nodes) {
    const Work& work = works[node.work];
    ir::TypeList results;
    for (const ir::TypeId type : work.results) results.push_back(works.type(type));
    for (const ir::TensorType& type : results) {
      effort.elements += static_cast<double>(ir::ElementCount(type.dims));
    }
    if (work.is_input || ir::GetOpInfo(work.kind).flops == nullptr) continue;
    absl::InlinedVector<const ir::TensorType*, 4> operands;
    for (const ir::TypeId type : work.operands) operands.push_back(&works.type(type));
    const ir::Mesh no_mesh;
    effort.flops += ir::GetOpInfo(work.kind).flops(
        {works.attributes(work.attributes), operands, no_mesh}, results);
  }
  return effort;
}

bool TakesAMoment(const WorkTable& works, const RuleSides& sides) {
  const Effort left = EffortOf(works, sides.left), right = EffortOf(works, sides.right);
  return left.elements + right.elements <= kMostElements && left.flops + right.flops <= kMostFlops;
}

bool AllFinite(const std::vector<Tensor>& tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& tensor) {
    return std::ranges::all_of(tensor.floats(), [](double value) { return std::isfinite(value); });
  });
}

// What rounding can make of numbers that large on the way is no difference.
bool AreEqual(double a, double b, double largest) {
  return std::abs(a - b) <=
         kTolerance * std::max({1.0, std::abs(a), std::abs(b)}) + kRounding * largest;
}

std::string Show(const Tensor& tensor) {
  const auto& values = tensor.floats();
  const size_t shown = std::min(values.size(), kShownElements);
  return absl::StrCat(
      "f64[", absl::StrJoin(tensor.dims(), ","), "] [",
      absl::StrJoin(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < values.size() ? ", …]" : "]");
}

std::string Show(const Rule& rule, const Variables& variables) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < rule.sizes.size(); ++i) {
    parts.push_back(absl::StrCat(rule.sizes[i], "=", *variables.sizes[i]));
  }
  for (size_t i = 0; i < rule.attributes.size(); ++i) {
    const ir::AttributeSet set = {{rule.attributes[i], *variables.attributes[i]}};
    const std::string text = ir::ToString(set);
    parts.push_back(text.substr(1, text.size() - 2));
  }
  const bool leads = std::ranges::any_of(rule.inputs, &RuleInput::leading);
  if (leads) parts.push_back(absl::StrCat("..=[", absl::StrJoin(*variables.leading, ","), "]"));
  return absl::StrJoin(parts, ", ");
}

// The results of one side, with the largest of all numbers on the way.
struct Evaluated {
  std::vector<Tensor> outputs;
  double largest = 0;
};

absl::StatusOr<Evaluated> EvaluateAll(const WorkTable& works, const Dataflow& flow,
                                      const std::vector<Tensor>& inputs) {
  Evaluated evaluated;
  std::vector<std::vector<Tensor>> values;
  for (const Tensor& input : inputs) values.push_back({input});
  for (size_t i = inputs.size(); i < flow.nodes.size(); ++i) {
    const Work& work = works[flow.nodes[i].work];
    std::vector<const Tensor*> operands;
    for (const Port port : flow.nodes[i].operands) {
      operands.push_back(&values[static_cast<size_t>(port.node)][static_cast<size_t>(port.result)]);
    }
    std::vector<ir::TensorType> types;
    for (const ir::TypeId type : work.results) types.push_back(works.type(type));
    ORRERY_ASSIGN_OR_RETURN(
        std::vector<Tensor> results,
        ir::Evaluate(work.kind, works.attributes(work.attributes), operands, types));
    for (const Tensor& result : results) {
      for (int64_t e = 0; e < result.size(); ++e) {
        const double size = std::abs(result.Number(e));
        if (std::isfinite(size)) evaluated.largest = std::max(evaluated.largest, size);
      }
    }
    values.push_back(std::move(results));
  }
  for (const Port port : flow.outputs) {
    evaluated.outputs.push_back(
        values[static_cast<size_t>(port.node)][static_cast<size_t>(port.result)]);
  }
  return evaluated;
}

absl::Status Compare(const Rule& rule, const Variables& variables,
                     const std::vector<Tensor>& inputs, const Evaluated& left,
                     const Evaluated& right) {
  const double largest = std::max(left.largest, right.largest);
  for (size_t i = 0; i < left.outputs.size(); ++i) {
    const Tensor &a = left.outputs[i], &b = right.outputs[i];
    for (int64_t e = 0; e < a.size(); ++e) {
      if (AreEqual(a.Number(e), b.Number(e), largest)) continue;
      std::vector<std::string> shown;
      for (size_t n = 0; n < inputs.size(); ++n) {
        shown.push_back(absl::StrCat("%", rule.inputs[n].name, " = ", Show(inputs[n])));
      }
      return absl::InvalidArgumentError(
          absl::StrCat(Where(rule), ": not equal at ", Show(rule, variables), ": ",
                       absl::StrJoin(shown, ", "), ": element ", e, " of result ", i, " is ",
                       a.Number(e), " on the left, ", b.Number(e), " on the right"));
    }
  }
  return absl::OkStatus();
}

absl::Status CompareTypes(const Rule& rule, const Variables& variables, const RuleSides& sides,
                          const WorkTable& works) {
  for (size_t i = 0; i < sides.left.outputs.size(); ++i) {
    const ir::TypeId left = TypeOf(works, sides.left, sides.left.outputs[i]);
    const ir::TypeId right = TypeOf(works, sides.right, sides.right.outputs[i]);
    if (left == right) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Where(rule), ": not equal at ", Show(rule, variables), ": result ", i, " is [",
                     absl::StrJoin(works.type(left).dims, ","), "] on the left, [",
                     absl::StrJoin(works.type(right).dims, ","), "] on the right"));
  }
  return absl::OkStatus();
}

// One shape. Elements below 0 are left out where a side has no numbers for them: a root. What large
// elements make of one side alone is an overflow, no difference.
absl::Status CheckAt(const Rule& rule, const Variables& variables, const ElementDraw elements,
                     RandomBits& random, WorkTable& works) {
  const std::optional<RuleSides> sides = SidesOf(rule, variables, works);
  ORRERY_RETURN_IF_ERROR(CompareTypes(rule, variables, *sides, works));
  InputDraw draw = {.elements = elements, .positive = false, .numbers = NumbersOf(rule)};
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt == kTries / 2) draw.elements = ElementDraw::kWhole;
    draw.positive = attempt % 2 == 1;
    const std::vector<Tensor> inputs = DrawInputs(works, sides->left, draw, random);
    ORRERY_ASSIGN_OR_RETURN(const Evaluated left, EvaluateAll(works, sides->left, inputs));
    ORRERY_ASSIGN_OR_RETURN(const Evaluated right, EvaluateAll(works, sides->right, inputs));
    const bool is_left = AllFinite(left.outputs), is_right = AllFinite(right.outputs);
    const bool large =
        draw.elements == ElementDraw::kHundred || draw.elements == ElementDraw::kNumbers;
    if ((!is_left && !is_right) || (is_left != is_right && large)) continue;
    return Compare(rule, variables, inputs, left, right);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Where(rule), ": results were no numbers at ", Show(rule, variables)));
}

// Whether numbers of the rule make more of an input than a tensor can be.
bool InputsAreTooLarge(const Rule& rule, const Variables& variables) {
  return std::ranges::any_of(rule.inputs, [&](const RuleInput& input) {
    ir::TensorType type = {.dtype = ir::DType::kF64, .dims = {}, .sharding = {}};
    for (const Expression& dim : input.dims) {
      const std::optional<int64_t> size = Evaluate(dim, variables);
      if (!size.has_value()) return true;
      type.dims.push_back(std::max<int64_t>(1, *size));
    }
    return !ir::IsWithinLimits(type);
  });
}

// Why no draw was taken.
absl::Status NothingToDraw(const Rule& rule, WorkTable& works) {
  RandomBits random(1);
  for (int i = 0; i < kDraws; ++i) {
    const std::optional<Variables> variables = DrawAnyVariables(rule, {}, random);
    if (!variables.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Where(rule), ": an attribute is a variable whose values are not known; wanted one of ",
          kDrawnAttributes));
    }
    if (!InputsAreTooLarge(rule, *variables) && !SidesOf(rule, *variables, works).has_value()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(Where(rule), ": at ", Show(rule, *variables), " its tensors have more than ",
                     static_cast<int64_t>(kMostElements), " elements, or take more than ",
                     static_cast<int64_t>(kMostFlops),
                     " operations; wanted smaller numbers, which can be executed"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Where(rule), ": no sizes and attributes were found at which both sides can be computed"));
}

// Which sizes and elements go together: each with each.
SizeDraw SizesOfShape(int32_t shape) {
  constexpr LargeSizes kLarge[] = {LargeSizes::kNone, LargeSizes::kTwo, LargeSizes::kOne};
  return {.large = kLarge[shape % 3], .attributes = AttributeDraw::kAll};
}

ElementDraw ElementsOfShape(int32_t shape) { return static_cast<ElementDraw>(shape / 3 % 4); }

}  // namespace
}  // namespace check_rule_cc

std::optional<Dataflow> InputsOf(const Rule& rule, const Variables& variables, WorkTable& works) {
  Dataflow flow;
  for (const RuleInput& input : rule.inputs) {
    ir::TensorType type = {.dtype = ir::DType::kF64, .dims = {}, .sharding = {}};
    if (input.leading) type.dims.assign(variables.leading->begin(), variables.leading->end());
    for (const Expression& dim : input.dims) {
      const std::optional<int64_t> size = Evaluate(dim, variables);
      if (!size.has_value() || *size < 1) return std::nullopt;
      type.dims.push_back(*size);
    }
    if (!ir::IsWithinLimits(type)) return std::nullopt;
    flow.nodes.push_back({.work = works.Input(works.Intern(type)), .operands = {}});
  }
  flow.inputs = static_cast<int32_t>(flow.nodes.size());
  return flow;
}

std::optional<RuleSides> SidesOf(const Rule& rule, const Variables& variables, WorkTable& works) {
  if (!AreAllowed(rule, variables)) return std::nullopt;
  const std::optional<Dataflow> inputs = InputsOf(rule, variables, works);
  if (!inputs.has_value()) return std::nullopt;
  std::optional<Dataflow> left = check_rule_cc::SideOf(rule, rule.left, variables, *inputs, works);
  if (!left.has_value()) return std::nullopt;
  std::optional<Dataflow> right =
      check_rule_cc::SideOf(rule, rule.right, variables, *inputs, works);
  if (!right.has_value()) return std::nullopt;
  return RuleSides{*std::move(left), *std::move(right)};
}

std::optional<Variables> DrawVariables(const Rule& rule, const SizeDraw& draw, RandomBits& random,
                                       WorkTable& works) {
  for (int i = 0; i < check_rule_cc::kDraws; ++i) {
    std::optional<Variables> variables = DrawAnyVariables(rule, draw, random);
    if (!variables.has_value()) return std::nullopt;
    const std::optional<RuleSides> sides = SidesOf(rule, *variables, works);
    if (!sides.has_value()) continue;
    if (!draw.executed || check_rule_cc::TakesAMoment(works, *sides)) return variables;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<ir::Tensor>> Evaluate(const WorkTable& works, const Dataflow& flow,
                                                 const std::vector<ir::Tensor>& inputs) {
  ORRERY_ASSIGN_OR_RETURN(check_rule_cc::Evaluated evaluated,
                          check_rule_cc::EvaluateAll(works, flow, inputs));
  return std::move(evaluated.outputs);
}

absl::Status CheckRule(const Rule& rule, const RuleCheck& check) {
  RandomBits random(check.seed);
  WorkTable works;
  absl::Status attributes;  // at sizes of 1 some make no difference
  for (int32_t i = 0; i < check.shapes; ++i) {
    const SizeDraw draw = check_rule_cc::SizesOfShape(i);
    std::optional<Variables> variables = DrawVariables(rule, draw, random, works);
    if (!variables.has_value() && draw.large != LargeSizes::kNone) {
      // Where large sizes fit nowhere, small ones do.
      variables = DrawVariables(rule, check_rule_cc::SizesOfShape(0), random, works);
    }
    if (!variables.has_value()) return check_rule_cc::NothingToDraw(rule, works);
    if (i == 0 || !attributes.ok()) {
      const RuleSides sides = *SidesOf(rule, *variables, works);
      attributes = CheckAttributes(rule, sides.left, works);
      attributes.Update(CheckAttributes(rule, sides.right, works));
    }
    ORRERY_RETURN_IF_ERROR(
        check_rule_cc::CheckAt(rule, *variables, check_rule_cc::ElementsOfShape(i), random, works));
  }
  return attributes;
}

}  // namespace orrery::transforms::substitutions
