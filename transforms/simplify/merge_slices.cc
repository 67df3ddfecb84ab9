#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/pass/rewriter.h"

// Slices that take a value's rows apart, none of which is left out or taken twice, are one Split:
// as nn.MultiheadAttention takes queries, keys and values from one product. The way back is then
// one Concat, and no sum of padded gradients.

namespace orrery::transforms {
namespace merge_slices_cc {
namespace {

using ir::AttributeSet;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

struct Part {
  int64_t begin = 0, end = 0;
  OpId slice;
};

// The part of its last dimension that a Slice takes; `end` is 0 for other Slices.
Part PartOf(const Function& function, OpId op) {
  const AttributeSet& set = function.attributes(op);
  const ir::Dims& dims = function.type(function.operands(op)[0]).dims;
  const std::vector<int64_t> axes = set.Ints("axes"), starts = set.Ints("starts"),
                             ends = set.Ints("ends"), steps = set.Ints("steps");
  if (axes != std::vector<int64_t>{std::ssize(dims) - 1} || starts.size() != 1 || ends.size() != 1)
    return {};
  if (!steps.empty() && steps != std::vector<int64_t>{1}) return {};
  return {.begin = starts[0], .end = std::min(ends[0], dims.back()), .slice = op};
}

// Whether parts, sorted, follow each other from 0 to `size`.
bool Cover(const std::vector<Part>& parts, int64_t size) {
  int64_t at = 0;
  for (const Part& part : parts) {
    if (part.begin != at || part.end <= at) return false;
    at = part.end;
  }
  return parts.size() > 1 && at == size;
}

// Of each value that is taken apart, its parts in their order.
std::map<int32_t, std::vector<Part>> FindParts(const Function& function) {
  std::map<int32_t, std::vector<Part>> parts;
  for (const OpId op : function.order()) {
    if (function.kind(op) != OpKind::kSlice) continue;
    const Part part = PartOf(function, op);
    if (part.end > 0) parts[function.operands(op)[0].index()].push_back(part);
  }
  for (auto& [value, of_value] : parts) std::ranges::sort(of_value, {}, &Part::begin);
  std::erase_if(parts, [&](const auto& entry) {
    return !Cover(entry.second, function.type(ValueId(entry.first)).dims.back());
  });
  return parts;
}

absl::StatusOr<bool> MergeSlices(Function& function, const PassOptions&) {
  const std::map<int32_t, std::vector<Part>> parts = FindParts(function);
  if (parts.empty()) return false;
  std::map<int32_t, OpId> splits;  // by the value that is taken apart
  return Rewrite(function, [&](Rewriter& r, OpId op) {
    if (r.kind(op) != OpKind::kSlice) return;
    const ValueId x = r.operand(op, 0);
    const auto found = parts.find(x.index());
    if (found == parts.end()) return;
    const auto own = std::ranges::find(found->second, op, &Part::slice);
    if (own == found->second.end()) return;
    OpId& split = splits[x.index()];
    if (!split.valid()) {
      std::vector<int64_t> sizes;
      for (const Part& part : found->second) sizes.push_back(part.end - part.begin);
      const ValueId operands[] = {x};
      const auto last = static_cast<int64_t>(r.rank(x)) - 1;
      split = r.Ops(OpKind::kSplit, operands, {{"axis", last}, {"sizes", sizes}});
    }
    if (!split.valid()) return;
    r.Replace(r.result(op), r.result(split, static_cast<int32_t>(own - found->second.begin())));
  });
}

}  // namespace
}  // namespace merge_slices_cc

extern const PassInfo kMergeSlicesPass = {
    .name = "merge-slices",
    .summary = "makes one Split of the Slices that take all rows of a value apart",
    .options = "",
    .run = merge_slices_cc::MergeSlices,
    .idempotent = true,
};

}  // namespace orrery::transforms
