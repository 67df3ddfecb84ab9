#include "transforms/stages/forward_layers.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/hash/hash.h"
#include "ir/last_of_kind.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/redistribution/emit.h"
#include "transforms/stages/long_blocks.h"
#include "transforms/stages/stage_cuts.h"

namespace orrery::transforms {
namespace forward_layers_cc {
namespace {

using ir::Function;
using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

constexpr int32_t kForever = std::numeric_limits<int32_t>::max();

// No elementwise op and no norm does so many flops for an element of its result.
constexpr double kFlopsOfWork = 64;

bool IsOfLoss(const ir::OpInfo& info) { return info.is_loss || info.seeds_backward; }

bool HasLoss(const Function& function) {
  return std::ranges::any_of(function.order(),
                             [&](OpId op) { return IsOfLoss(function.info(op)); });
}

// The ops of all forward functions that are made from data, without those that only reshard, send
// or add up what others have made. A value is known by its origin, in whichever functions it is.
class Chain {
 public:
  explicit Chain(std::span<const StageFunction* const> forwards) {
    int32_t limit = 0;
    for (const StageFunction* part : forwards) {
      for (const ValueId origin : part->origins) limit = std::max(limit, origin.index() + 1);
    }
    from_data_ = IdTable<ValueId, char>(limit, 0);
    base_ = IdTable<ValueId, ValueId>(limit);
    made_ = last_ = IdTable<ValueId, int32_t>(limit, kNever);
    for (int32_t v = 0; v < limit; ++v) base_[ValueId(v)] = ValueId(v);
    for (const StageFunction* part : forwards) {
      begins_.push_back(size());
      Visit(*part);
    }
  }

  int32_t size() const { return static_cast<int32_t>(positions_.size()); }
  uint64_t signature(int32_t i) const { return signatures_[static_cast<size_t>(i)]; }
  bool works(int32_t i) const { return works_[static_cast<size_t>(i)] != 0; }
  /// Of the first op that has to do with the loss; or the end.
  int32_t loss() const { return loss_ == kNever ? size() : loss_; }
  bool has_loss() const { return loss_ != kNever; }

