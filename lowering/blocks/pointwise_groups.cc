#include "lowering/blocks/pointwise_groups.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::lowering {
namespace pointwise_groups_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

using Space = PointwiseSpace;

// A dropout, or a sum of what one has left.
bool IsOfDropoutSum(const ir::Function& function, OpId op) {
  if (function.kind(op) != OpKind::kAdd) return function.kind(op) == OpKind::kDropout;
  return std::ranges::any_of(function.operands(op), [&](ValueId operand) {
    const OpId maker = function.producer(operand);
    return maker.valid() && function.kind(maker) == OpKind::kDropout;
  });
}

class GroupFinder {
 public:
  GroupFinder(const ir::Function& function, const LocalTypes& local, FusedOps fused,
              const KernelRoom& room)
      : function_(function), local_(local), fused_(fused), room_(room) {
    groups_.group.resize(function.op_limit(), PointwiseGroups::kAlone);
    groups_.inside.resize(function.value_limit(), 0);
    position_.resize(function.op_limit(), 0);
    root_.resize(function.value_limit());
    readers_.resize(function.value_limit());
    leaves_.resize(function.value_limit(), 0);
    latest_.resize(function.op_limit(), 0);
  }

  PointwiseGroups Run() {
    FindReaders();
    for (const OpId op : function_.order()) {
      const std::optional<Space> space = FusableSpaceOf(function_, local_, op, fused_);
      latest_[op] = LatestBefore(op);
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
      if (IsPosition(function_, op)) {
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
    if (IsOneSpace(own, there)) {
      return Space{.elements = own.elements, .row = std::max(own.row, there.row)};
    }
    if (fits(own, there)) return there;
    if (fits(there, own)) return own;
    if (own.row > 1) return std::nullopt;
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
      const OpId kernel = function_.producer(root_[value]);
      if (!kernel.valid() || (position_[maker] <= first && LatestOf(kernel) < first)) return;
      if (seen.insert(maker).second) pending.push_back(maker);
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
      if (is_in(op) || seen.size() > PointwiseGroups::kMostLookedThrough) return true;
      // A kernel starts once all is there that any of its ops reads.
      if (const int32_t group = groups_.group[op]; group != PointwiseGroups::kAlone) {
        for (const OpId member : groups_.members[static_cast<size_t>(group)]) {
          if (seen.insert(member).second) pending.push_back(member);
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

  // The last position of what the kernel of an op waits for, and of itself: where it is before
  // another kernel begins, it does not wait for that one.
  int32_t LatestOf(OpId op) const {
    const int32_t group = groups_.group[op];
    return group == PointwiseGroups::kAlone ? latest_[op] : latest_of_[static_cast<size_t>(group)];
  }

  // Of an op whose operands have been placed.
  int32_t LatestBefore(OpId op) const {
    int32_t latest = position_[op];
    for (const ValueId operand : function_.operands(op)) {
      const OpId maker = function_.producer(root_[operand]);
      if (maker.valid()) latest = std::max(latest, LatestOf(maker));
    }
    return latest;
  }

  // What waits for these ops, which have got later, and stands before `position`, gets later, too.
  void Delay(const std::vector<OpId>& ops, int32_t latest, int32_t position) {
    std::vector<OpId> pending = ops;
    while (!pending.empty()) {
      const OpId op = pending.back();
      pending.pop_back();
      for (int32_t i = 0; i < function_.result_count(op); ++i) {
        for (const OpId reader : readers_[function_.result(op, i)]) {
          if (position_[reader] >= position || LatestOf(reader) >= latest) continue;
          const int32_t group = groups_.group[reader];
          if (group == PointwiseGroups::kAlone) {
            latest_[reader] = latest;
            pending.push_back(reader);
          } else {
            latest_of_[static_cast<size_t>(group)] = latest;
            const std::vector<OpId>& members = groups_.members[static_cast<size_t>(group)];
            pending.insert(pending.end(), members.begin(), members.end());
          }
        }
      }
    }
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

  // Whether a core has room for the op beside those groups.
  bool HasRoom(OpId op, const std::set<int32_t>& some) const {
    if (!room_.bounded()) return true;
    std::vector<OpId> members = {op};
    for (const int32_t group : some) {
      const std::vector<OpId>& others = groups_.members[static_cast<size_t>(group)];
      members.insert(members.end(), others.begin(), others.end());
    }
    InOrder(members);
    return KernelNeedsOf(members, function_, local_).Fits(room_);
  }

  void InOrder(std::vector<OpId>& members) const {
    std::sort(members.begin(), members.end(),
              [this](OpId a, OpId b) { return position_[a] < position_[b]; });
  }

  // The op joins one group, and with it as many others as go with that one.
  void Place(OpId op, Space space) {
    std::set<int32_t> joined;
    size_t size = 1;
    for (const int32_t group : GroupsBefore(op)) {
      const std::vector<OpId>& members = groups_.members[static_cast<size_t>(group)];
      const std::optional<Space> together = Together(op, space, group);
      const bool is_small = size + members.size() <= PointwiseGroups::kMostMembers;
      if (!together.has_value() || !is_small) continue;
      std::set<int32_t> wanted = joined;
      wanted.insert(group);
      std::vector<OpId> ops = {op};
      if (!joined.empty()) {
        for (const int32_t other : wanted) {
          const std::vector<OpId>& others = groups_.members[static_cast<size_t>(other)];
          ops.insert(ops.end(), others.begin(), others.end());
        }
      }
      if (LeadsBack(ops, wanted, op) || !HasRoom(op, wanted)) continue;
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
      latest_of_.emplace_back();
    }
    int32_t latest = LatestBefore(op);
    for (const int32_t group : joined) {
      latest = std::max(latest, latest_of_[static_cast<size_t>(group)]);
    }
    std::vector<OpId> members = {op};
    for (const int32_t group : joined) {
      std::vector<OpId>& others = groups_.members[static_cast<size_t>(group)];
      members.insert(members.end(), others.begin(), others.end());
      others.clear();
    }
    InOrder(members);
    for (const OpId member : members) groups_.group[member] = into;
    groups_.members[static_cast<size_t>(into)] = std::move(members);
    spaces_[static_cast<size_t>(into)] = space;
    latest_of_[static_cast<size_t>(into)] = latest;
    Delay(groups_.members[static_cast<size_t>(into)], latest, position_[op]);
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
  const KernelRoom room_;
  PointwiseGroups groups_;
  std::vector<Space> spaces_;                    // of groups
  std::vector<int32_t> latest_of_;               // likewise
  IdTable<OpId, int32_t> latest_;                // of ops that are in none
  IdTable<OpId, int32_t> position_;              // in the order
  IdTable<ValueId, ValueId> root_;               // what a value is a view of
  IdTable<ValueId, std::vector<OpId>> readers_;  // of it and of its views
  IdTable<ValueId, char> leaves_;                // for another function
};

}  // namespace
}  // namespace pointwise_groups_cc

std::optional<PointwiseSpace> FusableSpaceOf(const ir::Function& function, const LocalTypes& local,
                                             ir::OpId op, FusedOps fused) {
  if (function.operands(op).empty() || function.result_count(op) == 0) return std::nullopt;
  if (fused == FusedOps::kDropoutSums && !pointwise_groups_cc::IsOfDropoutSum(function, op)) {
    return std::nullopt;
  }
  const ir::DType dtype = local.Of(function.result(op)).dtype;
  const bool is_copy = function.kind(op) == ir::OpKind::kCast && ir::IsNarrow(dtype);
  if (is_copy && fused == FusedOps::kAllButCopies) return std::nullopt;
  return PointwiseSpaceOf(function, local, op);
}

PointwiseGroups FindPointwiseGroups(const ir::Function& function, const LocalTypes& local,
                                    FusedOps fused, const KernelRoom& room) {
  return pointwise_groups_cc::GroupFinder(function, local, fused, room).Run();
}

std::vector<Bytes> TrafficOf(const std::vector<ir::OpId>& members, const ir::Function& function,
                             const LocalTypes& local, const PointwiseGroups& groups) {
  absl::flat_hash_map<ir::ValueId, int64_t> unread;  // of what comes from outside
  absl::flat_hash_set<ir::ValueId> seen;             // itself, or a view of it
  std::vector<Bytes> traffic;
  for (const ir::OpId member : members) {
    int64_t bytes = 0;
    for (const ir::ValueId operand : function.operands(member)) {
      const ir::ValueId root = RootOf(function, operand);
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
