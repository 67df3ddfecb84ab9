#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Einsum: equations with blanks, ellipses and results left out become the plain ones of the IR,
// products of two operands become MatMul where they are one, and several operands are multiplied
// pair by pair.

namespace orrery::importer {
namespace einsum_cc {
namespace {

struct Term {
  ir::ValueId value;
  std::string letters;
};

struct Sum {
  std::vector<Term> terms;
  std::string result;
};

bool Has(absl::string_view letters, char letter) {
  return letters.find(letter) != absl::string_view::npos;
}

// Letters that the equation does not use, one for each dimension that an ellipsis can stand for.
absl::StatusOr<std::string> FreeLetters(absl::string_view equation, size_t count) {
  std::string free;
  for (int i = 0; i < 52 && free.size() < count; ++i) {
    const char letter = static_cast<char>(i < 26 ? 'A' + i : 'a' + i - 26);
    if (!Has(equation, letter)) free += letter;
  }
  if (free.size() == count) return free;
  return absl::InvalidArgumentError(
      absl::StrCat("equation \"", equation, "\" leaves too few letters for its ellipsis"));
}

// The term with the last of `free` instead of its ellipsis, as many as the operand has dims left.
absl::StatusOr<std::string> Spelled(absl::string_view term, size_t rank, absl::string_view free) {
  const size_t dots = term.find("...");
  std::string spelled(term);
  if (dots != absl::string_view::npos && rank + 3 >= term.size()) {
    const size_t hidden = std::min(rank + 3 - term.size(), free.size());
    spelled.replace(dots, 3, std::string(free.substr(free.size() - hidden)));
  }
  const bool plain = std::all_of(spelled.begin(), spelled.end(), [](char letter) {
    return absl::ascii_isalpha(static_cast<unsigned char>(letter));
  });
  if (plain && spelled.size() == rank) return spelled;
  return absl::InvalidArgumentError(absl::StrCat("term \"", term,
                                                 "\" of the equation does not fit ", rank,
                                                 " dimensions; wanted a letter for each"));
}

// What the equation means when it has no arrow: the ellipsis, then the letters that stand but
// once, in the order of the alphabet.
std::string ImplicitResult(absl::string_view left, absl::string_view ellipsis) {
  std::string once;
  for (const char letter : left) {
    if (!absl::ascii_isalpha(static_cast<unsigned char>(letter))) continue;
    if (std::count(left.begin(), left.end(), letter) == 1) once += letter;
  }
  std::sort(once.begin(), once.end());
  return absl::StrCat(ellipsis, once);
}

absl::StatusOr<Sum> Read(NodeContext& c) {
  std::string equation = c.String("equation", "");
  equation.erase(std::remove_if(equation.begin(), equation.end(),
                                [](unsigned char letter) { return absl::ascii_isspace(letter); }),
                 equation.end());
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2 || static_cast<int>(terms.size()) != c.node().input_size()) {
    return absl::InvalidArgumentError(absl::StrCat("equation \"", equation, "\" does not fit ",
                                                   c.node().input_size(), " inputs"));
  }
  size_t hidden = 0;  // the most dimensions that an ellipsis stands for
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t rank = c.input_type(static_cast<int>(i)).dims.size();
    if (terms[i].find("...") != std::string::npos && rank + 3 > terms[i].size()) {
      hidden = std::max(hidden, rank + 3 - terms[i].size());
    }
  }
  ORRERY_ASSIGN_OR_RETURN(const std::string free, FreeLetters(equation, hidden));
  Sum sum;
  for (size_t i = 0; i < terms.size(); ++i) {
    const ir::ValueId input = c.input(static_cast<int>(i));
    ORRERY_ASSIGN_OR_RETURN(std::string letters,
                            Spelled(terms[i], c.type(input).dims.size(), free));
    sum.terms.push_back({input, std::move(letters)});
  }
  if (sides.size() == 1) {
    sum.result = ImplicitResult(sides[0], free);
  } else {
    sum.result = sides[1];
    const size_t dots = sum.result.find("...");
    if (dots != std::string::npos) sum.result.replace(dots, 3, free);
  }
  return sum;
}

// The size of `letter`: the largest, as sizes of 1 behind an ellipsis broadcast.
int64_t SizeOf(NodeContext& c, const Sum& sum, char letter) {
  int64_t size = 1;
  for (const Term& term : sum.terms) {
    for (size_t d = 0; d < term.letters.size(); ++d) {
      const int64_t here = c.type(term.value).dims[d];
      if (term.letters[d] == letter && here != 1) size = here;
    }
  }
  return size;
}

// Sums away the dimensions of size 1 that others broadcast.
absl::Status DropBroadcast(NodeContext& c, Sum& sum) {
  for (Term& term : sum.terms) {
    std::string kept;
    std::vector<int64_t> gone;
    for (size_t d = 0; d < term.letters.size(); ++d) {
      if (c.type(term.value).dims[d] == 1 && SizeOf(c, sum, term.letters[d]) != 1) {
        gone.push_back(static_cast<int64_t>(d));
      } else {
        kept += term.letters[d];
      }
    }
    if (gone.empty()) continue;
    ORRERY_ASSIGN_OR_RETURN(term.value,
                            c.Op(ir::OpKind::kReduceSum, {term.value}, {{"axes", gone}}));
    term.letters = kept;
  }
  return absl::OkStatus();
}

// How x and w would stand in a MatMul: their leading letters, then m and k, k and n in some order.
struct Matrices {
  bool transpose_x, transpose_w;
};

std::optional<Matrices> AsMatMul(const std::string& x, const std::string& w, const std::string& y) {
  if (y.size() < 2 || x.size() != y.size() || w.size() < 2) return std::nullopt;
  if (w.size() != y.size() && w.size() != 2) return std::nullopt;
  const std::string leading = y.substr(0, y.size() - 2);
  const char m = y[y.size() - 2], n = y[y.size() - 1];
  if (x.substr(0, leading.size()) != leading) return std::nullopt;
  if (w.size() != 2 && w.substr(0, leading.size()) != leading) return std::nullopt;
  const bool transpose_x = x.back() == m, transpose_w = w[w.size() - 2] == n;
  const char x_m = transpose_x ? x.back() : x[x.size() - 2];
  const char x_k = transpose_x ? x[x.size() - 2] : x.back();
  const char w_k = transpose_w ? w.back() : w[w.size() - 2];
  const char w_n = transpose_w ? w[w.size() - 2] : w.back();
  if (x_m != m || w_n != n || x_k != w_k || Has(y, x_k) || m == n) return std::nullopt;
  return Matrices{.transpose_x = transpose_x, .transpose_w = transpose_w};
}

absl::StatusOr<ir::ValueId> Multiply(NodeContext& c, const std::vector<Term>& terms,
                                     const std::string& result) {
  if (terms.size() == 2) {
    const auto matrices = AsMatMul(terms[0].letters, terms[1].letters, result);
    if (matrices.has_value()) {
      ir::AttributeSet flips;
      if (matrices->transpose_x) flips.Set("transpose_x", int64_t{1});
      if (matrices->transpose_w) flips.Set("transpose_w", int64_t{1});
      return c.Op(ir::OpKind::kMatMul, {terms[0].value, terms[1].value}, flips);
    }
  }
  std::vector<ir::ValueId> operands;
  std::string equation;
  for (const Term& term : terms) {
    absl::StrAppend(&equation, operands.empty() ? "" : ",", term.letters);
    operands.push_back(term.value);
  }
  absl::StrAppend(&equation, "->", result);
  return c.Op(ir::OpKind::kEinsum, operands, {{"equation", equation}});
}

// The letters of the first two terms that the result or later terms have.
std::string LettersBetween(const Sum& sum) {
  std::string kept;
  for (const char letter : sum.terms[0].letters + sum.terms[1].letters) {
    bool later = Has(sum.result, letter);
    for (size_t i = 2; i < sum.terms.size(); ++i) later |= Has(sum.terms[i].letters, letter);
    if (later && !Has(kept, letter)) kept += letter;
  }
  return kept;
}

absl::Status LowerEinsum(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(Sum sum, Read(c));
  ORRERY_RETURN_IF_ERROR(DropBroadcast(c, sum));
  while (sum.terms.size() > 2) {
    const std::string kept = LettersBetween(sum);
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId product,
                            Multiply(c, {sum.terms[0], sum.terms[1]}, kept));
    sum.terms.erase(sum.terms.begin());
    sum.terms[0] = {product, kept};
  }
  return c.Return(Multiply(c, sum.terms, sum.result));
}

}  // namespace
}  // namespace einsum_cc

extern const OnnxOp kEinsumOnnxOp = {.type = "Einsum", .lower = einsum_cc::LowerEinsum};

}  // namespace orrery::importer
