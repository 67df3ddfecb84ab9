#include "transforms/memory/units.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "ir/op_kind.h"

namespace orrery::transforms {
namespace units_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

class UnitFinder {
 public:
  explicit UnitFinder(std::span<const UnitMember> members)
      : members_(members), before_(members.size() + 1, 0), units_(members.size(), 0) {
    for (size_t i = 0; i < members.size(); ++i) {
      before_[i + 1] = before_[i] + members[i].size.count();
    }
    share_ = before_.back() / kShares;
  }

  std::vector<int32_t> Run() {
    Split(0, members_.size());
    return std::move(units_);
  }

 private:
  static constexpr int64_t kShares = 16;
  static constexpr size_t kLongestLayer = 1024;  // parameters; longer periods are not looked for

  // Members of which each is like the one `period` before it.
  struct Repeat {
    size_t begin = 0, end = 0, period = 0;
  };

  int64_t BytesOf(size_t begin, size_t end) const { return before_[end] - before_[begin]; }

  void Split(size_t begin, size_t end) {
    const Repeat repeat = Longest(begin, end);
    if (repeat.period == 0) {
      Cut(begin, end);
      return;
    }
    Split(begin, repeat.begin);
    for (size_t i = repeat.begin; i < repeat.end; i += repeat.period) Add(i, i + repeat.period);
    Split(repeat.end, end);
  }

  // The repetition with the most bytes, of these the shortest; none that is not worth its while.
  Repeat Longest(size_t begin, size_t end) const {
    Repeat best;
    int64_t most = std::max<int64_t>(share_, 1) - 1;
    for (size_t period = 1; period <= std::min((end - begin) / 2, kLongestLayer); ++period) {
      for (size_t first = begin; first + period < end;) {
        size_t last = first;
        while (last + period < end && members_[last].kind == members_[last + period].kind) ++last;
        const size_t length = last + period - first;
        const Repeat found = {first, first + length - length % period, period};
        const bool repeats = last - first >= period;
        if (repeats && BytesOf(found.begin, found.end) > most) {
          most = BytesOf(found.begin, found.end);
          best = found;
        }
        first = last + 1;
      }
    }
    return best;
  }

  void Cut(size_t begin, size_t end) {
    size_t first = begin;
    for (size_t i = begin; i < end; ++i) {
      if (BytesOf(first, i + 1) < share_ && i + 1 < end) continue;
      Add(first, i + 1);
      first = i + 1;
    }
  }

  void Add(size_t begin, size_t end) {
    std::fill(units_.begin() + static_cast<ptrdiff_t>(begin),
              units_.begin() + static_cast<ptrdiff_t>(end), next_);
    ++next_;
  }

  const std::span<const UnitMember> members_;
  std::vector<int64_t> before_;  // bytes of those before each, and of all
  int64_t share_ = 0;
  std::vector<int32_t> units_;
  int32_t next_ = 0;
};

class UnitOrder {
 public:
  UnitOrder(int64_t prefetch, Function& function)
      : prefetch_(prefetch),
        function_(function),
        unit_of_(function.value_limit(), kNoUnit),
        scattered_(function.value_limit(), kNoUnit),
        position_(function.op_limit(), -1) {}

  void Run() {
    for (const OpId op : function_.order()) Sort(op);
    if (gathers_.empty() && scatters_.empty()) return;
    InsertGathers();
    InsertScatters();
    Emit();
  }

 private:
  static constexpr int64_t kNoUnit = -1;

