#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Sums of products named by letters: "bik,bkj->bij". Letters that the result lacks are summed over.
// The equation names each dimension of each operand, without blanks and without an ellipsis.

namespace orrery::ir {
namespace einsum_cc {
namespace {

constexpr size_t kMaxLetters = 32;  // factors of a sharding rule

struct Equation {
  std::vector<std::string> operands;
  std::string result;
  std::string letters;  // all of them, in the order in which they come

  int8_t Factor(char letter) const { return static_cast<int8_t>(letters.find(letter)); }
  ShardingRule::Factors Factors(const std::string& term) const {
    ShardingRule::Factors factors;
    for (const char letter : term) factors.push_back(Factor(letter));
    return factors;
  }
};

bool Repeats(const std::string& term) {
  for (const char letter : term) {
    if (std::count(term.begin(), term.end(), letter) > 1) return true;
  }
  return false;
}

absl::StatusOr<Equation> ParseEquation(const AttributeSet& attributes) {
  const std::string text = attributes.String("equation", "");
  const auto malformed = [&text](absl::string_view trouble) {
    return absl::InvalidArgumentError(absl::StrCat("equation \"", text, "\" ", trouble,
                                                   "; wanted letters as in \"bik,bkj->bij\""));
  };
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) return malformed("has no one arrow");
  Equation equation{.operands = absl::StrSplit(sides[0], ','), .result = sides[1], .letters = {}};
  for (const std::string& term : equation.operands) {
    for (const char letter : term) {
      if (!absl::ascii_isalpha(static_cast<unsigned char>(letter))) return malformed("has more");
      if (equation.letters.find(letter) == std::string::npos) equation.letters += letter;
    }
  }
  for (const char letter : equation.result) {
    if (equation.letters.find(letter) == std::string::npos) {
      return malformed("makes its result of letters that no operand has");
    }
  }
  if (Repeats(equation.result)) return malformed("repeats a letter in its result");
  if (equation.letters.size() > kMaxLetters) return malformed("has more than 32 letters");
  return equation;
}

// The size of each letter, as the first `count` operands have it.
absl::StatusOr<Dims> LetterSizes(const Equation& equation, const OpTypes& op) {
  Dims sizes(equation.letters.size(), -1);
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const std::string& term = equation.operands[i];
    const Dims& dims = op.operands[i]->dims;
    if (dims.size() != term.size()) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", i, " has shape ", Show(dims),
                                                     "; wanted a dimension for each of \"", term,
                                                     "\""));
    }
    for (size_t d = 0; d < term.size(); ++d) {
      int64_t& size = sizes[static_cast<size_t>(equation.Factor(term[d]))];
      if (size >= 0 && size != dims[d]) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", std::string(1, term[d]), "' has size ", size, " and size ", dims[d]));
      }
      size = dims[d];
    }
  }
  return sizes;
}

absl::StatusOr<Equation> CheckedEquation(const OpTypes& op, size_t operands) {
  ORRERY_ASSIGN_OR_RETURN(Equation equation, ParseEquation(op.attributes));
  if (equation.operands.size() != operands) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", operands, " operands; wanted ", equation.operands.size(), " as the equation has"));
  }
  for (size_t i = 1; i < operands; ++i) ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, i));
  return equation;
}

Dims DimsOf(const Equation& equation, const std::string& term, const Dims& sizes) {
  Dims dims;
  for (const char letter : term)
    dims.push_back(sizes[static_cast<size_t>(equation.Factor(letter))]);
  return dims;
}

absl::Status InferEinsum(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const Equation equation, CheckedEquation(op, op.operands.size()));
  ORRERY_ASSIGN_OR_RETURN(const Dims sizes, LetterSizes(equation, op));
  AddResult(results, op.operands[0]->dtype, DimsOf(equation, equation.result, sizes));
  return absl::OkStatus();
}

// One operation an operand at each position of the whole space; of a single operand one, and none
// when its elements only move.
double SpaceFlops(const Equation& equation, const OpTypes& op, size_t operands) {
  const absl::StatusOr<Dims> sizes = LetterSizes(equation, op);
  double positions = static_cast<double>(operands);
  if (sizes.ok()) {
    for (const int64_t size : *sizes) positions *= static_cast<double>(size);
  }
  return positions;
}

