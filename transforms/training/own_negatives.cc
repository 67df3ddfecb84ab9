#include "transforms/training/own_negatives.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/sharding_rule.h"
#include "support/status.h"

namespace orrery::transforms {
namespace own_negatives_cc {
namespace {

using ir::AttributeSet;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

constexpr int64_t kAnySize = -1;

// Copies a function op by op. A value with the batch in both of its dimensions is copied as [batch,
// own]: such rows are what elementwise ops, softmaxes, reductions along them and losses with a
// label a row want as they are. Products and transpositions are done group by group.
class Grouper {
 public:
  Grouper(const Function& from, int64_t groups)
      : from_(from),
        first_(ir::BatchDims(from)),
        last_(ir::LastBatchDims(from)),
        batch_(ir::BatchOf(from)),
        own_(batch_ / groups),
        builder_(from.name(), from.mesh()),
        copy_{.from = from, .to = builder_.function()} {}

  bool AnyMeet() const {
    for (const OpId op : from_.order()) {
      if (Meets(op)) return true;
    }
    return false;
  }

  absl::StatusOr<Function> Run() && {
    for (const ir::Input& input : from_.inputs()) ir::CopyInput(input, input.role, copy_);
    for (const OpId op : from_.order()) {
      absl::Status status = Copy(op);
      if (status.ok()) status = builder_.status();
      if (status.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          from_.name(), ": ", from_.info(op).name, " ", ir::PrintValue(from_, from_.result(op)),
          " cannot hold samples against those of their rank: ", status.message()));
    }
    ir::CopyOutputs(from_.outputs(), copy_);
    return std::move(builder_).Finalize();
  }

 private:
  bool IsSquare(ValueId value) const { return first_[value] != last_[value]; }

  // Whether the op has to do with samples that meet, or goes along them.
  bool Meets(OpId op) const {
    for (const ValueId operand : from_.operands(op)) {
      if (IsSquare(operand)) return true;
    }
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      if (IsSquare(from_.result(op, j))) return true;
    }
    return false;
  }

  absl::Status Copy(OpId op) {
    const bool counts = from_.kind(op) == OpKind::kCumSum && first_[from_.result(op)] >= 0 &&
                        first_[from_.result(op)] == from_.attributes(op).Int("axis", 0);
    if (counts) return Count(op);
    if (!Meets(op)) {
      ir::CopyOp(op, copy_);
      return absl::OkStatus();
    }
    switch (from_.kind(op)) {
      case OpKind::kMatMul:
        Set(op, 0, Product(op, 0, 1, from_.attributes(op), from_.result(op)));
        return absl::OkStatus();
      case OpKind::kMatMulGrad:
        return ProductGradients(op);
      case OpKind::kTranspose:
        return Transpose(op);
      case OpKind::kExpand:
        return Expand(op);
      default:
        return ByRows(op);
    }
  }

  void Set(OpId op, int32_t j, ValueId value) { copy_.values[from_.result(op, j)] = value; }
  ValueId Of(OpId op, size_t k) const { return copy_.values[from_.operands(op)[k]]; }
  std::string NameOf(ValueId value) const { return std::string(from_.value_name(value)); }
  ValueId Reshape(ValueId value, std::vector<int64_t> shape, absl::string_view name = "") {
    return builder_.Op(OpKind::kReshape, {value}, name, {{"shape", std::move(shape)}});
  }
  ValueId Permuted(ValueId value, std::vector<int64_t> perm) {
    return builder_.Op(OpKind::kTranspose, {value}, "", {{"perm", std::move(perm)}});
  }

  // Operand k as [groups, rows of a group, columns of a group].
  ValueId Grouped(OpId op, size_t k) {
    const ValueId value = from_.operands(op)[k], copy = Of(op, k);
    const ir::Dims& dims = from_.type(value).dims;
    if (dims.size() != 2 || first_[value] < 0) {
      builder_.Fail(absl::InvalidArgumentError(
          absl::StrCat("operand ", k, " is no matrix with the batch in it; got ",
                       ir::PrintValue(from_, value))));
      return copy;
    }
    if (IsSquare(value)) return Reshape(copy, {kAnySize, own_, own_});
    if (first_[value] == 0) return Reshape(copy, {kAnySize, own_, dims[1]});
    return Permuted(Reshape(copy, {dims[0], kAnySize, own_}), {1, 0, 2});
  }

