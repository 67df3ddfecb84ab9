#include "transforms/slices/slice_sequence.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/dead_code.h"
#include "ir/model_facts.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "ir/sharding_rule.h"
#include "support/status.h"
#include "transforms/slices/slice_rules.h"
#include "transforms/slices/slices.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace slice_sequence_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ShardingRule;
using ir::ValueId;

// What a value is to a slice.
enum class Share : uint8_t {
  kSame,     // the same in all slices
  kRows,     // each has its rows
  kSummand,  // all slices add up to it
};

std::vector<int64_t> One(int64_t n) { return {n}; }

// What a slice has of a value.
struct Part {
  Share share = Share::kSame;
  int8_t dim = 0;  // of rows
  OpId summed_by = {};
};

class SequenceSlicer {
 public:
  SequenceSlicer(const Function& from, const SliceRange& slice)
      : from_(from),
        slice_(slice),
        length_(ir::SequenceLength(from)),
        phase_(FindPhases(from)),
        names_(SequenceInputs(from)),
        read_back_(FindReadBack(from)),
        builder_(from.name()),
        part_(from.value_limit()),
        values_(from.value_limit()),
        extended_(from.value_limit()) {}

  absl::StatusOr<Function> Run() {
    for (const ir::Input& input : from_.inputs()) {
      const std::string name(from_.value_name(input.value));
      ir::TensorType type = from_.type(input.value);
      const bool rows = input.role == ir::InputRole::kData &&
                        std::find(names_.begin(), names_.end(), name) != names_.end();
      if (rows) SetRows(input.value, 1);
      if (rows) type.dims[1] = slice_.rows;
      values_[input.value] = builder_.AddInput(name, type, input.role);
    }
    for (const OpId op : from_.order()) {
      ORRERY_RETURN_IF_ERROR(Copy(op));
      ORRERY_RETURN_IF_ERROR(builder_.status());
    }
    for (const ir::Output& output : from_.outputs()) ORRERY_RETURN_IF_ERROR(Return(output));
    ORRERY_ASSIGN_OR_RETURN(Function sliced, std::move(builder_).Finalize());
    ir::RemoveDeadOps(sliced);
    return sliced;
  }

 private:
  void SetRows(ValueId value, size_t dim) {
    part_[value] = {.share = Share::kRows, .dim = static_cast<int8_t>(dim)};
  }
  size_t DimOf(ValueId value) const { return static_cast<size_t>(part_[value].dim); }
  int64_t Later() const { return length_ - slice_.begin - slice_.rows; }

  std::string NameOf(OpId op) const {
    std::string name(from_.info(op).name);
    if (from_.result_count(op) > 0) {
      absl::StrAppend(&name, " ", ir::PrintValue(from_, from_.result(op)));
    }
    return name;
  }

