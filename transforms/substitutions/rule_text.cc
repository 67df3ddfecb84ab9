#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/lexer.h"
#include "ir/text/wanted_op.h"
#include "support/status.h"
#include "transforms/substitutions/rule.h"

// The text form of rules, read; print_rule.cc writes it.

namespace orrery::transforms::substitutions {
namespace rule_text_cc {
namespace {

using Form = AttributePattern::Form;
using ir::Token;
using ir::TokenKind;

// The number of a name in a list, to which it is added where it is new.
int32_t NumberOf(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) names.push_back(name);
  return static_cast<int32_t>(std::ranges::find(names, name) - names.begin());
}

class Parser {
 public:
  explicit Parser(absl::string_view text) : lexer_(text) { token_ = lexer_.Next(); }

  absl::StatusOr<std::vector<Rule>> Run(absl::string_view what) {
    std::vector<Rule> rules;
    absl::flat_hash_set<std::string> names;
    while (token_.kind != TokenKind::kEnd) {
      const Token start = token_;
      ORRERY_ASSIGN_OR_RETURN(Rule rule, ReadRule(what));
      if (!names.insert(rule.name).second) {
        return Wrong(start, absl::StrCat("there are two ", what, "s @", rule.name, "; wanted one"));
      }
      rules.push_back(std::move(rule));
    }
    return rules;
  }

  absl::StatusOr<std::vector<Alphabet>> RunAlphabets() {
    std::vector<Alphabet> alphabets;
    while (token_.kind != TokenKind::kEnd) {
      ORRERY_ASSIGN_OR_RETURN(Alphabet alphabet, ReadAlphabet());
      alphabets.push_back(std::move(alphabet));
    }
    return alphabets;
  }

 private:
  static absl::Status Wrong(const Token& token, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(token.line, ":", token.column, ": ", what));
  }
  absl::Status Wanted(absl::string_view what) const {
    std::string found = absl::StrCat("'", token_.text, "'");
    if (token_.kind == TokenKind::kEnd) found = "the end";
    if (token_.kind == TokenKind::kBad) found = token_.text;
    return Wrong(token_, absl::StrCat("found ", found, ", wanted ", what));
  }
  void Next() { token_ = lexer_.Next(); }
  bool Sees(absl::string_view text) const {
    return (token_.kind == TokenKind::kWord || token_.kind == TokenKind::kMark) &&
           token_.text == text;
  }
  bool Take(absl::string_view text) {
    if (!Sees(text)) return false;
    Next();
    return true;
  }
  absl::Status Expect(absl::string_view text) {
    return Take(text) ? absl::OkStatus() : Wanted(absl::StrCat("'", text, "'"));
  }
  absl::StatusOr<std::string> Word(absl::string_view what) {
    if (token_.kind != TokenKind::kWord) return Wanted(what);
    std::string word = token_.text;
    Next();
    return word;
  }

  // A whole number from 1 on.
  template <typename Number>
  absl::Status ReadNumber(absl::string_view what, Number& number) {
    const Token token = token_;
    ORRERY_ASSIGN_OR_RETURN(const std::string word, Word(what));
    if (absl::SimpleAtoi(word, &number) && number >= 1) return absl::OkStatus();
    return Wrong(token, absl::StrCat("found '", word, "', wanted ", what, " of at least 1"));
  }

  // "rule @name (inputs)".
  absl::Status ReadHead(absl::string_view what) {
    rule_ = Rule();
    rule_.line = token_.line;
    ORRERY_RETURN_IF_ERROR(Expect(what));
    ORRERY_RETURN_IF_ERROR(Expect("@"));
    ORRERY_ASSIGN_OR_RETURN(rule_.name, Word("a name"));
    return ReadInputs();
  }

