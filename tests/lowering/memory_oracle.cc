#include "tests/lowering/memory_oracle.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::lowering {
namespace memory_oracle_cc {
namespace {

using ir::OpClass;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;
using transforms::StageFunction;
using transforms::StepKind;

constexpr int kNone = -1;  // resident, or nothing at all
constexpr int64_t kForever = int64_t{1} << 60;

struct Storage {
  int position;
  int64_t bytes;
  int64_t made = 0;  // event of its rank
  int64_t last = 0;  // that uses it
  int64_t read = 0;  // the same, sends left out
};

// A value that a stage gives to another one of its rank, as `copy`.
struct HandOver {
  int given, copy;
  int64_t end;  // of the function that gives it away
};

struct Delivery {
  int from, to;  // stages
  int32_t origin;
  int64_t microbatch;
  int64_t bytes;
  int64_t end = 0;  // of the function that sends it
};

// Plays a step op by op. So many fields: what it knows is in tables, and shares nothing with
// lowering.
class Unrolled {
 public:
  Unrolled(const transforms::PipelinedStep& step, int64_t update_every)
      : step_(step), update_every_(update_every), backwards_(step.stages.size(), 0) {
    positions_ = 1 + *std::max_element(step.ranks.begin(), step.ranks.end());
    now_.assign(static_cast<size_t>(positions_), 0);
  }

  void RunSlot(const transforms::RankOrders& orders, int32_t slot) {
    for (const auto& order : orders) {
      for (const transforms::ScheduleStep& step : order) {
        if (step.slot == slot) RunStep(step);
      }
    }
    for (const Delivery& delivery : deliveries_) Deliver(delivery);
    deliveries_.clear();
  }

  void RunUpdates() {
    for (size_t s = step_.stages.size(); s-- > 0;)
      Run(static_cast<int>(s), step_.stages[s].update, -1);
  }

  std::vector<int64_t> Peaks() {
    Merge();
    std::vector<std::map<int64_t, int64_t>> changes(now_.size());  // at even moments: before a task
    for (const Storage& storage : storages_) {
      auto& of_rank = changes[static_cast<size_t>(storage.position)];
      of_rank[2 * storage.made] += storage.bytes;
      if (storage.last < kForever) of_rank[2 * storage.last + 1] -= storage.bytes;
    }
    std::vector<int64_t> peaks;
    for (const auto& of_rank : changes) {
      int64_t now = 0, peak = 0;
      for (const auto& [moment, change] : of_rank) peak = std::max(peak, now += change);
      peaks.push_back(peak);
    }
    return peaks;
  }

 private:
  using Key = std::tuple<int, int32_t, int64_t>;  // stage, origin, microbatch or -1: of all

  int PositionOf(int s) const { return step_.ranks[static_cast<size_t>(s)]; }
  int64_t& NowOf(int s) { return now_[static_cast<size_t>(PositionOf(s))]; }

  int Make(int s, int64_t bytes) {
    storages_.push_back({PositionOf(s), bytes, NowOf(s), NowOf(s), NowOf(s)});
    return static_cast<int>(storages_.size()) - 1;
  }
  void Use(int storage, int64_t at, bool sends = false) {
    if (storage == kNone) return;
    Storage& row = storages_[static_cast<size_t>(storage)];
    row.last = std::max(row.last, at);
    if (!sends) row.read = std::max(row.read, at);
  }
  int64_t BytesOf(int storage) const {
    return storage == kNone ? 0 : storages_[static_cast<size_t>(storage)].bytes;
  }

