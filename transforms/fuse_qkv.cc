#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "transforms/pass.h"
#include "transforms/rewriter.h"

// Products side by side that read the same x, such as those of queries, keys and values: one
// LinearGroup, which reads it once. The weights stay tensors of their own.

namespace orrery::transforms {
namespace {

using ir::AttributeSet;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// What is further apart is no longer side by side: the keys that each decoder layer makes of one
// encoder's result.
constexpr size_t kMaxDistance = 64;

// What products must have in common.
struct Key {
  ValueId x;
  bool transposed = false, biased = false;

  friend bool operator==(const Key&, const Key&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.x.index(), k.transposed, k.biased);
  }
};

std::optional<Key> KeyOf(const Function& function, OpId op) {
  const OpKind kind = function.kind(op);
  if (kind != OpKind::kMatMul && kind != OpKind::kLinear) return std::nullopt;
  const AttributeSet& set = function.attributes(op);
  const auto operands = function.operands(op);
  if (set.Int("transpose_x", 0) != 0 || set.Find("activation") != nullptr) return std::nullopt;
  if (function.type(operands[1]).dims.size() != 2 || function.type(operands[0]).dims.size() < 2) {
    return std::nullopt;
  }
  return Key{.x = operands[0],
             .transposed = set.Int("transpose_w", 0) != 0,
             .biased = operands.size() > 2};
}

// Members of each group, by its first one.
using Groups = absl::flat_hash_map<OpId, std::vector<OpId>>;

Groups FindGroups(const Function& function) {
  struct Open {
    OpId first;
    size_t last = 0;  // place of the last member
  };
  absl::flat_hash_map<Key, Open> open;
  Groups groups;
  for (size_t place = 0; place < function.order().size(); ++place) {
    const OpId op = function.order()[place];
    const std::optional<Key> key = KeyOf(function, op);
    if (!key.has_value()) continue;
    Open& group = open[*key];
    if (!group.first.valid() || place - group.last > kMaxDistance) group.first = op;
    group.last = place;
    groups[group.first].push_back(op);
  }
  return groups;
}

// The group takes the place of its first member: only those may join whose weights are there.
void FuseGroup(Rewriter& r, const std::vector<OpId>& members) {
  std::vector<OpId> joined;
  for (const OpId op : members) {
    bool defined = r.is_alive(op);
    for (size_t i = 1; defined && i < r.operand_count(op); ++i) {
      defined = r.is_defined(r.operand(op, i));
    }
    if (defined) joined.push_back(op);
  }
  if (joined.size() < 2 || joined[0] != members[0]) return;
  std::vector<ValueId> operands = {r.operand(joined[0], 0)};
  for (size_t i = 1; i < r.operand_count(joined[0]); ++i) {
    for (const OpId op : joined) operands.push_back(r.operand(op, i));
  }
  AttributeSet attributes = r.attributes(joined[0]);
  attributes.Set("count", static_cast<int64_t>(joined.size()));
  const OpId group = r.Ops(OpKind::kLinearGroup, operands, attributes);
  if (!group.valid()) return;
  for (size_t i = 0; i < joined.size(); ++i) {
    r.Replace(r.result(joined[i]), r.result(group, static_cast<int32_t>(i)));
  }
}

absl::StatusOr<bool> FuseQkv(Function& function, const PassOptions&) {
  const Groups groups = FindGroups(function);
  return Rewrite(function, [&groups](Rewriter& r, OpId op) {
    const auto found = groups.find(op);
    if (found != groups.end() && found->second.size() > 1) FuseGroup(r, found->second);
  });
}

}  // namespace

extern const PassInfo kFuseQkvPass = {
    .name = "fuse-qkv",
    .summary = "makes one LinearGroup of products that read the same value",
    .options = "",
    .run = FuseQkv,
    .idempotent = true,
};

}  // namespace orrery::transforms
