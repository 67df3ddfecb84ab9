#include "transforms/redistribution/groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/status.h"

namespace orrery::transforms::redistribution {
namespace groups_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;

constexpr int kMostSearches = 4096;

// Whether parts go to ranks by their place in the group.
bool MindsOrder(const Step& step) {
  switch (step.kind) {
    case MoveKind::kAllGather:
      return step.from >= 0;
    case MoveKind::kReduceScatter:
    case MoveKind::kAllToAll:
      return true;
    default:
      return false;
  }
}

bool Serves(const AxisList& group, const AxisList& wanted, bool in_order) {
  return in_order ? group == wanted : group.Sorted() == wanted.Sorted();
}

// Axes of more than one rank that stand between those of `axes` in the mesh, and are not among
// them.
AxisList LeftOut(const ir::Mesh& mesh, const AxisList& axes) {
  const AxisList sorted = axes.Sorted();
  AxisList left;
  if (sorted.empty()) return left;
  for (int axis = sorted.axes().front(); axis < sorted.axes().back(); ++axis) {
    const auto index = static_cast<AxisIndex>(axis);
    if (mesh.size(index) > 1 && !axes.contains(index)) left.push_back(index);
  }
  return left;
}

// A set of groups that are created, and of others that are not.
struct Choice {
  std::vector<AxisList> created, refused;
};

// All moves but those that want one of the groups, in the form of WantedBy.
class Without final : public WrappedMoves {
 public:
  Without(const MoveSet& moves, const Groups& groups, const std::vector<AxisList>& refused)
      : WrappedMoves(moves), groups_(groups), refused_(refused) {}

 private:
  void Change(const PackedLayout& layout, std::vector<Move>& moves, size_t begin) const override {
    const auto is_refused = [&](const Move& move) {
      return !groups_.Serve(layout, move.step) &&
             std::ranges::find(refused_, groups_.WantedBy(layout, move.step)) != refused_.end();
    };
    moves.erase(
        std::remove_if(moves.begin() + static_cast<std::ptrdiff_t>(begin), moves.end(), is_refused),
        moves.end());
  }

  const Groups& groups_;
  const std::vector<AxisList>& refused_;
};

// The groups that a plan wants and that do not exist, each once.
std::vector<AxisList> MissingOf(const Groups& groups, const PackedLayout& from,
                                const RedistributionPlan& plan) {
  std::vector<AxisList> missing;
  Groups there = groups;
  PackedLayout at = from;
  for (const PlannedStep& planned : plan.steps) {
    if (!there.Serve(at, planned.step)) {
      missing.push_back(there.WantedBy(at, planned.step));
      there.Add(missing.back());
    }
    at = planned.step.after;
  }
  return missing;
}

}  // namespace
}  // namespace groups_cc

absl::StatusOr<Groups> Groups::Parse(absl::string_view text, const ir::Mesh& mesh) {
  Groups groups(mesh);
  std::vector<std::string> names;
  for (const ir::Axis& axis : mesh.axes()) names.push_back(axis.name);
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    ir::AxisList group;
    for (const absl::string_view piece : absl::StrSplit(part, '.')) {
      const absl::string_view name = absl::StripAsciiWhitespace(piece);
      std::optional<ir::AxisIndex> axis = mesh.Find(name);
      size_t number = 0;
      if (!axis.has_value() && absl::SimpleAtoi(name, &number) && number < names.size()) {
        axis = static_cast<ir::AxisIndex>(number);
      }
      if (!axis.has_value() || group.contains(*axis)) {
        return absl::InvalidArgumentError(
            absl::StrCat("got axis '", name, "' in '", absl::StripAsciiWhitespace(part),
                         "'; wanted each once of ", absl::StrJoin(names, ", "),
                         " or its number, as in ", names.front(), ",", absl::StrJoin(names, ".")));
      }
      group.push_back(*axis);
    }
    ir::AxisList several;
    for (const ir::AxisIndex axis : group.axes()) {
      if (mesh.size(axis) > 1) several.push_back(axis);
    }
    if (!several.empty()) groups.groups_.push_back(several);
  }
  return groups;
}

std::string Groups::Text() const {
  if (groups_.empty()) return "none";
  return absl::StrJoin(groups_, ", ", [&](std::string* out, const ir::AxisList& group) {
    absl::StrAppend(out, mesh_.Names(group));
  });
}

