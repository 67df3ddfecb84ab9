#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"

// Attention to some keys and attention to others, made attention to all of them (Liu et al. 2023,
// from the running softmax of Milakov and Gimelshein 2018): each counts by the sum of its
// exponentials, whose logarithm attention keeps with flash=1.

namespace orrery::ir {
namespace merge_attention_cc {
namespace {

// Each element is weighted twice and added; each row has two exponentials, their sum, its
// logarithm, and two quotients.
constexpr double kFlopsOfElement = 3, kFlopsOfRow = 8;

// Whether y is [batch,rows,heads width] or [batch,heads,rows,width] to l, [batch,heads,rows].
bool Fits(const Dims& y, const Dims& l) {
  if (l.size() != 3 || l[1] < 1) return false;
  if (y.size() == 4) return y[0] == l[0] && y[1] == l[1] && y[2] == l[2];
  return y.size() == 3 && y[0] == l[0] && y[1] == l[2] && y[2] % l[1] == 0;
}

absl::Status InferMergeAttention(const OpTypes& op, TypeList& results) {
  const TensorType &y = *op.operands[0], &l = *op.operands[1];
  const TensorType &other = *op.operands[2], &other_l = *op.operands[3];
  const bool alike = other.dims == y.dims && other_l.dims == l.dims && other.dtype == y.dtype &&
                     other_l.dtype == l.dtype;
  if (!alike || !IsFloat(y.dtype) || l.dtype != StatisticsType(y.dtype) || !Fits(y.dims, l.dims)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", ToString(y, op.mesh), " and ", ToString(l, op.mesh), ", and ",
                     ToString(other, op.mesh), " and ", ToString(other_l, op.mesh),
                     "; wanted two results of Attention with flash=1, of one shape"));
  }
  results.push_back({.dtype = y.dtype, .dims = y.dims, .sharding = {}});
  results.push_back({.dtype = l.dtype, .dims = l.dims, .sharding = {}});
  return absl::OkStatus();
}

double MergeAttentionFlops(const OpTypes&, const TypeList& results) {
  return kFlopsOfElement * static_cast<double>(ElementCount(results[0].dims)) +
         kFlopsOfRow * static_cast<double>(ElementCount(results[1].dims));
}

// Whole heads only: their number is that of l.
ShardingRule MergeAttentionSharding(const OpTypes& op, const TypeList&) {
  constexpr int8_t kBatch = 0, kRows = 1;
  const TensorType &y = *op.operands[0], &l = *op.operands[1];
  const bool packed = y.dims.size() == 3;
  const int64_t parts = op.mesh.size(y.sharding.at(packed ? 2 : 1));
  const int8_t heads = l.dims[1] % parts == 0 ? 2 : kNoFactor;
  const ShardingRule::Factors of_y = packed
                                         ? ShardingRule::Factors{kBatch, kRows, heads}
                                         : ShardingRule::Factors{kBatch, heads, kRows, kNoFactor};
  const ShardingRule::Factors of_l = {kBatch, heads, kRows};
  return {.operands = {of_y, of_l, of_y, of_l}, .results = {of_y, of_l}};
}

// A row of which all was hidden has the lowest of all numbers for a logarithm, and weighs nothing
// beside one of which something was seen.
absl::Status EvaluateMergeAttention(Evaluation& e) {
  Tensor &y = e.results[0], &l = e.results[1];
  const Dims& dims = l.dims();
  const int64_t heads = dims[1], rows = dims[2], lines = dims[0] * heads * rows;
  const bool packed = y.dims().size() == 3;
  const int64_t width = lines == 0 ? 0 : y.size() / lines;
  for (int64_t line = 0; line < lines; ++line) {
    const double a = e.operand(1).Number(line), b = e.operand(3).Number(line);
    const double most = std::max(a, b);
    const double of_a = a == most ? 1 : std::exp(a - most),
                 of_b = b == most ? 1 : std::exp(b - most);
    const double sum = of_a + of_b;
    l.SetNumber(line, most + std::log(sum));
    const int64_t row = line % rows, head = line / rows % heads, sample = line / rows / heads;
    const int64_t begin = packed ? ((sample * rows + row) * heads + head) * width : line * width;
    for (int64_t i = begin; i < begin + width; ++i) {
      y.SetNumber(i, (of_a * e.operand(0).Number(i) + of_b * e.operand(2).Number(i)) / sum);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace merge_attention_cc

extern const OpInfo kMergeAttentionOp = {
    .name = "MergeAttention",
    .summary =
        "of (y, logarithms) of Attention with flash=1 to some keys and (y, logarithms) to others "
        "those to all of them",
    .operands = 4,
    .results = 2,
    .infer = merge_attention_cc::InferMergeAttention,
    .flops = merge_attention_cc::MergeAttentionFlops,
    .sharding = merge_attention_cc::MergeAttentionSharding,
    .evaluate = merge_attention_cc::EvaluateMergeAttention,
    .in_place_from = 0,
};

}  // namespace orrery::ir
