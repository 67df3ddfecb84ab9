#include "tests/semantics/shard.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "tests/semantics/mail.h"

namespace orrery::semantics {
namespace shard_cc {
namespace {

using ir::AxisList;
using ir::Function;
using ir::Mesh;
using ir::OpId;
using ir::OpKind;
using ir::TensorType;
using ir::ValueId;

constexpr ir::ExecuteOptions kExactly = {.round = false};

const Tensor& Find(const Named& inputs, absl::string_view name) {
  const auto found = inputs.find(std::string(name));
  ORRERY_CHECK(found != inputs.end()) << "no input '" << name << "'";
  return found->second;
}

std::vector<Tensor> Parts(std::vector<ir::RankValues>& values, ValueId value) {
  std::vector<Tensor> parts;
  for (ir::RankValues& of_rank : values) parts.push_back(of_rank[value]);
  return parts;
}

class Pipeline {
 public:
  Pipeline(const transforms::PipelinedStep& step, const Named& inputs)
      : step_(step), inputs_(inputs), ranks_(step.stages.size()) {
    for (size_t s = 0; s < ranks_.size(); ++s) {
      const Mesh& mesh = unequal() ? step.stages[s].forward.function.mesh() : step.mesh;
      const auto pp = mesh.Find("pp");
      for (const int64_t rank : ir::AllRanks(mesh)) {
        const int64_t position = pp.has_value() ? ir::PartOf(mesh, rank, AxisList(*pp)) : 0;
        if (step.ranks[s] == position) ranks_[s].push_back(rank);
      }
    }
  }

  PipelinedOutcome Run(const transforms::RankOrders& orders) {
    int32_t last_slot = 0;
    for (const auto& order : orders) last_slot = std::max(last_slot, order.back().slot);
    for (int32_t slot = 0; slot <= last_slot; ++slot) {
      for (const auto& order : orders) {
        for (const transforms::ScheduleStep& step : order) {
          if (step.slot == slot) RunStep(step);
        }
      }
    }
    // What a stage sends of the gradient of a shared parameter goes before any update; what comes
    // of it then, from later stages to earlier ones.
    for (size_t s = 0; s < ranks_.size(); ++s) SendSums(s, step_.stages[s].update);
    for (size_t s = ranks_.size(); s-- > 0;) RunPart(s, step_.stages[s].update, 0);
    outcome_.lost = mail_.left();
    return std::move(outcome_);
  }

 private:
  bool unequal() const { return !step_.unequal.places.empty(); }

  // What a value is known by between the functions of one stage.
  struct Key {
    size_t stage;
    int32_t origin;
    int64_t microbatch;  // -1: of all of them
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  void RunStep(const transforms::ScheduleStep& step) {
    using transforms::StepKind;
    const auto s = static_cast<size_t>(step.stage);
    const transforms::PipelinedStep::Parts stage = step_.PartsOf(s, step.microbatch);
    const auto run = [&](const transforms::StageFunction& part) {
      if (!part.function.order().empty()) RunPart(s, part, step.microbatch);
    };
    if (step.kind == StepKind::kForward) run(stage.forward);
    if (step.kind == StepKind::kBackward || step.kind == StepKind::kInputGradient) {
      run(stage.backward);
    }
    if (step.kind == StepKind::kBackward || step.kind == StepKind::kWeightGradient) {
      run(stage.weights);
    }
  }

  static int32_t OriginOf(const transforms::StageFunction& part, ValueId value) {
    return part.origins[static_cast<size_t>(value.index())].index();
  }

  // Under which origin an accumulation is kept: that of what is added up.
  static int32_t SummandOf(const transforms::StageFunction& part, ValueId so_far) {
    for (const OpId op : part.function.order()) {
      const auto operands = part.function.operands(op);
      const OpKind kind = part.function.kind(op);
      if (kind != OpKind::kAccumulate && kind != OpKind::kCollect) continue;
      if (operands[0] == so_far) return OriginOf(part, operands[1]);
    }
    return OriginOf(part, so_far);  // an update takes the sum by the name of its summand
  }

