#include "transforms/forward_layers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/hash/hash.h"
#include "ir/last_of_kind.h"
#include "transforms/redistribution/emit.h"
#include "transforms/stage_cuts.h"

namespace orrery::transforms {
namespace {

using ir::Function;
using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

constexpr int32_t kForever = std::numeric_limits<int32_t>::max();

// No elementwise op and no norm does so many flops for an element of its result.
constexpr double kFlopsOfWork = 64;

// The ops of a forward function that are made from data, without those that only spread or add up
// what others have made.
class Chain {
 public:
  explicit Chain(const Function& function)
      : function_(function),
        from_data_(function.value_limit(), 0),
        base_(function.value_limit()),
        made_(function.value_limit(), -1),
        last_(function.value_limit(), -1) {
    for (int32_t v = 0; v < function.value_limit(); ++v) base_[ValueId(v)] = ValueId(v);
    for (const ir::Input& input : function.inputs()) {
      from_data_[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
    }
    for (size_t place = 0; place < function.order().size(); ++place) {
      Visit(function.order()[place], static_cast<int32_t>(place));
    }
  }

  int32_t size() const { return static_cast<int32_t>(ops_.size()); }
  uint64_t signature(int32_t i) const { return signatures_[static_cast<size_t>(i)]; }
  bool works(int32_t i) const { return works_[static_cast<size_t>(i)] != 0; }
  /// Of the first op that has to do with the loss; or the end.
  int32_t loss() const { return loss_ < 0 ? size() : loss_; }
  bool has_loss() const { return loss_ >= 0; }

  /// How many values cross each place, of those that live no longer than `longest`.
  std::vector<int32_t> Crossings(int32_t longest) const {
    std::vector<int32_t> crossing(ops_.size() + 2, 0);
    for (int32_t v = 0; v < function_.value_limit(); ++v) {
      const ValueId value(v);
      const int32_t made = made_[value], last = last_[value];
      if (from_data_[value] == 0 || last <= made || last - made > longest) continue;
      ++crossing[static_cast<size_t>(made + 1)];
      --crossing[static_cast<size_t>(last + 1)];
    }
    for (size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
    return crossing;
  }

  /// The place in the order of the function before which op `i` begins: with it goes what only
  /// brings its operands together.
  int32_t PlaceOf(int32_t i) const {
    if (i >= size()) return static_cast<int32_t>(function_.order().size());
    int32_t place = places_[static_cast<size_t>(i)];
    while (place > 0 && Moves(function_.order()[static_cast<size_t>(place - 1)])) --place;
    return place;
  }

 private:
  // Whether the op is a step of a redistribution that adds nothing up.
  bool Moves(OpId op) const {
    using redistribution::StepKind;
    const auto step = redistribution::StepOf(function_.kind(op));
    return step.has_value() && *step != StepKind::kAllReduce && *step != StepKind::kReduceScatter;
  }

  // Whether the op goes with another one of the chain.
  bool IsAside(OpId op) const {
    const OpKind kind = function_.kind(op);
    return function_.info(op).op_class == OpClass::kCollective || Moves(op) ||
           kind == OpKind::kSend || kind == OpKind::kAccumulate || kind == OpKind::kCollect;
  }

  void Visit(OpId op, int32_t place) {
    const auto operands = function_.operands(op);
    bool from_data = function_.kind(op) == OpKind::kReceive;
    for (const ValueId operand : operands) from_data = from_data || from_data_[operand] != 0;
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      from_data_[function_.result(op, i)] = from_data ? 1 : 0;
    }
    if (!from_data) return;
    const bool aside = IsAside(op);
    if (function_.info(op).strided_view || (aside && function_.result_count(op) == 1)) {
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        base_[function_.result(op, i)] = base_[operands[0]];
      }
    }
    if (!aside) Append(op, place);
  }

  void Append(OpId op, int32_t place) {
    const int32_t at = size();
    for (const ValueId operand : function_.operands(op)) {
      const ValueId base = base_[operand];
      // Data comes in where it is first used.
      if (!function_.producer(base).valid() && last_[base] < 0) made_[base] = at - 1;
      last_[base] = at;
    }
    for (int32_t i = 0; i < function_.result_count(op); ++i) made_[function_.result(op, i)] = at;
    const ir::OpInfo& info = function_.info(op);
    if (loss_ < 0 && (info.is_loss || info.seeds_backward)) loss_ = at;
    ops_.push_back(op);
    places_.push_back(place);
    signatures_.push_back(SignatureOf(op));
    works_.push_back(Works(op) ? 1 : 0);
  }