ir::AxisList Groups::WantedBy(const PackedLayout& before, const Step& step) const {
  ir::AxisList wanted;
  if (!Communicates(step.kind)) return wanted;
  ir::AxisList axes = step.axes;
  if (axes.empty() && step.from >= 0) axes = before.axes(step.from);
  if (axes.empty()) {  // an exchange among all
    for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
      axes.push_back(static_cast<ir::AxisIndex>(axis));
    }
  }
  if (!groups_cc::MindsOrder(step)) axes = axes.Sorted();
  for (const ir::AxisIndex axis : axes.axes()) {
    if (mesh_.size(axis) > 1) wanted.push_back(axis);
  }
  return wanted;
}

bool Groups::Serve(const PackedLayout& before, const Step& step) const {
  const ir::AxisList wanted = WantedBy(before, step);
  return wanted.empty() || std::ranges::any_of(groups_, [&](const ir::AxisList& group) {
           return groups_cc::Serves(group, wanted, groups_cc::MindsOrder(step));
         });
}

std::string Groups::Refusal(const PackedLayout& before, const Step& step) const {
  if (Serve(before, step)) return "";
  const ir::AxisList wanted = WantedBy(before, step);
  const std::string name = mesh_.Names(wanted);
  for (const ir::AxisList& group : groups_) {
    if (group.Sorted() != wanted.Sorted()) continue;
    return absl::StrCat("the ranks of group ", mesh_.Names(group), " are in that order, and a ",
                        ToString(step.kind), " over ", name, " puts parts in another");
  }
  const bool merges = step.kind == MoveKind::kAllReduce || step.kind == MoveKind::kReduceScatter;
  const ir::AxisList left = groups_cc::LeftOut(mesh_, wanted);
  std::string why = absl::StrCat("there is no group ", name, ", only ", Text());
  if (wanted.axes().size() < 2) return why;
  if (!left.empty()) {
    absl::StrAppend(&why, "; ", name, " leaves out ", mesh_.Names(left), ", which ",
                    left.axes().size() == 1 ? "stands" : "stand", " between in the mesh");
  }
  return merges ? absl::StrCat(why,
                               "; the reduction is to be axis by axis, or its group in "
                               "`groups`, or to be created at a `group-price`")
                : why;
}

void GroupedMoves::Change(const PackedLayout& layout, std::vector<Move>& moves,
                          size_t begin) const {
  moves.erase(std::remove_if(moves.begin() + static_cast<std::ptrdiff_t>(begin), moves.end(),
                             [&](const Move& move) { return !groups_.Serve(layout, move.step); }),
              moves.end());
}

std::optional<RedistributionPlan> CheapestWithGroups(const MoveSet& moves, const Groups& groups,
                                                     double price, const Problem& problem,
                                                     const SearchLimits& limits) {
  const PackedLayout from = moves.Normal(PackedLayout(problem.from)), to(problem.to);
  std::vector<groups_cc::Choice> open(1);
  std::optional<RedistributionPlan> best;
  int searches = 0;
  int64_t expanded = 0;
  bool exact = true;
  for (; !open.empty(); ++searches) {
    if (searches == groups_cc::kMostSearches) {
      exact = false;
      break;
    }
    const groups_cc::Choice choice = std::move(open.back());
    open.pop_back();
    // All groups that are not refused are free: no plan of this choice costs less.
    auto plan = CheapestPlan(groups_cc::Without(moves, groups, choice.refused), from, to, limits);
    if (!plan.has_value()) continue;
    expanded += plan->expanded;
    exact = exact && plan->exact;
    const double bound = plan->cost + price * static_cast<double>(choice.created.size());
    if (best.has_value() && bound >= best->cost) continue;
    const std::vector<ir::AxisList> missing = groups_cc::MissingOf(groups, from, *plan);
    const auto undecided = std::ranges::find_if(missing, [&](const ir::AxisList& group) {
      return std::ranges::find(choice.created, group) == choice.created.end();
    });
    ChargeForGroups(groups, price, from, *plan);
    if (undecided != missing.end()) {
      groups_cc::Choice without = choice, with = choice;
      without.refused.push_back(*undecided);
      with.created.push_back(*undecided);
      open.push_back(std::move(without));
      open.push_back(std::move(with));
    }
    if (!best.has_value() || plan->cost < best->cost) best = std::move(plan);
  }
  if (best.has_value()) {
    best->expanded = expanded;
    best->exact = exact;
  }
  return best;
}

void ChargeForGroups(const Groups& groups, double price, const PackedLayout& from,
                     RedistributionPlan& plan) {
  Groups there = groups;
  PackedLayout at = from;
  for (PlannedStep& planned : plan.steps) {
    if (!there.Serve(at, planned.step)) {
      there.Add(there.WantedBy(at, planned.step));
      planned.creation += price;
      planned.cost += price;
      plan.cost += price;
    }
    at = planned.step.after;
  }
}

}  // namespace orrery::transforms::redistribution