  Tensor InputOf(size_t s, const transforms::StageFunction& part, const ir::Input& input,
                 int64_t microbatch, size_t position) {
    TensorType type = part.function.type(input.value);
    const Mesh& mesh = part.function.mesh();
    switch (input.role) {
      case ir::InputRole::kSaved:
        return kept_.at({s, OriginOf(part, input.value), microbatch})[position];
      case ir::InputRole::kAccumulator: {
        const auto found = kept_.find({s, SummandOf(part, input.value), -1});
        if (found != kept_.end()) return found->second[position];
        return Tensor(type.dtype, ir::LocalType(type, mesh).dims);
      }
      default:
        break;
    }
    // A replica's share of the batch, its part in the microbatch, and of that what the rank holds.
    const Tensor& whole = Find(inputs_, part.function.value_name(input.value));
    const int64_t rank = ranks_[s][position];
    if (whole.dims() == type.dims) return ir::Scatter(whole, type, mesh, rank);
    if (!step_.slices.empty()) {
      const transforms::SliceRange& slice = step_.slices[static_cast<size_t>(microbatch)].range;
      return ir::Scatter(ir::SliceRows(whole, 1, slice.begin, slice.rows), type, mesh, rank);
    }
    const AxisList replicas = Replicas(type, mesh);
    Tensor mine = ir::SlicePart(whole, 0, ir::PartOf(mesh, rank, replicas), mesh.size(replicas));
    mine = ir::SlicePart(mine, 0, microbatch, whole.dims()[0] / type.dims[0]);
    type.dims[0] /= mesh.size(replicas);
    for (const ir::AxisIndex axis : replicas.axes()) {
      type.sharding.Set(0, type.dims.size(), type.sharding.at(0).Without(axis));
    }
    return ir::Scatter(mine, type, mesh, rank);
  }

  // The axes that split the batch before it is cut into microbatches.
  AxisList Replicas(const TensorType& type, const Mesh& mesh) const {
    AxisList replicas;
    for (const char* name : {"dp", "zero"}) {
      if (unequal()) continue;  // all stages cut the same microbatches
      const auto axis = mesh.Find(name);
      if (axis.has_value() && type.sharding.at(0).contains(*axis)) replicas.push_back(*axis);
    }
    return replicas;
  }

  // The same, slice by slice.
  Tensor GatherSlices(const std::vector<Tensor>& parts, TensorType type, const Mesh& mesh,
                      std::span<const int64_t> ranks) {
    Tensor all(type.dtype, type.dims);
    for (const transforms::SequenceSlice& slice : step_.slices) {
      type.dims[1] = slice.range.rows;
      const int64_t parts_of_it = mesh.size(type.sharding.at(1));
      std::vector<Tensor> now;
      for (const Tensor& part : parts) {
        now.push_back(ir::SliceRows(part, 1, slice.range.begin / parts_of_it,
                                    slice.range.rows / parts_of_it));
      }
      ir::PasteRows(ir::Gather(now, type, mesh, ranks, outcome_.disagreement), 1, slice.range.begin,
                    all);
    }
    return all;
  }

  // What has been collected, microbatch by microbatch, in the order of the batch.
  Tensor GatherCollected(const std::vector<Tensor>& parts, TensorType type, const Mesh& mesh,
                         std::span<const int64_t> ranks) {
    if (!step_.slices.empty()) return GatherSlices(parts, type, mesh, ranks);
    const int64_t count = step_.microbatches;
    const int64_t replicas = mesh.size(Replicas(type, mesh));
    Tensor all(type.dtype, type.dims);
    type.dims[0] /= count;
    for (int64_t microbatch = 0; microbatch < count; ++microbatch) {
      std::vector<Tensor> now;
      for (const Tensor& part : parts) now.push_back(ir::SlicePart(part, 0, microbatch, count));
      const Tensor whole = ir::Gather(now, type, mesh, ranks, outcome_.disagreement);
      for (int64_t replica = 0; replica < replicas; ++replica) {
        ir::PastePart(ir::SlicePart(whole, 0, replica, replicas), 0, replica * count + microbatch,
                      all);
      }
    }
    return all;
  }

  void RunPart(size_t s, const transforms::StageFunction& part, int64_t microbatch) {
    const Function& f = part.function;
    std::vector<ir::RankValues> values(ranks_[s].size(), ir::RankValues(f.value_limit()));
    for (const ir::Input& input : f.inputs()) {
      for (size_t position = 0; position < values.size(); ++position) {
        values[position][input.value] = InputOf(s, part, input, microbatch, position);
      }
    }
    ir::Surroundings around = Around(s, part, microbatch, &part == &step_.stages[s].update);
    around.extend = [&](OpId op, size_t position, const Tensor& x) {
      return f.kind(op) == OpKind::kExtendRows ? Extend({s, part, op, microbatch, position}, x)
                                               : SumUp({s, part, op, microbatch, position}, x);
    };
    const absl::Status status = ir::ExecuteRanks(f, ranks_[s], around, kExactly, values);
    ORRERY_CHECK(status.ok()) << status.ToString();
    for (const ir::Output& output : f.outputs()) Keep(s, part, output, microbatch, values);
  }

