#include "importer/batch/pick_rows.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "ir/batch.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/dead_code.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

namespace orrery::importer {
namespace pick_rows_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// What a Gather picks: of x [batch,rows,..] by ids [batch,..], one or several rows of each sample.
struct Pick {
  ValueId x, ids;
};

std::optional<ir::Tensor> Known(const Function& function, ValueId value) {
  const OpId op = function.producer(value);
  if (!op.valid() || function.kind(op) != OpKind::kConstant) return std::nullopt;
  const auto tensor = ir::ConstantTensor(function.attributes(op), function.type(value));
  return tensor.has_value() && !tensor->is_float() ? tensor : std::nullopt;
}

constexpr int kMostOps = 8;                     // between a Range and what it picks
constexpr int64_t kLargest = int64_t{1} << 30;  // so that products fit

// Whole numbers, one a sample: start, start + step, start + 2 step, …
struct Line {
  int64_t start = 0, step = 0;
};

std::optional<Line> Small(const Line& line) {
  const bool small = std::abs(line.start) <= kLargest && std::abs(line.step) <= kLargest;
  return small ? std::optional(line) : std::nullopt;
}

std::optional<Line> LineOf(const ir::Tensor& tensor) {
  if (tensor.size() == 0) return std::nullopt;
  const std::vector<int64_t>& ints = tensor.ints();
  if (std::ranges::any_of(ints, [](int64_t n) { return n < -kLargest || n > kLargest; })) {
    return std::nullopt;
  }
  const Line line = {.start = ints[0], .step = ints.size() > 1 ? ints[1] - ints[0] : 0};
  for (size_t i = 0; i < ints.size(); ++i) {
    if (ints[i] != line.start + static_cast<int64_t>(i) * line.step) return std::nullopt;
  }
  return line;
}

std::optional<Line> LineOf(const Function& function, ValueId value, int depth = 0);

// Of the sum or product of two.
std::optional<Line> LineOfBoth(const Function& function, OpId op, int depth) {
  const auto operands = function.operands(op);
  const auto a = LineOf(function, operands[0], depth), b = LineOf(function, operands[1], depth);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  if (function.kind(op) == OpKind::kAdd) return Small({a->start + b->start, a->step + b->step});
  if (a->step != 0 && b->step != 0) return std::nullopt;
  const Line &line = b->step == 0 ? *a : *b, &factor = b->step == 0 ? *b : *a;
  return Small({line.start * factor.start, line.step * factor.start});
}

// Of a constant, or what the importer makes of a Range over the batch: how many ones stand before
// each sample, times a number, plus a number.
std::optional<Line> LineOf(const Function& function, ValueId value, int depth) {
  if (const auto tensor = Known(function, value); tensor.has_value()) return LineOf(*tensor);
  const OpId op = function.producer(value);
  if (!op.valid() || function.operands(op).empty() || depth == kMostOps) return std::nullopt;
  switch (function.kind(op)) {
    case OpKind::kAdd:
    case OpKind::kMul:
      return LineOfBoth(function, op, depth + 1);
    case OpKind::kExpand:
    case OpKind::kReshape:
    case OpKind::kUnsqueeze:
      return LineOf(function, function.operands(op)[0], depth + 1);
    case OpKind::kCumSum: {
      const auto ones = LineOf(function, function.operands(op)[0], depth + 1);
      const bool reverse = function.attributes(op).Int("reverse", 0) != 0;
      if (!ones.has_value() || ones->step != 0 || reverse) return std::nullopt;
      const bool before = function.attributes(op).Int("exclusive", 0) != 0;
      return Line{before ? 0 : ones->start, ones->start};
    }
    default:
      return std::nullopt;
  }
}

// Whether `value` is 0, rows, 2 rows, …
bool CountsRows(const Function& function, ValueId value, int64_t rows) {
  const auto line = LineOf(function, value);
  const bool one = ir::ElementCount(function.type(value).dims) == 1;
  return line.has_value() && line->start == 0 && (one || line->step == rows);
}

// Whether `op` picks of x [batch,..] the row of each sample for itself: x[arange(batch)].
bool PicksOwnRows(const Function& function, OpId op, int64_t batch) {
  const OpKind kind = function.kind(op);
  if (kind != OpKind::kGather && kind != OpKind::kGatherND) return false;
  const ValueId x = function.operands(op)[0], ids = function.operands(op)[1];
  const ir::Dims& dims = function.type(x).dims;
  const char* const along = kind == OpKind::kGather ? "axis" : "batch_dims";
  const ir::Dims wanted = kind == OpKind::kGather ? ir::Dims{batch} : ir::Dims{batch, 1};
  return !dims.empty() && dims[0] == batch && function.attributes(op).Int(along, 0) == 0 &&
         function.type(ids).dims == wanted && CountsRows(function, ids, 1);
}

// Whether `ids` is as large as `sum`, and its dimension 0 is the batch.
bool StartsWithBatch(const Function& function, ValueId ids, ValueId sum, int64_t batch) {
  const ir::Dims& dims = function.type(ids).dims;
  return !dims.empty() && dims[0] == batch && dims == function.type(sum).dims;
}

// Whether `value` has one element for each sample that `ids` has rows of; of one sample it may have
// no dimension.
bool OneEach(const Function& function, ValueId value, ValueId ids, int64_t batch) {
  const ir::Dims& dims = function.type(value).dims;
  if (ir::ElementCount(dims) != batch) return false;
  return batch == 1 || (dims.size() == function.type(ids).dims.size() && dims[0] == batch);
}

std::optional<Pick> MatchPick(const Function& function, OpId op, int64_t batch) {
  if (function.kind(op) != OpKind::kGather || function.attributes(op).Int("axis", 0) != 0) {
    return std::nullopt;
  }
  const OpId view = function.producer(function.operands(op)[0]);
  OpId sum = function.producer(function.operands(op)[1]);
  if (sum.valid() && function.kind(sum) == OpKind::kReshape) {
    sum = function.producer(function.operands(sum)[0]);
  }
  if (!view.valid() || function.kind(view) != OpKind::kReshape) return std::nullopt;
  if (!sum.valid() || function.kind(sum) != OpKind::kAdd) return std::nullopt;
  const ValueId x = function.operands(view)[0];
  const ir::Dims &dims = function.type(x).dims, &flat = function.type(function.result(view)).dims;
  if (dims.size() < 2 || dims[0] != batch || flat.empty() || flat[0] != batch * dims[1]) {
    return std::nullopt;
  }
  if (!std::equal(dims.begin() + 2, dims.end(), flat.begin() + 1, flat.end())) return std::nullopt;
  for (const size_t i : {0u, 1u}) {
    const ValueId ids = function.operands(sum)[i], begins = function.operands(sum)[1 - i];
    if (StartsWithBatch(function, ids, function.result(sum), batch) &&
        OneEach(function, begins, ids, batch) && CountsRows(function, begins, dims[1])) {
      return Pick{.x = x, .ids = ids};
    }
  }
  return std::nullopt;
}

// The rows that `op` picks, sample by sample.
ValueId PickEach(const Function& function, OpId op, const Pick& pick, const ir::FunctionCopy& copy,
                 ir::Builder& builder) {
  const ir::Dims &ids = function.type(pick.ids).dims, &x = function.type(pick.x).dims,
                 &dims = function.type(function.result(op)).dims;
  const absl::string_view name = function.value_name(function.result(op));
  const ValueId each = builder.Op(OpKind::kUnsqueeze, {copy.values[pick.ids]}, "",
                                  {{"axes", std::vector{static_cast<int64_t>(ids.size())}}});
  const bool flat =
      dims.size() != ids.size() + x.size() - 2 || !std::equal(ids.begin(), ids.end(), dims.begin());
  const ValueId rows = builder.Op(OpKind::kGatherND, {copy.values[pick.x], each}, flat ? "" : name,
                                  {{"batch_dims", int64_t{1}}});
  if (!flat) return rows;
  return builder.Op(OpKind::kReshape, {rows}, name,
                    {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
}

}  // namespace
}  // namespace pick_rows_cc

ir::Function PickRowsBySample(const ir::Function& function) {
  using pick_rows_cc::Pick;
  const int64_t batch = ir::BatchOf(function);
  const auto picks = [&](ir::OpId op) { return pick_rows_cc::MatchPick(function, op, batch); };
  const auto keeps = [&](ir::OpId op) { return pick_rows_cc::PicksOwnRows(function, op, batch); };
  if (batch < 1 || std::ranges::none_of(function.order(), [&](ir::OpId op) {
        return keeps(op) || picks(op).has_value();
      })) {
    return function;
  }
  ir::Builder builder(function.name(), function.mesh());
  ir::FunctionCopy copy{.from = function, .to = builder.function()};
  for (const ir::Input& input : function.inputs()) ir::CopyInput(input, input.role, copy);
  for (const ir::OpId op : function.order()) {
    const std::optional<Pick> pick = picks(op);
    if (keeps(op)) {
      copy.values[function.result(op)] =
          builder.Op(ir::OpKind::kIdentity, {copy.values[function.operands(op)[0]]},
                     function.value_name(function.result(op)));
      continue;
    }
    if (!pick.has_value()) {
      ir::CopyOp(op, copy);
      continue;
    }
    copy.values[function.result(op)] = pick_rows_cc::PickEach(function, op, *pick, copy, builder);
    if (!builder.status().ok()) return function;
  }
  ir::CopyOutputs(function.outputs(), copy);
  absl::StatusOr<ir::Function> changed = std::move(builder).Finalize();
  if (!changed.ok()) return function;
  ir::RemoveDeadOps(*changed);
  return *std::move(changed);
}

}  // namespace orrery::importer
