#include "transforms/stages/stage_units.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/stages/long_blocks.h"

namespace orrery::transforms {
namespace stage_units_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

// Parts of the longest period that is looked for.
constexpr size_t kLongestPeriod = 64;
// Blocks that make a repetition one that tells layers from the rest.
constexpr size_t kManyBlocks = 3;

// Whether the op multiplies what comes from data with what comes from parameters alone.
bool IsProduct(const Function& function, OpId op, const IdTable<ValueId, char>& from_data) {
  const auto operands = function.operands(op);
  if (!function.info(op).matrix_product || operands.size() < 2) return false;
  return from_data[operands[0]] != 0 && from_data[operands[1]] == 0;
}

// How many values cross each position of the chain: are made before it and used at it or after it.
// However many ranks hold it in whatever ways, a value is one: layers are those of the model.
std::vector<int32_t> CrossingValues(const Function& function, const ForwardChain& chain) {
  const auto positions = static_cast<int32_t>(chain.ops.size());
  IdTable<ValueId, int32_t> made(function.value_limit(), -1), used(function.value_limit(), -1);
  IdTable<ValueId, ValueId> whole(function.value_limit(), ValueId());
  for (int32_t at = 0; at < positions; ++at) {
    const OpId op = chain.ops[static_cast<size_t>(at)];
    for (const ValueId operand : function.operands(op)) {
      const ValueId of = whole[operand];
      used[of.valid() ? of : operand] = at;
    }
    if (Reshards(function, op)) {
      const ValueId from = function.operands(op)[0];
      whole[function.result(op)] = whole[from].valid() ? whole[from] : from;
      continue;
    }
    for (int32_t i = 0; i < function.result_count(op); ++i) made[function.result(op, i)] = at;
  }
  std::vector<int32_t> change(chain.ops.size() + 1);
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    const ValueId value(v);
    // What crosses most positions, a mask say, makes none of them wider than others.
    const int32_t span = used[value] - made[value];
    if (made[value] < 0 || span <= 0 || 2 * span > positions) continue;
    ++change[static_cast<size_t>(made[value]) + 1];
    --change[static_cast<size_t>(used[value]) + 1];
  }
  for (size_t at = 1; at < change.size(); ++at) change[at] += change[at - 1];
  change.pop_back();
  return change;
}

// Positions of the chain, those up to its first op apart, that fewer values cross than positions on
// both sides. Of a run of such positions the first, behind where branches meet, and all before
// products. What deals out data before that op is none: ranks may have it by themselves.
std::vector<size_t> CutPoints(const Function& function, const ForwardChain& chain) {
  const std::vector<int32_t> crossing = CrossingValues(function, chain);
  std::vector<char> product(crossing.size() + 1);
  for (const size_t position : chain.products) product[position] = 1;
  const auto op = std::ranges::find_if_not(
      chain.ops, [&](OpId of_chain) { return Reshards(function, of_chain); });
  const auto start = static_cast<size_t>(op - chain.ops.begin()) + 1;
  std::vector<size_t> narrow;
  for (size_t first = start, end = start; first < crossing.size(); first = end) {
    while (end < crossing.size() && crossing[end] == crossing[first]) ++end;
    const bool left = first == start || crossing[first - 1] > crossing[first];
    const bool right = end == crossing.size() || crossing[end] > crossing[first];
    for (size_t at = first; left && right && at < end; ++at) {
      if (product[at] != 0 || (at == first && first > start)) narrow.push_back(at);
    }
  }
  return narrow;
}

// Where units with products begin: of the positions between two products the first.
std::vector<size_t> BetweenProducts(const ForwardChain& chain, std::span<const size_t> positions) {
  std::vector<size_t> begins = {0};
  for (size_t i = 0; i + 1 < chain.products.size(); ++i) {
    const auto position = std::upper_bound(positions.begin(), positions.end(), chain.products[i]);
    if (position != positions.end() && *position <= chain.products[i + 1])
      begins.push_back(*position);
  }
  return begins;
}