  // An ExtendRows or its gradient, on one rank.
  struct SliceOp {
    size_t stage;
    const transforms::StageFunction& part;
    OpId op;
    int64_t slice;
    size_t position;

    size_t dim() const { return static_cast<size_t>(part.function.attributes(op).Int("dim", 1)); }
    // What stands for the same value in all slices: what is made of keys, or of their gradient.
    std::tuple<size_t, int32_t, size_t> key() const {
      return {stage, OriginOf(part, part.function.operands(op)[0]), position};
    }
  };

  // The rows of all slices up to this one, in a row; each leaves its own for those after it.
  Tensor Extend(const SliceOp& at, const Tensor& x) {
    std::map<int64_t, Tensor>& rows = rows_[at.key()];
    rows[at.slice] = x;
    ir::Dims dims = x.dims();
    dims[at.dim()] = 0;
    for (const auto& [slice, own] : rows) {
      if (slice <= at.slice) dims[at.dim()] += own.dims()[at.dim()];
    }
    Tensor all(x.dtype(), dims);
    int64_t begin = 0;
    for (const auto& [slice, own] : rows) {
      if (slice > at.slice) continue;
      ir::PasteRows(own, at.dim(), begin, all);
      begin += own.dims()[at.dim()];
    }
    return all;
  }

  // Adds each slice's part to what is there for it; takes what has come together for this one.
  Tensor SumUp(const SliceOp& at, const Tensor& dx) {
    std::map<int64_t, Tensor>& sums = row_sums_[at.key()];
    for (int64_t slice = 0; slice <= at.slice; ++slice) {
      const transforms::SliceRange& range = step_.slices[static_cast<size_t>(slice)].range;
      const Tensor part = ir::SliceRows(dx, at.dim(), range.begin, range.rows);
      const auto [sum, first] = sums.try_emplace(slice, part);
      if (!first) ir::AddTensor(part, sum->second);
    }
    return sums.at(at.slice);
  }

  void SendSums(size_t s, const transforms::StageFunction& part) {
    const Function& f = part.function;
    for (const OpId op : f.order()) {
      if (f.kind(op) != OpKind::kSend || f.producer(f.operands(op)[0]).valid()) continue;
      for (const ir::Input& input : f.inputs()) {
        if (input.value != f.operands(op)[0]) continue;
        for (size_t position = 0; position < ranks_[s].size(); ++position) {
          Send(s, part, op, 0, position, InputOf(s, part, input, 0, position));
        }
      }
    }
  }

  // In several steps values without a name have other tags.
  Mail::Message MessageOf(const transforms::StageFunction& part, OpId op, ValueId value,
                          std::pair<size_t, size_t> stages, int64_t microbatch) const {
    std::string tag = part.function.attributes(op).String("tag", "");
    if (unequal()) tag = absl::StrCat(OriginOf(part, value));
    return {stages.first, stages.second, std::move(tag), microbatch};
  }

  void Send(size_t s, const transforms::StageFunction& part, OpId op, int64_t microbatch,
            size_t position, const Tensor& value) {
    const Function& f = part.function;
    const ValueId sent = f.operands(op)[0];
    const auto to = static_cast<size_t>(f.attributes(op).Int("to", 0));
    const Mail::Message message = MessageOf(part, op, sent, {s, to}, microbatch);
    mail_.Send(message, position, value);
    if (unequal()) sent_.insert_or_assign(message, std::pair(f.type(sent), f.mesh()));
  }

  Tensor Receive(size_t s, const transforms::StageFunction& part, OpId op, int64_t microbatch,
                 size_t position) {
    const Function& f = part.function;
    const auto from = static_cast<size_t>(f.attributes(op).Int("from", 0));
    const auto message = MessageOf(part, op, f.result(op), {from, s}, microbatch);
    if (!unequal()) return mail_.Receive(message, position);
    const auto& [type, mesh] = sent_.at(message);
    return mail_.ReceiveAcross(message, position, {type, mesh, ranks_[from]},
                               {f.type(f.result(op)), f.mesh(), ranks_[s]}, outcome_.disagreement);
  }

  ir::Surroundings Around(size_t s, const transforms::StageFunction& part, int64_t microbatch,
                          bool update) {
    const Function& f = part.function;
    return {.microbatch = microbatch,
            .send =
                [this, s, &f, &part, microbatch, update](OpId op, size_t position,
                                                         const Tensor& value) {
                  if (update && !f.producer(f.operands(op)[0]).valid()) return;  // is sent already
                  Send(s, part, op, microbatch, position, value);
                },
            .receive = [this, s, &part, microbatch](
                           OpId op,
                           size_t position) { return Receive(s, part, op, microbatch, position); }};
  }