double EinsumFlops(const OpTypes& op, const TypeList&) {
  const absl::StatusOr<Equation> equation = ParseEquation(op.attributes);
  if (!equation.ok()) return 0;
  const bool moves = op.operands.size() == 1 && equation->letters.size() == equation->result.size();
  return moves ? 0 : SpaceFlops(*equation, op, op.operands.size());
}

ShardingRule EinsumSharding(const OpTypes& op, const TypeList&) {
  const Equation equation = ParseEquation(op.attributes).value();
  ShardingRule rule;
  for (const std::string& term : equation.operands) rule.operands.push_back(equation.Factors(term));
  rule.results.push_back(equation.Factors(equation.result));
  // A letter that stands twice in an operand is a diagonal there, which nobody can cut.
  const auto keep_whole = [&equation](ShardingRule::Factors& factors) {
    for (int8_t& factor : factors) {
      for (const std::string& term : equation.operands) {
        if (factor == kNoFactor) break;
        const char letter = equation.letters[static_cast<size_t>(factor)];
        if (std::count(term.begin(), term.end(), letter) > 1) factor = kNoFactor;
      }
    }
  };
  for (auto& factors : rule.operands) keep_whole(factors);
  keep_whole(rule.results[0]);
  return rule;
}

// Strides of the letters in a tensor of dims `dims` that `term` names; 0 for those that it lacks.
Dims LetterStrides(const Equation& equation, const std::string& term, const Dims& dims) {
  const Dims own = StridesOf(dims);
  Dims strides(equation.letters.size(), 0);
  for (size_t d = 0; d < term.size(); ++d) {
    strides[static_cast<size_t>(equation.Factor(term[d]))] += own[d];
  }
  return strides;
}

// to[..] += product of the operands but `skip`, each read by the letters of its term.
struct Term {
  const Tensor* tensor;
  Dims strides;
};

void AddProducts(const Dims& sizes, const std::vector<Term>& terms, Tensor& to,
                 const Dims& to_strides) {
  const bool is_float = to.is_float();
  for (Odometer at(sizes, {to_strides}); !at.done(); at.Next()) {
    double real = 1;
    uint64_t whole = 1;
    for (const Term& term : terms) {
      int64_t offset = 0;
      for (size_t f = 0; f < sizes.size(); ++f) offset += at.at()[f] * term.strides[f];
      if (is_float) {
        real *= term.tensor->floats()[static_cast<size_t>(offset)];
      } else {
        whole *= static_cast<uint64_t>(term.tensor->ints()[static_cast<size_t>(offset)]);
      }
    }
    const auto position = static_cast<size_t>(at.offset(0));
    if (is_float) {
      to.floats()[position] += real;
    } else {
      to.ints()[position] =
          static_cast<int64_t>(static_cast<uint64_t>(to.ints()[position]) + whole);
    }
  }
}

Dims LetterSizes(const Equation& equation, const Evaluation& e) {
  Dims sizes(equation.letters.size(), 1);
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const std::string& term = equation.operands[i];
    for (size_t d = 0; d < term.size(); ++d) {
      sizes[static_cast<size_t>(equation.Factor(term[d]))] = e.operand(i).dims()[d];
    }
  }
  return sizes;
}

absl::Status EvaluateEinsum(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(e.attributes));
  std::vector<Term> terms;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const Tensor& x = e.operand(i);
    terms.push_back({&x, LetterStrides(equation, equation.operands[i], x.dims())});
  }
  Tensor& y = e.results[0];
  AddProducts(LetterSizes(equation, e), terms, y,
              LetterStrides(equation, equation.result, y.dims()));
  return absl::OkStatus();
}

// The gradient of operand i is a sum of products again, of the gradient and the other operands:
// unless it has letters twice, or letters that nobody else has.
bool IsEinsum(const Equation& equation, size_t operand) {
  const std::string& term = equation.operands[operand];
  if (Repeats(term)) return false;
  for (const char letter : term) {
    bool elsewhere = equation.result.find(letter) != std::string::npos;
    for (size_t j = 0; j < equation.operands.size(); ++j) {
      if (j != operand) elsewhere |= equation.operands[j].find(letter) != std::string::npos;
    }
    if (!elsewhere) return false;
  }
  return true;
}

