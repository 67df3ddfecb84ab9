#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ir/op_kind.h"
#include "transforms/pass/equal_ops.h"
#include "transforms/pass/pass.h"
#include "transforms/pass/rewriter.h"

// Common subexpressions: an op that does what an earlier one does takes its results.

namespace orrery::transforms {
namespace merge_common_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// What two ops must have in common to be the same. The type tells constants apart.
struct Key {
  OpKind kind;
  ir::AttributesId attributes;
  ir::TypeId type;
  absl::InlinedVector<ValueId, 4> operands;

  friend bool operator==(const Key&, const Key&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Key& k) {
    for (const ValueId value : k.operands) h = H::combine(std::move(h), value.index());
    return H::combine(std::move(h), k.kind, k.attributes.index(), k.type.index());
  }
};

absl::StatusOr<bool> MergeCommon(ir::Function& function, const PassOptions&) {
  absl::flat_hash_map<Key, OpId> known;
  known.reserve(function.order().size());
  return Rewrite(function, [&known](Rewriter& r, OpId op) {
    if (!IsWhatItReads(r.function(), op)) return;
    const auto operands = r.function().operands(op);
    const auto [found, is_new] = known.emplace(Key{.kind = r.kind(op),
                                                   .attributes = r.function().attributes_id(op),
                                                   .type = r.function().type_id(r.result(op)),
                                                   .operands = {operands.begin(), operands.end()}},
                                               op);
    if (is_new) return;
    const OpId first = found->second;
    for (int32_t i = 0; i < r.function().result_count(op); ++i) {
      if (!r.MayReplace(r.result(op, i), r.result(first, i))) return;
    }
    for (int32_t i = 0; i < r.function().result_count(op); ++i) {
      r.Replace(r.result(op, i), r.result(first, i));
    }
  });
}

}  // namespace
}  // namespace merge_common_cc

extern const PassInfo kMergeCommonPass = {
    .name = "merge-common",
    .summary = "computes once what several ops compute alike",
    .options = "",
    .run = merge_common_cc::MergeCommon,
    .idempotent = true,
};

}  // namespace orrery::transforms
