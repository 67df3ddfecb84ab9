#include "transforms/sharding/sharding_memory.h"

#include <algorithm>

#include "ir/op_info.h"

namespace orrery::transforms {

using ir::Function;
using ir::OpId;
using ir::ValueId;

ShardingMemory::ShardingMemory(const AxisProblem& problem, const IdTable<OpId, StepPhase>& phase,
                               const AutoShardOptions& options, const ShardingChoices& choices)
    : problem_(problem),
      choices_(choices),
      factors_(FactorsOf(options.held, options.in_flight)),
      reads_(problem.function.op_limit(), 0),
      readers_(problem.function.value_limit(), 0),
      read_forward_(problem.function.value_limit(), 0),
      source_(problem.function.value_limit(), Source::kNone),
      summed_(problem.function.value_limit(), 0),
      held_(problem.function.value_limit(), KeptAs::kNothing),
      op_(choices.nodes().all().size()),
      bytes_(static_cast<size_t>(problem.function.types().size())) {
  FindReaders(phase);
  FindSources(phase);
  FindSummed(phase);
  FindHeld();
}

bool ShardingMemory::IsView(OpId op) const {
  const ir::OpInfo& info = problem_.function.info(op);
  return info.strided_view || info.op_class == ir::OpClass::kView;
}

// What a backward op reads is kept; of a view, what it looks at.
void ShardingMemory::FindReaders(const IdTable<OpId, StepPhase>& phase) {
  const Function& function = problem_.function;
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    const bool view = IsView(*op);
    bool reads = phase[*op] == StepPhase::kBackward;
    for (int32_t i = 0; view && !reads && i < function.result_count(*op); ++i) {
      reads = readers_[function.result(*op, i)] != 0;
    }
    reads_[*op] = reads ? 1 : 0;
    const int32_t node = choices_.nodes().NodeOf(*op);
    if (!choices_.nodes()[node].is_group) op_[static_cast<size_t>(node)] = *op;
    for (const ValueId operand : function.operands(*op)) {
      if (reads) ++readers_[operand];
      if (phase[*op] == StepPhase::kForward) read_forward_[operand] = 1;
    }
  }
}

// Buffers, and what is made from them alone, have no source: to keep a table in parts saves little,
// and where layers read it whole it has to be put together, once for all stages.
void ShardingMemory::FindSources(const IdTable<OpId, StepPhase>& phase) {
  const Function& function = problem_.function;
  for (const ir::Input& input : function.inputs()) {
    if (input.role == ir::InputRole::kData) source_[input.value] = Source::kData;
    if (ir::IsWeight(input.role)) source_[input.value] = Source::kWeights;
  }
  for (const OpId op : function.order()) {
    if (phase[op] != StepPhase::kForward) continue;
    Source source = Source::kNone;
    for (const ValueId operand : function.operands(op)) {
      source = std::max(source, source_[operand]);
    }
    for (int32_t i = 0; i < function.result_count(op); ++i)
      source_[function.result(op, i)] = source;
  }
}

bool ShardingMemory::IsMade(ValueId value) const {
  const OpId producer = problem_.function.producer(value);
  return producer.valid() && reads_[producer] == 0 && source_[value] != Source::kNone;
}

// What an update reads is added up before, in the layout in which backward leaves it.
void ShardingMemory::FindSummed(const IdTable<OpId, StepPhase>& phase) {
  const Function& function = problem_.function;
  for (const OpId op : function.order()) {
    if (phase[op] != StepPhase::kUpdate) continue;
    for (const ValueId operand : function.operands(op)) {
      const OpId producer = function.producer(operand);
      if (producer.valid() && phase[producer] == StepPhase::kBackward) summed_[operand] = 1;
    }
  }
}

void ShardingMemory::FindHeld() {
  for (const OpId op : problem_.function.order()) {
    for (int32_t i = 0; i < problem_.function.result_count(op); ++i) {
      const ValueId result = problem_.function.result(op, i);
      if (IsSummed(result)) held_[result] = KeptAs::kGradient;
    }
  }
  for (const ir::Input& input : problem_.function.inputs()) {
    const bool state = input.role == ir::InputRole::kState;
    const bool parameter = ir::IsWeight(input.role);
    const bool data = input.role == ir::InputRole::kData;
    held_[input.value] = state       ? KeptAs::kState
                         : parameter ? KeptAs::kParameter
                         : data      ? KeptAs::kData
                                     : KeptAs::kNothing;
  }
}