  // What repeats from layer to layer, however it is spread: the op and the dims of its values.
  uint64_t SignatureOf(OpId op) {
    const uint64_t* const known = known_.Find(function_, op);
    if (known != nullptr) return *known;
    uint64_t hash = absl::HashOf(function_.kind(op), function_.attributes_id(op).index());
    const auto add = [&](ValueId value) {
      const ir::TensorType& type = function_.type(value);
      hash = absl::HashOf(hash, type.dtype, type.dims);
    };
    for (const ValueId operand : function_.operands(op)) add(operand);
    for (int32_t i = 0; i < function_.result_count(op); ++i) add(function_.result(op, i));
    return known_.Put(function_, op, hash);
  }

  bool Works(OpId op) const {
    if (function_.info(op).matrix_product) return true;
    if (function_.result_count(op) == 0) return false;
    const int64_t elements = ir::ElementCount(function_.type(function_.result(op)).dims);
    return FlopsOf(function_, op) > kFlopsOfWork * static_cast<double>(elements);
  }

  const Function& function_;
  IdTable<ValueId, char> from_data_;
  IdTable<ValueId, ValueId> base_;         // what a view, or a spread value, is of
  IdTable<ValueId, int32_t> made_, last_;  // by which op, and used by which last
  std::vector<OpId> ops_;
  std::vector<int32_t> places_;
  std::vector<uint64_t> signatures_;
  std::vector<char> works_;
  int32_t loss_ = -1;
  ir::LastOfKind<uint64_t> known_;
};

// A run of ops of the chain in which each is like the one `period` before it.
struct Run {
  int32_t begin = 0, end = 0, period = 0;
};

class LayerFinder {
 public:
  explicit LayerFinder(const Function& function) : chain_(function) {}

  std::vector<LayerRange> Find() {
    Divide(0, chain_.loss(), kForever);
    std::vector<LayerRange> layers;
    for (const auto& [begin, end] : found_) {
      layers.push_back({.begin = chain_.PlaceOf(begin), .end = chain_.PlaceOf(end)});
    }
    return layers;
  }

 private:
  // The layers of the ops from `begin` on; `longest`: as Crossings has it.
  void Divide(int32_t begin, int32_t end, int32_t longest) {
    const Run run = FindRun(begin, end);
    const std::vector<int32_t> crossing =
        chain_.Crossings(run.period > 0 ? std::min(longest, run.period) : longest);
    const auto narrow = [&](int32_t place) { return crossing[static_cast<size_t>(place)] <= 1; };
    // Of the places at which layers may begin the last one that leaves the most of them.
    int32_t first = -1, most = 1;
    for (int32_t place = run.begin; place < run.begin + run.period; ++place) {
      const int32_t layers = (run.end - place) / run.period;
      bool all = layers >= most;
      for (int32_t i = 0; all && i < layers; ++i) all = narrow(place + i * run.period);
      if (!all || (layers == 1 && most == 1)) continue;
      first = place;
      most = layers;
    }
    if (first < 0) return AddUnits(begin, end, narrow);
    Divide(begin, first, run.period);
    for (int32_t i = 0; i < most; ++i) {
      found_.emplace_back(first + i * run.period, first + (i + 1) * run.period);
    }
    const size_t count = found_.size();
    Divide(first + most * run.period, end, run.period);
    const bool head = chain_.has_loss() && end == chain_.loss() && found_.size() == count + 1;
    if (head) found_.pop_back();
  }

  // Of the shortest period that covers more than half of the ops.
  Run FindRun(int32_t begin, int32_t end) const {
    for (int32_t period = 1; 2 * period <= end - begin; ++period) {
      int32_t length = 0, longest = 0, last = begin;  // of equal pairs
      for (int32_t i = begin; i + period < end; ++i) {
        length = chain_.signature(i) == chain_.signature(i + period) ? length + 1 : 0;
        if (length <= longest) continue;
        longest = length;
        last = i;
      }
      if (longest < period || 2 * (longest + period) <= end - begin) continue;
      return {.begin = last + 1 - longest, .end = last + period + 1, .period = period};
    }
    return {};
  }

  // A layer from each narrow place with work between it and the next one.
  template <typename Narrow>
  void AddUnits(int32_t begin, int32_t end, const Narrow& narrow) {
    int32_t opened = -1, latest = begin, worked = begin - 1;
    for (int32_t i = begin; i < end; ++i) {
      if (narrow(i)) latest = i;
      if (!chain_.works(i)) continue;
      if (latest > worked) {
        if (opened >= 0) found_.emplace_back(opened, latest);
        opened = latest;
      }
      worked = i;
    }
    if (opened >= 0) found_.emplace_back(opened, end);
  }

  Chain chain_;
  std::vector<std::pair<int32_t, int32_t>> found_;  // in the chain
};

}  // namespace

std::vector<LayerRange> FindLayers(const Function& forward) { return LayerFinder(forward).Find(); }

}  // namespace orrery::transforms