  /// How many values cross each position, of those that live no longer than `longest`.
  std::vector<int32_t> Crossings(int32_t longest) const {
    std::vector<int32_t> crossing(positions_.size() + 2, 0);
    for (int32_t v = 0; v < made_.size(); ++v) {
      const int32_t made = made_[ValueId(v)], last = last_[ValueId(v)];
      if (from_data_[ValueId(v)] == 0 || last <= made || last - made > longest) continue;
      ++crossing[static_cast<size_t>(made) + 1];
      --crossing[static_cast<size_t>(last) + 1];
    }
    for (size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
    return crossing;
  }

  /// The ops from `begin` up to `end` as positions in function `f`, of as many ops; empty where it
  /// has none of them.
  LayerRange In(size_t f, const Function& function, int32_t begin, int32_t end) const {
    const int32_t first = begins_[f], last = f + 1 < begins_.size() ? begins_[f + 1] : size();
    if (std::max(begin, first) >= std::min(end, last)) return {};
    const auto ops = static_cast<int32_t>(function.order().size());
    return {.begin = begin <= first ? 0 : Before(function, begin),
            .end = end >= last ? ops : Before(function, end)};
  }

 private:
  static constexpr int32_t kNever = -1;

  // The position before which op `i` begins: with it goes what only brings its operands together.
  int32_t Before(const Function& function, int32_t i) const {
    int32_t position = positions_[static_cast<size_t>(i)];
    while (position > 0 && Moves(function, function.order()[static_cast<size_t>(position - 1)]))
      --position;
    return position;
  }

  // Whether the op is a step of a redistribution that adds nothing up.
  static bool Moves(const Function& function, OpId op) {
    using redistribution::MoveKind;
    const auto step = redistribution::StepOf(function.kind(op));
    return step.has_value() && *step != MoveKind::kAllReduce && *step != MoveKind::kReduceScatter;
  }

  // Whether the op goes with another one of the chain.
  static bool IsAside(const Function& function, OpId op) {
    const OpClass op_class = function.info(op).op_class;
    return op_class == OpClass::kCollective || op_class == OpClass::kSend ||
           op_class == OpClass::kReceive || Moves(function, op) ||
           function.kind(op) == OpKind::kAccumulate || function.kind(op) == OpKind::kCollect;
  }

  void Visit(const StageFunction& part) {
    const Function& function = part.function;
    known_ = {};
    for (const ir::Input& input : function.inputs()) {
      const ValueId origin = OriginOf(part, input.value);
      if (origin.valid() && input.role == ir::InputRole::kData) from_data_[origin] = 1;
    }
    for (size_t position = 0; position < function.order().size(); ++position) {
      VisitOp(part, function.order()[position], static_cast<int32_t>(position));
    }
  }

  template <typename F>
  static void ForOrigins(const StageFunction& part, std::span<const ValueId> values, F f) {
    for (const ValueId value : values) {
      if (const ValueId origin = OriginOf(part, value); origin.valid()) f(origin);
    }
  }

  void VisitOp(const StageFunction& part, OpId op, int32_t position) {
    const Function& function = part.function;
    const auto operands = function.operands(op);
    bool from_data = function.info(op).op_class == OpClass::kReceive;
    ForOrigins(part, operands,
               [&](ValueId origin) { from_data = from_data || from_data_[origin] != 0; });
    if (!from_data) return;
    std::vector<ValueId> results;
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      results.push_back(function.result(op, i));
    }
    ForOrigins(part, results, [&](ValueId origin) { from_data_[origin] = 1; });
    const bool aside = IsAside(function, op);
    const bool shows = function.info(op).strided_view || aside;
    if (shows && !operands.empty() && OriginOf(part, operands[0]).valid()) {
      const ValueId base = base_[OriginOf(part, operands[0])];
      ForOrigins(part, results, [&](ValueId origin) { base_[origin] = base; });
    }
    if (aside) return;
    Live(part, operands, results);
    Append(function, op, position);
  }

  void Live(const StageFunction& part, std::span<const ValueId> operands,
            std::span<const ValueId> results) {
    ForOrigins(part, operands, [&](ValueId origin) {
      const ValueId base = base_[origin];
      // Data comes in where it is first used.
      if (made_[base] == kNever) made_[base] = size() - 1;
      last_[base] = size();
    });
    ForOrigins(part, results, [&](ValueId origin) { made_[origin] = size(); });
  }

  void Append(const Function& function, OpId op, int32_t position) {
    if (loss_ == kNever && IsOfLoss(function.info(op))) loss_ = size();
    signatures_.push_back(SignatureOf(function, op));
    works_.push_back(Works(function, op) ? 1 : 0);
    positions_.push_back(position);
  }

  // What repeats from layer to layer, however it is sharded: the op and the dims of its values.
  uint64_t SignatureOf(const Function& function, OpId op) {
    const uint64_t* const known = known_.Find(function, op);
    if (known != nullptr) return *known;
    uint64_t hash = absl::HashOf(function.kind(op), ir::ToString(function.attributes(op)));
    const auto add = [&](ValueId value) {
      const ir::TensorType& type = function.type(value);
      hash = absl::HashOf(hash, type.dtype, type.dims);
    };
    for (const ValueId operand : function.operands(op)) add(operand);
    for (int32_t i = 0; i < function.result_count(op); ++i) add(function.result(op, i));
    return known_.Put(function, op, hash);
  }

  static bool Works(const Function& function, OpId op) {
    if (function.info(op).matrix_product) return true;
    if (function.result_count(op) == 0) return false;
    const int64_t elements = ir::ElementCount(function.type(function.result(op)).dims);
    return FlopsOf(function, op) > kFlopsOfWork * static_cast<double>(elements);
  }

