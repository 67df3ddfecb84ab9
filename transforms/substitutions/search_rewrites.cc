#include "transforms/substitutions/search_rewrites.h"

#include <chrono>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace orrery::transforms::substitutions {
namespace search_rewrites_cc {
namespace {

constexpr size_t kMatches = 1000;  // of one rule in one graph

// A graph that was reached; its nodes go once rules were applied to it.
struct State {
  Dataflow flow;
  int32_t from = -1;
  Direction direction = {};
  Duration price;
};

class Search {
 public:
  Search(std::span<const Rule> rules, const RewriteLimits& limits, WorkTable& works)
      : directions_(DirectionsOf(rules)), limits_(limits), works_(works) {}

  Rewriting Run(const Dataflow& start) {
    began_ = Now();
    seen_.insert(start.fingerprint);
    found_.best = start;
    Keep(start, -1, {});
    while (!waiting_.empty() && found_.expanded < limits_.steps && !IsLate()) {
      const int32_t next = std::get<2>(*waiting_.begin());
      waiting_.erase(waiting_.begin());
      if (!IsWithinAlpha(states_[static_cast<size_t>(next)].price)) continue;
      ++found_.expanded;
      Expand(next);
    }
    found_.all = waiting_.empty() && !was_late_;
    found_.graphs = static_cast<int64_t>(seen_.size());
    for (int32_t at = best_; states_[static_cast<size_t>(at)].from >= 0;) {
      const State& state = states_[static_cast<size_t>(at)];
      found_.steps.insert(found_.steps.begin(), {state.direction, state.price});
      at = state.from;
    }
    return std::move(found_);
  }

 private:
  double Now() const {
    if (limits_.clock != nullptr) return limits_.clock();
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    return now.count();
  }

  bool IsLate() {
    was_late_ = was_late_ || (limits_.seconds > 0 && Now() - began_ > limits_.seconds);
    return was_late_;
  }

  bool IsWithinAlpha(Duration price) const {
    return price.seconds() <= found_.best.price.seconds() * limits_.alpha;
  }

  // Fewer ops first where the price is one.
  static std::pair<Duration, int32_t> Rank(const Dataflow& flow) {
    return {flow.price, flow.op_count()};
  }

  void Keep(Dataflow flow, int32_t from, const Direction& direction) {
    const auto here = static_cast<int32_t>(states_.size());
    const auto [price, ops] = Rank(flow);
    if (Rank(flow) < Rank(found_.best)) {
      found_.best = flow;
      best_ = here;
    }
    states_.push_back(
        {.flow = std::move(flow), .from = from, .direction = direction, .price = price});
    waiting_.insert({price, ops, here});
    if (waiting_.size() <= static_cast<size_t>(limits_.kept)) return;
    const auto last = std::prev(waiting_.end());
    states_[static_cast<size_t>(std::get<2>(*last))].flow = Dataflow();
    waiting_.erase(last);
  }

  void Expand(int32_t from) {
    const Dataflow flow = std::move(states_[static_cast<size_t>(from)].flow);
    const Matcher matcher(works_, flow);
    for (const Direction& direction : directions_) {
      if (IsLate()) return;
      for (const Match& match : matcher.Find(direction, kMatches)) {
        if (IsLate()) return;  // one graph of thousands of ops takes seconds
        std::optional<Dataflow> after = Apply(direction, match, flow, works_);
        if (!after.has_value() || !seen_.insert(after->fingerprint).second) continue;
        if (!KeepsOutputsApart(flow, *after)) continue;
        if (IsWithinAlpha(after->price)) Keep(*std::move(after), from, direction);
      }
    }
  }

  std::vector<Direction> directions_;
  RewriteLimits limits_;
  WorkTable& works_;
  std::vector<State> states_;
  int32_t best_ = 0;
  std::set<std::tuple<Duration, int32_t, int32_t>> waiting_;  // price, ops, state
  absl::flat_hash_set<uint64_t> seen_;
  Rewriting found_;
  double began_ = 0;
  bool was_late_ = false;
};

}  // namespace
}  // namespace search_rewrites_cc

Rewriting SearchRewrites(const Dataflow& start, std::span<const Rule> rules,
                         const RewriteLimits& limits, WorkTable& works) {
  return search_rewrites_cc::Search(rules, limits, works).Run(start);
}

}  // namespace orrery::transforms::substitutions
