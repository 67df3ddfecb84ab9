#include <re2/re2.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "transforms/memory/recompute_policy.h"

// All but values that a regular expression finds, by their names or that of the op's result 0.

namespace orrery::transforms {
namespace recompute_matching_cc {
namespace {

using ir::OpId;
using ir::ValueId;

constexpr size_t kLongestPattern = 1000;

absl::StatusOr<std::optional<RecomputePolicy>> Parse(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "match:")) return std::nullopt;
  RE2::Options options;
  options.set_log_errors(false);
  const bool fits = !text.empty() && text.size() <= kLongestPattern;
  if (fits && RE2({text.data(), text.size()}, options).ok()) {
    return RecomputePolicy{.record = &kMatchingRecompute, .pattern = std::string(text)};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'match:", text.substr(0, 80), "': wanted a regular expression of at most ",
                   kLongestPattern, " characters, as in match:gelu|norm"));
}

std::string Print(const RecomputePolicy& policy) { return absl::StrCat("match:", policy.pattern); }

void Mark(const ForwardValues& f, const RecomputePolicy& policy,
          IdTable<ValueId, char>& rematerialized) {
  const ir::Function& forward = f.function;
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 pattern(policy.pattern, options);
  const auto matches = [&](ValueId value) {
    const absl::string_view name = forward.value_name(value);
    return !name.empty() && RE2::PartialMatch({name.data(), name.size()}, pattern);
  };
  for (const OpId op : forward.order()) {
    if (forward.result_count(op) == 0) continue;
    const bool all = matches(forward.result(op));
    for (int32_t i = 0; i < forward.result_count(op); ++i) {
      const ValueId result = forward.result(op, i);
      rematerialized[result] = all || f.saved[result] == 0 || matches(result) ? 1 : 0;
    }
  }
}

}  // namespace
}  // namespace recompute_matching_cc

extern constinit const RecomputeRecord kMatchingRecompute = {
    .name = "match",
    .values = "match:REGEX (values with such names)",
    .wanted = "match:REGEX",
    .example = "match:.",
    .parse = recompute_matching_cc::Parse,
    .print = recompute_matching_cc::Print,
    .open_prefix = "match:",
    .finds = true,
    .mark = recompute_matching_cc::Mark,
};

}  // namespace orrery::transforms
