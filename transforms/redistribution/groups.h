#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_GROUPS_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_GROUPS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/redistribution/search.h"
#include "transforms/redistribution/wrapped_moves.h"

// Groups of ranks that can be spoken to at once: a library has a communicator for each, and no
// collective goes over axes for which there is none. That of several axes is a mesh dimension that
// somebody has flattened (PyTorch #171913, #174630).

namespace orrery::transforms::redistribution {

/// The groups that exist: each the axes along which its ranks differ, the outermost first. Its
/// ranks are in that order, so parts are scattered, gathered and exchanged in no other; of
/// reductions to all, and of what trades places, the order does not matter. Axes of one rank do
/// not count.
class Groups {
 public:
  /// From "a0,a1,a0.a1", axes by name or number. The error names the axes that there are.
  static absl::StatusOr<Groups> Parse(absl::string_view text, const ir::Mesh& mesh);

  const ir::Mesh& mesh() const { return mesh_; }
  const std::vector<ir::AxisList>& all() const { return groups_; }
  /// "a0, a1, a0.a1".
  std::string Text() const;

  /// The group that a step from `before` wants; no axes where it wants none.
  ir::AxisList WantedBy(const PackedLayout& before, const Step& step) const;
  /// Whether one of the groups serves the step.
  bool Serve(const PackedLayout& before, const Step& step) const;
  /// Why none does; "" where one does.
  std::string Refusal(const PackedLayout& before, const Step& step) const;

  /// Besides the others.
  void Add(const ir::AxisList& group) { groups_.push_back(group); }

 private:
  explicit Groups(const ir::Mesh& mesh) : mesh_(mesh) {}

  ir::Mesh mesh_;
  std::vector<ir::AxisList> groups_;
};

/// The moves of another set for which there is a group.
class GroupedMoves final : public WrappedMoves {
 public:
  /// `moves` and `groups` live longer.
  GroupedMoves(const MoveSet& moves, const Groups& groups) : WrappedMoves(moves), groups_(groups) {}

  std::string Refusal(const PackedLayout& before, const Step& step) const override {
    const std::string refusal = groups_.Refusal(before, step);
    return refusal.empty() ? inner().Refusal(before, step) : refusal;
  }

 private:
  void Change(const PackedLayout& layout, std::vector<Move>& moves, size_t begin) const override;

  const Groups& groups_;
};

/// The cheapest plan, where a group that does not exist is created before the first step that wants
/// it, at `price`, once. Of all sets of groups to create the one with which steps and prices are
/// the least: branch and bound over which are created and which not, a search of steps each; exact
/// unless that takes more than some thousands of searches. Nothing where CheapestPlan has nothing.
std::optional<RedistributionPlan> CheapestWithGroups(const MoveSet& moves, const Groups& groups,
                                                     double price, const Problem& problem,
                                                     const SearchLimits& limits);

/// Adds the price to each step of `plan`, from `from` on, that is the first to want a group that
/// does not exist.
void ChargeForGroups(const Groups& groups, double price, const PackedLayout& from,
                     RedistributionPlan& plan);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_GROUPS_H_
