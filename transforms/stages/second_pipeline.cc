#include "transforms/stages/second_pipeline.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ir/function.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace second_pipeline_cc {
namespace {

constexpr absl::string_view kTwin = ".twin", kOther = "'";

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Sums of gradients that stages send each other by themselves, by stage and tag.
using SumsSent = absl::flat_hash_set<std::pair<int32_t, std::string>>;

bool IsSum(const Function& update, ValueId value) {
  return !update.producer(value).valid() && update.input_role(value) == ir::InputRole::kAccumulator;
}

// What changes in a copy of one function of a stage.
struct CopyOptions {
  int32_t origin_shift = 0;  // origins are so much further on than they were
  int32_t peer_shift = 0;    // and peers of sends and receives so many stages
};

// The stage that holds the same of the other pipeline.
struct Twin {
  int32_t stage = 0;
  int32_t peer_shift = 0;  // to the twins of peers
  int32_t origin_shift = 0;
};

absl::string_view PeerOf(OpKind kind) { return kind == OpKind::kSend ? "to" : "from"; }

void ShiftOrigins(StageFunction& part, int32_t shift) {
  for (ValueId& origin : part.origins) {
    if (origin.valid()) origin = ValueId(origin.index() + shift);
  }
}

void ShiftPeers(Function& function, int32_t shift) {
  for (const OpId op : function.order()) {
    const OpKind kind = function.kind(op);
    if (kind != OpKind::kSend && kind != OpKind::kReceive) continue;
    ir::AttributeSet attributes = function.attributes(op);
    attributes.Set(PeerOf(kind), attributes.Int(PeerOf(kind), 0) + shift);
    function.SetAttributes(op, function.InternAttributes(attributes));
  }
}

StageFunction Copy(const StageFunction& part, const CopyOptions& options) {
  StageFunction copy = part;
  copy.function.Rename(absl::StrCat(part.function.name(), ".back"));
  ShiftOrigins(copy, options.origin_shift);
  ShiftPeers(copy.function, options.peer_shift);
  return copy;
}

// Lets an update of one pipeline exchange its sums of gradients with its twin of the other.
class Exchange {
 public:
  Exchange(const Twin& twin, const SumsSent& sums, StageFunction& update)
      : twin_(twin),
        sums_(sums),
        update_(update),
        function_(update.function),
        now_(function_.value_limit()) {}

  void Run() {
    const std::vector<OpId> order = function_.order();
    FindNamesOfTwins();
    const std::vector<ValueId> own = FindSums();
    order_.reserve(order.size() + 3 * own.size());
    for (const ValueId sum : own) Send(sum, function_.value_name(sum), twin_.stage);
    for (const ValueId sum : own) AddOf(sum, function_.value_name(sum), twin_.stage);
    for (const OpId op : order) Visit(op);
    std::vector<ir::Output> outputs = function_.outputs();
    for (ir::Output& output : outputs) output.value = Now(output.value);
    function_.SetOutputs(std::move(outputs));
    function_.SetOrder(std::move(order_));
  }

 private:
  // What stands for a value of the update since sums of the twin have been added.
  ValueId Now(ValueId value) const {
    return value.index() < now_.size() && now_[value].valid() ? now_[value] : value;
  }

  // Those that are not only sent to another stage.
  std::vector<ValueId> FindSums() const {
    IdTable<ValueId, char> read(function_.value_limit(), 0);
    for (const OpId op : function_.order()) {
      if (function_.kind(op) == OpKind::kSend) continue;
      for (const ValueId operand : function_.operands(op)) read[operand] = 1;
    }
    std::vector<ValueId> sums;
    for (const ir::Input& input : function_.inputs()) {
      if (input.role == ir::InputRole::kAccumulator && read[input.value] != 0) {
        sums.push_back(input.value);
      }
    }
    return sums;
  }

  void FindNamesOfTwins() {
    for (int32_t v = 0; v < function_.value_limit(); ++v) {
      const absl::string_view name = function_.value_name(ValueId(v));
      absl::string_view twin = name;
      while (absl::ConsumeSuffix(&twin, kOther)) continue;
      if (absl::EndsWith(twin, kTwin)) names_of_twins_.insert(name);
    }
  }

  // Of what a twin has sent; no other value has it.
  void NameTwin(ValueId value, absl::string_view tag) {
    std::string name = absl::StrCat(tag, kTwin);
    while (names_of_twins_.contains(name)) absl::StrAppend(&name, kOther);
    function_.SetName(value, name);
    names_of_twins_.insert(function_.value_name(value));
  }

  OpId Append(OpKind kind, std::span<const ValueId> operands, ir::AttributesId attributes,
              std::span<const ir::TypeId> types) {
    order_.push_back(function_.AddOpOfTypes(kind, operands, attributes, types));
    return order_.back();
  }

  void Send(ValueId value, absl::string_view tag, int32_t to) {
    sent_.Set("tag", std::string(tag));
    sent_.Set("to", int64_t{to});
    Append(OpKind::kSend, std::span(&value, 1), function_.InternAttributes(sent_), {});
  }

