#include "transforms/substitutions/standard_rules.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/status.h"
#include "transforms/substitutions/prove_rule.h"

namespace orrery::transforms::substitutions {
namespace standard_rules_cc {
namespace {

absl::Status AddTo(std::vector<Rule>& rules, absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Rule> more, ParseRules(text));
  rules.insert(rules.end(), more.begin(), more.end());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Rule>> ReadRules(const std::string& name) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(name));
  ORRERY_ASSIGN_OR_RETURN(std::vector<Rule> rules, Annotated(ParseRules(text), name));
  if (!rules.empty()) return rules;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": has no rules; wanted one at least, \"rule @name (%x: [n]) { … }\""));
}

bool IsBuiltIn(absl::string_view name) { return name == "standard" || name == "mutants"; }

// Rules by their names, those of files not checked.
absl::StatusOr<std::vector<Rule>> Read(absl::string_view name) {
  if (!IsBuiltIn(name)) return ReadRules(std::string(name));
  std::vector<Rule> rules;
  if (name == "mutants") {
    ORRERY_RETURN_IF_ERROR(AddTo(rules, kMutantRules));
    return rules;
  }
  for (const absl::string_view text : {kGeneratedRules, kKernelRules}) {
    ORRERY_RETURN_IF_ERROR(AddTo(rules, text));
  }
  return rules;
}

}  // namespace
}  // namespace standard_rules_cc

absl::StatusOr<std::vector<Rule>> LoadRules(absl::string_view names) {
  std::vector<Rule> rules;
  for (const absl::string_view name : absl::StrSplit(names, '+')) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<Rule> more, standard_rules_cc::Read(name));
    for (const Rule& rule : more) {
      if (!standard_rules_cc::IsBuiltIn(name))
        ORRERY_RETURN_IF_ERROR(Annotate(CheckRule(rule), name));
    }
    rules.insert(rules.end(), more.begin(), more.end());
  }
  return rules;
}

absl::StatusOr<std::string> CheckRules(absl::string_view names, const RuleCheck& check) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Rule> axioms, ParseRules(kAxioms));
  size_t count = 0, proven = 0;
  for (const absl::string_view name : absl::StrSplit(names, '+')) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<Rule> rules, standard_rules_cc::Read(name));
    for (const Rule& rule : rules) {
      ORRERY_RETURN_IF_ERROR(Annotate(CheckRule(rule, check), name));
      ORRERY_RETURN_IF_ERROR(Annotate(CheckProof(rule, axioms), name));
      proven += rule.proof.axioms.empty() ? 0 : 1;
    }
    count += rules.size();
  }
  for (const Rule& axiom : axioms) {
    if (proven > 0) ORRERY_RETURN_IF_ERROR(Annotate(CheckRule(axiom, check), "axioms.rules"));
  }
  return absl::StrCat(count, count == 1 ? " rule" : " rules", ": equal on ", check.shapes,
                      " shapes each, ", proven,
                      proven == 1 ? " of them follows" : " of them follow", " from axioms\n");
}

}  // namespace orrery::transforms::substitutions