  absl::StatusOr<Alphabet> ReadAlphabet() {
    ORRERY_RETURN_IF_ERROR(ReadHead("alphabet"));
    ORRERY_RETURN_IF_ERROR(Expect("{"));
    const Names blank = {{"_", 0}};
    while (!Take("}")) {
      RuleOp op;
      ORRERY_RETURN_IF_ERROR(ReadCall(blank, op));
      if (Sees("{")) ORRERY_RETURN_IF_ERROR(ReadAttributes(op));
      rule_.left.ops.push_back(std::move(op));
    }
    ORRERY_RETURN_IF_ERROR(Expect("up"));
    ORRERY_RETURN_IF_ERROR(Expect("to"));
    Alphabet alphabet;
    ORRERY_RETURN_IF_ERROR(ReadNumber("a number of ops", alphabet.most_ops));
    ORRERY_RETURN_IF_ERROR(Expect("ops"));
    alphabet.frame = std::move(rule_);
    return alphabet;
  }

  absl::StatusOr<Rule> ReadRule(absl::string_view what) {
    ORRERY_RETURN_IF_ERROR(ReadHead(what));
    if (Take("where")) ORRERY_RETURN_IF_ERROR(ReadConditions());
    ORRERY_RETURN_IF_ERROR(ReadSide(rule_.left));
    if (what == "mutant") {
      rule_.both_ways = false;
      ORRERY_RETURN_IF_ERROR(Expect("nearly"));
    } else {
      rule_.both_ways = Take("equals");
      if (!rule_.both_ways && !Take("becomes")) return Wanted("'equals' or 'becomes'");
    }
    const Token side = token_;
    ORRERY_RETURN_IF_ERROR(ReadSide(rule_.right));
    if (rule_.left.returns.size() != rule_.right.returns.size()) {
      return Wrong(side, absl::StrCat("the sides return ", rule_.left.returns.size(), " and ",
                                      rule_.right.returns.size(), " values; wanted as many"));
    }
    ORRERY_RETURN_IF_ERROR(ReadProof());
    return std::move(rule_);
  }