  // Adds to a value what comes from a stage of the other pipeline.
  void AddOf(ValueId value, absl::string_view tag, int32_t stage) {
    received_.Set("from", int64_t{stage});
    received_.Set("tag", std::string(tag));
    const ir::TypeId type = function_.type_id(value);
    const ir::AttributesId attributes = function_.InternAttributes(received_);
    const ValueId other =
        function_.result(Append(OpKind::kReceive, {}, attributes, std::span(&type, 1)));
    NameTwin(other, tag);
    const ValueId summands[] = {value, other};
    now_[value] =
        function_.result(Append(OpKind::kAdd, summands, ir::AttributesId(0), std::span(&type, 1)));
    std::vector<ValueId>& origins = update_.origins;
    origins.resize(static_cast<size_t>(function_.value_limit()));
    const ValueId origin = OriginOf(update_, value);
    if (!origin.valid()) return;
    origins[static_cast<size_t>(other.index())] = ValueId(origin.index() + twin_.origin_shift);
  }

  void Visit(OpId op) {
    order_.push_back(op);
    const OpKind kind = function_.kind(op);
    if (kind == OpKind::kSend && IsSum(function_, function_.operands(op)[0])) return SendSum(op);
    for (size_t i = 0; i < function_.operands(op).size(); ++i) {
      function_.SetOperand(op, i, Now(function_.operands(op)[i]));
    }
    if (kind == OpKind::kReceive) AddSumOfTwin(op);
  }

  // A stage's own sum for another stage that has the parameter, too: to both its copies.
  void SendSum(OpId op) {
    const ir::AttributeSet& attributes = function_.attributes(op);
    const auto peer = static_cast<int32_t>(attributes.Int("to", 0));
    Send(function_.operands(op)[0], attributes.String("tag", ""), peer + twin_.peer_shift);
  }

  // To the sum of another stage that has the parameter, too, that of its twin.
  void AddSumOfTwin(OpId op) {
    const ir::AttributeSet& attributes = function_.attributes(op);
    const auto peer = static_cast<int32_t>(attributes.Int("from", 0));
    const std::string tag = attributes.String("tag", "");
    if (!sums_.contains({peer, tag})) return;
    AddOf(function_.result(op), tag, peer + twin_.peer_shift);
  }

  const Twin twin_;
  const SumsSent& sums_;
  StageFunction& update_;
  Function& function_;
  IdTable<ValueId, ValueId> now_;  // of values that were there before; invalid: as it was
  std::vector<OpId> order_;
  absl::flat_hash_set<absl::string_view> names_of_twins_;
  ir::AttributeSet sent_, received_;  // of the last op of the exchange
};

int32_t OriginLimit(const PipelinedStep& step) {
  int32_t limit = 0;
  for (const PipelineStage& stage : step.stages) {
    for (const StageFunction* part : stage.parts()) {
      for (const ValueId origin : part->origins) limit = std::max(limit, origin.index() + 1);
    }
  }
  return limit;
}

// Of all updates, and of what will be their twins.
SumsSent FindSumsSent(const PipelinedStep& step) {
  SumsSent sums;
  const auto depth = static_cast<int32_t>(step.stages.size());
  for (size_t k = 0; k < step.stages.size(); ++k) {
    const Function& update = step.stages[k].update.function;
    for (const OpId op : update.order()) {
      if (update.kind(op) != OpKind::kSend || !IsSum(update, update.operands(op)[0])) continue;
      const std::string tag = update.attributes(op).String("tag", "");
      for (const int32_t twin : {0, depth}) sums.emplace(static_cast<int32_t>(k) + twin, tag);
    }
  }
  return sums;
}

}  // namespace
}  // namespace second_pipeline_cc

void AddSecondPipeline(PipelinedStep& step) {
  const auto depth = static_cast<int32_t>(step.stages.size());
  const int32_t limit = second_pipeline_cc::OriginLimit(step);
  const second_pipeline_cc::SumsSent sums = second_pipeline_cc::FindSumsSent(step);
  const second_pipeline_cc::CopyOptions options = {.origin_shift = limit, .peer_shift = depth};
  std::vector<PipelineStage> stages;
  stages.reserve(2 * step.stages.size());  // growing would copy them
  std::ranges::move(step.stages, std::back_inserter(stages));
  for (int32_t k = 0; k < depth; ++k) {
    PipelineStage& first = stages[static_cast<size_t>(k)];
    PipelineStage second = {.forward = second_pipeline_cc::Copy(first.forward, options),
                            .backward = second_pipeline_cc::Copy(first.backward, options),
                            .weights = second_pipeline_cc::Copy(first.weights, options),
                            .update = second_pipeline_cc::Copy(first.update, options)};
    second_pipeline_cc::Exchange({.stage = depth + k, .peer_shift = depth, .origin_shift = limit},
                                 sums, first.update)
        .Run();
    second_pipeline_cc::Exchange({.stage = k, .peer_shift = -depth, .origin_shift = -limit}, sums,
                                 second.update)
        .Run();
    stages.push_back(std::move(second));
  }
  step.stages = std::move(stages);
}

}  // namespace orrery::transforms
