#include "lowering/blocks/residents.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/op_kind.h"
#include "transforms/memory/offload.h"
#include "transforms/training/fp8_mixed.h"

namespace orrery::lowering {
namespace residents_cc {
namespace {

using ir::InputRole;
using simulator::MemoryKind;

using transforms::HostWork;

using Values = absl::flat_hash_set<ir::ValueId>;

// What optimizers on the host work on: their states are there.
Values UpdatedOnHost(const ir::Function& function) {
  Values values;
  for (const ir::OpId op : function.order()) {
    if (transforms::HostWorkOf(function, op) != HostWork::kUpdate) continue;
    values.insert(function.operands(op).begin(), function.operands(op).end());
  }
  return values;
}

// The host has a copy of what it updates, unless that is a state.
void AddHostCopies(const ResidentsOf& of, const ir::Function& update, simulator::Program& program) {
  for (const ir::OpId op : update.order()) {
    if (transforms::HostWorkOf(update, op) != HostWork::kUpdate) continue;
    const ir::TensorType& parameter = update.type(update.operands(op)[0]);
    if (ir::SizeOf(parameter.dtype) < 4) continue;  // there is a master copy
    program.AddResident(of.rank, MemoryKind::kHost,
                        ir::SizeOf(ir::LocalType(parameter, update.mesh())));
  }
}

// The narrow copies of weights, by origins.
Values FindCopies(const transforms::StageFunction& update) {
  Values copies;
  for (const transforms::WeightCopy& weight : transforms::FindWeightCopies(update.function)) {
    copies.insert(OriginOf(update, weight.copy));
  }
  return copies;
}

// What the inputs of a function are, beside their roles: values of it.
struct Kinds {
  Values on_host;
  Values copies;  // of weights: they have no gradients
};

// The functions are those of one microbatch; the whole share of the batch is there.
Bytes OfAllMicrobatches(const ResidentsOf& of, const ir::Function& function,
                        const ir::Input& input) {
  const transforms::PipelinedStep& step = of.step;
  ir::TensorType type = function.type(input.value);
  const bool batched = !type.dims.empty() && type.dims[0] == of.microbatch_size;
  if (step.slices.empty()) {
    return ir::SizeOf(ir::LocalType(type, function.mesh())) * (batched ? of.microbatches : 1);
  }
  const bool rows = batched && type.dims.size() > 1 && type.dims[1] == step.slice.rows;
  Bytes bytes;
  for (const transforms::SequenceSlice& slice : step.slices) {
    if (rows) type.dims[1] = slice.range.rows;
    bytes += ir::SizeOf(ir::LocalType(type, function.mesh()));
    if (!rows) break;
  }
  return bytes;
}

void AddInput(const ResidentsOf& of, const ir::Function& function, const ir::Input& input,
              const Kinds& kinds, simulator::Program& program) {
  const Bytes bytes = ir::SizeOf(ir::LocalType(function.type(input.value), function.mesh()));
  if (input.role == InputRole::kParameter) {
    program.AddResident(of.rank, MemoryKind::kParameters, bytes * of.weight_versions);
    if (kinds.copies.contains(input.value)) return;
    const auto elements =
        static_cast<double>(bytes.count()) / ir::BytesOf(function.type(input.value).dtype);
    program.AddResident(of.rank, MemoryKind::kGradients,
                        Bytes(static_cast<int64_t>(of.stack_memory.gradient * elements)));
  } else if (input.role == InputRole::kFrozen) {
    program.AddResident(of.rank, MemoryKind::kParameters, bytes);
  } else if (input.role == InputRole::kBuffer) {
    program.AddResident(of.rank, MemoryKind::kOther, bytes);
  } else if (input.role == InputRole::kState) {
    const bool host = kinds.on_host.contains(input.value);
    program.AddResident(of.rank, host ? MemoryKind::kHost : MemoryKind::kOptimizer, bytes);
  } else {
    program.AddResident(of.rank, MemoryKind::kOther, OfAllMicrobatches(of, function, input));
  }
}

// What is sent, whole where a part of it is (ScatterSends): that is what a pipeline keeps.
ir::ValueId SentBy(const ir::Function& forward, ir::OpId send) {
  const ir::ValueId value = forward.operands(send)[0];
  const ir::OpId maker = forward.producer(value);
  const bool part = maker.valid() && forward.kind(maker) == ir::OpKind::kAllSlice;
  return part ? forward.operands(maker)[0] : value;
}

// Of one microbatch, the elements that forward sends to another stage.
int64_t ElementsSent(const ir::Function& forward) {
  int64_t elements = 0;
  for (const ir::OpId op : forward.order()) {
    if (forward.kind(op) != ir::OpKind::kSend) continue;
    const ir::TensorType& type = forward.type(SentBy(forward, op));
    elements += ir::ElementCount(ir::LocalType(type, forward.mesh()).dims);
  }
  return elements;
}

// Whether the value that `value` of a part stands for has not come up before.
bool IsNew(const transforms::StageFunction& part, ir::ValueId value, std::vector<char>& seen) {
  const auto origin = static_cast<size_t>(OriginOf(part, value).index());
  if (seen.size() <= origin) seen.resize(origin + 1, 0);
  return std::exchange(seen[origin], 1) == 0;
}

void AddConstants(const ResidentsOf& of, const transforms::StageFunction& part,
                  std::vector<char>& seen, simulator::Program& program) {
  const ir::Function& function = part.function;
  for (const ir::OpId op : function.order()) {
    if (function.kind(op) != ir::OpKind::kConstant) continue;
    if (!IsNew(part, function.result(op), seen)) continue;
    const ir::TensorType& type = function.type(function.result(op));
    program.AddResident(of.rank, MemoryKind::kOther,
                        ir::SizeOf(ir::LocalType(type, function.mesh())));
  }
}

}  // namespace
}  // namespace residents_cc

void AddResidents(const ResidentsOf& of, std::vector<char>& seen, simulator::Program& program) {
  const transforms::PipelineStage& parts = of.step.stages[static_cast<size_t>(of.stage)];
  const residents_cc::Values copies = residents_cc::FindCopies(parts.update);
  for (const transforms::StageFunction* part : parts.parts()) {
    residents_cc::Kinds kinds{.on_host = residents_cc::UpdatedOnHost(part->function), .copies = {}};
    for (const ir::Input& input : part->function.inputs()) {
      const ir::ValueId origin = OriginOf(*part, input.value);
      if (copies.contains(origin)) kinds.copies.insert(input.value);
      if (input.role == ir::InputRole::kSaved || input.role == ir::InputRole::kAccumulator)
        continue;
      if (residents_cc::IsNew(*part, input.value, seen))
        residents_cc::AddInput(of, part->function, input, kinds, program);
    }
    residents_cc::AddConstants(of, *part, seen, program);
  }
  residents_cc::AddHostCopies(of, parts.update.function, program);
  if (of.stack_memory.sent > 0) {
    const int64_t elements =
        of.microbatches_under_way * residents_cc::ElementsSent(parts.forward.function);
    program.AddResident(
        of.rank, simulator::MemoryKind::kBuffers,
        Bytes(static_cast<int64_t>(of.stack_memory.sent * static_cast<double>(elements))));
  }
}

void AddOverhead(const cluster::MemoryOverhead& overhead, const ir::Mesh& mesh,
                 simulator::RankClassId rank, simulator::Program& program) {
  int64_t communicators = 0;
  for (const ir::Axis& axis : mesh.axes()) communicators += axis.size > 1 ? 1 : 0;
  program.AddResident(rank, simulator::MemoryKind::kBuffers, overhead.communicator * communicators);
  program.AddResident(rank, simulator::MemoryKind::kOther, overhead.framework + overhead.workspace);
}

}  // namespace orrery::lowering
