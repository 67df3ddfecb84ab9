#ifndef ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_KIND_H_
#define ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_KIND_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The kinds of collective operation. This is the one place that says what the `size` of each is:
// all sizes in this folder, in cost models and on the command line follow it. They are those of
// nccl-tests, so that bus bandwidths compare.

namespace orrery::cost_models {

/// In a group of n ranks, of which rank 0 is the root:
enum class CollectiveKind : uint8_t {
  kAllReduce,      ///< size: the tensor that each rank brings; each ends up with the sum
  kAllGather,      ///< size: the whole that each rank ends up with; each brings size/n
  kReduceScatter,  ///< size: the tensor that each rank brings; rank r ends up with part r of the
                   ///< sum
  kAllToAll,       ///< size: what each rank brings; size/n of it goes to each rank
  kBroadcast,      ///< size: the tensor of the root; each rank ends up with it
  kReduce,         ///< size: the tensor that each rank brings; the root ends up with the sum
  kScatter,        ///< size: the tensor of the root; rank r ends up with part r of n
  kGather,         ///< size: the whole that the root ends up with; each brings size/n
  kSendReceive,    ///< size: the message that each rank sends to the next, the last to the root
  kBarrier,        ///< moves no data, whatever the size: each rank hears from all
};
/// How many kinds there are.
inline constexpr int kCollectiveKindCount = 10;

/// A part of a size: numerator/denominator of it.
struct Share {
  int64_t numerator = 0;
  int64_t denominator = 1;

  friend bool operator==(const Share&, const Share&) = default;
};

/// What is known of a kind whatever the algorithm.
struct CollectiveKindInfo {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  absl::string_view name;  // "all-reduce"
  absl::string_view size;  // what the size is, as above
  /// The share of the size that a rank must send or receive at least, whichever is more, where all
  /// paths are alike and no switch reduces (Chan et al. 2007, table 1). Bus bandwidth is this share
  /// of the size over time, as in nccl-tests. Requires n >= 2.
  Share (*bus_share)(int64_t n) = nullptr;
  bool has_root = false;  // the ranks are not alike: the order of the group matters
};

/// Those of all kinds, in the order of the enumeration.
std::span<const CollectiveKindInfo> AllCollectiveKinds();
/// What is known of that kind.
const CollectiveKindInfo& GetCollectiveKind(CollectiveKind kind);
/// A kind by its name; the error lists the names that there are.
absl::StatusOr<CollectiveKind> FindCollectiveKind(absl::string_view name);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_KIND_H_
