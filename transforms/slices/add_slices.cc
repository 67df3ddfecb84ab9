#include "transforms/slices/add_slices.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/model_facts.h"
#include "ir/op_kind.h"
#include "ir/rebuild.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/slices/slices.h"

namespace orrery::transforms {
namespace add_slices_cc {
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
    absl::StatusOr<Function> rebuilt = ir::RebuildWithInputs(from, change);
    if (absl::IsInvalidArgument(rebuilt.status())) return Misfit(rebuilt.status());
    ORRERY_RETURN_IF_ERROR(rebuilt.status());
    made.function = *std::move(rebuilt);
    Bind(part, made);
    return made;
  }

  // What is sharded was decided on slices of another length.
  absl::Status Misfit(const absl::Status& why) const {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kDivisibility,
         .detail = absl::StrCat("a slice of ", slice_.rows,
                                " positions cannot be sharded as others are: ", why.message(),
                                "; try `slices` whose lengths `hp` and `cp` divide")});
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
      if (set.Find("later") != nullptr) changed.Set("later", later);
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
}  // namespace add_slices_cc

absl::Status CheckSliceCount(int64_t slices, int64_t ops) {
  if (slices == 0 || ops <= add_slices_cc::kMostOps / slices) return absl::OkStatus();
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kUnsupported,
       .detail = absl::StrCat(slices, " slices of ", ops, " ops; at most ", add_slices_cc::kMostOps,
                              " ops are simulated; try fewer slices")});
}

absl::Status AddSlices(const ir::Function& whole, const std::vector<SliceRange>& slices,
                       PipelinedStep& step) {
  int64_t ops = 0;
  for (const PipelineStage& stage : step.stages) {
    for (const StageFunction* part : stage.parts()) ops += std::ssize(part->function.order());
  }
  ORRERY_RETURN_IF_ERROR(CheckSliceCount(std::ssize(slices), ops));
  const int64_t length = ir::SequenceLength(whole);
  const std::vector<std::string> inputs = SequenceInputs(whole);
  step.slices.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(
        add_slices_cc::SliceMaker(slices[i], length, inputs).Run(step, step.slices[i]));
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
