#include "transforms/stages/stage_plan.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/status.h"
#include "transforms/stages/late_gathers.h"
#include "transforms/stages/mirrored_stage.h"
#include "transforms/stages/shared_parameters.h"
#include "transforms/training/fp8_mixed.h"
#include "transforms/training/fp8_products.h"

namespace orrery::transforms {
namespace stage_plan_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

constexpr int32_t kNowhere = -1;

// So many fields for what its steps know of each value.
class StagePlanner {
 public:
  StagePlanner(const Function& function, const StageOptions& options, const StageCuts& cuts,
               StageConflict* conflict)
      : function_(function),
        options_(options),
        cuts_(cuts),
        conflict_(conflict),
        at_(function.value_limit(), kNowhere),
        is_buffer_(function.value_limit(), 0),
        fixed_(FindFixedValues(function)),
        shared_(function.value_limit(), 0),
        gradient_home_(function.value_limit(), kNowhere),
        part_home_(function.value_limit(), kNowhere),
        reached_(function.value_limit(), kNowhere) {
    plan_.phase = cuts.phase;
    plan_.stage = IdTable<OpId, int32_t>(function.op_limit(), kNowhere);
    plan_.repeated = IdTable<OpId, char>(function.op_limit(), 0);
    plan_.home = IdTable<ValueId, int32_t>(function.value_limit(), kNowhere);
    for (const ir::Input& input : function.inputs()) {
      is_buffer_[input.value] = input.role == ir::InputRole::kBuffer ? 1 : 0;
    }
  }

  absl::StatusOr<StagePlan> Run() {
    ORRERY_RETURN_IF_ERROR(AssignAll());
    if (options_.split_backward) SplitBackwardPhase(function_, plan_.stage, plan_.phase);
    return std::move(plan_);
  }

 private:
  absl::Status AssignAll() {
    AssignForward();
    AssignCopies(StepPhase::kForward);
    AssignPreparation();
    FindHomes();
    const bool by_names = cuts_.mirroring == Mirroring::kByNames;
    if (cuts_.mirroring != Mirroring::kNone)
      mirrored_.emplace(function_, cuts_.chain, plan_.stage, by_names);
    const std::vector<WeightCopy> copies = FindWeightCopies(function_);
    // A weight belongs to the stage that reads its copy.
    for (const WeightCopy& weight : copies) plan_.home[weight.parameter] = plan_.home[weight.copy];
    FindGradientHomes();
    FindReached();
    for (const OpId op : function_.order()) {
      if (plan_.phase[op] != StepPhase::kForward) AssignLater(op);
    }
    for (const WeightCopy& weight : copies) Assign(weight.cast, plan_.home[weight.copy]);
    AssignCopies(StepPhase::kBackward);
    ShareParameters(function_, options_.ranks, plan_);
    GatherWhereRead(function_, plan_);
    return CheckHomes();
  }

  bool IsParameter(ValueId value) const {
    return !function_.producer(value).valid() && cuts_.chain.from_data[value] == 0;
  }
  bool IsData(ValueId value) const {
    return !function_.producer(value).valid() && cuts_.chain.from_data[value] != 0;
  }
  void Assign(OpId op, int32_t stage) {
    plan_.stage[op] = stage;
    for (int32_t i = 0; i < function_.result_count(op); ++i) at_[function_.result(op, i)] = stage;
  }

  bool MadeFromData(OpId op) const {
    return function_.result_count(op) > 0 && cuts_.chain.from_data[function_.result(op)] != 0;
  }

  // An op goes behind what it reads: one of forward to where the chain is cut, one for backward to
  // where that was made.
  void AssignForward() {
    int32_t cut = 0;
    for (size_t i = 0; i < cuts_.chain.ops.size(); ++i) {
      while (static_cast<size_t>(cut) < cuts_.positions.size() &&
             cuts_.positions[static_cast<size_t>(cut)] <= i)
        ++cut;
      const OpId op = cuts_.chain.ops[i];
      int32_t stage = kNowhere;
      for (const ValueId operand : function_.operands(op)) stage = std::max(stage, at_[operand]);
      const bool seeds = function_.info(op).seeds_backward;
      if (seeds || stage == kNowhere || cuts_.chain.read_forward[op] != 0) {
        stage = std::max(stage, cut);
      }
      Assign(op, stage);
    }
  }