  absl::Status Refuse(OpId op, absl::string_view why) const {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat(from_.name(), ": ", NameOf(op), " ", why,
                                " (positions are dimension 1 of %", names_.front(),
                                "); slices of a sequence want a causal model; try a schedule of "
                                "parts of the batch, such as 1f1b")});
  }

  absl::Status Copy(OpId op) {
    switch (from_.kind(op)) {
      case OpKind::kConstant: {
        const ValueId result = from_.result(op);
        const OpId copy = builder_.TypedOp(OpKind::kConstant, {}, from_.type(result),
                                           from_.value_name(result), from_.attributes(op));
        if (copy.valid()) values_[result] = builder_.function().result(copy);
        return absl::OkStatus();
      }
      case OpKind::kAttention:
      case OpKind::kAttentionGrad:
        if (AnyOperand(op, Share::kRows)) return CopyAttention(op);
        break;
      default:
        break;
    }
    if (from_.info(op).op_class == ir::OpClass::kOptimizer) return CopyOptimizer(op);
    if (AnyOperand(op, Share::kSummand)) return CopySummands(op);
    if (AnyOperand(op, Share::kRows)) return CopyRows(op);
    Append(op, OperandsOf(op), from_.attributes(op));
    return absl::OkStatus();
  }

  bool AnyOperand(OpId op, Share share) const {
    return std::ranges::any_of(from_.operands(op),
                               [&](ValueId operand) { return part_[operand].share == share; });
  }

  std::vector<ValueId> OperandsOf(OpId op) const {
    std::vector<ValueId> operands;
    for (const ValueId operand : from_.operands(op)) operands.push_back(values_[operand]);
    return operands;
  }

  void Append(OpId op, const std::vector<ValueId>& operands, const ir::AttributeSet& attributes) {
    std::vector<absl::string_view> names;
    for (int32_t i = 0; i < from_.result_count(op); ++i) {
      names.push_back(from_.value_name(from_.result(op, i)));
    }
    const OpId copy = builder_.Ops(from_.kind(op), operands, names, attributes);
    for (int32_t i = 0; copy.valid() && i < from_.result_count(op); ++i) {
      values_[from_.result(op, i)] = builder_.function().result(copy, i);
    }
  }

  // What may be split by rows among ranks may be cut into slices, if nothing is put together.
  absl::Status CopyRows(OpId op) {
    if (from_.info(op).sharding == nullptr) return Refuse(op, "computes along the positions");
    const ShardingRule rule = ir::RuleOf(from_, op);
    int8_t factor = ir::kNoFactor;
    for (size_t i = 0; i < from_.operands(op).size(); ++i) {
      const ValueId operand = from_.operands(op)[i];
      if (part_[operand].share != Share::kRows) continue;
      const int8_t own = rule.operands[i][DimOf(operand)];
      // What is drawn at random is so in each slice.
      const bool exact = rule.exact || from_.info(op).random;
      if (own == ir::kNoFactor || !exact) return Refuse(op, "computes along the positions");
      if (factor != ir::kNoFactor && own != factor) {
        return Refuse(op, "takes positions times positions, and is no causal Attention");
      }
      factor = own;
    }
    std::vector<ValueId> operands = OperandsOf(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const ValueId operand = from_.operands(op)[i];
      const auto& factors = rule.operands[i];
      const auto found = std::find(factors.begin(), factors.end(), factor);
      if (part_[operand].share == Share::kRows || found == factors.end()) continue;
      operands[i] = RowsOf(operand, static_cast<size_t>(found - factors.begin()));
    }
    ORRERY_RETURN_IF_ERROR(FindResults(op, rule, factor));
    Append(op, operands, AttributesOf(op));
    return CheckRows(op);
  }

  absl::Status FindResults(OpId op, const ShardingRule& rule, int8_t factor) {
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      const auto& factors = rule.results[static_cast<size_t>(j)];
      const auto found = std::find(factors.begin(), factors.end(), factor);
      const ValueId result = from_.result(op, j);
      if (found != factors.end()) {
        SetRows(result, static_cast<size_t>(found - factors.begin()));
        if (from_.type(result).dims[DimOf(result)] == length_) continue;
        return Refuse(op, "makes one dimension of positions and something else");
      }
      if (!SumsUp(from_, op, phase_[op])) return Refuse(op, "puts all positions together");
      part_[result] = {.share = Share::kSummand, .summed_by = op};
    }
    return absl::OkStatus();
  }

  ir::AttributeSet AttributesOf(OpId op) const {
    ir::AttributeSet attributes = from_.attributes(op);
    const bool shaped = from_.kind(op) == OpKind::kReshape || from_.kind(op) == OpKind::kExpand;
    if (!shaped) return attributes;
    const size_t dim = DimOf(from_.result(op));
    std::vector<int64_t> shape = attributes.Ints("shape");
    if (dim >= shape.size() || shape[dim] != length_) return attributes;
    shape[dim] = slice_.rows;
    attributes.Set("shape", shape);
    attributes.Set("slice_dim", static_cast<int64_t>(dim));
    return attributes;
  }

  // An attribute may say how long the sequence is.
  absl::Status CheckRows(OpId op) const {
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      const ValueId result = from_.result(op, j);
      if (part_[result].share != Share::kRows || !values_[result].valid()) continue;
      if (builder_.type(values_[result]).dims[DimOf(result)] == slice_.rows) continue;
      return Refuse(op, "has the length of the sequence baked in");
    }
    return absl::OkStatus();
  }

  // The slice's rows of what is the same in all slices. Of rows that are looked up in a table only
  // those are looked up.
  ValueId RowsOf(ValueId value, size_t dim) {
    const auto [found, fresh] = rows_.try_emplace({value.index(), dim});
    if (!fresh) return found->second;
    const OpId producer = from_.producer(value);
    if (producer.valid() && from_.kind(producer) == OpKind::kGather) {
      const ShardingRule rule = ir::RuleOf(from_, producer);
      const auto& ids = rule.operands[1];
      const int8_t factor = rule.results[0][dim];
      const auto at = std::find(ids.begin(), ids.end(), factor);
      if (factor != ir::kNoFactor && at != ids.end()) {
        const ValueId table = values_[from_.operands(producer)[0]];
        const ValueId some =
            RowsOf(from_.operands(producer)[1], static_cast<size_t>(at - ids.begin()));
        return rows_[{value.index(), dim}] =
                   builder_.Op(OpKind::kGather, {table, some}, "", from_.attributes(producer));
      }
    }
    return found->second = builder_.Op(OpKind::kSlice, {values_[value]}, "",
                                       {{"axes", One(static_cast<int64_t>(dim))},
                                        {"starts", One(slice_.begin)},
                                        {"ends", One(slice_.begin + slice_.rows)},
                                        {"steps", One(1)},
                                        {"slice", int64_t{1}}});
  }

  // Rows of a slice as a summand of the whole: with zeros around them, which take over the name.
  ValueId AsSummand(ValueId value) {
    if (part_[value].share != Share::kRows) return values_[value];
    const auto [found, fresh] = padded_.try_emplace(value.index());
    if (!fresh) return found->second;
    const std::string name(from_.value_name(value));
    builder_.function().SetName(values_[value], "");
    return found->second = builder_.Op(OpKind::kPad, {values_[value]}, name,
                                       {{"axes", One(part_[value].dim)},
                                        {"before", One(slice_.begin)},
                                        {"after", One(Later())},
                                        {"slice", int64_t{1}}});
  }

  // f(a + b) = f(a) + f(b), of sums over the slices.
  absl::Status CopySummands(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : from_.operands(op)) {
      if (!from_.info(op).linear || part_[operand].share == Share::kSame) {
        const auto sum = std::ranges::find(from_.operands(op), Share::kSummand,
                                           [this](ValueId of) { return part_[of].share; });
        return Refuse(op, absl::StrCat("needs the sum that ", NameOf(part_[*sum].summed_by),
                                       " makes over all positions"));
      }
      operands.push_back(AsSummand(operand));
    }
    Append(op, operands, from_.attributes(op));
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      part_[from_.result(op, j)] = {.share = Share::kSummand, .summed_by = op};
    }
    return absl::OkStatus();
  }

  absl::Status CopyOptimizer(OpId op) {
    const ir::OptimizerOperands operands(from_, op);
    std::vector<ValueId> copies;
    for (size_t i = 0; i < operands.all().size(); ++i) {
      const ValueId operand = operands.all()[i];
      if (i >= operands.first_gradient() && part_[operand].share == Share::kSame) {
        return Refuse(op, absl::StrCat("takes the gradient ", ir::PrintValue(from_, operand),
                                       ", which no slice adds to"));
      }
      copies.push_back(AsSummand(operand));
    }
    Append(op, copies, from_.attributes(op));
    return absl::OkStatus();
  }

  absl::Status CheckAttention(OpId op) const {
    const absl::string_view why = WhyNotCausal(from_, op);
    if (!why.empty()) return Refuse(op, why);
    for (size_t i = 0; i < from_.operands(op).size(); ++i) {
      const ValueId operand = from_.operands(op)[i];
      const size_t rank = from_.type(operand).dims.size();
      const bool statistics = i == 4;
      const size_t rows = rank == 3 && !statistics ? 1 : 2;
      if (part_[operand].share == Share::kRows && DimOf(operand) == rows) continue;
      return Refuse(op, "has queries or keys that are no rows of the sequence");
    }
    return absl::OkStatus();
  }

  ValueId Extended(ValueId value) {
    ValueId& extended = extended_[value];
    if (extended.valid()) return extended;
    ir::AttributeSet attributes = {{"dim", int64_t{part_[value].dim}}, {"earlier", slice_.begin}};
    // Nothing else tells that later slices read these rows.
    if (read_back_[value] == 0) attributes.Set("later", Later());
    return extended = builder_.Op(OpKind::kExtendRows, {values_[value]}, "", attributes);
  }

  absl::Status CopyAttention(OpId op) {
    ORRERY_RETURN_IF_ERROR(CheckAttention(op));
    std::vector<ValueId> operands = OperandsOf(op);
    for (size_t i = 1; i < 3; ++i) operands[i] = Extended(from_.operands(op)[i]);
    Append(op, operands, from_.attributes(op));
    const bool gradient = from_.kind(op) == OpKind::kAttentionGrad;
    for (int32_t j = 0; j < from_.result_count(op); ++j) {
      const size_t like = gradient ? static_cast<size_t>(j) : 0;
      SetRows(from_.result(op, j), !gradient && j > 0 ? 2 : DimOf(from_.operands(op)[like]));
    }
    for (int32_t j = 1; gradient && j < 3; ++j) Gather(from_.result(op, j));
    return absl::OkStatus();
  }

  // The gradient of keys or values: what this slice and later ones give to its rows.
  void Gather(ValueId value) {
    if (!values_[value].valid()) return;
    const std::string name(from_.value_name(value));
    builder_.function().SetName(values_[value], "");
    values_[value] = builder_.Op(
        OpKind::kExtendRowsGrad, {values_[value]}, name,
        {{"dim", int64_t{part_[value].dim}}, {"earlier", slice_.begin}, {"later", Later()}});
  }

  absl::Status Return(const ir::Output& output) {
    const OpId producer = from_.producer(output.value);
    ValueId value = values_[output.value];
    const bool updated =
        producer.valid() && from_.info(producer).op_class == ir::OpClass::kOptimizer;
    if (producer.valid() && !updated) {
      const Share share = part_[output.value].share;
      const bool sum = output.role == ir::OutputRole::kGradient;
      if (share == Share::kSame || output.role == ir::OutputRole::kUpdated) {
        return Refuse(producer, "returns what is no sum over slices, and has no rows of them");
      }
      if (share == Share::kRows && !sum && DimOf(output.value) != 1) {
        return Refuse(producer, "returns positions in another dimension than the second");
      }
      if (sum) value = AsSummand(output.value);
    }
    builder_.Return(value, output.role, output.of.valid() ? values_[output.of] : ValueId());
    return absl::OkStatus();
  }

  const Function& from_;
  const SliceRange slice_;
  const int64_t length_;
  const IdTable<OpId, StepPhase> phase_;
  const std::vector<std::string> names_;    // of inputs with positions
  const IdTable<ValueId, char> read_back_;  // keys and values that backward takes
  ir::Builder builder_;
  IdTable<ValueId, Part> part_;
  IdTable<ValueId, ValueId> values_;                    // here
  IdTable<ValueId, ValueId> extended_;                  // keys and values with earlier slices'
  std::map<std::pair<int32_t, size_t>, ValueId> rows_;  // of what is the same, by dimension
  std::map<int32_t, ValueId> padded_;
};

}  // namespace
}  // namespace slice_sequence_cc

absl::StatusOr<ir::Function> SliceSequence(const ir::Function& function, const SliceRange& slice) {
  const int64_t length = ir::SequenceLength(function);
  if (slice.begin < 0 || slice.rows < 1 || slice.rows > length - slice.begin) {
    return absl::InvalidArgumentError(absl::StrCat("a slice of ", slice.rows, " positions from ",
                                                   slice.begin, " on, of a sequence of ", length,
                                                   "; wanted one inside"));
  }
  return slice_sequence_cc::SequenceSlicer(function, slice).Run();
}

}  // namespace orrery::transforms