  void Keep(size_t s, const transforms::StageFunction& part, const ir::Output& output,
            int64_t microbatch, std::vector<ir::RankValues>& values) {
    std::vector<Tensor> parts = Parts(values, output.value);
    const Function& f = part.function;
    std::string name(f.value_name(output.value));
    bool collected = false;
    if (output.role == ir::OutputRole::kSaved) {
      kept_[{s, OriginOf(part, output.value), microbatch}] = std::move(parts);
      return;
    }
    if (output.role == ir::OutputRole::kAccumulator) {
      const OpId sum = f.producer(output.value);
      name = std::string(f.value_name(f.operands(sum)[1]));
      collected = f.kind(sum) == OpKind::kCollect;
    }
    const TensorType& type = f.type(output.value);
    Tensor whole = collected ? GatherCollected(parts, type, f.mesh(), ranks_[s])
                             : ir::Gather(parts, type, f.mesh(), ranks_[s], outcome_.disagreement);
    Report(s, name, output.role, std::move(whole));
    if (output.role == ir::OutputRole::kAccumulator) {
      kept_[{s, SummandOf(part, output.of), -1}] = std::move(parts);
    }
  }

  // What several stages return by one name: copies of a shared parameter, which should hold the
  // same, or sums over the microbatches of one pipeline each. Those without one stay in kept_
  // alone.
  void Report(size_t s, const std::string& name, ir::OutputRole role, Tensor whole) {
    if (name.empty()) return;
    if (role == ir::OutputRole::kAccumulator) {
      std::map<size_t, Tensor>& of_stages = sums_[name];
      of_stages[s] = std::move(whole);
      whole = of_stages.begin()->second;
      for (auto sum = std::next(of_stages.begin()); sum != of_stages.end(); ++sum) {
        ORRERY_CHECK(whole.floats().size() == sum->second.floats().size())
            << name << " of stage " << s << " has " << whole.floats().size()
            << " elements, of stage " << sum->first << " " << sum->second.floats().size();
        for (size_t i = 0; i < whole.floats().size(); ++i) {
          whole.floats()[i] += sum->second.floats()[i];
        }
      }
    }
    const auto [copy, first] = outcome_.outputs.try_emplace(name, whole);
    if (!first && role == ir::OutputRole::kUpdated) {
      outcome_.disagreement = std::max(outcome_.disagreement, ir::Distance(copy->second, whole));
    }
    if (!first) copy->second = std::move(whole);
  }

  const transforms::PipelinedStep& step_;
  const Named& inputs_;
  std::map<std::string, std::map<size_t, Tensor>> sums_;  // by name, then stage
  std::vector<std::vector<int64_t>> ranks_;               // by stage
  std::map<Key, std::vector<Tensor>> kept_;               // a tensor a rank of the stage
  Mail mail_;
  std::map<Mail::Message, std::pair<TensorType, Mesh>> sent_;  // as what, of unequal stages
  std::map<std::tuple<size_t, int32_t, size_t>, std::map<int64_t, Tensor>> rows_, row_sums_;
  PipelinedOutcome outcome_;
};

}  // namespace
}  // namespace shard_cc

Outcome RunAll(const ir::Function& function, const Named& inputs) {
  const absl::StatusOr<ir::Execution> execution = ir::Execute(function, inputs, shard_cc::kExactly);
  ORRERY_CHECK(execution.ok()) << execution.status().ToString();
  Outcome outcome{.outputs = {}, .disagreement = execution->disagreement};
  for (size_t i = 0; i < execution->outputs.size(); ++i) {
    const ir::ValueId value = function.outputs()[i].value;
    outcome.outputs[std::string(function.value_name(value))] = execution->outputs[i];
  }
  return outcome;
}

transforms::RankOrders OrdersOf(absl::string_view schedule, const transforms::PipelinedStep& step) {
  const transforms::PipelineSchedule& found = *transforms::FindSchedule(schedule).value();
  const int32_t ranks = 1 + *std::max_element(step.ranks.begin(), step.ranks.end());
  return found.OrdersOf(found.ShapeOf(ranks, static_cast<int32_t>(step.microbatches),
                                      static_cast<int32_t>(step.stages.size()) / ranks));
}

PipelinedOutcome RunPipelined(const transforms::PipelinedStep& step,
                              const transforms::RankOrders& orders, const Named& inputs) {
  return shard_cc::Pipeline(step, inputs).Run(orders);
}

}  // namespace orrery::semantics
