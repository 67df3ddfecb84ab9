#include "transforms/second_pipeline.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ir/builder.h"
#include "support/status.h"

namespace orrery::transforms {
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
  /// The stage that holds the same of the other pipeline, where sums of gradients are exchanged
  /// with it; else -1.
  int32_t twin = -1;
  int32_t twin_peer_shift = 0;  // to the twins of peers
  int32_t twin_origin_shift = 0;
};

// Rebuilds one function of a stage op by op.
class StageCopy {
 public:
  // `name` of the new function.
  StageCopy(const StageFunction& source, const std::string& name, const CopyOptions& options,
            const SumsSent& sums)
      : source_(source),
        builder_(name, source.function.mesh()),
        options_(options),
        sums_(sums),
        here_(source.function.value_limit()),
        types_here_(source.function.types().size()) {
    builder_.function().KeepNamesOf(source.function);
    builder_.function().Reserve(source.function.op_limit(), source.function.value_limit());
    origins_.reserve(static_cast<size_t>(source.function.value_limit()));
  }

  absl::StatusOr<StageFunction> Run() {
    const Function& from = source_.function;
    for (const ir::Input& input : from.inputs()) {
      Bind(input.value, builder_.function().AddInputOfType("", TypeOf(input.value), input.role));
    }
    if (options_.twin >= 0) {
      own_ = here_;
      Exchange();
    }
    for (const OpId op : from.order()) CopyOp(op);
    for (const ir::Output& output : from.outputs()) {
      builder_.Return(here_[output.value], output.role,
                      output.of.valid() ? here_[output.of] : ValueId());
    }
    StageFunction copy;
    ORRERY_ASSIGN_OR_RETURN(copy.function, std::move(builder_).Finalize());
    origins_.resize(static_cast<size_t>(copy.function.value_limit()));
    copy.origins = std::move(origins_);
    return copy;
  }

 private:
  void SetOrigin(ValueId here, ValueId origin, int32_t shift) {
    const auto index = static_cast<size_t>(here.index());
    if (origins_.size() <= index) origins_.resize(index + 1);
    if (origin.valid()) origins_[index] = ValueId(origin.index() + shift);
  }

  // With the name that it has there.
  void Bind(ValueId source, ValueId here) {
    here_[source] = here;
    builder_.function().SetKeptName(here, source_.function.value_name(source));
    SetOrigin(here, source_.origins[static_cast<size_t>(source.index())], options_.origin_shift);
  }

  void Exchange() {
    const Function& from = source_.function;
    FindNamesOfTwins();
    const IdTable<ValueId, char> read = FindRead();
    std::vector<ValueId> sums;
    for (const ir::Input& input : from.inputs()) {
      if (input.role == ir::InputRole::kAccumulator && read[input.value] != 0) {
        sums.push_back(input.value);
      }
    }
    for (const ValueId sum : sums) Send(here_[sum], TagOf(sum), options_.twin);
    for (const ValueId sum : sums) AddOf(sum, TagOf(sum), options_.twin);
  }

  // What is not only sent to another stage.
  IdTable<ValueId, char> FindRead() const {
    const Function& from = source_.function;
    IdTable<ValueId, char> read(from.value_limit(), 0);
    for (const OpId op : from.order()) {
      if (from.kind(op) == OpKind::kSend) continue;
      for (const ValueId operand : from.operands(op)) read[operand] = 1;
    }
    return read;
  }

  void FindNamesOfTwins() {
    const Function& from = source_.function;
    for (int32_t v = 0; v < from.value_limit(); ++v) {
      const absl::string_view name = from.value_name(ValueId(v));
      const size_t end = name.find_last_not_of(kOther) + 1;  // 0 of an empty name
      if (absl::EndsWith(name.substr(0, end), kTwin)) names_of_twins_.emplace(name);
    }
  }

  // Of what a twin has sent; no other value has it.
  std::string NameOfTwin(const std::string& tag) {
    std::string name = absl::StrCat(tag, kTwin);
    while (!names_of_twins_.insert(name).second) absl::StrAppend(&name, kOther);
    return name;
  }

  void Send(ValueId here, const std::string& tag, int32_t to) {
    Function& function = builder_.function();
    sent_.Set("tag", tag);
    sent_.Set("to", int64_t{to});
    function.AddOpOfTypes(OpKind::kSend, std::span(&here, 1), function.InternAttributes(sent_), {});
  }

  // Adds to what a value of the source has become what comes from a stage of the other pipeline.
  void AddOf(ValueId value, const std::string& tag, int32_t stage) {
    if (!builder_.status().ok()) return;
    Function& to = builder_.function();
    received_.Set("from", int64_t{stage});
    received_.Set("tag", tag);
    const ir::TypeId type = TypeOf(value);
    const OpId receive =
        to.AddOpOfTypes(OpKind::kReceive, {}, to.InternAttributes(received_), std::span(&type, 1));
    const ValueId other = to.result(receive);
    to.SetName(other, NameOfTwin(tag));
    SetOrigin(other, source_.origins[static_cast<size_t>(value.index())],
              options_.twin_origin_shift);
    const ValueId summands[] = {here_[value], other};
    const OpId sum =
        to.AddOpOfTypes(OpKind::kAdd, summands, ir::AttributesId(0), std::span(&type, 1));
    here_[value] = to.result(sum);
  }

  std::string TagOf(ValueId value) const { return std::string(source_.function.value_name(value)); }

  // A stage's own sum for another stage that has the parameter, too: to both its copies.
  void SendSum(OpId op) {
    const Function& from = source_.function;
    const ValueId sum = from.operands(op)[0];
    const std::string tag = from.attributes(op).String("tag", "");
    const auto peer = static_cast<int32_t>(from.attributes(op).Int("to", 0));
    Send(own_[sum], tag, peer + options_.peer_shift);
    Send(own_[sum], tag, peer + options_.twin_peer_shift);
  }