// Which of the parts have products of the same shapes: a number for each part.
std::vector<int32_t> KindsOf(const Function& function, const ForwardChain& chain,
                             std::span<const size_t> begins) {
  std::map<std::vector<int64_t>, int32_t> known;
  std::vector<int32_t> kinds;
  for (size_t part = 0; part < begins.size(); ++part) {
    const size_t end = part + 1 < begins.size() ? begins[part + 1] : chain.ops.size();
    std::vector<int64_t> shape;
    auto product = std::lower_bound(chain.products.begin(), chain.products.end(), begins[part]);
    for (; product != chain.products.end() && *product < end; ++product) {
      const OpId op = chain.ops[*product];
      shape.push_back(static_cast<int64_t>(function.kind(op)));
      for (const ValueId operand : function.operands(op)) {
        const ir::Dims& dims = function.type(operand).dims;
        shape.insert(shape.end(), dims.begin(), dims.end());
        shape.push_back(-1);
      }
    }
    kinds.push_back(known.try_emplace(std::move(shape), known.size()).first->second);
  }
  return kinds;
}

struct Repetition {
  size_t begin = 0;
  size_t period = 0;  // parts
  size_t blocks = 0;

  size_t parts() const { return period * blocks; }
};

// Finds what repeats in a row of numbers, the longest first.
class Repetitions {
 public:
  explicit Repetitions(const std::vector<int32_t>& kinds) : kinds_(kinds) {
    Find(0, kinds.size());
    std::ranges::sort(found_, {}, &Repetition::begin);
  }

  const std::vector<Repetition>& found() const { return found_; }

 private:
  void Find(size_t begin, size_t end) {
    Repetition best;
    for (size_t period = 1; period <= std::min(kLongestPeriod, (end - begin) / 2); ++period) {
      size_t alike = 0;
      for (size_t at = begin; at + period <= end; ++at) {
        const bool again = at + period < end && kinds_[at] == kinds_[at + period];
        if (again) {
          ++alike;
          continue;
        }
        const Repetition run{.begin = at - alike, .period = period, .blocks = alike / period + 1};
        if (run.blocks > 1 && run.parts() > best.parts()) best = run;
        alike = 0;
      }
    }
    if (best.blocks == 0) return;
    found_.push_back(Divided(best, begin, end));
    const Repetition divided = found_.back();
    Find(begin, divided.begin);
    Find(divided.begin + divided.parts(), end);
  }

  // Blocks that differ in some parts only, as where every other one has experts, are each a layer.
  // So are the parts of long ones that are of few kinds, as of Mamba-2, attention and
  // feed-forwards, and those of these kinds beside them, from `begin` up to `end`.
  Repetition Divided(Repetition run, size_t begin, size_t end) const {
    for (size_t period = 1; period < run.period; ++period) {
      if (run.period % period != 0) continue;
      bool alike = true;
      for (size_t at = 0; at < run.period; at += period) {
        alike = alike && kinds_[run.begin + at] == kinds_[run.begin];
      }
      if (!alike) continue;
      run.blocks *= run.period / period;
      run.period = period;
      return run;
    }
    const auto first = kinds_.begin() + static_cast<std::ptrdiff_t>(run.begin);
    const std::set<int32_t> kinds(first, first + static_cast<std::ptrdiff_t>(run.period));
    if (!HasLayersInside(run.period, kinds.size())) return run;
    size_t after = run.begin + run.parts();
    while (run.begin > begin && kinds.contains(kinds_[run.begin - 1])) --run.begin;
    while (after < end && kinds.contains(kinds_[after])) ++after;
    return {.begin = run.begin, .period = 1, .blocks = after - run.begin};
  }

  const std::vector<int32_t>& kinds_;
  std::vector<Repetition> found_;
};