  void RunStep(const transforms::ScheduleStep& step) {
    const int s = step.stage;
    const transforms::PipelinedStep::Parts stage =
        step_.PartsOf(static_cast<size_t>(s), step.microbatch);
    const bool split = !stage.weights.function.order().empty();
    if (step.kind == StepKind::kForward) Run(s, stage.forward, step.microbatch);
    if (step.kind == StepKind::kBackward || step.kind == StepKind::kInputGradient) {
      Run(s, stage.backward, step.microbatch);
    }
    if (split && (step.kind == StepKind::kBackward || step.kind == StepKind::kWeightGradient)) {
      Run(s, stage.weights, step.microbatch);
    }
    const bool done = step.kind == StepKind::kBackward || step.kind == StepKind::kWeightGradient ||
                      (step.kind == StepKind::kInputGradient && !split);
    if (!done || update_every_ == 0) return;
    if (++backwards_[static_cast<size_t>(s)] % update_every_ != 0) return;
    Run(s, step_.stages[static_cast<size_t>(s)].update, step.microbatch);
    // The next sums begin anew.
    std::erase_if(kept_, [&](const auto& entry) {
      return std::get<0>(entry.first) == s && std::get<2>(entry.first) == -1;
    });
  }

  static int32_t OriginOf(const StageFunction& part, ValueId value) {
    return part.origins[static_cast<size_t>(value.index())].index();
  }
  static int64_t LocalBytes(const StageFunction& part, ValueId value) {
    return ir::SizeOf(ir::LocalType(part.function.type(value), part.function.mesh())).count();
  }
  int Find(int s, int32_t origin, int64_t microbatch) const {
    const auto found = kept_.find({s, origin, microbatch});
    return found == kept_.end() ? kNone : found->second;
  }
  // One function, op by op. `storage` of each value; what it starts with is kept from before.
  void Run(int s, const StageFunction& part, int64_t microbatch) {
    const ir::Function& f = part.function;
    std::map<ValueId, int> storage;
    const bool update = &part == &step_.stages[static_cast<size_t>(s)].update;
    for (const ir::Input& input : f.inputs()) {
      const int32_t origin = OriginOf(part, input.value);
      int& of = storage[input.value] = kNone;
      if (input.role == ir::InputRole::kSaved) of = Find(s, origin, microbatch);
      if (input.role == ir::InputRole::kAccumulator) of = Find(s, SummandOf(part, input.value), -1);
      if (update && of == kNone && input.role == ir::InputRole::kSaved) of = FindLast(s, origin);
    }
    begin_ = NowOf(s);
    earlier_.clear();
    const size_t first = deliveries_.size();
    for (const OpId op : f.order()) RunOp(s, part, op, microbatch, storage);
    for (size_t i = first; i < deliveries_.size(); ++i) deliveries_[i].end = NowOf(s);
    for (const ir::Output& output : f.outputs()) Keep(s, part, output, microbatch, storage);
  }

  // Of the last microbatch that left it.
  int FindLast(int s, int32_t origin) const {
    int last = Find(s, origin, -1);
    for (const auto& [key, storage] : kept_) {
      if (std::get<0>(key) == s && std::get<1>(key) == origin) last = storage;
    }
    return last;
  }

  static int32_t SummandOf(const StageFunction& part, ValueId so_far) {
    for (const OpId op : part.function.order()) {
      const OpKind kind = part.function.kind(op);
      if (kind != OpKind::kAccumulate && kind != OpKind::kCollect) continue;
      if (part.function.operands(op)[0] == so_far)
        return OriginOf(part, part.function.operands(op)[1]);
    }
    return OriginOf(part, so_far);
  }

