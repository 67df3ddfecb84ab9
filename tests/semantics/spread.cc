#include "tests/semantics/spread.h"

#include <algorithm>
#include <utility>

#include "support/check.h"

namespace orrery::semantics {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Function;
using ir::Mesh;
using ir::OpId;
using ir::OpKind;
using ir::TensorType;
using ir::ValueId;

int64_t Coordinate(const Mesh& mesh, int32_t rank, AxisIndex axis) {
  return rank / mesh.stride(axis) % mesh.size(axis);
}

// Which part of a dimension that `axes` split the rank holds: the first axis is outermost.
int64_t PartOf(const Mesh& mesh, int32_t rank, const AxisList& axes) {
  int64_t part = 0;
  for (const AxisIndex axis : axes.axes()) {
    part = part * mesh.size(axis) + Coordinate(mesh, rank, axis);
  }
  return part;
}

// The rank with the coordinates along `axes` taken off: equal for the ranks of one group.
int64_t RestOf(const Mesh& mesh, int32_t rank, const AxisList& axes) {
  int64_t rest = rank;
  for (const AxisIndex axis : axes.axes()) {
    rest -= Coordinate(mesh, rank, axis) * mesh.stride(axis);
  }
  return rest;
}

// One rank's tensors, by value.
using Values = IdTable<ValueId, Tensor>;

// What a stage is handed from outside: messages, and which microbatch it is.
struct Surroundings {
  int64_t microbatch = 0;
  std::function<void(OpId send, size_t place, const Tensor& value)> send = {};
  std::function<Tensor(OpId receive, size_t place)> receive = {};
};

// Runs the ops of one function on all `ranks` in step.
class Lockstep {
 public:
  Lockstep(const Function& function, std::span<const int32_t> ranks, std::vector<Values>& values,
           const Surroundings& around)
      : function_(function), ranks_(ranks), values_(values), around_(around) {}

  void Run() {
    for (const OpId op : function_.order()) RunOp(op);
  }

 private:
  const Mesh& mesh() const { return function_.mesh(); }
  Tensor& At(size_t place, ValueId value) { return values_[place][value]; }

  void RunOp(OpId op) {
    switch (function_.kind(op)) {
      case OpKind::kAllReduce:
      case OpKind::kAllGather:
        return Collective(op);
      default:
        for (size_t place = 0; place < ranks_.size(); ++place) RunAlone(op, place);
    }
  }

  void RunAlone(OpId op, size_t place) {
    const auto operand = [&](size_t i) -> Tensor& { return At(place, function_.operands(op)[i]); };
    switch (function_.kind(op)) {
      case OpKind::kSend:
        return around_.send(op, place, operand(0));
      case OpKind::kReceive:
        At(place, function_.result(op)) = around_.receive(op, place);
        return;
      case OpKind::kAccumulate:
        At(place, function_.result(op)) = Sum(operand(0), operand(1));
        return;
      case OpKind::kAllSlice:
        At(place, function_.result(op)) = OwnPart(op, place, operand(0));
        return;
      case OpKind::kCollect: {
        Tensor all = operand(0);
        Paste(operand(1), 0, around_.microbatch * operand(1).dims[0], all);
        At(place, function_.result(op)) = std::move(all);
        return;
      }
      default:
        return Compute(op, place);
    }
  }

  Tensor OwnPart(OpId op, size_t place, const Tensor& whole) const {
    const auto dim = static_cast<size_t>(function_.attributes(op).Int("dim", 0));
    const AxisList axes = AxesOf(op);
    const int64_t size = whole.dims[dim] / mesh().size(axes);
    const int64_t number = PartOf(mesh(), ranks_[place], axes);
    return Slice(whole, dim, number * size, (number + 1) * size);
  }

