#include "search/cuts/step_chains.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/op_info.h"

namespace orrery::search {
namespace step_chains_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;
using transforms::OriginOf;
using transforms::StageFunction;

// So many fields: two functions, each with a path.
class ChainFinder {
 public:
  explicit ChainFinder(const transforms::PipelineStage& stage)
      : forward_(stage.forward), backward_(stage.backward) {}

  StepChains Run(const std::function<double(OpId op)>& seconds) {
    MarkForward();
    WalkForward();
    WalkBackward(seconds);
    FindOutside();
    return std::move(chains_);
  }

 private:
  const Function& forward() const { return forward_.function; }
  const Function& backward() const { return backward_.function; }

  // What is made from data, and wanted for the loss or its gradient.
  void MarkForward() {
    const auto& order = forward().order();
    from_data_ = IdTable<ValueId, char>(forward().value_limit(), 0);
    for (const ir::Input& input : forward().inputs()) {
      from_data_[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
    }
    for (const OpId op : order) {
      bool from_data = false;
      for (const ValueId operand : forward().operands(op)) {
        from_data = from_data || (operand.valid() && from_data_[operand] != 0);
      }
      for (int32_t i = 0; i < forward().result_count(op); ++i) {
        from_data_[forward().result(op, i)] = from_data ? 1 : 0;
      }
    }
    IdTable<ValueId, char> wanted(forward().value_limit(), 0);
    chains_.forward.assign(order.size(), 0);
    for (size_t at = order.size(); at-- > 0;) {
      const OpId op = order[at];
      const ir::OpInfo& info = forward().info(op);
      bool is_wanted = info.seeds_backward || info.is_loss, from_data = false;
      for (int32_t i = 0; i < forward().result_count(op); ++i) {
        is_wanted = is_wanted || wanted[forward().result(op, i)] != 0;
        from_data = from_data || from_data_[forward().result(op, i)] != 0;
      }
      if (!is_wanted) continue;
      chains_.forward[at] = from_data ? 1 : 0;
      for (const ValueId operand : forward().operands(op)) {
        if (operand.valid()) wanted[operand] = 1;
      }
    }
  }

  // From the last op of the chain to the first, always to the operand that was made last.
  void WalkForward() {
    const auto& order = forward().order();
    IdTable<OpId, int32_t> position(forward().op_limit(), -1);
    for (size_t at = 0; at < order.size(); ++at) {
      if (chains_.forward[at] != 0) position[order[at]] = static_cast<int32_t>(at);
    }
    auto at = static_cast<int32_t>(order.size()) - 1;
    while (at >= 0 && chains_.forward[static_cast<size_t>(at)] == 0) --at;
    size_t end = order.size();
    while (at >= 0) {
      path_.push_back(static_cast<size_t>(at));
      chains_.gaps.push_back({path_.back() + 1, end});
      end = path_.back();
      int32_t before = -1;
      for (const ValueId operand : forward().operands(order[end])) {
        const OpId maker = operand.valid() ? forward().producer(operand) : OpId();
        if (maker.valid()) before = std::max(before, position[maker]);
      }
      at = before;
    }
    chains_.gaps.push_back({0, end});
    std::ranges::reverse(path_);
    std::ranges::reverse(chains_.gaps);
  }

  // Values of backward that the gradient of the loss is in.
  IdTable<ValueId, char> FromLoss() const {
    std::set<ValueId> seeds;  // origins
    for (const OpId op : forward().order()) {
      if (!forward().info(op).seeds_backward) continue;
      for (int32_t i = 0; i < forward().result_count(op); ++i) {
        seeds.insert(OriginOf(forward_, forward().result(op, i)));
      }
    }
    seeds.erase(ValueId());
    IdTable<ValueId, char> from_loss(backward().value_limit(), 0);
    for (const ir::Input& input : backward().inputs()) {
      from_loss[input.value] = seeds.contains(OriginOf(backward_, input.value)) ? 1 : 0;
    }
    return from_loss;
  }

  void WalkBackward(const std::function<double(OpId op)>& seconds) {
    IdTable<ValueId, char> from_loss = FromLoss();
    IdTable<ValueId, double> finish(backward().value_limit(), 0);
    IdTable<ValueId, int32_t> maker(backward().value_limit(), -1);
    const auto& order = backward().order();
    std::vector<int32_t> before(order.size(), -1);
    double longest = -1;
    int32_t last = -1;
    for (size_t at = 0; at < order.size(); ++at) {
      const OpId op = order[at];
      bool follows = backward().info(op).seeds_backward;
      double start = 0;
      for (const ValueId operand : backward().operands(op)) {
        if (!operand.valid() || from_loss[operand] == 0) continue;
        follows = true;
        if (before[at] >= 0 && finish[operand] <= start) continue;
        start = finish[operand];
        before[at] = maker[operand];
      }
      if (!follows) continue;
      const double end = start + seconds(op);
      for (int32_t i = 0; i < backward().result_count(op); ++i) {
        const ValueId result = backward().result(op, i);
        from_loss[result] = 1;
        finish[result] = end;
        maker[result] = static_cast<int32_t>(at);
      }
      if (end <= longest) continue;
      longest = end;
      last = static_cast<int32_t>(at);
    }
    for (; last >= 0; last = before[static_cast<size_t>(last)]) {
      chains_.backward.push_back(static_cast<size_t>(last));
    }
    std::ranges::reverse(chains_.backward);
  }

  // The input that a value is made of alone, by way of casts and transpositions.
  ValueId RootOf(ValueId value) const {
    for (OpId op = forward().producer(value); op.valid(); op = forward().producer(value)) {
      if (forward().operands(op).empty()) break;
      value = forward().operands(op)[0];
    }
    return value;
  }

  // What a product multiplies by, where it is made from parameters alone that no other op of the
  // chain reads: its origin, and the product's position.
  std::map<ValueId, size_t> OwnFactors() const {
    std::map<ValueId, int32_t> readers;  // of inputs
    std::map<ValueId, std::pair<size_t, ValueId>> factors;
    const auto& order = forward().order();
    for (size_t at = 0; at < order.size(); ++at) {
      const bool made_from_data =
          forward().result_count(order[at]) > 0 && from_data_[forward().result(order[at])] != 0;
      for (const ValueId operand : forward().operands(order[at])) {
        if (!operand.valid() || !made_from_data || from_data_[operand] != 0) continue;
        ++readers[RootOf(operand)];
        if (chains_.forward[at] == 0 || !forward().info(order[at]).matrix_product) continue;
        const ValueId origin = OriginOf(forward_, operand);
        if (origin.valid()) factors.try_emplace(origin, at, RootOf(operand));
      }
    }
    std::map<ValueId, size_t> own;
    for (const auto& [origin, of] : factors) {
      if (readers[of.second] == 1) own.emplace(origin, of.first);
    }
    return own;
  }

  void FindOutside() {
    const std::map<ValueId, size_t> own = OwnFactors();
    const std::set<size_t> on_path(path_.begin(), path_.end());
    std::vector<size_t> anchors_forward;
    size_t begin = 0;
    for (size_t i = 0; i < chains_.backward.size(); ++i) {
      const OpId op = backward().order()[chains_.backward[i]];
      if (!backward().info(op).matrix_product) continue;
      bool anchors = false;
      for (const ValueId operand : backward().operands(op)) {
        if (!operand.valid()) continue;
        const auto found = own.find(OriginOf(backward_, operand));
        if (found == own.end() || !on_path.contains(found->second)) continue;
        anchors_forward.push_back(found->second);
        anchors = true;
      }
      if (!anchors) continue;
      chains_.outside_backward.push_back({begin, i});
      begin = i + 1;
    }
    chains_.outside_backward.push_back({begin, chains_.backward.size()});
    std::ranges::sort(anchors_forward);
    begin = 0;
    for (const size_t at : anchors_forward) {
      chains_.outside_forward.push_back({begin, std::max(begin, at)});
      begin = at + 1;
    }
    chains_.outside_forward.push_back({begin, forward().order().size()});
  }

  const StageFunction& forward_;
  const StageFunction& backward_;
  IdTable<ValueId, char> from_data_{0};
  std::vector<size_t> path_;  // positions in forward
  StepChains chains_;
};

}  // namespace
}  // namespace step_chains_cc

StepChains FindChains(const transforms::PipelineStage& stage,
                      const std::function<double(ir::OpId op)>& seconds) {
  return step_chains_cc::ChainFinder(stage).Run(seconds);
}

}  // namespace orrery::search
