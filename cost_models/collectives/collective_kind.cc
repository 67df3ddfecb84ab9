#include "cost_models/collectives/collective_kind.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/names/near_names.h"

namespace orrery::cost_models {
namespace collective_kind_cc {
namespace {

Share Twice(int64_t n) { return {2 * (n - 1), n}; }
Share AllButOne(int64_t n) { return {n - 1, n}; }
Share Whole(int64_t) { return {1, 1}; }
Share Nothing(int64_t) { return {0, 1}; }

using enum CollectiveKind;
constexpr std::array<CollectiveKindInfo, kCollectiveKindCount> kKinds = {{
    {kAllReduce, "all-reduce", "the tensor that each rank brings", Twice},
    {kAllGather, "all-gather", "the whole that each rank ends up with", AllButOne},
    {kReduceScatter, "reduce-scatter", "the tensor that each rank brings", AllButOne},
    {kAllToAll, "all-to-all", "what each rank brings", AllButOne},
    {kBroadcast, "broadcast", "the tensor of the root", Whole, true},
    {kReduce, "reduce", "the tensor that each rank brings", Whole, true},
    {kScatter, "scatter", "the tensor of the root", AllButOne, true},
    {kGather, "gather", "the whole that the root ends up with", AllButOne, true},
    {kSendReceive, "send-receive", "the message that each rank sends to the next", Whole, true},
    {kBarrier, "barrier", "of no meaning: no data moves", Nothing},
}};

}  // namespace
}  // namespace collective_kind_cc

std::span<const CollectiveKindInfo> AllCollectiveKinds() { return collective_kind_cc::kKinds; }

const CollectiveKindInfo& GetCollectiveKind(CollectiveKind kind) {
  return collective_kind_cc::kKinds[static_cast<size_t>(kind)];
}

absl::StatusOr<CollectiveKind> FindCollectiveKind(absl::string_view name) {
  for (const CollectiveKindInfo& info : collective_kind_cc::kKinds) {
    if (info.name == name) return info.kind;
  }
  std::vector<absl::string_view> names;
  for (const CollectiveKindInfo& info : collective_kind_cc::kKinds) names.push_back(info.name);
  return absl::InvalidArgumentError(absl::StrCat("collective '", name, "' is unknown; ",
                                                 WantedNames(name, names, /*lister=*/"")));
}

}  // namespace orrery::cost_models
