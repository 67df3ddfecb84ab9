#include "transforms/memory/keep_less.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/fusing.h"

namespace orrery::transforms {
namespace keep_less_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

constexpr size_t kMostValues = 4096;  // of a region
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 4;

// A network of flows. Node 0 is where they come from, node 1 where they go.
class Network {
 public:
  static constexpr int32_t kSource = 0, kSink = 1;

  Network() : edges_of_(2) {}

  int32_t AddNode() {
    edges_of_.emplace_back();
    return static_cast<int32_t>(edges_of_.size()) - 1;
  }
  void AddEdge(int32_t from, int32_t to, int64_t capacity) {
    edges_of_[static_cast<size_t>(from)].push_back(static_cast<int32_t>(edges_.size()));
    edges_.push_back({to, capacity});
    edges_of_[static_cast<size_t>(to)].push_back(static_cast<int32_t>(edges_.size()));
    edges_.push_back({from, 0});
  }

  /// Of each node whether it lies behind the minimum cut that is nearest to the sink (Edmonds &
  /// Karp 1972).
  std::vector<char> BehindCut() {
    while (Augment()) {
    }
    std::vector<char> behind(edges_of_.size(), 0);
    std::vector<int32_t> pending = {kSink};
    behind[kSink] = 1;
    while (!pending.empty()) {
      const int32_t node = pending.back();
      pending.pop_back();
      for (const int32_t edge : edges_of_[static_cast<size_t>(node)]) {
        const int32_t from = edges_[static_cast<size_t>(edge)].to;  // by its other direction
        if (edges_[static_cast<size_t>(edge ^ 1)].left == 0) continue;
        if (std::exchange(behind[static_cast<size_t>(from)], 1) == 0) pending.push_back(from);
      }
    }
    return behind;
  }

 private:
  struct Edge {
    int32_t to;
    int64_t left;
  };

  // Along a shortest way from the source to the sink; false when there is none.
  bool Augment() {
    std::vector<int32_t> by(edges_of_.size(), -1);  // the edge that leads to a node
    std::vector<int32_t> queue = {kSource};
    for (size_t next = 0; next < queue.size() && by[kSink] < 0; ++next) {
      for (const int32_t edge : edges_of_[static_cast<size_t>(queue[next])]) {
        const auto [to, left] = edges_[static_cast<size_t>(edge)];
        if (left == 0 || to == kSource || by[static_cast<size_t>(to)] >= 0) continue;
        by[static_cast<size_t>(to)] = edge;
        queue.push_back(to);
      }
    }
    if (by[kSink] < 0) return false;
    int64_t flow = kNoLimit;
    const auto along = [&](auto f) {
      for (int32_t node = kSink; node != kSource;) {
        const auto edge = static_cast<size_t>(by[static_cast<size_t>(node)]);
        f(edge);
        node = edges_[edge ^ 1].to;
      }
    };
    along([&](size_t edge) { flow = std::min(flow, edges_[edge].left); });
    along([&](size_t edge) {
      edges_[edge].left -= flow;
      edges_[edge ^ 1].left += flow;
    });
    return true;
  }

  std::vector<Edge> edges_;  // each beside its other direction
  std::vector<std::vector<int32_t>> edges_of_;
};

bool IsView(const Function& function, OpId op) {
  return function.info(op).strided_view && function.kind(op) != OpKind::kExtendRows;
}

// What each value is a view of.
IdTable<ValueId, ValueId> RootsOf(const Function& function) {
  IdTable<ValueId, ValueId> roots(function.value_limit());
  for (int32_t v = 0; v < function.value_limit(); ++v) roots[ValueId(v)] = ValueId(v);
  for (const OpId op : function.order()) {
    if (!IsView(function, op)) continue;
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      roots[function.result(op, i)] = roots[function.operands(op)[0]];
    }
  }
  return roots;
}

