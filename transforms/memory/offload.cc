#include "transforms/memory/offload.h"

#include <re2/re2.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::transforms {
namespace offload_cc {
namespace {

constexpr size_t kLongestPattern = 1000;
constexpr absl::string_view kPatternPrefix = "activations:";

bool IsPattern(absl::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  return !pattern.empty() && pattern.size() <= kLongestPattern &&
         RE2({pattern.data(), pattern.size()}, options).ok();
}

// Sets the part of the policy that `word` names. False: it names none, or one that is there.
bool Take(absl::string_view word, OffloadPolicy& policy) {
  bool& part = word == "optimizer" ? policy.optimizer : policy.activations;
  if (part) return false;
  part = true;
  if (word == "optimizer" || word == "activations") return true;
  if (!absl::ConsumePrefix(&word, kPatternPrefix)) return false;
  policy.pattern = std::string(word);
  return IsPattern(word);
}

}  // namespace
}  // namespace offload_cc

absl::StatusOr<OffloadPolicy> ParseOffloadPolicy(absl::string_view text) {
  OffloadPolicy policy;
  if (text == "none") return policy;
  // A pattern goes to the end of the text.
  const bool pattern_first = absl::StartsWith(text, offload_cc::kPatternPrefix);
  const size_t cut = pattern_first ? absl::string_view::npos : text.find_first_of(",+");
  const bool two = cut != absl::string_view::npos;
  if (offload_cc::Take(text.substr(0, cut), policy) &&
      (!two || offload_cc::Take(text.substr(cut + 1), policy))) {
    return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text.substr(0, 80),
                   "': wanted none, optimizer, activations, activations:REGEX, or two of them as "
                   "in optimizer+activations"));
}

std::string ToString(const OffloadPolicy& policy) {
  if (!policy.activations) return policy.optimizer ? "optimizer" : "none";
  return absl::StrCat(policy.optimizer ? "optimizer+" : "", "activations",
                      policy.pattern.empty() ? "" : ":", policy.pattern);
}

absl::StatusOr<std::vector<std::string>> ParseOffloadList(absl::string_view text) {
  std::vector<std::string> list;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const bool goes_on =
        !list.empty() && absl::StrContains(list.back(), offload_cc::kPatternPrefix);
    if (goes_on && !ParseOffloadPolicy(item).ok()) {
      absl::StrAppend(&list.back(), ",", item);
    } else {
      list.emplace_back(item);
    }
  }
  for (std::string& item : list) {
    ORRERY_ASSIGN_OR_RETURN(const OffloadPolicy policy, ParseOffloadPolicy(item));
    item = ToString(policy);
  }
  return list;
}

HostWork HostWorkOf(const ir::Function& function, ir::OpId op) {
  const bool copies = function.kind(op) == ir::OpKind::kIdentity;
  if (!copies && function.info(op).op_class != ir::OpClass::kOptimizer) return HostWork::kNone;
  const std::string memory = function.attributes(op).String("memory", "");
  if (memory == "host") return copies ? HostWork::kStore : HostWork::kUpdate;
  return copies && memory == "device" ? HostWork::kLoad : HostWork::kNone;
}

HostWorkOfStep FindHostWork(const PipelinedStep& step) {
  HostWorkOfStep found;
  for (const PipelineStage& stage : step.stages) {
    for (const StageFunction* part : stage.parts()) {
      for (const ir::OpId op : part->function.order()) {
        const HostWork work = HostWorkOf(part->function, op);
        found.copies |= work != HostWork::kNone;
        found.updates |= work == HostWork::kUpdate;
      }
    }
  }
  return found;
}

}  // namespace orrery::transforms