std::vector<StageUnit> Layers(const Function& function, const ForwardChain& chain,
                              std::span<const size_t> parts) {
  const std::vector<int32_t> kinds = KindsOf(function, chain, parts);
  const Repetitions repetitions(kinds);
  std::vector<StageUnit> units;
  size_t in_many = 0, part = 0;
  for (const Repetition& run : repetitions.found()) {
    for (; part < run.begin; ++part) units.push_back({.begin = parts[part]});
    for (; part < run.begin + run.parts(); part += run.period) {
      units.push_back({.begin = parts[part]});
    }
    if (run.blocks >= kManyBlocks) in_many += run.parts();
  }
  for (; part < parts.size(); ++part) units.push_back({.begin = parts[part]});
  if (2 * in_many <= parts.size()) return units;
  const Repetition& last = repetitions.found().back();
  const size_t first_position = parts[repetitions.found().front().begin];
  const size_t last_position = parts[last.begin + last.parts() - 1];
  for (StageUnit& unit : units) {
    unit.layer = unit.begin >= first_position && unit.begin <= last_position;
  }
  return units;
}

IdTable<ir::OpId, char> FindReadForward(const ir::Function& function,
                                        const IdTable<ir::OpId, StepPhase>& phase) {
  IdTable<ir::OpId, char> found(function.op_limit(), 0);
  IdTable<ir::ValueId, char> read(function.value_limit(), 0);
  for (const ir::Output& output : function.outputs()) read[output.value] = 1;
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    if (phase[*op] != StepPhase::kForward) continue;
    bool is_read = false;
    for (int32_t i = 0; i < function.result_count(*op); ++i) {
      is_read = is_read || read[function.result(*op, i)] != 0;
    }
    found[*op] = is_read ? 1 : 0;
    const bool reads = is_read || function.info(*op).seeds_backward;
    for (const ir::ValueId operand : function.operands(*op)) read[operand] |= reads ? 1 : 0;
  }
  return found;
}

}  // namespace
}  // namespace stage_units_cc

bool Reshards(const ir::Function& function, ir::OpId op) {
  return function.operands(op).size() == 1 && function.result_count(op) == 1 &&
         (function.info(op).op_class == ir::OpClass::kCollective ||
          function.kind(op) == ir::OpKind::kAllSlice);
}

ForwardChain FindChain(const ir::Function& function, const IdTable<ir::OpId, StepPhase>& phase) {
  ForwardChain chain{.ops = {},
                     .from_data = IdTable<ir::ValueId, char>(function.value_limit(), 0),
                     .products = {},
                     .read_forward = stage_units_cc::FindReadForward(function, phase)};
  for (const ir::Input& input : function.inputs()) {
    chain.from_data[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
  }
  for (const ir::OpId op : function.order()) {
    bool from_data = false;
    for (const ir::ValueId operand : function.operands(op)) {
      from_data = from_data || chain.from_data[operand] != 0;
    }
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      chain.from_data[function.result(op, i)] = from_data ? 1 : 0;
    }
    if (!from_data || phase[op] != StepPhase::kForward) continue;
    if (stage_units_cc::IsProduct(function, op, chain.from_data))
      chain.products.push_back(chain.ops.size());
    chain.ops.push_back(op);
  }
  return chain;
}

std::vector<StageUnit> FindUnits(const ir::Function& function, const ForwardChain& chain,
                                 UnitSize size) {
  const std::vector<size_t> positions =
      size == UnitSize::kProducts ? chain.products : stage_units_cc::CutPoints(function, chain);
  const std::vector<size_t> begins = stage_units_cc::BetweenProducts(chain, positions);
  if (size == UnitSize::kLayers) return stage_units_cc::Layers(function, chain, begins);
  std::vector<StageUnit> units;
  for (const size_t begin : begins) units.push_back({.begin = begin});
  return units;
}

std::vector<int64_t> CountLayers(const ir::Function& function, const ForwardChain& chain,
                                 const std::vector<size_t>& cuts) {
  std::vector<int64_t> layers(cuts.size() + 1, 0);
  for (const StageUnit& unit : FindUnits(function, chain, UnitSize::kLayers)) {
    const auto stage = std::ranges::upper_bound(cuts, unit.begin) - cuts.begin();
    if (unit.layer) ++layers[static_cast<size_t>(stage)];
  }
  return layers;
}

}  // namespace orrery::transforms
