#include "transforms/stages/place_chain.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::transforms {
namespace place_chain_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

constexpr int32_t kNone = -1;

// Which group names belong to.
class Patterns {
 public:
  explicit Patterns(const Placement& placement) {
    for (const PlacedGroup& group : placement.groups) {
      patterns_.push_back(group.pattern == "*" ? nullptr
                                               : std::make_unique<RE2>(group.pattern, RE2::Quiet));
    }
  }

  // The first that matches a name of the op's results; kNone: it has no name, or none does.
  int32_t GroupOf(const Function& function, OpId op) const {
    for (size_t g = 0; g < patterns_.size(); ++g) {
      for (int32_t i = 0; i < function.result_count(op); ++i) {
        const absl::string_view name = function.value_name(function.result(op, i));
        if (name.empty()) continue;
        const bool matches =
            patterns_[g] == nullptr ||
            RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *patterns_[g]);
        if (matches) return static_cast<int32_t>(g);
      }
    }
    return kNone;
  }

 private:
  std::vector<std::unique_ptr<RE2>> patterns_;  // null: any
};

class Placer {
 public:
  Placer(const Function& function, const ForwardChain& chain, const Placement& placement)
      : function_(function), chain_(chain), set_(chain.ops.size(), kNone) {
    const Patterns patterns(placement);
    for (size_t i = 0; i < chain.ops.size(); ++i) {
      if (Reshards(function, chain.ops[i])) continue;
      const int32_t group = patterns.GroupOf(function, chain.ops[i]);
      if (group != kNone) set_[i] = placement.groups[static_cast<size_t>(group)].set;
    }
  }

  PlacedChain Run() && {
    made_at_ = IdTable<ValueId, int32_t>(function_.value_limit(), kNone);
    for (size_t i = 0; i < chain_.ops.size(); ++i) {
      const OpId op = chain_.ops[i];
      for (int32_t r = 0; r < function_.result_count(op); ++r) {
        made_at_[function_.result(op, r)] = static_cast<int32_t>(i);
      }
    }
    FindDealt();
    FollowReads();
    FindLevels();
    return Order();
  }

 private:
  // Positions in the chain of what makes the operands of the op at `i`, ascending.
  std::vector<size_t> ReadsOf(size_t i) const {
    std::vector<size_t> reads;
    for (const ValueId operand : function_.operands(chain_.ops[i])) {
      if (made_at_[operand] != kNone) reads.push_back(static_cast<size_t>(made_at_[operand]));
    }
    std::ranges::sort(reads);
    return reads;
  }

  // What deals out data, which every set may have.
  void FindDealt() {
    dealt_.assign(set_.size(), 0);
    for (size_t i = 0; i < set_.size(); ++i) {
      const std::vector<size_t> reads = ReadsOf(i);
      const bool from_data = reads.empty() || (reads.size() == 1 && dealt_[reads[0]] != 0);
      dealt_[i] = from_data && Reshards(function_, chain_.ops[i]) ? 1 : 0;
    }
  }

  void FollowReads() {
    for (size_t i = 0; i < set_.size(); ++i) {
      const std::vector<size_t> reads = set_[i] == kNone ? ReadsOf(i) : std::vector<size_t>();
      for (auto at = reads.rbegin(); at != reads.rend() && set_[i] == kNone; ++at) {
        set_[i] = set_[*at];
      }
    }
    for (size_t i = set_.size(); i-- > 0;) {
      if (set_[i] == kNone) set_[i] = 0;  // nobody reads it
      for (const size_t read : ReadsOf(i)) {
        if (set_[read] == kNone) set_[read] = set_[i];
      }
    }
  }

  void FindLevels() {
    levels_.assign(set_.size(), 0);
    for (size_t i = 0; i < set_.size(); ++i) {
      for (const size_t read : ReadsOf(i)) {
        if (dealt_[read] != 0) continue;
        levels_[i] = std::max(levels_[i], levels_[read] + (set_[read] == set_[i] ? 0 : 1));
      }
    }
    // What deals out data is of the first stage that reads it.
    std::vector<char> known(set_.size(), 0);
    for (size_t i = set_.size(); i-- > 0;) {
      for (const size_t read : ReadsOf(i)) {
        const auto stage = std::tuple(levels_[i], set_[i]);
        if (dealt_[read] == 0) continue;
        if (known[read] != 0 && stage > std::tuple(levels_[read], set_[read])) continue;
        known[read] = 1;
        std::tie(levels_[read], set_[read]) = stage;
      }
    }
  }

  PlacedChain Order() const {
    std::vector<size_t> order(set_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return std::tuple(levels_[i], set_[i]); });
    PlacedChain placed{.chain = chain_};
    for (size_t at = 0; at < order.size(); ++at) {
      const size_t i = order[at];
      placed.chain.ops[at] = chain_.ops[i];
      const bool begins =
          at == 0 || set_[i] != set_[order[at - 1]] || levels_[i] != levels_[order[at - 1]];
      if (begins && at > 0) placed.positions.push_back(at);
      if (begins) placed.sets.push_back(set_[i]);
    }
    std::vector<char> product(set_.size(), 0);
    for (const size_t position : chain_.products) product[position] = 1;
    placed.chain.products.clear();
    for (size_t at = 0; at < order.size(); ++at) {
      if (product[order[at]] != 0) placed.chain.products.push_back(at);
    }
    return placed;
  }

  const Function& function_;
  const ForwardChain& chain_;
  std::vector<char> dealt_;            // what reshards data
  std::vector<int32_t> levels_;        // of ops
  std::vector<int32_t> set_;           // by position in the chain
  IdTable<ValueId, int32_t> made_at_;  // positions
};

}  // namespace
}  // namespace place_chain_cc

PlacedChain PlaceChain(const ir::Function& function, const ForwardChain& chain,
                       const Placement& placement) {
  return place_chain_cc::Placer(function, chain, placement).Run();
}

absl::Status CheckPlacement(const ir::Function& function, const ForwardChain& chain,
                            const Placement& placement) {
  const place_chain_cc::Patterns patterns(placement);
  std::vector<char> matched(placement.groups.size(), 0);
  for (const ir::OpId op : chain.ops) {
    const int32_t group = patterns.GroupOf(function, op);
    if (group != place_chain_cc::kNone) {
      matched[static_cast<size_t>(group)] = 1;
      continue;
    }
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      if (function.value_name(function.result(op, i)).empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "`placement`: no group has ", ir::PrintValue(function, function.result(op, i)),
          "; wanted one for each op; try *=DEVICES as the last"));
    }
  }
  for (size_t g = 0; g < matched.size(); ++g) {
    if (matched[g] != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("`placement`: '", placement.groups[g].pattern,
                     "' matches no forward op that no pattern before it does; `opt` prints names"));
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
