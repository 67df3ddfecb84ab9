#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/op_info.h"
#include "support/number_text.h"
#include "transforms/substitutions/rule.h"

// The text form of rules, written; rule_text.cc reads it.

namespace orrery::transforms::substitutions {
namespace print_rule_cc {
namespace {

using Form = AttributePattern::Form;

// The shortest that reads back as the number, and as a real one: with a point, without a plus.
std::string RealText(double number) {
  std::string text = ShortestText(number);
  std::erase(text, '+');
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

std::string Text(const Rule& rule, const AttributePattern& pattern) {
  switch (pattern.form) {
    case Form::kText:
      return absl::StrCat("\"", pattern.text, "\"");
    case Form::kInteger:
      return Print(rule, pattern.integers[0]);
    case Form::kIntegers: {
      std::vector<std::string> items;
      if (pattern.leading) items.emplace_back("..");
      for (const Expression& each : pattern.integers) items.push_back(Print(rule, each));
      return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
    }
    default: {
      std::vector<std::string> factors;
      if (pattern.real != 1 || pattern.variables.empty()) {
        factors.push_back(RealText(pattern.real));
      }
      for (const int32_t variable : pattern.variables) {
        factors.push_back(rule.attributes[static_cast<size_t>(variable)]);
      }
      return absl::StrJoin(factors, "*");
    }
  }
}

std::string Text(const Rule& rule, const RuleInput& input) {
  std::vector<std::string> dims;
  if (input.leading) dims.emplace_back("..");
  for (const Expression& dim : input.dims) dims.push_back(Print(rule, dim));
  return absl::StrCat("%", input.name, ": [", absl::StrJoin(dims, ","), "]");
}

// " where …", or nothing.
std::string Conditions(const Rule& rule) {
  std::vector<std::string> all;
  for (const FreeSize& each : rule.free_sizes) {
    all.push_back(absl::StrCat(rule.sizes[static_cast<size_t>(each.size)], " below ",
                               Print(rule, each.below), " by ", each.step));
  }
  for (const AtMost& each : rule.guards) {
    all.push_back(absl::StrCat(Print(rule, each.less), " at most ", Print(rule, each.more)));
  }
  return all.empty() ? "" : absl::StrCat(" where ", absl::StrJoin(all, ", "));
}

std::string Text(const Rule& rule, const RuleSide& side) {
  const auto name = [&](std::string* out, int32_t value) {
    absl::StrAppend(out, ValueName(rule, value));
  };
  std::string text;
  auto next = static_cast<int32_t>(rule.inputs.size());
  for (const RuleOp& op : side.ops) {
    std::vector<int32_t> results;
    for (int32_t i = 0; i < op.results; ++i) results.push_back(next++);
    absl::StrAppend(&text, "  ", absl::StrJoin(results, ", ", name), " = ",
                    ir::GetOpInfo(op.kind).name, "(", absl::StrJoin(op.operands, ", ", name), ")");
    std::vector<std::string> attributes;
    for (const auto& [attribute, pattern] : op.attributes) {
      attributes.push_back(absl::StrCat(attribute, "=", Text(rule, pattern)));
    }
    if (!attributes.empty()) absl::StrAppend(&text, " {", absl::StrJoin(attributes, ", "), "}");
    text += "\n";
  }
  return absl::StrCat(text, "  return ", absl::StrJoin(side.returns, ", ", name), "\n");
}

}  // namespace
}  // namespace print_rule_cc

std::string Where(const Rule& rule) {
  return rule.line > 0 ? absl::StrCat("rule @", rule.name, " (line ", rule.line, ")")
                       : absl::StrCat("rule @", rule.name);
}

std::string ValueName(const Rule& rule, int32_t value) {
  const auto i = static_cast<size_t>(value);
  if (i < rule.inputs.size()) return absl::StrCat("%", rule.inputs[i].name);
  return absl::StrCat("%", i - rule.inputs.size() + 1);
}

std::string Print(const Rule& rule, const Expression& expression) {
  std::vector<std::string> terms;
  for (const Expression::Term& term : expression.terms) {
    std::vector<std::string> factors;
    if (term.factor != 1 || term.variables.empty()) factors.push_back(absl::StrCat(term.factor));
    for (const int32_t variable : term.variables) {
      factors.push_back(rule.sizes[static_cast<size_t>(variable)]);
    }
    terms.push_back(absl::StrJoin(factors, "*"));
  }
  return absl::StrJoin(terms, "+");
}

std::string Print(const Rule& rule) {
  const auto input = [&](std::string* out, const RuleInput& each) {
    absl::StrAppend(out, print_rule_cc::Text(rule, each));
  };
  std::string text = absl::StrCat(
      "rule @", rule.name, " (", absl::StrJoin(rule.inputs, ", ", input), ")",
      print_rule_cc::Conditions(rule), " {\n", print_rule_cc::Text(rule, rule.left), "} ",
      rule.both_ways ? "equals" : "becomes", " {\n", print_rule_cc::Text(rule, rule.right), "}");
  if (rule.proof.shapes > 0) absl::StrAppend(&text, " checked on ", rule.proof.shapes, " shapes");
  if (!rule.proof.axioms.empty()) {
    absl::StrAppend(&text, ", follows from ", absl::StrJoin(rule.proof.axioms, ", "));
  }
  return text + "\n";
}

}  // namespace orrery::transforms::substitutions
