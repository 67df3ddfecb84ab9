#include "transforms/substitutions/size_algebra.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace orrery::transforms::substitutions {
namespace size_algebra_cc {
namespace {

constexpr double kNothing = 1e-9;  // what rounding leaves of 0: sizes are small

using Row = std::vector<double>;

// A column for each size, one for the number, one for the value.
std::vector<Row> Equations(std::span<const Variables* const> draws,
                           std::span<const int64_t> values) {
  std::vector<Row> rows;
  for (size_t i = 0; i < draws.size(); ++i) {
    Row row;
    for (const std::optional<int64_t>& size : draws[i]->sizes) {
      row.push_back(static_cast<double>(size.value_or(0)));
    }
    row.push_back(1);
    row.push_back(static_cast<double>(values[i]));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Gauss and Jordan; columns that others make up already count 0 times.
Row Solve(std::vector<Row> rows, size_t columns) {
  std::vector<std::pair<size_t, size_t>> pivots;  // row, column
  for (size_t column = 0; column < columns && pivots.size() < rows.size(); ++column) {
    const size_t at = pivots.size();
    const auto size = [&](const Row& row) { return std::abs(row[column]); };
    const auto best = std::ranges::max_element(rows.begin() + static_cast<std::ptrdiff_t>(at),
                                               rows.end(), {}, size);
    if (size(*best) < kNothing) continue;
    std::swap(*best, rows[at]);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (r == at) continue;
      const double times = rows[r][column] / rows[at][column];
      for (size_t c = column; c <= columns; ++c) rows[r][c] -= times * rows[at][c];
    }
    pivots.emplace_back(at, column);
  }
  Row solution(columns, 0);
  for (const auto& [row, column] : pivots) solution[column] = rows[row].back() / rows[row][column];
  return solution;
}

}  // namespace
}  // namespace size_algebra_cc

Expression Whole(int64_t number) { return {.terms = {{.factor = number, .variables = {}}}}; }

Expression Canonical(const Expression& expression) {
  std::map<std::vector<int32_t>, int64_t> factors;
  for (const Expression::Term& term : expression.terms) factors[term.variables] += term.factor;
  Expression canonical;
  for (const auto& [variables, factor] : factors) {
    if (factor != 0 && !variables.empty()) canonical.terms.push_back({factor, variables});
  }
  if (factors[{}] != 0 || canonical.terms.empty()) canonical.terms.push_back({factors[{}], {}});
  return canonical;
}

Expression AddTimes(const Expression& a, int64_t factor, const Expression& b) {
  Expression sum = a;
  for (const Expression::Term& term : b.terms) {
    sum.terms.push_back({factor * term.factor, term.variables});
  }
  return Canonical(sum);
}

Expression Product(const Expression& a, const Expression& b) {
  Expression product;
  for (const Expression::Term& x : a.terms) {
    for (const Expression::Term& y : b.terms) {
      Expression::Term term = {x.factor * y.factor, x.variables};
      term.variables.insert(term.variables.end(), y.variables.begin(), y.variables.end());
      std::ranges::sort(term.variables);
      product.terms.push_back(std::move(term));
    }
  }
  return Canonical(product);
}

bool IsZero(const Expression& expression) { return Canonical(expression) == Whole(0); }

AtMost Guard(const Expression& less, const Expression& more) {
  AtMost guard = {.less = Whole(0), .more = Whole(0)};
  for (const Expression::Term& term : AddTimes(more, -1, less).terms) {
    Expression& side = term.factor < 0 ? guard.less : guard.more;
    side = AddTimes(side, 1, {.terms = {{std::abs(term.factor), term.variables}}});
  }
  return guard;
}

std::optional<Expression> FitSizes(std::span<const Variables* const> draws,
                                   std::span<const int64_t> values) {
  if (draws.empty()) return std::nullopt;
  const size_t sizes = draws[0]->sizes.size();
  const size_algebra_cc::Row solution =
      size_algebra_cc::Solve(size_algebra_cc::Equations(draws, values), sizes + 1);
  Expression sum;
  for (size_t i = 0; i <= sizes; ++i) {
    Expression::Term term = {.factor = std::llround(solution[i]), .variables = {}};
    if (i < sizes) term.variables.push_back(static_cast<int32_t>(i));
    sum.terms.push_back(std::move(term));
  }
  sum = Canonical(sum);
  for (size_t i = 0; i < draws.size(); ++i) {
    if (Evaluate(sum, *draws[i]) != values[i]) return std::nullopt;
  }
  return sum;
}

}  // namespace orrery::transforms::substitutions