// The origins of what a later function takes of forward: those that other ops than element-wise
// ones read, or that it leaves to others, and all.
struct Reads {
  absl::flat_hash_map<ValueId, bool> firm;  // by origin

  explicit Reads(std::span<StageFunction* const> later) {
    for (const StageFunction* const part : later) {
      const Function& function = part->function;
      const IdTable<ValueId, ValueId> roots = RootsOf(function);
      IdTable<ValueId, char> others(function.value_limit(), 0);
      for (const OpId op : function.order()) {
        if (IsView(function, op)) continue;
        if (ir::FusingOf(function.kind(op)) == ir::Fusing::kElements) continue;
        for (const ValueId operand : function.operands(op)) others[roots[operand]] = 1;
      }
      for (const ir::Output& output : function.outputs()) others[roots[output.value]] = 1;
      for (const ir::Input& input : function.inputs()) {
        const ValueId origin = OriginOf(*part, input.value);
        if (input.role != ir::InputRole::kSaved || !origin.valid()) continue;
        bool& is_firm = firm[origin];
        is_firm = is_firm || others[input.value] != 0;
      }
    }
  }
};

class LessKeeper {
 public:
  LessKeeper(const StageFunction& forward, const Reads& reads, KeepPlan& plan)
      : function_(forward.function),
        plan_(plan),
        roots_(RootsOf(function_)),
        use_(function_.value_limit(), Use::kNone),
        region_(function_.value_limit(), -1) {
    for (int32_t v = 0; v < function_.value_limit(); ++v) {
      const auto found = reads.firm.find(OriginOf(forward, ValueId(v)));
      if (found == reads.firm.end()) continue;
      use_[ValueId(v)] = found->second ? Use::kFirm : Use::kSoft;
    }
  }

  void Run() {
    for (int32_t v = 0; v < function_.value_limit(); ++v) {
      if (IsWanted(ValueId(v)) && region_[ValueId(v)] < 0) Visit(ValueId(v));
    }
    std::vector<std::vector<ValueId>> regions = RegionsInOrder();
    bool changed = false;
    for (const std::vector<ValueId>& region : regions) {
      if (region.size() <= kMostValues && Cut(region)) changed = true;
    }
    if (changed) LookAgain();
  }

 private:
  enum class Use : uint8_t { kNone, kSoft, kFirm };

  bool IsKept(ValueId value) const { return plan_.rematerialized[value] == 0; }
  bool IsWanted(ValueId value) const {
    return use_[value] == Use::kSoft && IsKept(value) && roots_[value] == value && IsCheap(value);
  }

  // Made by an element-wise op that does the same whenever it runs.
  bool IsCheap(ValueId value) const {
    const OpId op = function_.producer(value);
    return op.valid() && ir::FusingOf(function_.kind(op)) == ir::Fusing::kElements &&
           !function_.info(op).random;
  }
  bool IsConstant(ValueId value) const {
    const OpId op = function_.producer(value);
    return op.valid() && function_.kind(op) == OpKind::kConstant;
  }
  // There for backward, whatever is kept.
  bool IsThere(ValueId value) const {
    if (!function_.producer(value).valid() || IsConstant(value)) return true;
    const bool stays = use_[value] == Use::kFirm || !IsCheap(value);
    return use_[value] != Use::kNone && IsKept(value) && stays;
  }

  // Puts the value, and what it is made from as far as that is cheap, into one region.
  void Visit(ValueId wanted) {
    std::vector<ValueId> pending = {wanted};
    while (!pending.empty()) {
      const ValueId value = pending.back();
      pending.pop_back();
      if (region_[value] >= 0) {
        Unite(value, wanted);
        continue;
      }
      region_[value] = value.index();
      Unite(value, wanted);
      if (!IsCheap(value) || IsThere(value)) continue;
      for (const ValueId operand : function_.operands(function_.producer(value))) {
        // What is there anyhow joins no regions.
        if (!IsThere(roots_[operand])) pending.push_back(roots_[operand]);
      }
    }
  }

