#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_RULE_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/attributes.h"
#include "ir/op_kind_fwd.h"

// A rule says that two graphs of a few ops compute the same, whatever the sizes of their inputs:
//
//   rule @product_of_columns (%x: [..,m,k], %u: [k,n], %v: [k,p]) {
//     %a = MatMul(%x, %u)
//     %b = MatMul(%x, %v)
//     return %a, %b
//   } equals {
//     %w = Concat(%u, %v) {axis=-1}
//     %y = MatMul(%x, %w)
//     %c, %d = Split(%y) {axis=-1, sizes=[n, p]}
//     return %c, %d
//   } checked on 48 shapes, follows from product_of_joined_columns, split_of_concat
//
// m, k, n, p are sizes, `..` is any leading dimensions, the same ones everywhere; `$f` is any
// attribute, and `$f*$g` the product of two numbers. `axis`, `axes` and `perm` below 0 count from
// the end. `becomes` in place of `equals`: the left is to be replaced by the right, never back. An
// attribute that an op does not mention is as it is by default.
//
// Behind the inputs may stand what sizes have to be, and sizes that are left to whoever applies it:
//
//   rule @rows_in_parts (%x: [m,k], %w: [k,n]) where k at most 2*m, p below m by 128 { …
//
// A mutant has `nearly` in place of `becomes`: its sides differ in boxes of elements. It is no rule
// yet; correct_mutant.h makes rules of it.

namespace orrery::transforms::substitutions {

/// A whole number made of sizes: a sum of products.
struct Expression {
  /// A number times some variables.
  struct Term {
    int64_t factor = 1;
    std::vector<int32_t> variables;  // ascending

    friend auto operator<=>(const Term&, const Term&) = default;
  };
  std::vector<Term> terms;

  friend auto operator<=>(const Expression&, const Expression&) = default;
};

/// What an attribute of an op in a rule is.
struct AttributePattern {
  enum class Form : uint8_t {
    kText,      // "relu"
    kReal,      // 0.5, $f*$g
    kInteger,   // -1, n
    kIntegers,  // [n, p], [.., -1, -2]
    kAny,       // $s
  };
  Form form = Form::kInteger;
  std::string text = {};
  double real = 1;                        // kReal: times `variables`
  std::vector<int32_t> variables = {};    // kReal, and the one of kAny: of attributes
  bool leading = false;                   // kIntegers begin with all leading dimensions
  std::vector<Expression> integers = {};  // of kInteger one

  friend bool operator==(const AttributePattern&, const AttributePattern&) = default;
};

/// An op of a rule. Values are numbered: inputs of the rule, then results of a side's ops in order.
struct RuleOp {
  ir::OpKind kind = {};
  std::vector<int32_t> operands;
  int32_t results = 1;
  std::vector<std::pair<std::string, AttributePattern>> attributes = {};  // by name
};

/// One of the two graphs of a rule.
struct RuleSide {
  std::vector<RuleOp> ops;
  std::vector<int32_t> returns;
};

/// An input of a rule, with its shape.
struct RuleInput {
  std::string name;
  bool leading = false;  // begins with the leading dimensions
  std::vector<Expression> dims;
};

/// What has to be for a rule to stand somewhere.
struct AtMost {
  Expression less, more;