  // What is made from parameters alone, a transposed weight say, goes to its first user. Where
  // several stages use it, each makes it for itself, and shares what it is made from.
  void AssignPreparation() {
    const auto last_stage = static_cast<int32_t>(options_.stages) - 1;
    IdTable<ValueId, int32_t> first(function_.value_limit(), last_stage);
    IdTable<ValueId, int32_t> last(function_.value_limit(), kNowhere);
    const auto& order = function_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      if (plan_.phase[*op] != StepPhase::kForward) continue;
      int32_t begin = plan_.stage[*op], end = begin;
      if (!MadeFromData(*op)) {
        begin = last_stage;
        end = kNowhere;
        for (int32_t i = 0; i < function_.result_count(*op); ++i) {
          begin = std::min(begin, first[function_.result(*op, i)]);
          end = std::max(end, last[function_.result(*op, i)]);
        }
        Assign(*op, begin);
        const bool moves = function_.info(*op).op_class == ir::OpClass::kCollective;
        if (moves || begin >= end) {
          end = begin;
        } else {
          plan_.repeated[*op] = 1;
          Share(*op, end);
        }
      }
      for (const ValueId operand : function_.operands(*op)) {
        first[operand] = std::min(first[operand], begin);
        last[operand] = std::max(last[operand], end);
      }
    }
  }

  void Share(OpId op, int32_t home) {
    for (int32_t i = 0; i < function_.result_count(op); ++i) shared_[function_.result(op, i)] = 1;
    for (const ValueId operand : function_.operands(op)) {
      if (function_.producer(operand).valid()) continue;
      shared_[operand] = 1;
      plan_.home[operand] = at_[operand] = std::max(plan_.home[operand], home);
    }
  }

  void FindHomes() {
    for (const OpId op : function_.order()) {
      if (plan_.phase[op] != StepPhase::kForward) continue;
      for (const ValueId operand : function_.operands(op)) {
        if (function_.producer(operand).valid()) continue;
        int32_t& home = plan_.home[operand];
        if (home != kNowhere && home != plan_.stage[op]) shared_[operand] = 1;
        home = std::max(home, plan_.stage[op]);
        at_[operand] = home;
      }
    }
  }

