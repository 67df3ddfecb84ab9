#include "transforms/memory/recompute_policy.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/status.h"
#include "support/word_list.h"

namespace orrery::transforms {
namespace recompute_policy_cc {
namespace {

constexpr const RecomputeRecord* kRecords[] = {
#define ORRERY_RECOMPUTE_POLICY(Name, file) &k##Name##Recompute,
#include "transforms/memory/recompute_policies.def"
#undef ORRERY_RECOMPUTE_POLICY
};

std::string Listed(absl::string_view RecomputeRecord::*text, absl::string_view last) {
  std::array<absl::string_view, std::size(kRecords)> texts;
  std::ranges::transform(kRecords, texts.begin(),
                         [&](const auto* record) { return record->*text; });
  return ListWords(texts, last);
}

// Whether the text is of a record that goes on behind a comma.
bool IsOpen(absl::string_view text) {
  return std::ranges::any_of(kRecords, [&](const RecomputeRecord* record) {
    return !record->open_prefix.empty() && absl::StartsWith(text, record->open_prefix);
  });
}

}  // namespace
}  // namespace recompute_policy_cc

std::span<const RecomputeRecord* const> AllRecomputePolicies() {
  return recompute_policy_cc::kRecords;
}

absl::StatusOr<RecomputePolicy> ParseRecomputePolicy(absl::string_view text) {
  for (const RecomputeRecord* record : recompute_policy_cc::kRecords) {
    if (record->parse == nullptr) {
      if (text == record->name) return RecomputePolicy{.record = record};
      continue;
    }
    ORRERY_ASSIGN_OR_RETURN(const std::optional<RecomputePolicy> policy, record->parse(text));
    if (policy.has_value()) return *policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text.substr(0, 80), "': wanted ",
                   recompute_policy_cc::Listed(&RecomputeRecord::wanted, ", or ")));
}

std::string ToString(const RecomputePolicy& policy) {
  if (policy.record->print != nullptr) return policy.record->print(policy);
  return std::string(policy.record->name);
}

absl::StatusOr<std::vector<std::string>> ParseRecomputeList(absl::string_view text) {
  std::vector<std::string> list;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const bool is_policy = recompute_policy_cc::IsOpen(item) || ParseRecomputePolicy(item).ok();
    if (!is_policy && !list.empty() && recompute_policy_cc::IsOpen(list.back())) {
      absl::StrAppend(&list.back(), ",", item);
    } else {
      list.emplace_back(item);
    }
  }
  for (std::string& item : list) {
    ORRERY_ASSIGN_OR_RETURN(const RecomputePolicy policy, ParseRecomputePolicy(item));
    item = ToString(policy);
  }
  return list;
}

std::string RecomputeValues() {
  return recompute_policy_cc::Listed(&RecomputeRecord::values, " or ");
}

}  // namespace orrery::transforms
