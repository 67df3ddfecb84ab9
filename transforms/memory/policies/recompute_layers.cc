#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/op_info.h"
#include "transforms/memory/recompute_policy.h"

// Of each K consecutive layers only the input of the first (Chen et al. 2016): what crosses the end
// of a group of layers is kept, wanted so far or not, and so is what is made outside of layers.

namespace orrery::transforms {
namespace recompute_layers_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

absl::StatusOr<std::optional<RecomputePolicy>> Parse(absl::string_view text) {
  RecomputePolicy policy{.record = &kLayersRecompute};
  if (text == "full") return policy;
  const bool says = absl::ConsumePrefix(&text, "every:") && absl::SimpleAtoi(text, &policy.every);
  if (!says || policy.every < 1) return std::nullopt;
  return policy;
}

std::string Print(const RecomputePolicy& policy) {
  return policy.every == 1 ? "full" : absl::StrCat("every:", policy.every);
}

bool IsView(const Function& forward, OpId op) {
  return forward.info(op).strided_view && !forward.operands(op).empty();
}

// The end of the group of layers that each position is in; -1 outside of them.
std::vector<int32_t> GroupEnds(const ForwardValues& f, const RecomputePolicy& policy) {
  std::vector<int32_t> ends(f.function.order().size(), -1);
  const size_t count = f.layers.size(), every = std::min(static_cast<size_t>(policy.every), count);
  for (size_t i = 0; i < count; ++i) {
    const size_t last = std::min(i - i % every + every, count) - 1;
    for (int32_t position = f.layers[i].begin; position < f.layers[i].end; ++position) {
      ends[static_cast<size_t>(position)] = f.layers[last].end;
    }
  }
  return ends;
}

// What each value is a view of, itself where it is none, and where that is used for the last time.
class LastUses {
 public:
  explicit LastUses(const Function& forward)
      : base_(forward.value_limit()), last_(forward.value_limit(), -1) {
    for (size_t position = 0; position < forward.order().size(); ++position) {
      const OpId op = forward.order()[position];
      for (const ValueId operand : forward.operands(op)) {
        last_[BaseOf(operand)] = static_cast<int32_t>(position);
      }
      if (!IsView(forward, op)) continue;
      for (int32_t i = 0; i < forward.result_count(op); ++i) {
        base_[forward.result(op, i)] = BaseOf(forward.operands(op)[0]);
      }
    }
  }

  int32_t operator[](ValueId value) const { return last_[BaseOf(value)]; }

 private:
  ValueId BaseOf(ValueId value) const { return base_[value].valid() ? base_[value] : value; }

  IdTable<ValueId, ValueId> base_;
  IdTable<ValueId, int32_t> last_;
};

void Mark(const ForwardValues& f, const RecomputePolicy& policy,
          IdTable<ValueId, char>& rematerialized) {
  const Function& forward = f.function;
  const std::vector<int32_t> ends = GroupEnds(f, policy);
  const LastUses last(forward);
  for (size_t position = 0; position < ends.size(); ++position) {
    const OpId op = forward.order()[position];
    for (int32_t i = 0; i < forward.result_count(op); ++i) {
      const ValueId result = forward.result(op, i);
      const bool inside = ends[position] >= 0 && last[result] < ends[position];
      const bool free = f.saved[result] == 0 && (f.from_data[result] == 0 || IsView(forward, op));
      rematerialized[result] = inside || free ? 1 : 0;
    }
  }
}

}  // namespace
}  // namespace recompute_layers_cc

extern constinit const RecomputeRecord kLayersRecompute = {
    .name = "layers",
    .values = "full (all but the input of each layer), every:K (of K layers)",
    .wanted = "full, every:K with K of at least 1",
    .example = "every:2",
    .parse = recompute_layers_cc::Parse,
    .print = recompute_layers_cc::Print,
    .by_layers = true,
    .mark = recompute_layers_cc::Mark,
    .groups = recompute_layers_cc::GroupEnds,
    .suggested = {.text = "full", .share = 0.1, .rank = 400},
};

}  // namespace orrery::transforms
