#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/rebuild.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/pass.h"
#include "transforms/slice_sequence.h"

namespace orrery::transforms {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Of all slices: with what they are lowered to an op takes half a kilobyte.
constexpr int64_t kMostOps = int64_t{1} << 22;

// The functions of a slice, from those of another one.
class SliceMaker {
 public:
  SliceMaker(const SliceRange& slice, int64_t length, const std::vector<std::string>& inputs)
      : slice_(slice), length_(length), inputs_(inputs) {}

  // Every value is made, or sent, before it is asked for: forwards in their order, then backwards
  // in the opposite one.
  absl::Status Run(const PipelinedStep& step, SequenceSlice& made) {
    made.range = slice_;
    made.stages.resize(step.stages.size());
    for (size_t s = 0; s < step.stages.size(); ++s) {
      ORRERY_ASSIGN_OR_RETURN(made.stages[s].forward, Rebuilt(step.stages[s].forward));
    }
    for (size_t s = step.stages.size(); s-- > 0;) {
      ORRERY_ASSIGN_OR_RETURN(made.stages[s].backward, Rebuilt(step.stages[s].backward));
      ORRERY_ASSIGN_OR_RETURN(made.stages[s].weights, Rebuilt(step.stages[s].weights));
    }
    return absl::OkStatus();
  }

 private:
  using Types = absl::flat_hash_map<ValueId, ir::TensorType>;

  static ValueId OriginOf(const StageFunction& part, ValueId value) {
    return part.origins[static_cast<size_t>(value.index())];
  }

  absl::StatusOr<StageFunction> Rebuilt(const StageFunction& part) {
    const Function& from = part.function;
    const ir::Rebuild change = {
        .input = [&](const ir::Input& input,
                     const ir::TensorType& type) { return TypeOf(part, input, type); },
        .uninferred =
            [&](OpId op, const ir::TensorType& type) {
              return from.kind(op) == OpKind::kReceive
                         ? Known(OriginOf(part, from.result(op)), type)
                         : type;
            },
        .attributes = [&](OpKind kind,
                          const ir::AttributeSet& set) { return AttributesOf(kind, set); }};
    StageFunction made;
    ORRERY_ASSIGN_OR_RETURN(made.function, ir::RebuildWithInputs(from, change));
    Bind(part, made);
    return made;
  }

  // Values are the same one by one.
  void Bind(const StageFunction& part, StageFunction& made) {
    const Function &from = part.function, &to = made.function;
    made.origins.resize(static_cast<size_t>(to.value_limit()));
    const auto bind = [&](ValueId old, ValueId now) {
      const ValueId origin = OriginOf(part, old);
      made.origins[static_cast<size_t>(now.index())] = origin;
      if (origin.valid()) types_.insert_or_assign(origin, to.type(now));
    };
    for (size_t i = 0; i < from.inputs().size(); ++i) {
      bind(from.inputs()[i].value, to.inputs()[i].value);
    }
    ORRERY_CHECK(from.order().size() == to.order().size()) << from.name();
    for (size_t i = 0; i < from.order().size(); ++i) {
      for (int32_t j = 0; j < from.result_count(from.order()[i]); ++j) {
        bind(from.result(from.order()[i], j), to.result(to.order()[i], j));
      }
    }
  }

  const ir::TensorType& Known(ValueId origin, const ir::TensorType& type) const {
    const auto found = types_.find(origin);
    return found == types_.end() ? type : found->second;
  }

  ir::TensorType TypeOf(const StageFunction& part, const ir::Input& input, ir::TensorType type) {
    if (input.role == ir::InputRole::kSaved) return Known(OriginOf(part, input.value), type);
    const bool collected = input.role == ir::InputRole::kAccumulator && IsCollected(part, input);
    if (collected) type.dims[1] = length_;
    const std::string name(part.function.value_name(input.value));
    const bool rows = input.role == ir::InputRole::kData &&
                      std::find(inputs_.begin(), inputs_.end(), name) != inputs_.end();
    if (rows) type.dims[1] = slice_.rows;
    return type;
  }

  static bool IsCollected(const StageFunction& part, const ir::Input& input) {
    const Function& function = part.function;
    return std::ranges::any_of(function.order(), [&](OpId op) {
      return function.kind(op) == OpKind::kCollect && function.operands(op)[0] == input.value;
    });
  }

  std::optional<ir::AttributeSet> AttributesOf(OpKind kind, const ir::AttributeSet& set) const {
    const int64_t later = length_ - slice_.begin - slice_.rows;
    ir::AttributeSet changed = set;
    if (kind == OpKind::kExtendRows || kind == OpKind::kExtendRowsGrad) {
      changed.Set("earlier", slice_.begin);
      if (kind == OpKind::kExtendRowsGrad) changed.Set("later", later);
    } else if (kind == OpKind::kCollect) {
      changed.Set("begin", slice_.begin);
    } else if (set.Find("slice") != nullptr) {
      const bool pads = kind == OpKind::kPad;
      changed.Set(pads ? "before" : "starts", std::vector<int64_t>{slice_.begin});
      changed.Set(pads ? "after" : "ends",
                  std::vector<int64_t>{pads ? later : slice_.begin + slice_.rows});
    } else if (const int64_t dim = set.Int("slice_dim", -1); dim >= 0) {
      std::vector<int64_t> shape = set.Ints("shape");
      if (static_cast<size_t>(dim) >= shape.size()) return std::nullopt;
      shape[static_cast<size_t>(dim)] = slice_.rows;
      changed.Set("shape", shape);
    } else {
      return std::nullopt;
    }
    return changed;
  }

