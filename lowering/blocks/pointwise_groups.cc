#include "lowering/blocks/pointwise_groups.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/fusing.h"
#include "transforms/memory/offload.h"

namespace orrery::lowering {
namespace pointwise_groups_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Inductor's max_fusion_size.
constexpr size_t kMostMembers = 64;
// Ops between the members of a group that are looked through for a way back into it. What stands
// further apart is not fused.
constexpr size_t kMostLookedThrough = 512;

// What an op goes over: rows of so many elements each, which a reduction puts together.
struct Space {
  int64_t elements = 0;
  int64_t row = 1;  // 1: there is no reduction
};

// A position in another value: no work, and no memory.
bool IsView(const ir::Function& function, OpId op) {
  return function.info(op).strided_view && function.kind(op) != OpKind::kExtendRows &&
         transforms::HostWorkOf(function, op) == transforms::HostWork::kNone;
}

class GroupFinder {
 public:
  GroupFinder(const ir::Function& function, const LocalTypes& local, FusedOps fused)
      : function_(function), local_(local), fused_(fused) {
    groups_.group.resize(function.op_limit(), PointwiseGroups::kAlone);
    groups_.inside.resize(function.value_limit(), 0);
    position_.resize(function.op_limit(), 0);
    root_.resize(function.value_limit());
    readers_.resize(function.value_limit());
    leaves_.resize(function.value_limit(), 0);
  }

  PointwiseGroups Run() {
    FindReaders();
    for (const OpId op : function_.order()) {
      const std::optional<Space> space = SpaceOf(op);
      if (space.has_value()) Place(op, *space);
    }
    KeepLarge();
    FindInside();
    return std::move(groups_);
  }

 private:
  void FindReaders() {
    for (int32_t v = 0; v < function_.value_limit(); ++v) root_[ValueId(v)] = ValueId(v);
    int32_t position = 0;
    for (const OpId op : function_.order()) {
      position_[op] = position++;
      if (IsView(function_, op)) {
        for (int32_t i = 0; i < function_.result_count(op); ++i) {
          root_[function_.result(op, i)] = root_[function_.operands(op)[0]];
        }
        continue;
      }
      for (const ValueId operand : function_.operands(op)) {
        std::vector<OpId>& readers = readers_[root_[operand]];
        if (readers.empty() || readers.back() != op) readers.push_back(op);
      }
    }
    for (const ir::Output& output : function_.outputs()) leaves_[root_[output.value]] = 1;
  }

  int64_t ElementsOf(ValueId value) const { return ir::ElementCount(local_.Of(value).dims); }

  // Nothing for an op that is a kernel of its own.
  std::optional<Space> SpaceOf(OpId op) const {
    const auto operands = function_.operands(op);
    if (operands.empty() || function_.result_count(op) == 0) return std::nullopt;
    if (fused_ == FusedOps::kDropoutSums && !IsOfDropoutSum(op)) return std::nullopt;
    const ir::DType dtype = local_.Of(function_.result(op)).dtype;
    const bool is_copy = function_.kind(op) == OpKind::kCast && ir::IsNarrow(dtype);
    if (is_copy && fused_ == FusedOps::kAllButCopies) return std::nullopt;
    const int64_t elements = ElementsOf(function_.result(op));
    const ir::Fusing fusing = ir::FusingOf(function_.kind(op));
    if (fusing == ir::Fusing::kNever) return std::nullopt;
    if (fusing == ir::Fusing::kElements) return Space{.elements = elements};
    const int64_t read = ElementsOf(operands[0]);
    if (elements <= 1 || !IsOverLast(op)) return std::nullopt;
    return Space{.elements = read, .row = read / elements};
  }

  // A dropout, or a sum of what one has left.
  bool IsOfDropoutSum(OpId op) const {
    if (function_.kind(op) != OpKind::kAdd) return function_.kind(op) == OpKind::kDropout;
    return std::ranges::any_of(function_.operands(op), [&](ValueId operand) {
      const OpId maker = function_.producer(operand);
      return maker.valid() && function_.kind(maker) == OpKind::kDropout;
    });
  }

  bool IsOverLast(OpId op) const {
    const auto rank = static_cast<int64_t>(local_.Of(function_.operands(op)[0]).dims.size());
    std::vector<int64_t> axes = function_.attributes(op).Ints("axes");
    std::sort(axes.begin(), axes.end());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return false;
    }
    return !axes.empty();
  }