  // The storage that the result of an op shares; kNone: it has one of its own.
  int SharedBy(const StageFunction& part, OpId op, int i, std::map<ValueId, int>& storage,
               bool& shares) const {
    const ir::Function& f = part.function;
    const ir::OpInfo& info = f.info(op);
    const auto operands = f.operands(op);
    shares = true;
    if (operands.empty() && info.op_class == OpClass::kView) return kNone;  // a resident constant
    if (info.strided_view) return storage[operands[0]];
    if (f.kind(op) == OpKind::kCollect) return kNone;  // all parts stay where they are
    if (f.kind(op) == OpKind::kAccumulate && storage[operands[0]] == kNone)
      return storage[operands[1]];
    if (info.in_place_from >= 0) {
      const ValueId over =
          operands[static_cast<size_t>(info.in_place_from) + static_cast<size_t>(i)];
      for (const ir::Output& output : f.outputs()) {
        const bool read_later = output.value == over && output.role == ir::OutputRole::kSaved;
        if (read_later) shares = false;
        if (read_later) return kNone;
      }
      if (storage[over] == kNone) {
        if (LocalBytes(part, over) == LocalBytes(part, f.result(op, i))) return kNone;
      } else if (BytesOf(storage[over]) == LocalBytes(part, f.result(op, i))) {
        return storage[over];
      }
    }
    shares = false;
    return kNone;
  }

  void RunOp(int s, const StageFunction& part, OpId op, int64_t microbatch,
             std::map<ValueId, int>& storage) {
    const ir::Function& f = part.function;
    const OpClass op_class = f.info(op).op_class;
    const auto operands = f.operands(op);
    if (op_class == OpClass::kReceive) {
      storage[f.result(op)] = Find(s, OriginOf(part, f.result(op)), microbatch);
      return;
    }
    if (op_class == OpClass::kSend) {
      const ValueId value = operands[0];
      kept_[{s, OriginOf(part, value), microbatch}] = storage[value];
      deliveries_.push_back({s, static_cast<int>(f.attributes(op).Int("to", 0)),
                             OriginOf(part, value), microbatch, LocalBytes(part, value)});
      return;
    }
    const bool first_sum = f.kind(op) == OpKind::kAccumulate && storage[operands[0]] == kNone;
    bool own = false;
    for (int i = 0; i < f.result_count(op); ++i) {
      bool shares = false;
      const int shared = SharedBy(part, op, i, storage, shares);
      own = own || !shares;
      storage[f.result(op, i)] = shares ? shared : Make(s, LocalBytes(part, f.result(op, i)));
    }
    const bool task = op_class == OpClass::kView ? own && !operands.empty() : !first_sum;
    // What takes no time is done with the task before it, or with the first of its function.
    const int64_t at = task ? NowOf(s) : std::max(begin_, NowOf(s) - 1);
    for (const ValueId operand : operands) Use(storage[operand], at);
    if (f.kind(op) == OpKind::kExtendRows) {
      rows_[{s, OriginOf(part, operands[0]), microbatch}] = storage[operands[0]];
      for (int64_t slice = 0; slice < microbatch; ++slice) {
        earlier_[f.result(op)].push_back(rows_.at({s, OriginOf(part, operands[0]), slice}));
        Use(earlier_[f.result(op)].back(), at);
      }
    }
    for (const ValueId operand : operands) UseEarlier(f, op, operand, at);
    if (f.kind(op) == OpKind::kExtendRowsGrad) UseSums(s, part, op, microbatch);
    if (f.kind(op) == OpKind::kCollect && update_every_ == 0) Use(storage[operands[1]], kForever);
    if (task) ++NowOf(s);
  }

  // The rows of earlier slices that are read with a value, itself or by a view of it.
  void UseEarlier(const ir::Function& f, OpId op, ValueId operand, int64_t at) {
    const auto found = earlier_.find(operand);
    if (found == earlier_.end()) return;
    const std::vector<int> rows = found->second;
    for (const int of : rows) Use(of, at);
    if (f.info(op).strided_view) earlier_[f.result(op)] = rows;
  }

  // A sum for each slice before the last, from the first backward until that of the slice.
  void UseSums(int s, const StageFunction& part, OpId op, int64_t microbatch) {
    const ir::Function& f = part.function;
    const auto rows_of = [this](int64_t slice) {
      return step_.slices[static_cast<size_t>(slice)].range.rows;
    };
    for (int64_t slice = 0; slice <= microbatch; ++slice) {
      const Key key = {s, OriginOf(part, f.operands(op)[0]), slice};
      const bool last = microbatch + 1 == step_.microbatches;
      if (last && slice == microbatch) continue;
      const int64_t bytes = LocalBytes(part, f.result(op)) / rows_of(microbatch) * rows_of(slice);
      const auto [sum, fresh] = sums_.try_emplace(key, kNone);
      if (fresh) sum->second = Make(s, bytes);
      Use(sum->second, NowOf(s));
    }
  }