  // Gathers come before their use, scatters after what they scatter; the rest stays in order.
  void Sort(OpId op) {
    const auto operands = function_.operands(op);
    const int64_t unit = function_.attributes(op).Int("unit", kNoUnit);
    const OpKind kind = function_.kind(op);
    if (unit != kNoUnit && kind == OpKind::kAllGather && !function_.producer(operands[0]).valid()) {
      gathers_[unit].push_back(op);
      unit_of_[function_.result(op)] = unit;
      return;
    }
    // One of what another has scattered follows that.
    const bool first = kind == OpKind::kReduceScatter && scattered_[operands[0]] == kNoUnit;
    if (unit != kNoUnit && first) {
      scatters_[unit].push_back(op);
      scattered_[function_.result(op)] = unit;
      return;
    }
    int64_t after = kNoUnit;
    for (const ValueId operand : operands) after = std::max(after, scattered_[operand]);
    if (after != kNoUnit) {
      followers_[after].push_back(op);
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        scattered_[function_.result(op, i)] = after;
      }
      return;
    }
    position_[op] = static_cast<int32_t>(others_.size());
    others_.push_back(op);
  }

  void InsertGathers() {
    std::vector<int64_t> units;  // in the order of their first use
    std::vector<size_t> used;    // by which of the others
    for (size_t i = 0; i < others_.size(); ++i) {
      for (const ValueId operand : function_.operands(others_[i])) {
        const int64_t unit = unit_of_[operand];
        if (unit == kNoUnit || std::ranges::find(units, unit) != units.end()) continue;
        units.push_back(unit);
        used.push_back(i);
      }
    }
    before_.resize(others_.size());
    for (size_t u = 0; u < units.size(); ++u) {
      const auto ahead = static_cast<size_t>(prefetch_);
      before_[u <= ahead ? 0 : used[u - ahead]].push_back(units[u]);
    }
    for (auto& [unit, gathers] : gathers_) Join(gathers);
  }

  // Those that one collective can carry out stand together.
  void Join(std::vector<OpId>& ops) const {
    const auto key = [&](OpId op) {
      return std::tuple(function_.attributes(op).String("axes", ""),
                        function_.type(function_.result(op)).dtype);
    };
    std::ranges::stable_sort(ops, [&](OpId a, OpId b) { return key(a) < key(b); });
  }

  void InsertScatters() {
    for (auto& [unit, scatters] : scatters_) {
      int32_t last = -1;
      for (const OpId op : scatters) {
        const OpId maker = function_.producer(function_.operands(op)[0]);
        if (maker.valid()) last = std::max(last, position_[maker]);
      }
      Join(scatters);
      after_.emplace_back(last, unit);
    }
    std::ranges::sort(after_);
  }

  void Emit() {
    size_t scattered = 0;  // of after_
    for (size_t i = 0; i < others_.size(); ++i) {
      // What the next kernels wait for goes first.
      for (const int64_t unit : before_[i]) Append(gathers_[unit]);
      while (scattered < after_.size() && after_[scattered].first < static_cast<int32_t>(i)) {
        Scatter(scattered++);
      }
      order_.push_back(others_[i]);
    }
    while (scattered < after_.size()) Scatter(scattered++);
    if (!after_.empty()) Append(followers_[after_.back().second]);
    function_.SetOrder(std::move(order_));
  }

  void Scatter(size_t number) {
    Append(scatters_[after_[number].second]);
    if (number > 0) Append(followers_[after_[number - 1].second]);
  }

  void Append(const std::vector<OpId>& ops) { order_.insert(order_.end(), ops.begin(), ops.end()); }

  const int64_t prefetch_;
  Function& function_;
  IdTable<ValueId, int64_t> unit_of_;    // of gathered values
  IdTable<ValueId, int64_t> scattered_;  // of scattered values, and of what is made from them
  IdTable<OpId, int32_t> position_;      // in others_
  std::map<int64_t, std::vector<OpId>> gathers_, scatters_, followers_;  // by unit
  std::vector<OpId> others_;
  std::vector<std::vector<int64_t>> before_;        // units to gather, by position in others_
  std::vector<std::pair<int32_t, int64_t>> after_;  // position in others_ and the unit to scatter
  std::vector<OpId> order_;
};

}  // namespace
}  // namespace units_cc

std::vector<int32_t> FindUnits(std::span<const UnitMember> members) {
  return units_cc::UnitFinder(members).Run();
}

void OrderUnits(int64_t prefetch, ir::Function& function) {
  units_cc::UnitOrder(prefetch, function).Run();
}

}  // namespace orrery::transforms