  void Compute(OpId op, size_t place) {
    std::vector<const Tensor*> operands;
    for (const ValueId operand : function_.operands(op)) operands.push_back(&At(place, operand));
    std::vector<Tensor> results = Evaluate(function_.kind(op), function_.attributes(op), operands);
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      const ValueId result = function_.result(op, i);
      const ir::Dims expected = ir::LocalType(function_.type(result), mesh()).dims;
      ORRERY_CHECK(results[static_cast<size_t>(i)].dims == expected)
          << function_.name() << " " << ir::PrintValue(function_, result) << " has another shape";
      At(place, result) = std::move(results[static_cast<size_t>(i)]);
    }
  }

  AxisList AxesOf(OpId op) const {
    AxisList axes;
    ORRERY_CHECK(ir::ParseAxes(function_.attributes(op), mesh(), axes).ok()) << function_.name();
    return axes;
  }

  // The places of the ranks in the group of `place`, in the order of their parts.
  std::vector<size_t> GroupOf(size_t place, const AxisList& axes) const {
    std::vector<size_t> group;
    for (size_t other = 0; other < ranks_.size(); ++other) {
      if (RestOf(mesh(), ranks_[other], axes) == RestOf(mesh(), ranks_[place], axes)) {
        group.push_back(other);
      }
    }
    std::sort(group.begin(), group.end(), [&](size_t a, size_t b) {
      return PartOf(mesh(), ranks_[a], axes) < PartOf(mesh(), ranks_[b], axes);
    });
    return group;
  }

  void Collective(OpId op) {
    const AxisList axes = AxesOf(op);
    const ValueId from = function_.operands(op)[0], to = function_.result(op);
    for (size_t place = 0; place < ranks_.size(); ++place) {
      const std::vector<size_t> group = GroupOf(place, axes);
      ORRERY_CHECK(std::ssize(group) == mesh().size(axes)) << "a group is incomplete";
      Tensor result = At(group[0], from);
      for (size_t i = 1; i < group.size(); ++i) {
        const Tensor& next = At(group[i], from);
        result =
            function_.kind(op) == OpKind::kAllReduce ? Sum(result, next) : Append(op, result, next);
      }
      At(place, to) = std::move(result);
    }
  }

  Tensor Append(OpId op, const Tensor& first, const Tensor& second) const {
    const auto dim = static_cast<size_t>(function_.attributes(op).Int("dim", 0));
    ir::Dims dims = first.dims;
    dims[dim] += second.dims[dim];
    Tensor both = Filled(dims, 0);
    Paste(first, dim, 0, both);
    Paste(second, dim, first.dims[dim], both);
    return both;
  }

  const Function& function_;
  const std::span<const int32_t> ranks_;
  std::vector<Values>& values_;
  const Surroundings& around_;
};

// Adds `part`, what `rank` holds, to its place in `whole`.
void AddPart(const Tensor& part, const TensorType& type, const Mesh& mesh, int32_t rank,
             Tensor& whole) {
  // Cut down to the part's rows dimension by dimension, add, and paste back up.
  std::vector<Tensor> cuts = {whole};
  std::vector<int64_t> begins;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    begins.push_back(PartOf(mesh, rank, type.sharding.at(d)) * part.dims[d]);
    cuts.push_back(Slice(cuts.back(), d, begins[d], begins[d] + part.dims[d]));
  }
  cuts.back() = Sum(cuts.back(), part);
  for (size_t d = type.dims.size(); d-- > 0;) Paste(cuts[d + 1], d, begins[d], cuts[d]);
  whole = std::move(cuts[0]);
}

const Tensor& Find(const Named& inputs, absl::string_view name) {
  const auto found = inputs.find(std::string(name));
  ORRERY_CHECK(found != inputs.end()) << "no input '" << name << "'";
  return found->second;
}

std::vector<int32_t> AllRanks(const Mesh& mesh) {
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < mesh.size(); ++rank) ranks.push_back(rank);
  return ranks;
}

std::vector<Tensor> Parts(std::vector<Values>& values, ValueId value) {
  std::vector<Tensor> parts;
  for (Values& of_rank : values) parts.push_back(of_rank[value]);
  return parts;
}