  // The gradient of a parameter belongs to the stage that updates it: so does what it alone is made
  // from by summing, or by changing how it is sharded, stored or scaled.
  void FindGradientHomes() {
    for (const ir::Output& output : function_.outputs()) {
      if (output.role != ir::OutputRole::kGradient) continue;
      gradient_home_[output.value] = GradientHome(output.of);
    }
    const IdTable<ValueId, int32_t> uses = ir::CountUses(function_);
    const auto& order = function_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      const auto operands = function_.operands(*op);
      if (function_.info(*op).op_class == ir::OpClass::kOptimizer) {
        const ir::OptimizerOperands of(function_, *op);
        for (size_t i = 0; i < of.count(); ++i) {
          gradient_home_[of.gradients()[i]] = GradientHome(of.parameters()[i]);
        }
      } else if (function_.info(*op).op_class == ir::OpClass::kCollective || Sums(*op)) {
        // What others read as well is a gradient of something else.
        const int32_t home = gradient_home_[function_.result(*op)];
        if (home != kNowhere && uses[operands[0]] == 1) gradient_home_[operands[0]] = home;
      } else if (function_.kind(*op) == ir::OpKind::kAdd) {
        // Of several uses of a parameter.
        const int32_t home = gradient_home_[function_.result(*op)];
        for (const ValueId part : operands) {
          if (home != kNowhere && uses[part] == 1) part_home_[part] = home;
        }
      }
    }
  }

  // Each stage that reads a shared parameter makes a gradient of it.
  int32_t GradientHome(ValueId parameter) const {
    return shared_[parameter] != 0 ? kNowhere : plan_.home[parameter];
  }
  bool Sums(OpId op) const {
    return function_.info(op).linear && function_.operands(op).size() == 1;
  }

  // What an op behind forward reads.
  struct Reads {
    int32_t forward = kNowhere;  // the last stage of parameters and forward values
    int32_t data = kNowhere;     // the last that holds data
    int32_t backward = 0;        // the first that makes a gradient
  };

  Reads ReadsOf(OpId op) const {
    Reads reads{.backward = static_cast<int32_t>(options_.stages) - 1};
    for (const ValueId operand : function_.operands(op)) {
      if (fixed_[operand] != 0) continue;  // every stage may read it
      if (IsData(operand)) {               // likewise
        reads.data = std::max(reads.data, plan_.home[operand]);
      } else if (shared_[operand] != 0) {
        reads.forward = std::max(reads.forward,
                                 StageOfReader(function_, cuts_.chain, plan_.stage, op, operand));
      } else if (IsForwardValue(operand)) {
        reads.forward = std::max(reads.forward, at_[operand]);
      } else {
        reads.backward = std::min(reads.backward, at_[operand]);
      }
    }
    if (mirrored_.has_value()) TakeMirrored(op, reads);
    return reads;
  }

  // A sum of gradients of one stage is made there.
  void TakeMirrored(OpId op, Reads& reads) const {
    std::vector<ValueId> read;
    const auto operands = function_.operands(op);
    for (const ValueId operand : operands) {
      const bool counts = fixed_[operand] == 0 && !IsData(operand);
      if (counts && IsForwardValue(operand)) read.push_back(operand);
    }
    const bool sums = read.empty() && function_.kind(op) == ir::OpKind::kAdd;
    if (sums && at_[operands[0]] == at_[operands[1]]) return;
    const int32_t stage = mirrored_->StageOf(op, read, reads.backward);
    if (stage != kNowhere) reads.forward = stage;
  }

  // Gradients only travel backward. So one that reaches a stage is made there or behind it, even of
  // a product whose other factor crosses to there from an earlier stage.
  void FindReached() {
    const auto& order = function_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      if (plan_.phase[*op] == StepPhase::kForward ||
          function_.info(*op).op_class == ir::OpClass::kOptimizer) {
        continue;
      }
      int32_t stage = ReadsOf(*op).forward;
      for (int32_t i = 0; i < function_.result_count(*op); ++i) {
        const ValueId result = function_.result(*op, i);
        stage = std::max({stage, gradient_home_[result], reached_[result]});
      }
      for (const ValueId operand : function_.operands(*op)) {
        if (!IsForwardValue(operand)) reached_[operand] = std::max(reached_[operand], stage);
      }
    }
  }

  // A backward op goes to where its gradients belong; else to the last stage that they reach or
  // that has what it reads of forward, or its data; else to where its gradients come from.
  void AssignLater(OpId op) {
    auto [forward, data, backward] = ReadsOf(op);
    for (int32_t i = 0; forward != kNowhere && i < function_.result_count(op); ++i) {
      forward = std::max(forward, reached_[function_.result(op, i)]);
    }
    const bool optimizer = function_.info(op).op_class == ir::OpClass::kOptimizer;
    const bool alone = !optimizer && function_.result_count(op) == 1;
    const int32_t home = alone ? gradient_home_[function_.result(op)] : kNowhere;
    // Never behind its gradients: those only travel backward.
    if (alone) forward = std::max(forward, part_home_[function_.result(op)]);
    int32_t wanted = backward;
    for (const int32_t stage : {data, forward, home}) wanted = stage == kNowhere ? wanted : stage;
    Assign(op, optimizer ? 0 : std::min(wanted, backward));
  }

  // 8-bit copies of wider values, keys behind those of earlier slices, and what only moves them.
  IdTable<ValueId, char> FindCopies() const {
    IdTable<ValueId, char> is_copy(function_.value_limit(), 0);
    for (const OpId op : function_.order()) {
      if (function_.result_count(op) != 1 || function_.operands(op).size() != 1) continue;
      const ValueId from = function_.operands(op)[0], to = function_.result(op);
      const bool makes = MakesCopy(function_, op) || function_.kind(op) == ir::OpKind::kExtendRows;
      is_copy[to] = makes || (is_copy[from] != 0 && MovesCopies(function_, op)) ? 1 : 0;
    }
    return is_copy;
  }

  // What goes to another stage goes in 16 bits: each stage that reads an 8-bit copy makes it. And a
  // slice's own keys go: each stage that reads those of earlier slices keeps them.
  void AssignCopies(StepPhase phase) {
    const IdTable<ValueId, char> is_copy = FindCopies();
    constexpr int32_t kSeveral = -2;
    IdTable<ValueId, int32_t> reader(function_.value_limit(), kNowhere);
    const auto& order = function_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      if (plan_.phase[*op] != phase || plan_.stage[*op] == kNowhere) continue;
      const bool copies = function_.result_count(*op) == 1 && is_copy[function_.result(*op)] != 0;
      const int32_t only = copies ? reader[function_.result(*op)] : kNowhere;
      if (only == kSeveral) plan_.repeated[*op] = 1;
      if (only >= 0) Assign(*op, only);
      const int32_t stage = only == kSeveral ? kSeveral : plan_.stage[*op];
      for (const ValueId operand : function_.operands(*op)) {
        int32_t& known = reader[operand];
        known = known == kNowhere || known == stage ? stage : kSeveral;
      }
    }
  }

  // Whether nothing of a gradient is in the value, even where only backward puts it together.
  bool IsForwardValue(ValueId value) const {
    const OpId producer = function_.producer(value);
    if (!producer.valid()) return true;
    if (plan_.phase[producer] == StepPhase::kForward) {
      return !function_.info(producer).seeds_backward;
    }
    return ReshardsForward(function_, plan_.phase, producer);
  }

  // A parameter that only its optimizer reads is as well off on the first stage as anywhere.
  void HouseUnread(OpId op) {
    if (function_.info(op).op_class != ir::OpClass::kOptimizer) return;
    for (const ValueId parameter : ir::OptimizerOperands(function_, op).parameters()) {
      if (plan_.home[parameter] == kNowhere) plan_.home[parameter] = 0;
    }
  }

  absl::Status CheckHomes() {
    for (const OpId op : function_.order()) {
      HouseUnread(op);
      ORRERY_RETURN_IF_ERROR(CheckGradients(op));
      if (plan_.phase[op] == StepPhase::kUpdate) continue;
      for (const ValueId operand : function_.operands(op)) {
        if (!IsParameter(operand) || is_buffer_[operand] != 0) continue;
        int32_t& home = plan_.home[operand];
        if (home == kNowhere) home = plan_.stage[op];
        if (home == plan_.stage[op] || plan_.copies.contains(operand)) continue;
        Blame(plan_.stage[op], home);
        return InfeasibleStatus(
            {.reason = InfeasibleReason::kUnsupported,
             .detail =
                 absl::StrCat("state ", ir::PrintValue(function_, operand), " is read by stages ",
                              plan_.stage[op], " and ", home, "; wanted one; try fewer stages")});
      }
    }
    return absl::OkStatus();
  }

  void Blame(int32_t a, int32_t b) const {
    if (conflict_ != nullptr) *conflict_ = {.first = std::min(a, b), .last = std::max(a, b)};
  }

  absl::Status CheckGradients(OpId op) const {
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const int32_t home = gradient_home_[function_.result(op, i)];
      if (home == kNowhere || home == plan_.stage[op] || plan_.runs_on.contains(op)) continue;
      Blame(plan_.stage[op], home);
      return InfeasibleStatus(
          {.reason = InfeasibleReason::kUnsupported,
           .detail = absl::StrCat("gradient ", ir::PrintValue(function_, function_.result(op, i)),
                                  " is made in stage ", plan_.stage[op],
                                  " and its parameter is in ", home, "; wanted one")});
    }
    return absl::OkStatus();
  }

  const Function& function_;
  const StageOptions& options_;
  const StageCuts& cuts_;
  StageConflict* const conflict_;  // where to tell of one; may be null
  StagePlan plan_;
  std::optional<MirroredStages> mirrored_;
  IdTable<ValueId, int32_t> at_;             // the stage that makes or holds each value
  IdTable<ValueId, char> is_buffer_;         // an input that every stage may have a copy of
  IdTable<ValueId, char> fixed_;             // made from such inputs and constants alone
  IdTable<ValueId, char> shared_;            // what stages have copies of
  IdTable<ValueId, int32_t> gradient_home_;  // of a parameter's gradient: the parameter's stage
  IdTable<ValueId, int32_t> part_home_;      // likewise of what may be a part of it
  IdTable<ValueId, int32_t> reached_;        // of a gradient: the last stage that reads it
};

}  // namespace
}  // namespace stage_plan_cc

absl::StatusOr<StagePlan> AssignStages(const ir::Function& function, const StageOptions& options,
                                       const StageCuts& cuts, StageConflict* conflict) {
  return stage_plan_cc::StagePlanner(function, options, cuts, conflict).Run();
}

}  // namespace orrery::transforms