  IdTable<ValueId, char> from_data_;       // all by origin
  IdTable<ValueId, ValueId> base_;         // what a view, or a sharded value, is of
  IdTable<ValueId, int32_t> made_, last_;  // by which op, and used by which last
  std::vector<int32_t> begins_;            // the first op of each function
  std::vector<int32_t> positions_;         // of each op in its function
  std::vector<uint64_t> signatures_;
  std::vector<char> works_;
  int32_t loss_ = kNever;
  ir::LastOfKind<uint64_t> known_;  // of the function that is being visited
};

// A run of ops of the chain in which each is like the one `period` before it.
struct Run {
  int32_t begin = 0, end = 0, period = 0;
};

class LayerFinder {
 public:
  explicit LayerFinder(std::span<const StageFunction* const> forwards)
      : forwards_(forwards), chain_(forwards) {}

  std::vector<std::vector<LayerRange>> Find() {
    Divide(0, chain_.loss(), kForever);
    std::vector<std::vector<LayerRange>> layers(forwards_.size());
    for (size_t f = 0; f < forwards_.size(); ++f) {
      for (const auto& [begin, end] : found_) {
        const LayerRange range = chain_.In(f, forwards_[f]->function, begin, end);
        if (range.begin < range.end) layers[f].push_back(range);
      }
    }
    return layers;
  }

 private:
  // The layers of the ops from `begin` on; `longest`: as Crossings has it.
  void Divide(int32_t begin, int32_t end, int32_t longest) {
    const Run run = FindRun(begin, end);
    const std::vector<int32_t> crossing =
        chain_.Crossings(run.period > 0 ? std::min(longest, run.period) : longest);
    const auto narrow = [&](int32_t position) {
      return crossing[static_cast<size_t>(position)] <= 1;
    };
    // Of the positions at which layers may begin the last one that leaves the most of them.
    int32_t first = -1, most = 1;
    for (int32_t position = run.begin; position < run.begin + run.period; ++position) {
      const int32_t layers = (run.end - position) / run.period;
      bool all = layers >= most;
      for (int32_t i = 0; all && i < layers; ++i) all = narrow(position + i * run.period);
      if (!all || (layers == 1 && most == 1)) continue;
      first = position;
      most = layers;
    }
    if (first < 0) return AddUnits(begin, end, narrow);
    Divide(begin, first, run.period);
    if (IsOfFewKinds(first, first + run.period, narrow)) {
      AddUnits(first, first + most * run.period, narrow);
    } else {
      for (int32_t i = 0; i < most; ++i) {
        found_.emplace_back(first + i * run.period, first + (i + 1) * run.period);
      }
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

  // Whether the ops are many units, most of which are like others.
  template <typename Narrow>
  bool IsOfFewKinds(int32_t begin, int32_t end, const Narrow& narrow) {
    const size_t before = found_.size();
    AddUnits(begin, end, narrow);
    const size_t count = found_.size() - before;
    std::set<std::vector<uint64_t>> kinds;
    for (size_t i = before; i < found_.size(); ++i) {
      std::vector<uint64_t> kind;
      for (int32_t op = found_[i].first; op < found_[i].second; ++op) {
        kind.push_back(chain_.signature(op));
      }
      kinds.insert(std::move(kind));
    }
    found_.resize(before);
    return HasLayersInside(count, kinds.size());
  }

  // A layer from each cut point with work between it and the next one.
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

  const std::span<const StageFunction* const> forwards_;
  Chain chain_;
  std::vector<std::pair<int32_t, int32_t>> found_;  // in the chain
};

}  // namespace
}  // namespace forward_layers_cc

std::vector<std::vector<LayerRange>> FindLayers(std::span<const StageFunction* const> forwards) {
  std::vector<std::vector<LayerRange>> layers;
  size_t begin = 0;
  for (size_t end = 1; end <= forwards.size(); ++end) {
    if (end < forwards.size() && !forward_layers_cc::HasLoss(forwards[end - 1]->function)) continue;
    for (auto& of_stage :
         forward_layers_cc::LayerFinder(forwards.subspan(begin, end - begin)).Find()) {
      layers.push_back(std::move(of_stage));
    }
    begin = end;
  }
  return layers;
}

}  // namespace orrery::transforms