  // Whether the op alone reads what the group makes, and nobody later will.
  bool IsOnlyReader(OpId op, const std::vector<OpId>& members) const {
    for (const OpId member : members) {
      for (int32_t i = 0; i < function_.result_count(member); ++i) {
        const ValueId result = function_.result(member, i);
        if (leaves_[result] != 0) return false;
        for (const OpId reader : readers_[result]) {
          if (reader != op && groups_.group[reader] != groups_.group[member]) return false;
        }
      }
    }
    return true;
  }

  // What both go over together; nothing where they are not one kernel.
  std::optional<Space> Together(OpId op, const Space& own, int32_t group) const {
    const Space& there = spaces_[static_cast<size_t>(group)];
    const auto fits = [](const Space& few, const Space& all) {  // rows that have been put together
      return few.row == 1 && all.row > 1 && few.elements == all.elements / all.row;
    };
    const bool rows_agree = own.row == there.row || own.row == 1 || there.row == 1;
    if (own.elements == there.elements && rows_agree) {
      return Space{.elements = own.elements, .row = std::max(own.row, there.row)};
    }
    if (fits(own, there)) return there;
    if (fits(there, own)) return own;
    if (own.row > 1 || !rows_agree) return std::nullopt;
    if (!IsOnlyReader(op, groups_.members[static_cast<size_t>(group)])) return std::nullopt;
    return Space{.elements = std::max(own.elements, there.elements), .row = there.row};
  }

  // Whether a way leads from members of `some` groups through another kernel to an operand of
  // `ops`.
  bool LeadsBack(const std::vector<OpId>& ops, const std::set<int32_t>& some, OpId joins) const {
    int32_t first = position_[joins];
    for (const int32_t group : some) {
      first = std::min(first, position_[groups_.members[static_cast<size_t>(group)][0]]);
    }
    const auto is_in = [&](OpId op) { return some.contains(groups_.group[op]); };
    std::vector<OpId> pending;
    absl::flat_hash_set<OpId> seen;
    const auto look = [&](ValueId value) {
      const OpId maker = function_.producer(value);
      if (maker.valid() && position_[maker] > first && seen.insert(maker).second) {
        pending.push_back(maker);
      }
    };
    for (const OpId op : ops) {
      for (const ValueId operand : function_.operands(op)) {
        const OpId maker = function_.producer(root_[operand]);
        if (maker.valid() && !is_in(maker)) look(root_[operand]);
      }
    }
    while (!pending.empty()) {
      const OpId op = pending.back();
      pending.pop_back();
      if (is_in(op) || seen.size() > kMostLookedThrough) return true;
      // A kernel starts once all is there that any of its ops reads.
      if (const int32_t group = groups_.group[op]; group != PointwiseGroups::kAlone) {
        for (const OpId member : groups_.members[static_cast<size_t>(group)]) {
          if (position_[member] > first && seen.insert(member).second) pending.push_back(member);
        }
      }
      for (const ValueId operand : function_.operands(op)) {
        const OpId maker = function_.producer(root_[operand]);
        if (maker.valid() && is_in(maker)) return true;
        look(operand);
      }
    }
    return false;
  }

  // The groups that make operands of the op, the one that makes the most first.
  std::vector<int32_t> GroupsBefore(OpId op) const {
    std::vector<std::pair<int64_t, int32_t>> found;
    for (const ValueId operand : function_.operands(op)) {
      const OpId maker = function_.producer(root_[operand]);
      if (!maker.valid() || groups_.group[maker] == PointwiseGroups::kAlone) continue;
      found.emplace_back(-local_.BytesOf(root_[operand]), groups_.group[maker]);
    }
    std::sort(found.begin(), found.end());
    std::vector<int32_t> groups;
    for (const auto& [bytes, group] : found) {
      if (std::count(groups.begin(), groups.end(), group) == 0) groups.push_back(group);
    }
    return groups;
  }

  // The op joins one group, and with it as many others as go with that one.
  void Place(OpId op, Space space) {
    std::set<int32_t> joined;
    size_t size = 1;
    for (const int32_t group : GroupsBefore(op)) {
      const std::vector<OpId>& members = groups_.members[static_cast<size_t>(group)];
      const std::optional<Space> together = Together(op, space, group);
      if (!together.has_value() || size + members.size() > kMostMembers) continue;
      std::set<int32_t> wanted = joined;
      wanted.insert(group);
      std::vector<OpId> ops = {op};
      if (!joined.empty()) {
        for (const int32_t other : wanted) {
          const std::vector<OpId>& others = groups_.members[static_cast<size_t>(other)];
          ops.insert(ops.end(), others.begin(), others.end());
        }
      }
      if (LeadsBack(ops, wanted, op)) continue;
      joined = std::move(wanted);
      space = *together;
      size += members.size();
    }
    Join(op, space, joined);
  }