  const SliceRange slice_;
  const int64_t length_;
  const std::vector<std::string>& inputs_;
  Types types_;  // by origin
};

}  // namespace

int64_t SequenceLength(const Function& function) {
  for (const ir::Input& input : function.inputs()) {
    const ir::Dims& dims = function.type(input.value).dims;
    if (ir::HasBatch(function, input) && dims.size() > 1) return dims[1];
  }
  return 0;
}

std::vector<std::string> SequenceInputs(const Function& function) {
  const int64_t length = SequenceLength(function);
  std::vector<std::string> names;
  for (const ir::Input& input : function.inputs()) {
    const ir::Dims& dims = function.type(input.value).dims;
    const bool rows = ir::HasBatch(function, input) && dims.size() > 1 && dims[1] == length;
    if (rows) names.emplace_back(function.value_name(input.value));
  }
  return names;
}

absl::StatusOr<std::vector<SliceRange>> EqualSlices(const Function& function, int64_t count) {
  const int64_t length = SequenceLength(function);
  if (length == 0) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat(function.name(),
                                " has no data input of samples and positions, as "
                                "its dimensions 0 and 1; slices of a sequence want one; try a "
                                "schedule of parts of the batch, such as 1f1b")});
  }
  if (length % count != 0) {
    // Rather what no other number mends.
    const absl::Status why = SliceSequence(function, {.begin = 0, .rows = 1}).status();
    if (AsInfeasible(why).has_value()) return why;
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kDivisibility,
         .detail = absl::StrCat("a sequence of ", length, " does not divide into ", count,
                                " slices; terapipe cuts sequences, not the batch; try another "
                                "number, or --slices balanced")});
  }
  std::vector<SliceRange> slices;
  for (int64_t i = 0; i < count; ++i) {
    slices.push_back({.begin = i * (length / count), .rows = length / count});
  }
  return slices;
}

absl::string_view WhyNotCausal(const Function& function, OpId attention) {
  const ir::AttributeSet& attributes = function.attributes(attention);
  const size_t count = function.operands(attention).size();
  const bool gradient = function.kind(attention) == OpKind::kAttentionGrad;
  // What dropout has kept is two operands of the gradient.
  const bool masked = gradient ? count % 2 != 0 : count > 3;
  if (attributes.Find("ring_rows") != nullptr) return "goes round a ring of ranks";
  if (attributes.Int("causal", 0) != 0) return masked ? "has a mask besides being causal" : "";
  return masked ? "has a mask of its own, which may let a position see later ones"
                : "is not causal: a position sees later ones";
}

absl::Status AddSlices(const Function& whole, const std::vector<SliceRange>& slices,
                       PipelinedStep& step) {
  int64_t ops = 0;
  for (const PipelineStage& stage : step.stages) {
    for (const StageFunction* part : stage.parts()) ops += std::ssize(part->function.order());
  }
  if (ops * std::ssize(slices) > kMostOps) {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat(slices.size(), " slices of ", ops, " ops; at most ", kMostOps,
                                " ops are simulated; try fewer slices")});
  }
  const int64_t length = SequenceLength(whole);
  const std::vector<std::string> inputs = SequenceInputs(whole);
  step.slices.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(SliceMaker(slices[i], length, inputs).Run(step, step.slices[i]));
  }
  return absl::OkStatus();
}

extern const PassInfo kSliceSequencePass = {
    .name = "slice-sequence",
    .summary = "keeps the step of slice number `slice` of `slices` equal ones of the sequence",
    .options = "slices=1,slice=1",
    .run = [](Function& function, const PassOptions& options) -> absl::StatusOr<bool> {
      ORRERY_ASSIGN_OR_RETURN(const int64_t count, PositiveOption(options, "slices"));
      ORRERY_ASSIGN_OR_RETURN(const int64_t slice, PositiveOption(options, "slice"));
      if (slice > count) {
        return absl::InvalidArgumentError(
            absl::StrCat("slice=", slice, " of slices=", count, "; wanted one of them"));
      }
      if (count == 1) return false;
      ORRERY_ASSIGN_OR_RETURN(const std::vector<SliceRange> slices, EqualSlices(function, count));
      ORRERY_ASSIGN_OR_RETURN(function,
                              SliceSequence(function, slices[static_cast<size_t>(slice - 1)]));
      return true;
    },
};

}  // namespace orrery::transforms
