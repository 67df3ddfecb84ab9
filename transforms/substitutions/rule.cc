#include "transforms/substitutions/rule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"

namespace orrery::transforms::substitutions {
namespace rule_cc {
namespace {

using Form = AttributePattern::Form;

constexpr int64_t kMostChoices = 32;  // of a free size

// How much a list has where it says the same for each spatial dimension of [batch, channels, ..].
enum class Length : uint8_t { kNumber, kSpatial, kTwiceSpatial };

struct Default {
  ir::OpKind kind;
  absl::string_view name;
  int64_t value;
  Length length = Length::kNumber;
};

constexpr Default kDefaults[] = {
    {ir::OpKind::kMatMul, "transpose_x", 0},
    {ir::OpKind::kMatMul, "transpose_w", 0},
    {ir::OpKind::kLinear, "transpose_x", 0},
    {ir::OpKind::kLinear, "transpose_w", 0},
    {ir::OpKind::kConcat, "axis", 0},
    {ir::OpKind::kSplit, "axis", 0},
    {ir::OpKind::kBatchNorm, "training", 0},
    {ir::OpKind::kConv, "group", 1},
    {ir::OpKind::kConv, "strides", 1, Length::kSpatial},
    {ir::OpKind::kConv, "dilations", 1, Length::kSpatial},
    {ir::OpKind::kConv, "pads", 0, Length::kTwiceSpatial},
};

bool CountsFromTheEnd(absl::string_view name) {
  return name == "axis" || name == "axes" || name == "perm";
}

int64_t FromTheEnd(absl::string_view name, size_t rank, int64_t value) {
  return value < 0 && CountsFromTheEnd(name) ? value + static_cast<int64_t>(rank) : value;
}

// The one variable of an expression that is not known, as a term by itself; nothing where there are
// more, or it stands in a product with others.
std::optional<Expression::Term> Unknown(const Expression& expression, const Variables& variables) {
  std::optional<Expression::Term> unknown;
  for (const Expression::Term& term : expression.terms) {
    for (const int32_t variable : term.variables) {
      if (variables.sizes[static_cast<size_t>(variable)].has_value()) continue;
      if (unknown.has_value() || term.variables.size() > 1) return std::nullopt;
      unknown = term;
    }
  }
  return unknown;
}

// The value of a product of numbers that attributes are.
std::optional<double> Product(const AttributePattern& pattern, const Variables& variables) {
  double product = pattern.real;
  for (const int32_t variable : pattern.variables) {
    const auto& value = variables.attributes[static_cast<size_t>(variable)];
    if (!value.has_value() || !std::holds_alternative<double>(*value)) return std::nullopt;
    product *= std::get<double>(*value);
  }
  return product;
}

// Numbers behind the leading dimensions of a list.
bool UnifyIntegers(const AttributePattern& pattern, absl::string_view name, size_t rank,
                   const std::vector<int64_t>& value, Variables& variables) {
  const size_t count = pattern.integers.size();
  if (value.size() < count || (!pattern.leading && value.size() != count)) return false;
  const size_t leading = value.size() - count;
  for (size_t i = 0; i < leading; ++i) {
    if (value[i] != static_cast<int64_t>(i)) return false;
  }
  if (pattern.leading && variables.leading.has_value() && variables.leading->size() != leading) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const std::optional<int64_t> wanted = Evaluate(pattern.integers[i], variables);
    const int64_t found = value[leading + i];
    if (wanted.has_value() ? FromTheEnd(name, rank, *wanted) != found
                           : !Unify(pattern.integers[i], found, variables)) {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace rule_cc

Variables NoVariables(const Rule& rule) {
  Variables variables;
  variables.sizes.resize(rule.sizes.size());
  variables.attributes.resize(rule.attributes.size());
  return variables;
}

std::optional<int64_t> Evaluate(const Expression& expression, const Variables& variables) {
  int64_t sum = 0;
  for (const Expression::Term& term : expression.terms) {
    int64_t product = term.factor;
    for (const int32_t variable : term.variables) {
      const std::optional<int64_t>& value = variables.sizes[static_cast<size_t>(variable)];
      if (!value.has_value()) return std::nullopt;
      if (__builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::string FaultOfLastFreeSize(const Rule& rule) {
  const int32_t last = rule.free_sizes.back().size;
  for (const FreeSize& each : rule.free_sizes) {
    const bool twice = &each != &rule.free_sizes.back() && each.size == last;
    const bool reads = std::ranges::any_of(each.below.terms, [&](const Expression::Term& term) {
      return std::ranges::count(term.variables, last) > 0;
    });
    if (!twice && !reads) continue;
    return absl::StrCat("'", rule.sizes[static_cast<size_t>(last)], "' is ",
                        twice ? "bounded twice" : "in a bound that stands before its own",
                        "; wanted one bound, by sizes that stand before it");
  }
  return "";
}

bool AreAllowed(const Rule& rule, const Variables& variables) {
  const auto at_most = [&](const AtMost& guard) {
    const std::optional<int64_t> less = Evaluate(guard.less, variables);
    const std::optional<int64_t> more = Evaluate(guard.more, variables);
    return less.has_value() && more.has_value() && *less <= *more;
  };
  const auto in_bounds = [&](const FreeSize& free_size) {
    const std::optional<int64_t>& size = variables.sizes[static_cast<size_t>(free_size.size)];
    const std::optional<int64_t> below = Evaluate(free_size.below, variables);
    return size.has_value() && below.has_value() && *size >= 1 && *size < *below;
  };
  return std::ranges::all_of(rule.guards, at_most) &&
         std::ranges::all_of(rule.free_sizes, in_bounds);
}

std::vector<int64_t> ChoicesFor(const FreeSize& free_size, const Variables& variables) {
  const std::optional<int64_t> below = Evaluate(free_size.below, variables);
  if (!below.has_value() || *below <= free_size.step) return {};
  const int64_t count = (*below - 1) / free_size.step;  // of multiples
  const int64_t apart = (count - 1) / rule_cc::kMostChoices + 1;
  std::vector<int64_t> choices;
  for (int64_t i = count; i > 0; i -= apart) choices.push_back(i * free_size.step);
  return choices;
}

bool Unify(const Expression& expression, int64_t value, Variables& variables) {
  if (const std::optional<int64_t> known = Evaluate(expression, variables)) return *known == value;
  const std::optional<Expression::Term> unknown = rule_cc::Unknown(expression, variables);
  if (!unknown.has_value()) return false;
  std::optional<int64_t>& variable =
      variables.sizes[static_cast<size_t>(unknown->variables.front())];
  variable = 0;
  const std::optional<int64_t> others = Evaluate(expression, variables);
  variable.reset();
  int64_t left = 0;
  if (!others.has_value() || __builtin_sub_overflow(value, *others, &left)) return false;
  // ParseRules takes no factor 0; that of -1 is not divided by, for the least number has no
  // opposite.
  if (unknown->factor == 0) return false;
  if (unknown->factor == -1) {
    if (__builtin_sub_overflow(int64_t{0}, left, &left)) return false;
    variable = left;
    return true;
  }
  if (left % unknown->factor != 0) return false;
  variable = left / unknown->factor;
  return true;
}

bool UnifyDims(const RuleInput& input, const std::vector<int64_t>& dims, Variables& variables) {
  const size_t count = input.dims.size();
  if (dims.size() < count || (!input.leading && dims.size() != count)) return false;
  const std::vector<int64_t> leading(dims.begin(), dims.end() - static_cast<std::ptrdiff_t>(count));
  if (input.leading) {
    if (variables.leading.has_value() && *variables.leading != leading) return false;
    variables.leading = leading;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!Unify(input.dims[i], dims[leading.size() + i], variables)) return false;
  }
  return true;
}

std::optional<ir::Attribute> Evaluate(const AttributePattern& pattern, absl::string_view name,
                                      size_t rank, const Variables& variables) {
  switch (pattern.form) {
    case AttributePattern::Form::kText:
      return ir::Attribute(pattern.text);
    case AttributePattern::Form::kReal: {
      const std::optional<double> value = rule_cc::Product(pattern, variables);
      if (!value.has_value()) return std::nullopt;
      return ir::Attribute(*value);
    }
    case AttributePattern::Form::kInteger: {
      const std::optional<int64_t> value = Evaluate(pattern.integers[0], variables);
      if (!value.has_value()) return std::nullopt;
      return ir::Attribute(rule_cc::FromTheEnd(name, rank, *value));
    }
    case AttributePattern::Form::kIntegers: {
      std::vector<int64_t> values;
      if (pattern.leading && !variables.leading.has_value()) return std::nullopt;
      for (size_t i = 0; pattern.leading && i < variables.leading->size(); ++i) {
        values.push_back(static_cast<int64_t>(i));
      }
      for (const Expression& expression : pattern.integers) {
        const std::optional<int64_t> value = Evaluate(expression, variables);
        if (!value.has_value()) return std::nullopt;
        values.push_back(rule_cc::FromTheEnd(name, rank, *value));
      }
      return ir::Attribute(std::move(values));
    }
    case AttributePattern::Form::kAny:
      return variables.attributes[static_cast<size_t>(pattern.variables[0])];
  }
  return std::nullopt;
}

bool Unify(const AttributePattern& pattern, absl::string_view name, size_t rank,
           const ir::Attribute& value, Variables& variables) {
  using Form = AttributePattern::Form;
  if (pattern.form == Form::kAny) {
    std::optional<ir::Attribute>& bound =
        variables.attributes[static_cast<size_t>(pattern.variables[0])];
    if (bound.has_value()) return *bound == value;
    bound = value;
    return true;
  }
  if (pattern.form == Form::kIntegers) {
    const auto* const list = std::get_if<std::vector<int64_t>>(&value);
    return list != nullptr && rule_cc::UnifyIntegers(pattern, name, rank, *list, variables);
  }
  if (const std::optional<ir::Attribute> known = Evaluate(pattern, name, rank, variables)) {
    return *known == value;
  }
  const auto* const number = std::get_if<int64_t>(&value);
  return pattern.form == Form::kInteger && number != nullptr &&
         Unify(pattern.integers[0], *number, variables);
}

std::optional<ir::Attribute> DefaultAttribute(ir::OpKind kind, absl::string_view name,
                                              size_t rank) {
  if (name == "activation" && (kind == ir::OpKind::kConv || kind == ir::OpKind::kBatchNorm ||
                               kind == ir::OpKind::kLinear)) {
    return ir::Attribute(std::string());
  }
  for (const rule_cc::Default& each : rule_cc::kDefaults) {
    if (each.kind != kind || each.name != name) continue;
    if (each.length == rule_cc::Length::kNumber) return ir::Attribute(each.value);
    const size_t spatial = rank < 2 ? 0 : rank - 2;
    const size_t count = each.length == rule_cc::Length::kSpatial ? spatial : 2 * spatial;
    return ir::Attribute(std::vector<int64_t>(count, each.value));
  }
  return std::nullopt;
}

}  // namespace orrery::transforms::substitutions