ValueId GradientOf(GradientContext& c, const Equation& equation, size_t operand) {
  const std::string name = c.GradientName(static_cast<int>(operand));
  std::vector<ValueId> operands;
  if (!IsEinsum(equation, operand)) {
    for (int i = 0; i < c.operand_count(); ++i) operands.push_back(c.operand(i));
    operands.push_back(c.result_gradient());
    return c.builder().Op(OpKind::kEinsumGrad, operands, name,
                          {{"equation", c.attributes().String("equation", "")},
                           {"operand", static_cast<int64_t>(operand)}});
  }
  std::string turned = equation.result;
  operands.push_back(c.result_gradient());
  for (size_t j = 0; j < equation.operands.size(); ++j) {
    if (j == operand) continue;
    absl::StrAppend(&turned, ",", equation.operands[j]);
    operands.push_back(c.operand(static_cast<int>(j)));
  }
  absl::StrAppend(&turned, "->", equation.operands[operand]);
  return c.builder().Op(OpKind::kEinsum, operands, name, {{"equation", turned}});
}

absl::Status EinsumGradient(GradientContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(c.attributes()));
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    if (!c.needs(static_cast<int>(i))) continue;
    c.SetOperandGradient(static_cast<int>(i), GradientOf(c, equation, i));
  }
  return c.builder().status();
}

absl::Status InferEinsumGrad(const OpTypes& op, TypeList& results) {
  if (op.operands.empty()) return absl::InvalidArgumentError("got 0 operands; wanted 2 or more");
  const size_t last = op.operands.size() - 1;
  ORRERY_ASSIGN_OR_RETURN(const Equation equation, CheckedEquation(op, last));
  ORRERY_ASSIGN_OR_RETURN(const Dims sizes, LetterSizes(equation, op));
  ORRERY_RETURN_IF_ERROR(
      CheckDims(op, last, DimsOf(equation, equation.result, sizes), "as the result"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, last));
  const int64_t operand = op.attributes.Int("operand", 0);
  if (operand < 0 || operand >= static_cast<int64_t>(last)) {
    return absl::InvalidArgumentError(
        absl::StrCat("operand=", operand, " is none of the ", last, " operands of the equation"));
  }
  AddResult(results, op.operands[0]->dtype, op.operands[static_cast<size_t>(operand)]->dims);
  return absl::OkStatus();
}

double EinsumGradFlops(const OpTypes& op, const TypeList&) {
  const absl::StatusOr<Equation> equation = ParseEquation(op.attributes);
  return equation.ok() ? SpaceFlops(*equation, op, op.operands.size() - 1) : 0;
}

absl::Status EvaluateEinsumGrad(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(e.attributes));
  const auto skip = static_cast<size_t>(e.attributes.Int("operand", 0));
  const Tensor& dy = e.operand(equation.operands.size());
  std::vector<Term> terms = {{&dy, LetterStrides(equation, equation.result, dy.dims())}};
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    if (i == skip) continue;
    terms.push_back(
        {&e.operand(i), LetterStrides(equation, equation.operands[i], e.operand(i).dims())});
  }
  Tensor& dx = e.results[0];
  AddProducts(LetterSizes(equation, e), terms, dx,
              LetterStrides(equation, equation.operands[skip], dx.dims()));
  return absl::OkStatus();
}

}  // namespace
}  // namespace einsum_cc

extern const OpInfo kEinsumOp = {
    .name = "Einsum",
    .summary = "the sum of products that `equation` names by letters: \"bik,bkj->bij\"",
    .operands = OpInfo::kVariadic,
    .infer = einsum_cc::InferEinsum,
    .flops = einsum_cc::EinsumFlops,
    .sharding = einsum_cc::EinsumSharding,
    .evaluate = einsum_cc::EvaluateEinsum,
    .gradient = einsum_cc::EinsumGradient,
    .matrix_product = true,
};

extern const OpInfo kEinsumGradOp = {
    .name = "EinsumGrad",
    .summary = "gradient of one `operand` of Einsum from all its operands and that of its result",
    .operands = OpInfo::kVariadic,
    .infer = einsum_cc::InferEinsumGrad,
    .flops = einsum_cc::EinsumGradFlops,
    .evaluate = einsum_cc::EvaluateEinsumGrad,
    .matrix_product = true,
};

}  // namespace orrery::ir