  void Join(OpId op, const Space& space, const std::set<int32_t>& joined) {
    int32_t into = static_cast<int32_t>(groups_.members.size());
    for (const int32_t group : joined) into = std::min(into, group);
    if (joined.empty()) {
      groups_.members.emplace_back();
      spaces_.emplace_back();
    }
    std::vector<OpId> members = {op};
    for (const int32_t group : joined) {
      std::vector<OpId>& others = groups_.members[static_cast<size_t>(group)];
      members.insert(members.end(), others.begin(), others.end());
      others.clear();
    }
    std::sort(members.begin(), members.end(),
              [this](OpId a, OpId b) { return position_[a] < position_[b]; });
    for (const OpId member : members) groups_.group[member] = into;
    groups_.members[static_cast<size_t>(into)] = std::move(members);
    spaces_[static_cast<size_t>(into)] = space;
  }

  // Groups of two or more, numbered anew.
  void KeepLarge() {
    std::vector<std::vector<OpId>> kept;
    for (std::vector<OpId>& members : groups_.members) {
      const bool large = members.size() > 1;
      const auto number = large ? static_cast<int32_t>(kept.size()) : PointwiseGroups::kAlone;
      for (const OpId member : members) groups_.group[member] = number;
      if (large) kept.push_back(std::move(members));
    }
    groups_.members = std::move(kept);
  }

  void FindInside() {
    for (const std::vector<OpId>& members : groups_.members) {
      const int32_t group = groups_.group[members[0]];
      for (const OpId member : members) {
        for (int32_t i = 0; i < function_.result_count(member); ++i) {
          const ValueId result = function_.result(member, i);
          const std::vector<OpId>& readers = readers_[result];
          const bool inside =
              leaves_[result] == 0 && std::all_of(readers.begin(), readers.end(), [&](OpId reader) {
                return groups_.group[reader] == group;
              });
          groups_.inside[result] = inside ? 1 : 0;
        }
      }
    }
    for (int32_t v = 0; v < function_.value_limit(); ++v) {  // views of them
      groups_.inside[ValueId(v)] = groups_.inside[root_[ValueId(v)]];
    }
  }

  const ir::Function& function_;
  const LocalTypes& local_;
  const FusedOps fused_;
  PointwiseGroups groups_;
  std::vector<Space> spaces_;                    // of groups
  IdTable<OpId, int32_t> position_;              // in the order
  IdTable<ValueId, ValueId> root_;               // what a value is a view of
  IdTable<ValueId, std::vector<OpId>> readers_;  // of it and of its views
  IdTable<ValueId, char> leaves_;                // for another function
};

// What a value is a view of.
ValueId RootOf(const ir::Function& function, ValueId value) {
  OpId maker = function.producer(value);
  while (maker.valid() && IsView(function, maker)) {
    value = function.operands(maker)[0];
    maker = function.producer(value);
  }
  return value;
}

}  // namespace
}  // namespace pointwise_groups_cc

PointwiseGroups FindPointwiseGroups(const ir::Function& function, const LocalTypes& local,
                                    FusedOps fused) {
  return pointwise_groups_cc::GroupFinder(function, local, fused).Run();
}

std::vector<Bytes> TrafficOf(const std::vector<ir::OpId>& members, const ir::Function& function,
                             const LocalTypes& local, const PointwiseGroups& groups) {
  absl::flat_hash_map<ir::ValueId, int64_t> unread;  // of what comes from outside
  absl::flat_hash_set<ir::ValueId> seen;             // itself, or a view of it
  std::vector<Bytes> traffic;
  for (const ir::OpId member : members) {
    int64_t bytes = 0;
    for (const ir::ValueId operand : function.operands(member)) {
      const ir::ValueId root = pointwise_groups_cc::RootOf(function, operand);
      const ir::OpId maker = function.producer(root);
      if (maker.valid() && groups.group[maker] == groups.group[member]) continue;
      if (!seen.insert(operand).second) continue;
      int64_t& left = unread.try_emplace(root, local.BytesOf(root)).first->second;
      const int64_t read = std::min(left, local.BytesOf(operand));
      left -= read;
      bytes += read;
    }
    for (int32_t i = 0; i < function.result_count(member); ++i) {
      const ir::ValueId result = function.result(member, i);
      if (groups.inside[result] == 0) bytes += local.BytesOf(result);
    }
    traffic.push_back(Bytes(bytes));
  }
  return traffic;
}

}  // namespace orrery::lowering