  void Keep(int s, const StageFunction& part, const ir::Output& output, int64_t microbatch,
            std::map<ValueId, int>& storage) {
    const ir::Function& f = part.function;
    const int of = storage[output.value];
    int32_t origin = OriginOf(part, output.value);
    const OpId op = f.producer(output.value);
    const bool result =
        output.role == ir::OutputRole::kResult || output.role == ir::OutputRole::kLoss;
    if (result) {
      if (update_every_ == 0) Use(of, kForever);
      return;
    }
    int64_t of_microbatch = microbatch;
    if (output.role == ir::OutputRole::kAccumulator) {
      if (op.valid()) origin = OriginOf(part, f.operands(op)[1]);
      of_microbatch = -1;
    }
    kept_[{s, origin, of_microbatch}] = of;
    if (output.role == ir::OutputRole::kGradient) Use(of, kForever);
  }

  // Stages of one rank have a copy each, from when the value is made, unless the first of them does
  // not read it again: see Peaks.
  void Deliver(const Delivery& d) {
    const int sent = Find(d.from, d.origin, d.microbatch);
    if (PositionOf(d.from) == PositionOf(d.to)) {
      const int copy = sent == kNone ? kNone : Make(d.to, d.bytes);
      kept_[{d.to, d.origin, d.microbatch}] = copy;
      if (sent == kNone) return;
      storages_[static_cast<size_t>(copy)].made = storages_[static_cast<size_t>(sent)].made;
      handed_.push_back({sent, copy, d.end});
      return;
    }
    // What a whole backward sends once the gradients of the weights are made, these have freed.
    const bool freed = sent != kNone && storages_[static_cast<size_t>(sent)].read >= d.end;
    if (!freed) Use(sent, NowOf(d.from), /*sends=*/true);
    kept_[{d.to, d.origin, d.microbatch}] = Make(d.to, d.bytes);
    ++NowOf(d.from);
    ++NowOf(d.to);
  }

  // The last one to get a value has the giver's, if the giver reads it no more.
  void Merge() {
    std::map<int, const HandOver*> last;
    for (const HandOver& row : handed_) last[row.given] = &row;
    for (const auto& [given, row] : last) {
      Storage& from = storages_[static_cast<size_t>(given)];
      if (from.read < row->end) {
        Use(row->copy, from.last);
        from.bytes = 0;
      }
    }
  }

  const transforms::PipelinedStep& step_;
  const int64_t update_every_;
  int positions_ = 1;
  std::vector<int64_t> now_;  // tasks so far, of each position
  int64_t begin_ = 0;         // of the function that runs
  std::vector<int64_t> backwards_;
  std::vector<Storage> storages_;
  std::vector<Delivery> deliveries_;
  std::vector<HandOver> handed_;
  std::map<Key, int> kept_;
  std::map<Key, int> rows_, sums_;               // of slices of the sequence
  std::map<ValueId, std::vector<int>> earlier_;  // rows behind which those of a value are
};

}  // namespace
}  // namespace memory_oracle_cc

std::vector<int64_t> BruteForcePeaks(const transforms::PipelinedStep& step,
                                     const transforms::RankOrders& orders, int64_t update_every) {
  memory_oracle_cc::Unrolled unrolled(step, update_every);
  int32_t last = 0;
  for (const auto& order : orders) last = std::max(last, order.back().slot);
  for (int32_t slot = 0; slot <= last; ++slot) unrolled.RunSlot(orders, slot);
  if (update_every == 0) unrolled.RunUpdates();
  return unrolled.Peaks();
}

}  // namespace orrery::lowering
