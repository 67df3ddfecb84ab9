#include "transforms/strategies/vertex_cut.h"

#include <algorithm>
#include <limits>

namespace orrery::transforms::strategies {
namespace vertex_cut_cc {
namespace {

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Each node is a pipe of its weight, from position 2 node to position 2 node + 1.
class Flow {
 public:
  explicit Flow(const CutProblem& problem)
      : nodes_(static_cast<int32_t>(problem.weight.size())),
        left_(2 * nodes_),
        right_(2 * nodes_ + 1),
        arcs_of_(At(2 * nodes_ + 2)),
        by_(At(2 * nodes_ + 2)) {
    for (int32_t node = 0; node < nodes_; ++node) {
      Add(2 * node, 2 * node + 1, problem.weight[At(node)]);
      if (problem.touches_left[At(node)]) Add(left_, 2 * node, kAny);
      if (problem.touches_right[At(node)]) Add(2 * node + 1, right_, kAny);
      for (const int32_t other : problem.neighbours[At(node)]) Add(2 * node + 1, 2 * other, kAny);
    }
  }

  std::vector<bool> Run() {
    while (Search()) Push();
    std::vector<bool> left;
    for (int32_t node = 0; node < nodes_; ++node) left.push_back(by_[At(2 * node + 1)] != kNone);
    return left;
  }

 private:
  struct Arc {
    int32_t from, to;
    int64_t room;
  };
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max() / 4;
  static constexpr int32_t kNone = -1, kStart = -2;

  // The arc back has the next number, which is odd.
  void Add(int32_t from, int32_t to, int64_t room) {
    arcs_of_[At(from)].push_back(static_cast<int32_t>(arcs_.size()));
    arcs_.push_back({from, to, room});
    arcs_of_[At(to)].push_back(static_cast<int32_t>(arcs_.size()));
    arcs_.push_back({to, from, 0});
  }

  // By which arc each position is reached while there is room; whether the right end is.
  bool Search() {
    std::ranges::fill(by_, kNone);
    by_[At(left_)] = kStart;
    std::vector<int32_t> open = {left_};
    for (size_t next = 0; next < open.size(); ++next) {
      for (const int32_t number : arcs_of_[At(open[next])]) {
        const Arc& arc = arcs_[At(number)];
        if (arc.room == 0 || by_[At(arc.to)] != kNone) continue;
        by_[At(arc.to)] = number;
        open.push_back(arc.to);
      }
    }
    return by_[At(right_)] != kNone;
  }

  void Push() {
    int64_t amount = kAny;
    const auto for_each_arc = [&](const auto& visit) {
      for (int32_t position = right_; position != left_;
           position = arcs_[At(by_[At(position)])].from) {
        visit(by_[At(position)]);
      }
    };
    for_each_arc([&](int32_t number) { amount = std::min(amount, arcs_[At(number)].room); });
    for_each_arc([&](int32_t number) {
      arcs_[At(number)].room -= amount;
      arcs_[At(number ^ 1)].room += amount;
    });
  }

  const int32_t nodes_, left_, right_;
  std::vector<Arc> arcs_;
  std::vector<std::vector<int32_t>> arcs_of_;
  std::vector<int32_t> by_;
};

}  // namespace
}  // namespace vertex_cut_cc

std::vector<bool> LeftOfLeastCut(const CutProblem& problem) {
  return vertex_cut_cc::Flow(problem).Run();
}

}  // namespace orrery::transforms::strategies