double ShardingMemory::BytesIn(ValueId value, AxisLayout layout) {
  const int64_t type = problem_.function.type_id(value).index();
  std::vector<double>& row = bytes_[static_cast<size_t>(type)];
  const ir::TensorType& whole = problem_.function.type(value);
  if (row.empty()) row.assign(whole.dims.size() + 2, -1);
  double& bytes = row[static_cast<size_t>(layout - kPartialLayout)];
  if (bytes < 0) {
    const ir::TensorType part = InLayout(whole, layout, problem_.axis);
    bytes = static_cast<double>(SizeOf(ir::LocalType(part, problem_.mesh)).count());
  }
  return bytes;
}

template <typename Add>
void ShardingMemory::ForEach(int32_t node, const ShardingChoice& choice, KeptGathered gathered,
                             const Add& add) {
  for (const ValueId value : choices_.nodes()[node].values) {
    if (held_[value] != KeptAs::kNothing) {
      add(held_[value], BytesIn(value, choices_.GivenBy(value, choice)));
    }
    if (readers_[value] > 0) add(KeptAs::kActivation, OfMade(value, choice, gathered));
  }
  const OpId reader = op_[static_cast<size_t>(node)];
  if (!reader.valid() || reads_[reader] == 0) return;
  const auto operands = problem_.function.operands(reader);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!GoesToOneReader(operands[i], gathered)) continue;
    const ShardingUse use{.value = operands[i], .node = node, .operand = static_cast<int>(i)};
    add(KeptAs::kActivation, BytesIn(operands[i], choices_.WantedBy(use, choice)));
  }
}

double ShardingMemory::Of(int32_t node, const ShardingChoice& choice, KeptGathered gathered) {
  double memory = 0;
  ForEach(node, choice, gathered,
          [&](KeptAs as, double bytes) { memory += factors_[static_cast<size_t>(as)] * bytes; });
  return memory;
}

// Nobody keeps a sum that is still to be reduced.
double ShardingMemory::OfMade(ValueId value, const ShardingChoice& choice, KeptGathered gathered) {
  if (source_[value] == Source::kNone || GoesToOneReader(value, gathered)) return 0;
  const AxisLayout given = choices_.GivenBy(value, choice);
  const AxisLayout extra = choices_.ExtraBy(value, choice);
  const bool partial = given == kPartialLayout;
  double bytes = IsMade(value) && !partial ? BytesIn(value, given) : 0;
  const bool again = !partial && GathersAgain(value, gathered);
  if (extra != kNoLayout && !again) bytes += BytesIn(value, extra);
  return bytes;
}

bool ShardingMemory::MayCopy(const ShardingUse& use, KeptGathered gathered) const {
  const OpId op = op_[static_cast<size_t>(use.node)];
  return source_[use.value] != Source::kNone && use.operand >= 0 && op.valid() && reads_[op] != 0 &&
         !GoesToOneReader(use.value, gathered);
}

double ShardingMemory::OfCopy(const ShardingUse& use, const ShardingChoice& made,
                              const ShardingChoice& taken, KeptGathered gathered) {
  return factors_[static_cast<size_t>(KeptAs::kActivation)] *
         BytesOfCopy(use, made, taken, gathered);
}

double ShardingMemory::BytesOfCopy(const ShardingUse& use, const ShardingChoice& made,
                                   const ShardingChoice& taken, KeptGathered gathered) {
  const AxisLayout wanted = choices_.WantedBy(use, taken);
  const AxisLayout given = choices_.GivenBy(use.value, made);
  const AxisLayout extra = choices_.ExtraBy(use.value, made);
  if (wanted == given || wanted == extra) return 0;
  // Backward makes for itself what only it wants, but sums are made in forward.
  const bool partial = given == kPartialLayout && extra == kNoLayout;
  if (read_forward_[use.value] == 0 && !partial) return 0;
  const bool again = !partial && wanted == kWholeLayout && GathersAgain(use.value, gathered);
  return again ? 0 : BytesIn(use.value, wanted);
}

KeptBytes ShardingMemory::OfAll(const std::vector<int32_t>& assignment, KeptGathered gathered) {
  const auto chosen = [&](int32_t node) -> const ShardingChoice& {
    return choices_.Of(node)[static_cast<size_t>(assignment[static_cast<size_t>(node)])];
  };
  KeptBytes kept;
  const auto add = [&](KeptAs as, double bytes) {
    if (bytes != 0) kept.Add(as, bytes);
  };
  for (int32_t node = 0; node < static_cast<int32_t>(assignment.size()); ++node) {
    ForEach(node, chosen(node), gathered, add);
    kept.EndGroup();
  }
  for (const ShardingUse& use : choices_.nodes().uses()) {
    const int32_t from = choices_.nodes().MakerOf(use.value);
    if (from == use.node || !MayCopy(use, gathered)) continue;
    add(KeptAs::kActivation, BytesOfCopy(use, chosen(from), chosen(use.node), gathered));
    kept.EndGroup();
  }
  return kept;
}

}  // namespace orrery::transforms