class Pipeline {
 public:
  Pipeline(const transforms::PipelinedStep& step, const Named& inputs)
      : step_(step), inputs_(inputs), ranks_(step.stages.size()) {
    const auto pp = step.mesh.Find("pp");
    for (const int32_t rank : AllRanks(step.mesh)) {
      const int64_t stage = pp.has_value() ? Coordinate(step.mesh, rank, *pp) : 0;
      ranks_[static_cast<size_t>(stage)].push_back(rank);
    }
  }

  PipelinedOutcome Run(const transforms::StageOrders& orders) {
    int32_t last_slot = 0;
    for (const auto& order : orders) last_slot = std::max(last_slot, order.back().slot);
    for (int32_t slot = 0; slot <= last_slot; ++slot) {
      for (size_t s = 0; s < orders.size(); ++s) {
        for (const transforms::ScheduleStep& step : orders[s]) {
          if (step.slot == slot) RunStep(s, step);
        }
      }
    }
    for (size_t s = 0; s < orders.size(); ++s) RunPart(s, step_.stages[s].update, 0);
    outcome_.lost = static_cast<int>(mail_.size());
    return std::move(outcome_);
  }

 private:
  // What a value is known by between the functions of one stage.
  struct Key {
    size_t stage;
    int32_t origin;
    int64_t microbatch;  // -1: of all of them
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Message {
    size_t from, to;
    std::string tag;
    int64_t microbatch;
    size_t place;
    friend auto operator<=>(const Message&, const Message&) = default;
  };

  void RunStep(size_t s, const transforms::ScheduleStep& step) {
    const bool forward = step.kind == transforms::StepKind::kForward;
    RunPart(s, forward ? step_.stages[s].forward : step_.stages[s].backward, step.microbatch);
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
                 int64_t microbatch, size_t place) {
    TensorType type = part.function.type(input.value);
    const Mesh& mesh = part.function.mesh();
    switch (input.role) {
      case ir::InputRole::kSaved:
        return kept_.at({s, OriginOf(part, input.value), microbatch})[place];
      case ir::InputRole::kAccumulator: {
        const auto found = kept_.find({s, SummandOf(part, input.value), -1});
        if (found != kept_.end()) return found->second[place];
        return Filled(ir::LocalType(type, mesh).dims, 0);
      }
      default:
        break;
    }
    const Tensor& whole = Find(inputs_, part.function.value_name(input.value));
    const ir::Dims local = ir::LocalType(type, mesh).dims;
    type.dims = whole.dims;
    const Tensor mine = Scatter(whole, type, mesh, ranks_[s][place]);
    if (mine.dims == local) return mine;
    return Slice(mine, 0, microbatch * local[0], (microbatch + 1) * local[0]);
  }

  void RunPart(size_t s, const transforms::StageFunction& part, int64_t microbatch) {
    const Function& f = part.function;
    std::vector<Values> values(ranks_[s].size(), Values(f.value_limit()));
    for (const ir::Input& input : f.inputs()) {
      for (size_t place = 0; place < values.size(); ++place) {
        values[place][input.value] = InputOf(s, part, input, microbatch, place);
      }
    }
    const Surroundings around = Around(s, f, microbatch);
    Lockstep(f, ranks_[s], values, around).Run();
    for (const ir::Output& output : f.outputs()) Keep(s, part, output, microbatch, values);
  }

  Surroundings Around(size_t s, const Function& f, int64_t microbatch) {
    return {.microbatch = microbatch,
            .send =
                [this, s, &f, microbatch](OpId op, size_t place, const Tensor& value) {
                  const auto to = static_cast<size_t>(f.attributes(op).Int("to", 0));
                  const std::string tag = f.attributes(op).String("tag", "");
                  const bool fresh = mail_.insert({{s, to, tag, microbatch, place}, value}).second;
                  ORRERY_CHECK(fresh) << tag << " is sent twice";
                },
            .receive =
                [this, s, &f, microbatch](OpId op, size_t place) {
                  const auto from = static_cast<size_t>(f.attributes(op).Int("from", 0));
                  const std::string tag = f.attributes(op).String("tag", "");
                  auto message = mail_.extract({from, s, tag, microbatch, place});
                  ORRERY_CHECK(!message.empty()) << tag << " is not there";
                  return std::move(message.mapped());
                }};
  }