  // To the sum of another stage that has the parameter, too, that of its twin.
  void AddSumOfTwin(OpId op) {
    const Function& from = source_.function;
    const auto peer = static_cast<int32_t>(from.attributes(op).Int("from", 0));
    const std::string tag = from.attributes(op).String("tag", "");
    if (!sums_.contains({peer, tag})) return;
    AddOf(from.result(op), tag, peer + options_.twin_peer_shift);
  }

  void CopyOp(OpId op) {
    if (!builder_.status().ok()) return;
    const Function& from = source_.function;
    Function& to = builder_.function();
    const bool exchanges = options_.twin >= 0;
    if (exchanges && from.kind(op) == OpKind::kSend && IsSum(from, from.operands(op)[0])) {
      return SendSum(op);
    }
    operands_.clear();
    for (const ValueId operand : from.operands(op)) operands_.push_back(here_[operand]);
    result_types_.clear();
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      result_types_.push_back(TypeOf(from.result(op, i)));
    }
    const OpId copy = to.AddOpOfTypes(from.kind(op), operands_, AttributesOf(op), result_types_);
    for (int32_t i = 0; i < from.result_count(op); ++i) {
      Bind(from.result(op, i), to.result(copy, i));
    }
    if (exchanges && from.kind(op) == OpKind::kReceive) AddSumOfTwin(op);
  }

  // The type of a value of the source, in the table of the copy.
  ir::TypeId TypeOf(ValueId value) {
    ir::TypeId& here = types_here_[source_.function.type_id(value)];
    if (!here.valid()) here = builder_.function().InternType(source_.function.type(value));
    return here;
  }

  // The attributes of an op of the source, in the table of the copy.
  ir::AttributesId AttributesOf(OpId op) {
    const Function& from = source_.function;
    Function& to = builder_.function();
    const bool sends = from.kind(op) == OpKind::kSend;
    if (sends || from.kind(op) == OpKind::kReceive) {
      const absl::string_view peer = sends ? "to" : "from";
      ir::AttributeSet attributes = from.attributes(op);
      attributes.Set(peer, attributes.Int(peer, 0) + options_.peer_shift);
      return to.InternAttributes(attributes);
    }
    const auto place = static_cast<size_t>(from.attributes_id(op).index());
    if (attributes_here_.size() <= place) attributes_here_.resize(place + 1);
    ir::AttributesId& here = attributes_here_[place];
    if (!here.valid()) here = to.InternAttributes(from.attributes(op));
    return here;
  }

  const StageFunction& source_;
  ir::Builder builder_;
  const CopyOptions options_;
  const SumsSent& sums_;
  IdTable<ValueId, ValueId> here_;
  IdTable<ValueId, ValueId> own_;  // sums before they are exchanged
  IdTable<ir::TypeId, ir::TypeId> types_here_;
  std::vector<ir::AttributesId> attributes_here_;
  absl::flat_hash_set<std::string> names_of_twins_;
  ir::AttributeSet sent_, received_;      // of the last op of the exchange
  std::vector<ValueId> operands_;         // of the op that is being copied
  std::vector<ir::TypeId> result_types_;  // likewise
  std::vector<ValueId> origins_;
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

// Of all updates.
SumsSent FindSumsSent(const PipelinedStep& step) {
  SumsSent sums;
  for (size_t k = 0; k < step.stages.size(); ++k) {
    const Function& update = step.stages[k].update.function;
    for (const OpId op : update.order()) {
      if (update.kind(op) != OpKind::kSend || !IsSum(update, update.operands(op)[0])) continue;
      sums.emplace(static_cast<int32_t>(k), update.attributes(op).String("tag", ""));
    }
  }
  return sums;
}

}  // namespace

absl::Status AddSecondPipeline(PipelinedStep& step) {
  const auto depth = static_cast<int32_t>(step.stages.size());
  const int32_t limit = OriginLimit(step);
  const SumsSent sums = FindSumsSent(step);
  const auto name = [](const StageFunction& part) {
    return absl::StrCat(part.function.name(), ".back");
  };
  std::vector<PipelineStage> stages;
  stages.reserve(2 * step.stages.size());  // growing would copy them
  std::ranges::move(step.stages, std::back_inserter(stages));
  for (int32_t k = 0; k < depth; ++k) {
    PipelineStage& first = stages[static_cast<size_t>(k)];
    PipelineStage second;
    const auto copy = [&](const StageFunction& part) {
      return StageCopy(part, name(part), {.origin_shift = limit, .peer_shift = depth}, sums).Run();
    };
    ORRERY_ASSIGN_OR_RETURN(second.forward, copy(first.forward));
    ORRERY_ASSIGN_OR_RETURN(second.backward, copy(first.backward));
    ORRERY_ASSIGN_OR_RETURN(second.weights, copy(first.weights));
    const CopyOptions back = {.origin_shift = limit, .peer_shift = depth, .twin = k};
    ORRERY_ASSIGN_OR_RETURN(second.update,
                            StageCopy(first.update, name(first.update), back, sums).Run());
    const CopyOptions there = {
        .twin = depth + k, .twin_peer_shift = depth, .twin_origin_shift = limit};
    ORRERY_ASSIGN_OR_RETURN(
        StageFunction update,
        StageCopy(first.update, std::string(first.update.function.name()), there, sums).Run());
    first.update = std::move(update);
    stages.push_back(std::move(second));
  }
  step.stages = std::move(stages);
  return absl::OkStatus();
}

}  // namespace orrery::transforms