  absl::Status ReadInputs() {
    inputs_.clear();
    ORRERY_RETURN_IF_ERROR(Expect("("));
    while (!Take(")")) {
      if (!rule_.inputs.empty()) ORRERY_RETURN_IF_ERROR(Expect(","));
      RuleInput input;
      ORRERY_ASSIGN_OR_RETURN(input.name, NewValue(inputs_));
      ORRERY_RETURN_IF_ERROR(Expect(":"));
      ORRERY_RETURN_IF_ERROR(Expect("["));
      input.leading = Take("..");
      while (!Take("]")) {
        if (input.leading || !input.dims.empty()) ORRERY_RETURN_IF_ERROR(Expect(","));
        ORRERY_ASSIGN_OR_RETURN(Expression dim, ReadExpression());
        input.dims.push_back(std::move(dim));
      }
      rule_.inputs.push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  // "k at most 2*m, p below m by 128".
  absl::Status ReadConditions() {
    do {
      const Token start = token_;
      ORRERY_ASSIGN_OR_RETURN(Expression left, ReadExpression());
      if (Take("at")) {
        ORRERY_RETURN_IF_ERROR(Expect("most"));
        ORRERY_ASSIGN_OR_RETURN(Expression right, ReadExpression());
        rule_.guards.push_back({.less = std::move(left), .more = std::move(right)});
        continue;
      }
      if (!Take("below")) return Wanted("'at most' or 'below'");
      const bool is_size = left.terms.size() == 1 && left.terms[0].factor == 1 &&
                           left.terms[0].variables.size() == 1;
      if (!is_size) return Wrong(start, "found a sum or a product, wanted one size before 'below'");
      FreeSize free_size = {.size = left.terms[0].variables[0], .below = {}};
      ORRERY_ASSIGN_OR_RETURN(free_size.below, ReadExpression());
      ORRERY_RETURN_IF_ERROR(Expect("by"));
      ORRERY_RETURN_IF_ERROR(ReadNumber("a number", free_size.step));
      rule_.free_sizes.push_back(std::move(free_size));
      const std::string fault = FaultOfLastFreeSize(rule_);
      if (!fault.empty()) return Wrong(start, fault);
    } while (Take(","));
    return absl::OkStatus();
  }

  using Names = absl::flat_hash_map<std::string, int32_t>;

  absl::StatusOr<std::string> NewValue(Names& names) {
    const Token token = token_;
    if (token.kind != TokenKind::kValue && token.kind != TokenKind::kNumbered) {
      return Wanted("a value, such as %x");
    }
    Next();
    if (!names.try_emplace(token.text, static_cast<int32_t>(names.size())).second) {
      return Wrong(token,
                   absl::StrCat("there is a %", token.text, " already; wanted another name"));
    }
    return token.text;
  }

  absl::StatusOr<int32_t> OldValue(const Names& names) {
    const auto found = names.find(token_.text);
    const bool is_value = token_.kind == TokenKind::kValue || token_.kind == TokenKind::kNumbered ||
                          token_.text == "_";
    if (!is_value || found == names.end()) return Wanted("a value that stands above");
    Next();
    return found->second;
  }

  absl::Status ReadSide(RuleSide& side) {
    Names names = inputs_;
    ORRERY_RETURN_IF_ERROR(Expect("{"));
    while (!Take("return")) {
      ORRERY_ASSIGN_OR_RETURN(RuleOp op, ReadOp(names));
      side.ops.push_back(std::move(op));
    }
    do {
      ORRERY_ASSIGN_OR_RETURN(const int32_t value, OldValue(names));
      side.returns.push_back(value);
    } while (Take(","));
    return Expect("}");
  }

  absl::StatusOr<RuleOp> ReadOp(Names& names) {
    std::vector<std::string> results;
    Names later = names;  // an op does not read its own results
    do {
      ORRERY_ASSIGN_OR_RETURN(std::string result, NewValue(later));
      results.push_back(std::move(result));
    } while (Take(","));
    ORRERY_RETURN_IF_ERROR(Expect("="));
    RuleOp op;
    op.results = static_cast<int32_t>(results.size());
    ORRERY_RETURN_IF_ERROR(ReadCall(names, op));
    names = std::move(later);
    if (Sees("{")) ORRERY_RETURN_IF_ERROR(ReadAttributes(op));
    return op;
  }

  // "Concat(%x, %y)", of values that stand above.
  absl::Status ReadCall(const Names& names, RuleOp& op) {
    const std::optional<ir::OpKind> kind = ir::FindOp(token_.text);
    if (!kind.has_value()) return Wanted(ir::WantedOp(token_.text));
    if (ir::GetOpInfo(*kind).infer == nullptr || ir::GetOpInfo(*kind).evaluate == nullptr) {
      return Wanted("an op whose types and values follow from its operands");
    }
    op.kind = *kind;
    Next();
    ORRERY_RETURN_IF_ERROR(Expect("("));
    while (!Take(")")) {
      if (!op.operands.empty()) ORRERY_RETURN_IF_ERROR(Expect(","));
      ORRERY_ASSIGN_OR_RETURN(const int32_t operand, OldValue(names));
      op.operands.push_back(operand);
    }
    return absl::OkStatus();
  }

  absl::Status ReadAttributes(RuleOp& op) {
    ORRERY_RETURN_IF_ERROR(Expect("{"));
    while (!Take("}")) {
      if (!op.attributes.empty()) ORRERY_RETURN_IF_ERROR(Expect(","));
      ORRERY_ASSIGN_OR_RETURN(std::string name, Word("the name of an attribute"));
      ORRERY_RETURN_IF_ERROR(Expect("="));
      ORRERY_ASSIGN_OR_RETURN(AttributePattern pattern, ReadAttribute());
      op.attributes.emplace_back(std::move(name), std::move(pattern));
    }
    std::ranges::sort(op.attributes, {}, [](const auto& entry) { return entry.first; });
    return absl::OkStatus();
  }

  absl::StatusOr<AttributePattern> ReadAttribute() {
    AttributePattern pattern;
    if (token_.kind == TokenKind::kString) {
      pattern.form = Form::kText;
      pattern.text = token_.text;
      Next();
      return pattern;
    }
    if (Take("[")) return ReadIntegers();
    const bool is_real = token_.text.find('.') != std::string::npos;
    if (token_.kind == TokenKind::kWord && (is_real || token_.text[0] == '$')) return ReadReal();
    ORRERY_ASSIGN_OR_RETURN(Expression expression, ReadExpression());
    pattern.integers.push_back(std::move(expression));
    return pattern;
  }

  absl::StatusOr<AttributePattern> ReadIntegers() {
    AttributePattern pattern;
    pattern.form = Form::kIntegers;
    pattern.leading = Take("..");
    while (!Take("]")) {
      if (pattern.leading || !pattern.integers.empty()) ORRERY_RETURN_IF_ERROR(Expect(","));
      ORRERY_ASSIGN_OR_RETURN(Expression expression, ReadExpression());
      pattern.integers.push_back(std::move(expression));
    }
    return pattern;
  }

  // $s by itself is anything; a number or a product is a number.
  absl::StatusOr<AttributePattern> ReadReal() {
    AttributePattern pattern;
    pattern.form = Form::kAny;
    do {
      if (!pattern.variables.empty()) pattern.form = Form::kReal;
      double number = 1;
      if (token_.kind == TokenKind::kWord && token_.text[0] == '$') {
        pattern.variables.push_back(NumberOf(rule_.attributes, token_.text));
      } else if (token_.kind == TokenKind::kWord && absl::SimpleAtod(token_.text, &number)) {
        pattern.form = Form::kReal;
        pattern.real *= number;
      } else {
        return Wanted("a number or a variable, such as $f");
      }
      Next();
    } while (Take("*"));
    std::ranges::sort(pattern.variables);
    return pattern;
  }

  absl::StatusOr<Expression> ReadExpression() {
    Expression expression;
    do {
      ORRERY_ASSIGN_OR_RETURN(Expression::Term term, ReadTerm());
      expression.terms.push_back(std::move(term));
    } while (Take("+"));
    return expression;
  }

  absl::StatusOr<Expression::Term> ReadTerm() {
    const Token start = token_;
    Expression::Term term;
    do {
      const Token token = token_;
      ORRERY_ASSIGN_OR_RETURN(const std::string word, Word("a size"));
      int64_t number = 0;
      if (std::isalpha(static_cast<unsigned char>(word[0])) != 0) {
        term.variables.push_back(NumberOf(rule_.sizes, word));
      } else if (absl::SimpleAtoi(word, &number)) {
        if (!__builtin_mul_overflow(term.factor, number, &term.factor)) continue;
        return Wrong(start,
                     "the product of its numbers has more than 64 bits; wanted smaller ones");
      } else if (word.find_first_not_of("-0123456789") == std::string::npos) {
        return Wrong(token, absl::StrCat("found ", word, ", wanted a number of 64 bits"));
      } else {
        return Wrong(token, absl::StrCat("found '", word, "', wanted a size, such as 3 or n"));
      }
    } while (Take("*"));
    if (term.factor == 0 && !term.variables.empty()) {
      return Wrong(start, "found 0 times a size, which says nothing of it; wanted another factor");
    }
    std::ranges::sort(term.variables);
    return term;
  }

  absl::Status ReadProof() {
    if (!Take("checked")) return absl::OkStatus();
    ORRERY_RETURN_IF_ERROR(Expect("on"));
    ORRERY_RETURN_IF_ERROR(ReadNumber("a number of shapes", rule_.proof.shapes));
    ORRERY_RETURN_IF_ERROR(Expect("shapes"));
    if (!Take(",")) return absl::OkStatus();
    ORRERY_RETURN_IF_ERROR(Expect("follows"));
    ORRERY_RETURN_IF_ERROR(Expect("from"));
    do {
      ORRERY_ASSIGN_OR_RETURN(std::string axiom, Word("the name of an axiom"));
      rule_.proof.axioms.push_back(std::move(axiom));
    } while (Take(","));
    return absl::OkStatus();
  }

  ir::Lexer lexer_;
  Token token_;
  Rule rule_;
  Names inputs_;
};

}  // namespace
}  // namespace rule_text_cc

absl::StatusOr<std::vector<Rule>> ParseRules(absl::string_view text) {
  return rule_text_cc::Parser(text).Run("rule");
}

absl::StatusOr<std::vector<Rule>> ParseMutants(absl::string_view text) {
  return rule_text_cc::Parser(text).Run("mutant");
}

absl::StatusOr<std::vector<Alphabet>> ParseAlphabets(absl::string_view text) {
  return rule_text_cc::Parser(text).RunAlphabets();
}

}  // namespace orrery::transforms::substitutions
