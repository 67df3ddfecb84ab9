#include <algorithm>

#include "absl/strings/str_cat.h"
#include "importer/batch/batch_positions.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/sharding_rule.h"
#include "ir/tensor.h"
#include "support/status.h"

// What ops ask of the values that they read beside batched ones.

namespace orrery::importer {
namespace batch_requests_cc {
namespace {

using ir::AttributeSet;
using ir::Dims;
using ir::OpId;
using ir::ValueId;

constexpr int kMaxDepth = 64;

}  // namespace
}  // namespace batch_requests_cc

std::vector<BatchPositions::Wish> BatchPositions::WishesOf(ir::OpId op) const {
  const ir::ShardingRule rule = ir::RuleOf(function_, op);
  std::vector<Wish> wishes;
  for (size_t k = 0; k < rule.operands.size(); ++k) {
    const Position position = PositionOfOperand(op, k);
    if (!position.has_batch()) continue;
    const int8_t factor = rule.operands[k][static_cast<size_t>(position.dim)];
    for (size_t m = 0; factor != ir::kNoFactor && m < rule.operands.size(); ++m) {
      if (PositionOfOperand(op, m).has_batch()) continue;
      for (size_t d = 0; d < rule.operands[m].size(); ++d) {
        if (rule.operands[m][d] != factor) continue;
        Wish& wish = wishes.emplace_back(Wish{m, position, position.second >= 0});
        wish.position.dim = static_cast<int>(d);
        wish.position.second = -1;  // of another operand's dimensions
      }
    }
  }
  return wishes;
}

bool BatchPositions::Request(ir::OpId op) {
  bool any = false;
  for (const Wish& wish : WishesOf(op)) {
    const bool numbers = wish.by_each && RequestNumbers(op, wish.operand, wish.position);
    any |= numbers || RequestOperand(op, wish.operand, wish.position, 0);
  }
  return any;
}

// Whether the file has what should follow the batch as numbers, others for each sample.
bool BatchPositions::ReadsOtherRows(ir::OpId op) const {
  return std::ranges::any_of(WishesOf(op), [&](const Wish& wish) {
    const ir::ValueId value = function_.operands(op)[wish.operand];
    const ir::OpId producer = function_.producer(value);
    const ir::TensorType& type = function_.type(value);
    const auto dim = static_cast<size_t>(wish.position.dim);
    return producer.valid() && function_.kind(producer) == ir::OpKind::kConstant &&
           type.dims[dim] > 1 &&
           type.dims[dim] == wish.position.outer * batch_ * wish.position.inner &&
           !OneRow(function_.attributes(producer), type, dim).has_value();
  });
}

// Whether what comes from the sample of a file of one sample is of no sample where it goes out, as
// when a Reshape took another dimension for the batch.
bool BatchPositions::LosesSamples(const ir::Output& output) const {
  const ir::Dims& dims = function_.type(output.value).dims;
  if (output.role != ir::OutputRole::kResult || !search_.keeps_outputs || batch_ != 1 ||
      std::ranges::find(dims, 1) == dims.end()) {
    return false;
  }
  std::set<int32_t> seen;
  std::vector<ir::ValueId> open = {output.value};
  while (!open.empty()) {
    const ir::ValueId value = open.back();
    open.pop_back();
    if (positions_[value].has_batch()) return value != output.value;
    const ir::OpId op = function_.producer(value);
    if (!op.valid() || !seen.insert(op.index()).second) continue;
    for (const ir::ValueId operand : function_.operands(op)) open.push_back(operand);
  }
  return false;
}

// What is the same for all samples, queries say, has nobody who asks for them.
absl::StatusOr<bool> BatchPositions::RequestOutputs() {
  bool any = false;
  next_ = function_.order().size();
  for (const ir::Output& output : function_.outputs()) {
    if (!positions_[output.value].has_batch() && LosesSamples(output)) {
      return Fails(function_.producer(output.value), "this output has lost its sample");
    }
    const ir::Dims& dims = function_.type(output.value).dims;
    const ir::OpId op = function_.producer(output.value);
    if (output.role != ir::OutputRole::kResult || !op.valid() || dims.empty() ||
        dims[0] != batch_ || positions_[output.value].has_batch() ||
        function_.kind(op) == ir::OpKind::kConstant) {
      continue;
    }
    if (RequestOfProducer(output.value, {.dim = 0}, 0)) {
      any = true;
    } else if (batch_ > 1) {
      return Fails(op, absl::StrCat("this output has as many rows, ", batch_,
                                    ", but none of them comes from a sample"));
    }
  }
  return any;
}

// Where each sample is held against each, labels that are 0, 1, 2, … name the sample itself, as a
// loss that contrasts samples wants.
bool BatchPositions::RequestNumbers(ir::OpId op, size_t k, const Position& wanted) {
  const ir::ValueId value = function_.operands(op)[k];
  const ir::TensorType& type = function_.type(value);
  const ir::OpId producer = function_.producer(value);
  if (ExpandedDim(op, k).has_value() || type.dims != ir::Dims{batch_} || !producer.valid() ||
      function_.kind(producer) != ir::OpKind::kConstant || ir::IsFloat(type.dtype)) {
    return false;
  }
  const auto numbers = ir::ConstantTensor(function_.attributes(producer), type);
  for (int64_t i = 0; numbers.has_value() && i < batch_; ++i) {
    if (numbers->ints()[static_cast<size_t>(i)] != i) return false;
  }
  if (!numbers.has_value()) return false;
  expansions_[{op.index(), k}] = {.dim = wanted.dim, .counts = true};
  VisitAgain(op);
  return true;
}

void BatchPositions::VisitAgain(ir::OpId op) { next_ = std::min(next_, steps_[op]); }

bool BatchPositions::RequestOperand(ir::OpId op, size_t k, const Position& wanted, int depth) {
  const ir::ValueId value = function_.operands(op)[k];
  if (depth > batch_requests_cc::kMaxDepth || positions_[value].has_batch() ||
      ExpandedDim(op, k).has_value()) {
    return false;
  }
  const auto dim = static_cast<size_t>(wanted.dim);
  if (function_.type(value).dims[dim] != wanted.outer * batch_ * wanted.inner) return false;
  if (RequestOfProducer(value, wanted, depth)) return true;
  if (!CanExpand(value, dim)) return false;
  Position& made = expansions_[{op.index(), k}];
  made = wanted;
  made.uniform = true;
  VisitAgain(op);
  return true;
}

// An Expand may make the batch.
bool BatchPositions::RequestOfExpand(ir::OpId op, const Position& wanted) {
  if (function_.kind(op) != ir::OpKind::kExpand) return false;
  const auto dim = static_cast<size_t>(wanted.dim);
  const ir::Dims& from = function_.type(function_.operands(op)[0]).dims;
  const size_t made = function_.type(function_.result(op)).dims.size() - from.size();
  if (dim >= made && from[dim - made] != 1) return false;
  ir::AttributeSet attributes = AttributesOf(op);
  std::vector<int64_t> shape = attributes.Ints("shape");
  shape[dim] =
      wanted.outer * batch_ * wanted.inner;  // which may be that of the operand, of one sample
  attributes.Set("shape", shape);
  attributes.Set("batch_dim", static_cast<int64_t>(dim));
  SetAttributes(op, std::move(attributes));
  Position& position = positions_[function_.result(op)];
  position = wanted;
  position.uniform = true;
  VisitAgain(op);
  return true;
}

// The dimension of the operand in which what comes before the batch, and what comes after it, have
// their ends.
bool BatchPositions::RequestOfReshape(ir::OpId op, const Position& wanted, int depth) {
  const ir::Dims& from = function_.type(function_.operands(op)[0]).dims;
  const ir::Dims& to = function_.type(function_.result(op)).dims;
  const auto product = [](const ir::Dims& dims, size_t begin, size_t end) {
    return ir::ElementCount(ir::Dims(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                                     dims.begin() + static_cast<std::ptrdiff_t>(end)));
  };
  const auto at = static_cast<size_t>(wanted.dim);
  const int64_t before = product(to, 0, at) * wanted.outer;
  const int64_t after = product(to, at + 1, to.size()) * wanted.inner;
  const auto end = to.begin() + wanted.dim;  // see VisitReshape
  const bool kept = from.size() >= to.size() && std::equal(to.begin(), end, from.begin());
  const std::vector<Position> found = BatchInShape(from, before, after, {.first = kept ? at : 0});
  return !found.empty() && RequestOperand(op, 0, found[0], depth + 1);
}

// What is made of values that have the size of the batch follows when these do.
bool BatchPositions::RequestOfProducer(ir::ValueId value, const Position& wanted, int depth) {
  const ir::OpId op = function_.producer(value);
  if (!op.valid()) return false;
  if (RequestOfExpand(op, wanted)) return true;
  if (batch_ == 1 && function_.type(value).dims[static_cast<size_t>(wanted.dim)] == 1) {
    return false;  // where it is used it can be expanded; not so where heads are in that dimension
  }
  if (function_.kind(op) == ir::OpKind::kReshape) return RequestOfReshape(op, wanted, depth);
  const ir::ShardingRule rule = ir::RuleOf(function_, op);
  const auto j = static_cast<size_t>(value.index() - function_.result(op).index());
  const auto dim = static_cast<size_t>(wanted.dim);
  if (j >= rule.results.size() || rule.results[j][dim] == ir::kNoFactor) return false;
  bool any = false;
  for (size_t k = 0; k < rule.operands.size(); ++k) {
    for (size_t d = 0; d < rule.operands[k].size(); ++d) {
      if (rule.operands[k][d] != rule.results[j][dim]) continue;
      Position asked = wanted;
      asked.dim = static_cast<int>(d);
      any |= RequestOperand(op, k, asked, depth + 1);
    }
  }
  return any;
}

std::vector<std::pair<ir::OpId, size_t>> BatchPositions::OtherChoices() const {
  std::vector<std::pair<ir::OpId, size_t>> others;
  std::set<size_t> open;  // steps
  const auto follow = [&](ir::ValueId value) {
    if (const ir::OpId op = function_.producer(value); op.valid()) open.insert(steps_[op]);
  };
  if (failed_step_ < function_.order().size()) {
    open.insert(failed_step_);
  } else {
    for (const ir::Output& output : function_.outputs()) follow(output.value);
  }
  while (!open.empty()) {
    const ir::OpId op = function_.order()[open.extract(std::prev(open.end())).value()];
    for (const ir::ValueId operand : function_.operands(op)) follow(operand);
    const auto possible = possible_.find(op.index());
    if (possible != possible_.end() && possible->second > 1) {
      others.emplace_back(op, possible->second);
    }
  }
  return others;
}

bool BatchPositions::CanExpand(ir::ValueId value, size_t dim) const {
  const ir::TensorType& type = function_.type(value);
  if (type.dims[dim] == 1) return true;
  const ir::OpId op = function_.producer(value);
  return op.valid() && function_.kind(op) == ir::OpKind::kConstant &&
         OneRow(function_.attributes(op), type, dim).has_value();
}

std::optional<ir::AttributeSet> OneRow(const ir::AttributeSet& constant, const ir::TensorType& type,
                                       size_t dim) {
  if (constant.Find("fill") != nullptr) return constant;
  const std::optional<ir::Tensor> tensor = ir::ConstantTensor(constant, type);
  if (!tensor.has_value() || tensor->size() == 0) return std::nullopt;
  const ir::AroundDim around = ir::SplitAround(type.dims, dim);
  ir::Dims dims = type.dims;
  dims[dim] = 1;
  ir::Tensor row(type.dtype, dims);
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < around.inner; ++i) {
      const int64_t first = o * around.size * around.inner + i;
      row.CopyElement(o * around.inner + i, *tensor, first);
      for (int64_t s = 1; s < around.size; ++s) {
        if (tensor->Number(first + s * around.inner) != tensor->Number(first)) return std::nullopt;
      }
    }
  }
  return ir::ConstantAttributes(row);
}

}  // namespace orrery::importer