  void Keep(size_t s, const transforms::StageFunction& part, const ir::Output& output,
            int64_t microbatch, std::vector<Values>& values) {
    std::vector<Tensor> parts = Parts(values, output.value);
    const Function& f = part.function;
    std::string name(f.value_name(output.value));
    if (output.role == ir::OutputRole::kSaved) {
      kept_[{s, OriginOf(part, output.value), microbatch}] = std::move(parts);
      return;
    }
    if (output.role == ir::OutputRole::kAccumulator) {
      const OpId sum = f.producer(output.value);
      name = std::string(f.value_name(f.operands(sum)[1]));
    }
    outcome_.outputs[name] =
        Gather(parts, f.type(output.value), f.mesh(), ranks_[s], outcome_.disagreement);
    if (output.role == ir::OutputRole::kAccumulator) {
      kept_[{s, SummandOf(part, output.of), -1}] = std::move(parts);
    }
  }

  const transforms::PipelinedStep& step_;
  const Named& inputs_;
  std::vector<std::vector<int32_t>> ranks_;  // by stage
  std::map<Key, std::vector<Tensor>> kept_;  // a tensor a rank of the stage
  std::map<Message, Tensor> mail_;
  PipelinedOutcome outcome_;
};

}  // namespace

Tensor Scatter(const Tensor& whole, const TensorType& type, const Mesh& mesh, int32_t rank) {
  ORRERY_CHECK(type.sharding.partial.empty()) << "nobody knows how to cut a sum";
  Tensor part = whole;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    const AxisList axes = type.sharding.at(d);
    const int64_t size = whole.dims[d] / mesh.size(axes), number = PartOf(mesh, rank, axes);
    part = Slice(part, d, number * size, (number + 1) * size);
  }
  return part;
}

Tensor Gather(std::span<const Tensor> parts, const TensorType& type, const Mesh& mesh,
              std::span<const int32_t> ranks, double& disagreement) {
  // Ranks that differ only along axes that nothing is split or partial over hold the same.
  AxisList used = type.sharding.partial;
  for (const AxisList& axes : type.sharding.split) {
    for (const AxisIndex axis : axes.axes()) used.push_back(axis);
  }
  std::map<int64_t, Tensor> replicas;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto [replica, fresh] =
        replicas.try_emplace(RestOf(mesh, ranks[i], used), Filled(type.dims, 0));
    AddPart(parts[i], type, mesh, ranks[i], replica->second);
  }
  const Tensor& first = replicas.begin()->second;
  for (const auto& [rest, other] : replicas) {
    disagreement = std::max(disagreement, Distance(first, other));
  }
  return first;
}

Outcome RunAll(const Function& function, const Named& inputs) {
  const Mesh& mesh = function.mesh();
  const std::vector<int32_t> ranks = mesh.empty() ? std::vector<int32_t>{0} : AllRanks(mesh);
  std::vector<Values> values(ranks.size(), Values(function.value_limit()));
  for (const ir::Input& input : function.inputs()) {
    const Tensor& whole = Find(inputs, function.value_name(input.value));
    for (size_t place = 0; place < ranks.size(); ++place) {
      values[place][input.value] = Scatter(whole, function.type(input.value), mesh, ranks[place]);
    }
  }
  const Surroundings nothing_around;
  Lockstep(function, ranks, values, nothing_around).Run();
  Outcome outcome;
  for (const ir::Output& output : function.outputs()) {
    outcome.outputs[std::string(function.value_name(output.value))] =
        Gather(Parts(values, output.value), function.type(output.value), mesh, ranks,
               outcome.disagreement);
  }
  return outcome;
}

PipelinedOutcome RunPipelined(const transforms::PipelinedStep& step,
                              const transforms::StageOrders& orders, const Named& inputs) {
  return Pipeline(step, inputs).Run(orders);
}

}  // namespace orrery::semantics
