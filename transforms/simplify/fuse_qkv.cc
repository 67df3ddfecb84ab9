#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/pass/rewriter.h"

// Products side by side that read the same x and whose results meet: queries, keys and values of
// one attention, gate and up of one SwiGlu. One LinearGroup, which reads x once; the weights stay
// tensors of their own. The keys that each decoder layer makes of one encoder's result do not meet.

namespace orrery::transforms {
namespace fuse_qkv_cc {
namespace {

using ir::AttributeSet;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// What is further than so many ops from a product is not looked at.
constexpr size_t kMaxReach = 64;

// What products must have in common.
struct Key {
  ValueId x;
  bool transposed = false;

  friend bool operator==(const Key&, const Key&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.x.index(), k.transposed);
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
  return Key{.x = operands[0], .transposed = set.Int("transpose_w", 0) != 0};
}

// Finds the products that belong together.
class Finder {
 public:
  explicit Finder(const Function& function) : function_(function), users_(function.value_limit()) {
    for (const OpId op : function.order()) {
      for (const ValueId value : function.operands(op)) users_[value].push_back(op);
    }
  }

  // Members of each group in their order, by its first one.
  absl::flat_hash_map<OpId, std::vector<OpId>> Find() const {
    absl::flat_hash_map<OpId, std::vector<OpId>> groups;
    absl::flat_hash_set<OpId> seen;
    for (const OpId op : function_.order()) {
      const std::optional<Key> key = KeyOf(function_, op);
      if (!key.has_value() || !seen.insert(op).second) continue;
      std::vector<OpId> alike;
      for (const OpId user : users_[key->x]) {
        if (KeyOf(function_, user) != key) continue;
        seen.insert(user);
        if (alike.empty() || alike.back() != user) alike.push_back(user);
      }
      if (alike.size() > 1) AddThoseThatMeet(alike, groups);
    }
    return groups;
  }

 private:
  // Products with weights end what a product is made for, and so does attention.
  bool Ends(OpId op) const {
    if (!function_.info(op).matrix_product) return false;
    const auto operands = function_.operands(op);
    return function_.kind(op) != OpKind::kMatMul || function_.type(operands[1]).dims.size() < 3;
  }

  // What the result of `product` goes into, up to the next products.
  std::vector<OpId> Reach(OpId product) const {
    std::vector<OpId> reached = {product};
    absl::flat_hash_set<OpId> seen = {product};
    for (size_t i = 0; i < reached.size() && reached.size() < kMaxReach; ++i) {
      if (i > 0 && Ends(reached[i])) continue;
      for (int32_t j = 0; j < function_.result_count(reached[i]); ++j) {
        const ValueId value = function_.result(reached[i], j);
        if (function_.type(value).dims.empty()) continue;  // losses meet in their sum
        for (const OpId user : users_[value]) {
          if (seen.insert(user).second) reached.push_back(user);
        }
      }
    }
    return reached;
  }

  void AddThoseThatMeet(const std::vector<OpId>& alike,
                        absl::flat_hash_map<OpId, std::vector<OpId>>& groups) const {
    std::vector<size_t> group(alike.size());  // the first one of the group of each
    absl::flat_hash_map<OpId, size_t> reached_by;
    for (size_t i = 0; i < alike.size(); ++i) {
      group[i] = i;
      for (const OpId op : Reach(alike[i])) {
        const size_t other = group[reached_by.try_emplace(op, i).first->second];
        const size_t first = std::min(group[i], other), last = std::max(group[i], other);
        std::replace(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(i) + 1, last,
                     first);
      }
    }
    for (size_t i = 0; i < alike.size(); ++i) groups[alike[group[i]]].push_back(alike[i]);
  }

  const Function& function_;
  IdTable<ValueId, std::vector<OpId>> users_;
};

// The bias of a product; zeros where it has none beside others that have one, as Whisper's keys.
ValueId BiasOf(Rewriter& r, OpId op) {
  if (r.operand_count(op) > 2) return r.operand(op, 2);
  const ir::TensorType& y = r.type(r.result(op));
  return r.Filled({.dtype = y.dtype, .dims = {y.dims.back()}, .sharding = {}}, 0);
}

// The group replaces its first member: only those may join whose weights are there.
void FuseGroup(Rewriter& r, const std::vector<OpId>& members) {
  std::vector<OpId> joined;
  bool biased = false;
  for (const OpId op : members) {
    bool defined = r.is_alive(op);
    for (size_t i = 1; defined && i < r.operand_count(op); ++i) {
      defined = r.is_defined(r.operand(op, i));
    }
    if (!defined) continue;
    joined.push_back(op);
    biased = biased || r.operand_count(op) > 2;
  }
  if (joined.size() < 2 || joined[0] != members[0]) return;
  std::vector<ValueId> operands = {r.operand(joined[0], 0)};
  for (const OpId op : joined) operands.push_back(r.operand(op, 1));
  for (size_t i = 0; biased && i < joined.size(); ++i) operands.push_back(BiasOf(r, joined[i]));
  AttributeSet attributes = r.attributes(joined[0]);
  attributes.Set("count", static_cast<int64_t>(joined.size()));
  const OpId group = r.Ops(OpKind::kLinearGroup, operands, attributes);
  if (!group.valid()) return;
  for (size_t i = 0; i < joined.size(); ++i) {
    r.Replace(r.result(joined[i]), r.result(group, static_cast<int32_t>(i)));
  }
}

absl::StatusOr<bool> FuseQkv(Function& function, const PassOptions&) {
  const auto groups = Finder(function).Find();
  return Rewrite(function, [&groups](Rewriter& r, OpId op) {
    const auto found = groups.find(op);
    if (found != groups.end() && found->second.size() > 1) FuseGroup(r, found->second);
  });
}

}  // namespace
}  // namespace fuse_qkv_cc

extern const PassInfo kFuseQkvPass = {
    .name = "fuse-qkv",
    .summary = "makes one LinearGroup of products that read the same value and whose results meet",
    .options = "",
    .run = fuse_qkv_cc::FuseQkv,
    .idempotent = true,
};

}  // namespace orrery::transforms