  // What `grouped` is as the copy of `value`.
  ValueId Ungrouped(ValueId grouped, ValueId value) {
    const std::string name = NameOf(value);
    if (IsSquare(value)) return Reshape(grouped, {kAnySize, own_}, name);
    const ir::Dims& dims = from_.type(value).dims;
    if (first_[value] == 0) return Reshape(grouped, {kAnySize, dims[1]}, name);
    return Reshape(Permuted(grouped, {1, 0, 2}), {dims[0], kAnySize}, name);
  }

  ValueId Product(OpId op, size_t x, size_t w, const AttributeSet& attributes, ValueId result) {
    if (first_[result] < 0) {
      builder_.Fail(absl::InvalidArgumentError("it sums over samples that meet"));
      return ValueId();
    }
    const ValueId y =
        builder_.Op(OpKind::kMatMul, {Grouped(op, x), Grouped(op, w)}, "", attributes);
    return Ungrouped(y, result);
  }

  // Of x and of w in y = x·w, with their transpositions.
  absl::Status ProductGradients(OpId op) {
    const AttributeSet& set = from_.attributes(op);
    const bool tx = set.Int("transpose_x", 0) != 0, tw = set.Int("transpose_w", 0) != 0;
    const auto flags = [](bool x, bool w) {
      return AttributeSet{{"transpose_x", int64_t{x}}, {"transpose_w", int64_t{w}}};
    };
    const ValueId dx = from_.result(op, 0), dw = from_.result(op, 1);
    Set(op, 0,
        tx ? Product(op, 1, 2, flags(tw, true), dx) : Product(op, 2, 1, flags(false, !tw), dx));
    Set(op, 1,
        tw ? Product(op, 2, 0, flags(true, tx), dw) : Product(op, 0, 2, flags(!tx, false), dw));
    return absl::OkStatus();
  }

  absl::Status Transpose(OpId op) {
    Set(op, 0, Ungrouped(Permuted(Grouped(op, 0), {0, 2, 1}), from_.result(op)));
    return absl::OkStatus();
  }

  // From one column to those of a group.
  absl::Status Expand(OpId op) {
    const ValueId x = from_.operands(op)[0];
    if (IsSquare(x) || from_.type(x).dims.size() != 2 || first_[x] != 0) {
      return absl::InvalidArgumentError("wanted one that repeats a column");
    }
    const std::vector<int64_t> shape = {kAnySize, own_};
    Set(op, 0,
        builder_.Op(OpKind::kExpand, {Of(op, 0)}, NameOf(from_.result(op)), {{"shape", shape}}));
    return absl::OkStatus();
  }

  // Positions of samples: those in the group.
  absl::Status Count(OpId op) {
    const ir::Dims& dims = from_.type(from_.result(op)).dims;
    if (dims.size() != 1) return absl::InvalidArgumentError("wanted one number a sample");
    AttributeSet attributes = from_.attributes(op);
    attributes.Set("axis", int64_t{1});
    const ValueId rows = Reshape(Of(op, 0), {kAnySize, own_});
    Set(op, 0,
        Reshape(builder_.Op(OpKind::kCumSum, {rows}, "", attributes), {kAnySize},
                NameOf(from_.result(op))));
    return absl::OkStatus();
  }

