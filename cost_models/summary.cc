#include "cost_models/summary.h"

#include <algorithm>
#include <deque>

#include "absl/container/inlined_vector.h"
#include "cost_models/cost_model.h"
#include "ir/last_of_kind.h"
#include "ir/op_info.h"

namespace orrery::cost_models {
namespace summary_cc {
namespace {

using ir::Function;
using ir::OpClass;
using ir::OpId;
using ir::ValueId;

// Types as one rank holds them, by type number.
class LocalTypes {
 public:
  explicit LocalTypes(const Function& function) : function_(function) {
    for (int32_t i = 0; i < function.types().size(); ++i) {
      types_.push_back(ir::LocalType(function.types()[ir::TypeId(i)], function.mesh()));
    }
  }
  const ir::TensorType& of(ValueId value) const {
    return types_[static_cast<size_t>(function_.type_id(value).index())];
  }

 private:
  const Function& function_;
  std::deque<ir::TensorType> types_;
};

Work WorkOf(const Function& function, const LocalTypes& types, OpId op) {
  absl::InlinedVector<const ir::TensorType*, 4> operands, results;
  for (const ValueId operand : function.operands(op)) operands.push_back(&types.of(operand));
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    results.push_back(&types.of(function.result(op, i)));
  }
  const OpView view = {function.kind(op), function.attributes(op), operands, results};
  const ir::OpInfo& info = function.info(op);
  return {.ops = 1,
          .kernels = info.op_class == OpClass::kView ? 0 : info.kernels,
          .flops = FlopsOf(view),
          .model_flops = ModelFlopsOf(view),
          .moved = BytesMovedBy(view)};
}

// The value that owns the memory of `value`.
ValueId Owner(const Function& function, ValueId value) {
  for (;;) {
    const OpId op = function.producer(value);
    if (!op.valid() || function.operands(op).empty()) return value;
    const ir::OpInfo& info = function.info(op);
    if (info.op_class != OpClass::kView && !info.strided_view) return value;
    value = function.operands(op)[0];
  }
}

// Whether the value is made by a forward op from something: a constant is there anyway.
bool IsActivation(const Function& function, const IdTable<OpId, Phase>& phases, ValueId value) {
  const OpId op = function.producer(value);
  return op.valid() && phases[op] == Phase::kForward && !function.operands(op).empty();
}

Bytes SavedActivations(const Function& function, const IdTable<OpId, Phase>& phases,
                       const LocalTypes& types) {
  IdTable<ValueId, char> counted(function.value_limit(), 0);
  Bytes saved;
  for (const OpId op : function.order()) {
    if (phases[op] != Phase::kBackward) continue;
    for (const ValueId operand : function.operands(op)) {
      const ValueId owner = Owner(function, operand);
      if (counted[owner] != 0 || !IsActivation(function, phases, owner)) continue;
      counted[owner] = 1;
      saved += ir::SizeOf(types.of(owner));
    }
  }
  return saved;
}

void CountInputs(const Function& function, const LocalTypes& types, Summary& summary) {
  for (const ir::Input& input : function.inputs()) {
    Extent* const extent = ir::IsWeight(input.role)               ? &summary.parameters
                           : input.role == ir::InputRole::kBuffer ? &summary.buffers
                           : input.role == ir::InputRole::kState  ? &summary.state
                                                                  : nullptr;
    if (extent == nullptr) continue;
    extent->elements += ir::ElementCount(types.of(input.value).dims);
    extent->bytes += ir::SizeOf(types.of(input.value));
  }
}

}  // namespace
}  // namespace summary_cc

IdTable<ir::OpId, Phase> PhasesOf(const ir::Function& function) {
  IdTable<ir::OpId, Phase> phases(function.op_limit(), Phase::kForward);
  for (const ir::OpId op : function.order()) {
    bool backward = function.info(op).seeds_backward;
    for (const ir::ValueId operand : function.operands(op)) {
      const ir::OpId producer = function.producer(operand);
      backward = backward || (producer.valid() && phases[producer] == Phase::kBackward);
    }
    if (backward) phases[op] = Phase::kBackward;
    if (function.info(op).op_class == ir::OpClass::kOptimizer) phases[op] = Phase::kOptimizer;
  }
  return phases;
}

Work& Work::operator+=(const Work& other) {
  ops += other.ops;
  kernels += other.kernels;
  flops += other.flops;
  model_flops += other.model_flops;
  moved += other.moved;
  return *this;
}

double Work::intensity() const {
  return moved == Bytes(0) ? 0 : flops.count() / static_cast<double>(moved.count());
}

Work Summary::total() const {
  Work total;
  for (const Work& work : phases) total += work;
  return total;
}

Summary Summarize(const ir::Function& function) {
  const summary_cc::LocalTypes types(function);
  const IdTable<ir::OpId, Phase> phases = PhasesOf(function);
  Summary summary;
  summary_cc::CountInputs(function, types, summary);
  summary.saved_activations = summary_cc::SavedActivations(function, phases, types);
  std::vector<Work> kinds(static_cast<size_t>(ir::OpKindCount()));
  ir::LastOfKind<Work> known;
  for (const ir::OpId op : function.order()) {
    const Work* work = known.Find(function, op);
    if (work == nullptr) work = &known.Put(function, op, summary_cc::WorkOf(function, types, op));
    summary.phases[static_cast<size_t>(phases[op])] += *work;
    kinds[static_cast<size_t>(function.kind(op))] += *work;
  }
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].ops > 0) summary.kinds.push_back({static_cast<ir::OpKind>(i), kinds[i]});
  }
  std::stable_sort(
      summary.kinds.begin(), summary.kinds.end(),
      [](const KindWork& a, const KindWork& b) { return a.work.flops > b.work.flops; });
  return summary;
}

}  // namespace orrery::cost_models
