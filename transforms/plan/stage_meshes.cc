#include "transforms/plan/stage_meshes.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/status.h"

namespace orrery::transforms {
namespace stage_meshes_cc {
namespace {

constexpr int64_t kMost = int64_t{1} << 20;
constexpr size_t kMostStages = 1 << 12;

std::optional<int64_t> Number(absl::string_view text, int64_t least) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < least || number > kMost) return std::nullopt;
  return number;
}

absl::StatusOr<StageMesh> ParseOne(absl::string_view item, int64_t next) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(item, absl::MaxSplits('@', 1));
  const std::pair<absl::string_view, absl::string_view> degrees =
      absl::StrSplit(parts.first, absl::MaxSplits('x', 1));
  const auto dp = Number(degrees.first, 1), hp = Number(degrees.second, 1);
  const bool placed = item.find('@') != absl::string_view::npos;
  const auto first = placed ? Number(parts.second, 0) : std::optional(next);
  if (dp.has_value() && hp.has_value() && first.has_value() && *dp * *hp <= kMost) {
    return StageMesh{.dp = *dp, .hp = *hp, .first = *first};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", item,
                   "': wanted dp and hp of a stage, and its first device if it is not "
                   "the next one, as in 4x2 or 4x2@16"));
}

absl::Status CheckApart(const std::vector<StageMesh>& stages) {
  std::vector<std::pair<int64_t, size_t>> by_first;
  for (size_t s = 0; s < stages.size(); ++s) by_first.emplace_back(stages[s].first, s);
  std::ranges::sort(by_first);
  for (size_t i = 0; i + 1 < by_first.size(); ++i) {
    const auto [first, s] = by_first[i];
    const auto [next, t] = by_first[i + 1];
    if (first + stages[s].ranks() <= next) continue;
    return absl::InvalidArgumentError(absl::StrCat("device ", next, " is of stages ",
                                                   std::min(s, t), " and ", std::max(s, t),
                                                   "; wanted each of one"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace stage_meshes_cc

int64_t StageMeshes::ranks() const {
  int64_t ranks = 0;
  for (const StageMesh& stage : stages) ranks += stage.ranks();
  return ranks;
}

int64_t StageMeshes::most_dp() const {
  int64_t most = 1;
  for (const StageMesh& stage : stages) most = std::max(most, stage.dp);
  return most;
}

int64_t StageMeshes::most_hp() const {
  int64_t most = 1;
  for (const StageMesh& stage : stages) most = std::max(most, stage.hp);
  return most;
}

absl::StatusOr<StageMeshes> ParseStageMeshes(absl::string_view text) {
  StageMeshes meshes;
  int64_t next = 0;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    ORRERY_ASSIGN_OR_RETURN(const StageMesh stage, stage_meshes_cc::ParseOne(item, next));
    next = stage.first + stage.ranks();
    meshes.stages.push_back(stage);
    if (meshes.stages.size() <= stage_meshes_cc::kMostStages) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("over ", stage_meshes_cc::kMostStages, " stages; wanted fewer"));
  }
  ORRERY_RETURN_IF_ERROR(stage_meshes_cc::CheckApart(meshes.stages));
  return meshes;
}

std::string ToString(const StageMeshes& meshes) {
  int64_t next = 0;
  return absl::StrJoin(meshes.stages, ",", [&](std::string* text, const StageMesh& stage) {
    absl::StrAppend(text, stage.dp, "x", stage.hp);
    if (stage.first != next) absl::StrAppend(text, "@", stage.first);
    next = stage.first + stage.ranks();
  });
}

absl::StatusOr<ReplicaShares> ParseReplicaShares(absl::string_view text) {
  using Kind = ReplicaShares::Kind;
  if (text == "split") return ReplicaShares{.kind = Kind::kSplit};
  if (text == "round-robin") return ReplicaShares{.kind = Kind::kEven};
  if (text == "speed") return ReplicaShares{.kind = Kind::kSpeed};
  ReplicaShares shares{.kind = Kind::kGiven};
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const auto count = stage_meshes_cc::Number(item, 1);
    if (!count.has_value() || shares.counts.size() >= stage_meshes_cc::kMostStages) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text,
                       "': wanted split, round-robin, speed, or the microbatches of "
                       "each replica, at least 1, as in 3,5"));
    }
    shares.counts.push_back(*count);
  }
  return shares;
}

std::string ToString(const ReplicaShares& shares) {
  switch (shares.kind) {
    case ReplicaShares::Kind::kSplit:
      return "split";
    case ReplicaShares::Kind::kEven:
      return "round-robin";
    case ReplicaShares::Kind::kSpeed:
      return "speed";
    case ReplicaShares::Kind::kGiven:
      return absl::StrJoin(shares.counts, ",");
  }
  return "";
}

}  // namespace orrery::transforms