  // The regions are trees that point to one of their values.
  int32_t TopOf(ValueId value) {
    int32_t top = value.index();
    while (region_[ValueId(top)] != top) {
      region_[ValueId(top)] = region_[ValueId(region_[ValueId(top)])];
      top = region_[ValueId(top)];
    }
    return top;
  }
  void Unite(ValueId a, ValueId b) {
    if (region_[b] < 0) region_[b] = b.index();
    const int32_t one = TopOf(a), other = TopOf(b);
    region_[ValueId(std::max(one, other))] = std::min(one, other);
  }

  std::vector<std::vector<ValueId>> RegionsInOrder() {
    absl::flat_hash_map<int32_t, size_t> numbers;
    std::vector<std::vector<ValueId>> regions;
    for (int32_t v = 0; v < function_.value_limit(); ++v) {
      if (region_[ValueId(v)] < 0) continue;
      const auto [found, fresh] = numbers.try_emplace(TopOf(ValueId(v)), regions.size());
      if (fresh) regions.emplace_back();
      regions[found->second].push_back(ValueId(v));
    }
    return regions;
  }

  int64_t BytesOf(ValueId value) const {
    return ir::SizeOf(ir::LocalType(function_.type(value), function_.mesh())).count();
  }

  // Returns whether fewer bytes are kept.
  bool Cut(const std::vector<ValueId>& region) {
    Network network;
    absl::flat_hash_map<ValueId, int32_t> node;  // where flows come in; they go out of the next
    int64_t kept = 0, cut = 0;
    for (const ValueId value : region) {
      const int32_t in = node[value] = network.AddNode();
      network.AddEdge(in, network.AddNode(), BytesOf(value));
      if (IsWanted(value)) kept += BytesOf(value);
    }
    for (const ValueId value : region) {
      const int32_t in = node.at(value);
      if (IsWanted(value)) network.AddEdge(in + 1, Network::kSink, kNoLimit);
      if (!IsCheap(value)) {
        network.AddEdge(Network::kSource, in, kNoLimit);
        continue;
      }
      for (const ValueId operand : function_.operands(function_.producer(value))) {
        const auto from = node.find(roots_[operand]);
        if (from != node.end()) network.AddEdge(from->second + 1, in, kNoLimit);
      }
    }
    const std::vector<char> behind = network.BehindCut();
    const auto is_behind = [&](int32_t at) { return behind[static_cast<size_t>(at)] != 0; };
    for (const ValueId value : region) {
      const int32_t in = node.at(value);
      if (is_behind(in + 1) && !is_behind(in)) cut += BytesOf(value);
    }
    if (cut >= kept) return false;
    for (const ValueId value : region) {
      const int32_t in = node.at(value);
      if (!is_behind(in + 1)) continue;
      if (is_behind(in) && IsWanted(value)) ++plan_.dropped;
      plan_.rematerialized[value] = is_behind(in) ? 1 : 0;
    }
    return true;
  }

  // Views of what is kept, and constants, are not kept by themselves.
  void LookAgain() {
    for (const OpId op : function_.order()) {
      if (!IsView(function_, op) && function_.kind(op) != OpKind::kConstant) continue;
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        const ValueId result = function_.result(op, i);
        if (use_[result] == Use::kNone) plan_.rematerialized[result] = 1;
      }
    }
  }

  const Function& function_;
  KeepPlan& plan_;
  const IdTable<ValueId, ValueId> roots_;
  IdTable<ValueId, Use> use_;         // by later functions
  IdTable<ValueId, int32_t> region_;  // of values that chains may be computed from
};

}  // namespace
}  // namespace keep_less_cc

void KeepLess(const StageFunction& forward, std::span<StageFunction* const> later, KeepPlan& plan) {
  keep_less_cc::LessKeeper(forward, keep_less_cc::Reads(later), plan).Run();
}

}  // namespace orrery::transforms