  friend auto operator<=>(const AtMost&, const AtMost&) = default;
};

/// A size that nothing says where a rule stands: it holds for any from 1 to below `below`.
struct FreeSize {
  int32_t size = -1;
  Expression below;
  int64_t step = 1;  // searches try multiples of it
};

/// Why a rule holds.
struct RuleProof {
  int32_t shapes = 0;               // on which both sides were executed; 0: not yet
  std::vector<std::string> axioms;  // which lead from the left to the right; none: not known
};

/// See the top of this file.
struct Rule {
  std::string name;
  std::vector<RuleInput> inputs;
  RuleSide left, right;
  bool both_ways = true;
  std::vector<AtMost> guards = {};
  std::vector<FreeSize> free_sizes = {};
  std::vector<std::string> sizes;       // names of variables
  std::vector<std::string> attributes;  // likewise, with their $
  RuleProof proof;
  int line = 0;  // of the text that it was read from
};

/// What rules are generated from:
///
///   alphabet @products (%x: [..,m,k], %u: [k,n], %v: [k,p]) {
///     MatMul(_, _)
///     Concat(_, _) {axis=-1}
///     Split(_) {axis=-1, sizes=[n, p]}
///   } up to 3 ops
struct Alphabet {
  Rule frame;  // its name, inputs and variables; `left` has the ops, operands 0 in place of `_`
  int32_t most_ops = 0;
};

/// The alphabets of a text; errors as those of ParseRules.
absl::StatusOr<std::vector<Alphabet>> ParseAlphabets(absl::string_view text);

/// The rules of a text. An error of one line says where: "12:7: found ')', wanted a size".
absl::StatusOr<std::vector<Rule>> ParseRules(absl::string_view text);

/// The mutants of a text, as rules whose right side is the mutant: "mutant @name (…) { … } nearly
/// { … }".
absl::StatusOr<std::vector<Rule>> ParseMutants(absl::string_view text);

/// An expression as rules have it: "2*n+-1*p+1".
std::string Print(const Rule& rule, const Expression& expression);

/// The text of a rule, which ParseRules reads.
std::string Print(const Rule& rule);

/// What errors call a rule: "rule @r (line 3)", or "rule @r" where it was not read from a text.
std::string Where(const Rule& rule);

/// The name of a value of a side as Print has it.
std::string ValueName(const Rule& rule, int32_t value);

/// What variables stand for. So far unknown ones are empty.
struct Variables {
  std::vector<std::optional<int64_t>> sizes;
  std::vector<std::optional<ir::Attribute>> attributes;
  std::optional<std::vector<int64_t>> leading;
};

/// All variables of a rule, unknown.
Variables NoVariables(const Rule& rule);

/// The number that an expression is; nothing where a variable is not known, or it has more than 64
/// bits.
std::optional<int64_t> Evaluate(const Expression& expression, const Variables& variables);

/// Why the last free size of a rule cannot stand behind those before it; empty where it can. Sizes
/// are chosen one after another: none is bounded by itself or by one behind it, or twice.
std::string FaultOfLastFreeSize(const Rule& rule);

/// Whether the sizes are as the guards want them, and free ones in their bounds. Not where one is
/// not known.
bool AreAllowed(const Rule& rule, const Variables& variables);

/// What searches try for a free size: multiples of its step below its bound, at most 32, spread
/// evenly, and the largest in any case. None where the bound is not known.
std::vector<int64_t> ChoicesFor(const FreeSize& free_size, const Variables& variables);

/// Whether the expression can be `value`; learns the one variable that is not known, if there is
/// one and it stands by itself times a number.
bool Unify(const Expression& expression, int64_t value, Variables& variables);

/// Whether a tensor of these dims can be the input; learns variables.
bool UnifyDims(const RuleInput& input, const std::vector<int64_t>& dims, Variables& variables);

/// The attribute that a pattern is, of an op whose first operand has `rank` dimensions; nothing
/// where a variable is not known. `name` says whether numbers below 0 count from the end.
std::optional<ir::Attribute> Evaluate(const AttributePattern& pattern, absl::string_view name,
                                      size_t rank, const Variables& variables);

/// Whether the pattern can be `value`; learns variables.
bool Unify(const AttributePattern& pattern, absl::string_view name, size_t rank,
           const ir::Attribute& value, Variables& variables);

/// What an attribute is where an op does not say, of an op whose first operand has `rank`
/// dimensions; nothing where the op has no such default.
std::optional<ir::Attribute> DefaultAttribute(ir::OpKind kind, absl::string_view name, size_t rank);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_RULE_H_