  // Ops that take rows as they are.
  absl::Status ByRows(OpId op) {
    ORRERY_ASSIGN_OR_RETURN(const ir::ShardingRule rule, RowRule(op));
    std::vector<ValueId> operands;
    for (size_t k = 0; k < from_.operands(op).size(); ++k) operands.push_back(RowsOf(op, k, rule));
    std::vector<std::string> names;
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      names.push_back(NameOf(from_.result(op, j)));
    }
    const std::vector<absl::string_view> views(names.begin(), names.end());
    const OpId made = builder_.Ops(from_.kind(op), operands, views, AttributesOf(op));
    ORRERY_RETURN_IF_ERROR(builder_.status());
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      const ValueId result = from_.result(op, j), copy = builder_.function().result(made, j);
      ir::Dims wanted = from_.type(result).dims;
      if (IsSquare(result)) wanted.back() = own_;
      if (builder_.type(copy).dims != wanted) {
        return absl::InvalidArgumentError("it makes something else of fewer columns");
      }
      Set(op, j, copy);
    }
    return absl::OkStatus();
  }

  AttributeSet AttributesOf(OpId op) const {
    AttributeSet attributes = from_.attributes(op);
    if (from_.kind(op) == OpKind::kNegativeLikelihoodGrad) {
      attributes.Set("classes", own_);
      attributes.Set("batch_classes", int64_t{0});
    }
    // The share of a sample among those that it meets.
    if (from_.kind(op) == OpKind::kScale && attributes.Int("over_batch", 0) != 0) {
      const int64_t parts = batch_ / own_;
      attributes.Set("factor", attributes.Number("factor", 1) * static_cast<double>(parts));
    }
    return attributes;
  }

  // The sharding rule of an op for which rows are samples that could be split: in all that it reads
  // and makes with the batch in two dimensions, dimension 0 runs over one and the same factor, and
  // in each result with the batch.
  absl::StatusOr<ir::ShardingRule> RowRule(OpId op) const {
    if (from_.info(op).sharding == nullptr) return absl::InvalidArgumentError("it has no rows");
    ir::ShardingRule rule = ir::RuleOf(from_, op);
    const int8_t rows = RowFactor(op, rule);
    bool fits = rows != ir::kNoFactor;
    for (size_t k = 0; k < rule.operands.size(); ++k) {
      fits = fits && (!IsSquare(from_.operands(op)[k]) || rule.operands[k][0] == rows);
    }
    for (size_t j = 0; j < rule.results.size(); ++j) {
      if (first_[from_.result(op, static_cast<int32_t>(j))] < 0) continue;
      fits = fits && rule.results[j][0] == rows;
    }
    if (fits) return rule;
    return absl::InvalidArgumentError("its rows are no samples; wanted one that goes along rows");
  }

  // Of dimension 0 of the first value that has the batch in two dimensions.
  int8_t RowFactor(OpId op, const ir::ShardingRule& rule) const {
    for (size_t k = 0; k < rule.operands.size(); ++k) {
      if (IsSquare(from_.operands(op)[k])) return rule.operands[k][0];
    }
    for (size_t j = 0; j < rule.results.size(); ++j) {
      if (IsSquare(from_.result(op, static_cast<int32_t>(j)))) return rule.results[j][0];
    }
    return ir::kNoFactor;
  }

  // An operand whose samples are columns, [batch] or [1,batch], has those of each group in its
  // rows.
  ValueId RowsOf(OpId op, size_t k, const ir::ShardingRule& rule) {
    const ValueId value = from_.operands(op)[k], copy = Of(op, k);
    if (first_[value] < 0 || IsSquare(value)) return copy;
    const auto dim = static_cast<size_t>(first_[value]);
    const ir::Dims& dims = from_.type(value).dims;
    if (rule.operands[k][dim] == RowFactor(op, rule)) return copy;
    if (dim + 1 != dims.size() || ir::ElementCount(dims) != batch_) {
      builder_.Fail(absl::InvalidArgumentError(
          absl::StrCat("operand ", k, " has other columns than one a sample")));
      return copy;
    }
    const std::vector<int64_t> shape = {kAnySize, own_, kAnySize};
    const ValueId repeated =
        builder_.Op(OpKind::kExpand, {Reshape(copy, {kAnySize, 1, own_})}, "", {{"shape", shape}});
    return Reshape(repeated, {kAnySize, own_});
  }

  const Function& from_;
  const IdTable<ValueId, int8_t> first_, last_;  // dimensions with the batch
  const int64_t batch_, own_;                    // samples, of all and of a group
  ir::Builder builder_;
  ir::FunctionCopy copy_;
};

}  // namespace
}  // namespace own_negatives_cc

bool SamplesMeet(const ir::Function& function) {
  return ir::BatchOf(function) > 0 && own_negatives_cc::Grouper(function, 1).AnyMeet();
}

absl::StatusOr<ir::Function> OwnNegatives(const ir::Function& function, int64_t groups) {
  const int64_t batch = ir::BatchOf(function);
  if (groups == 1 || batch == 0) return function;
  if (batch % groups != 0) {
    return InfeasibleStatus({.reason = InfeasibleReason::kDivisibility,
                             .detail = absl::StrCat("a batch of ", batch, " does not divide into ",
                                                    groups, " ranks with negatives of their own")});
  }
  return own_negatives_cc::Grouper(function, groups).Run();
}

}  // namespace orrery::transforms
