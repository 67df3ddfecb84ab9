#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/text/lexer.h"
#include "support/status.h"
#include "transforms/substitutions/check_rule.h"
#include "transforms/substitutions/correct_mutant.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/generate_rules.h"
#include "transforms/substitutions/terms.h"

// At which sizes graphs of an alphabet are enumerated, and the file of what comes of all alphabets.

namespace orrery::transforms::substitutions {
namespace generate_alphabets_cc {
namespace {

constexpr int kSizeDraws = 200;
constexpr SizeDraw kSizes = {
    .least = 2, .most = 12, .generic = true, .leading_dims = 1, .least_leading_dims = 1};

// How many ops of the alphabet take inputs of these sizes.
size_t Takes(const Alphabet& alphabet, const Variables& variables) {
  Terms terms(alphabet, variables);
  size_t takes = 0;
  const int32_t inputs = terms.flow().inputs;
  for (size_t op = 0; op < alphabet.frame.left.ops.size(); ++op) {
    const size_t arity = alphabet.frame.left.ops[op].operands.size();
    for (int32_t i = 0; i < inputs; ++i) {
      for (int32_t j = 0; j < (arity > 1 ? inputs : 1); ++j) {
        std::vector<Port> operands(arity, Port{.node = i});
        if (arity > 1) operands[1] = {.node = j};
        if (terms.Find(static_cast<int32_t>(op), operands) >= 0) ++takes;
      }
    }
  }
  return takes;
}

// Of all inputs at these sizes.
int64_t Elements(const Alphabet& alphabet, const Variables& variables) {
  WorkTable works;
  const Dataflow flow = *InputsOf(alphabet.frame, variables, works);
  int64_t elements = 0;
  for (const Node& node : flow.nodes) {
    elements += ir::ElementCount(works.type(works[node.work].results[0]).dims);
  }
  return elements;
}

}  // namespace
}  // namespace generate_alphabets_cc

absl::StatusOr<Generated> GenerateRules(const Alphabet& alphabet, std::span<const Rule> known,
                                        std::span<const Rule> axioms, const Generation& options) {
  RandomBits random(options.seed);
  std::optional<Variables> best;
  std::pair<int64_t, int64_t> most;
  for (int draw = 0; draw < generate_alphabets_cc::kSizeDraws; ++draw) {
    std::optional<Variables> variables =
        DrawAnyVariables(alphabet.frame, generate_alphabets_cc::kSizes, random);
    if (!variables.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("alphabet @", alphabet.frame.name,
                       ": an attribute is a variable whose values are not known; wanted one of ",
                       kDrawnAttributes));
    }
    // Of those that most ops take, the smallest: values are all that sizes are for.
    const auto takes = static_cast<int64_t>(generate_alphabets_cc::Takes(alphabet, *variables));
    if (takes == 0) continue;
    const std::pair<int64_t, int64_t> rank = {
        takes, -generate_alphabets_cc::Elements(alphabet, *variables)};
    if (best.has_value() && rank <= most) continue;
    most = rank;
    best = std::move(variables);
  }
  if (!best.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("alphabet @", alphabet.frame.name, ": no op takes any of the inputs"));
  }
  return GenerateRulesAt(*best, alphabet, {known, axioms}, options);
}

std::string SectionOf(const Alphabet& alphabet, const Generated& generated) {
  std::string text = absl::StrCat(
      "\n// @", alphabet.frame.name, ": ", generated.graphs, " graphs, ", generated.equal,
      " equal to another one, ", generated.special, " of these at some sizes alone, ",
      generated.unproven, " not proven: ", generated.rules.size(), " rules.\n");
  for (const Rule& rule : generated.rules) absl::StrAppend(&text, "\n", Print(rule));
  return text;
}

absl::StatusOr<std::string> GenerateText(absl::string_view alphabets, absl::string_view axioms,
                                         const Generation& options) {
  if (ir::Lexer(alphabets).Next().text == "mutant") return GenerateMutants(alphabets, options);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Alphabet> all, ParseAlphabets(alphabets));
  if (all.empty()) {
    return absl::InvalidArgumentError("has no alphabets and no mutants; wanted one at least");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Rule> plain, ParseRules(axioms));
  std::string text =
      "// Rules that enumeration found: opt --generate-substitutions writes this file.\n";
  std::vector<Rule> rules;
  for (const Alphabet& alphabet : all) {
    ORRERY_ASSIGN_OR_RETURN(const Generated more, GenerateRules(alphabet, rules, plain, options));
    absl::StrAppend(&text, SectionOf(alphabet, more));
    rules.insert(rules.end(), more.rules.begin(), more.rules.end());
  }
  return text;
}

}  // namespace orrery::transforms::substitutions
