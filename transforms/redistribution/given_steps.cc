#include "transforms/redistribution/given_steps.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/sharding_text.h"
#include "support/status.h"

namespace orrery::transforms::redistribution {
namespace given_steps_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;

constexpr std::array kKinds = {MoveKind::kSlice,     MoveKind::kAllGather, MoveKind::kReduceScatter,
                               MoveKind::kAllReduce, MoveKind::kAllToAll,  MoveKind::kPermute,
                               MoveKind::kReblock,   MoveKind::kLocalCopy, MoveKind::kMakePartial};
constexpr size_t kMostListed = 8;

// A step as it was given.
struct Wish {
  std::string text;
  std::optional<MoveKind> kind;  // none: the text is a name of the move set's
  AxisList axes;
  std::optional<int> from, to;  // both of "0->2"; of "0" `to` alone
};

std::optional<MoveKind> KindNamed(absl::string_view name) {
  const auto found = std::ranges::find(kKinds, name, [](MoveKind kind) { return ToString(kind); });
  return found == kKinds.end() ? std::nullopt : std::optional<MoveKind>(*found);
}

absl::Status ReadAxes(const ir::Mesh& mesh, absl::string_view text, Wish& wish) {
  for (const absl::string_view name : absl::StrSplit(text, absl::ByAnyChar(".,"))) {
    std::optional<AxisIndex> axis = mesh.Find(absl::StripAsciiWhitespace(name));
    size_t number = 0;
    if (!axis.has_value() && absl::SimpleAtoi(name, &number) && number < mesh.axes().size()) {
      axis = static_cast<AxisIndex>(number);
    }
    if (axis.has_value() && !wish.axes.contains(*axis)) {
      wish.axes.push_back(*axis);
      continue;
    }
    std::vector<std::string> names;
    for (const ir::Axis& known : mesh.axes()) names.push_back(known.name);
    return absl::InvalidArgumentError(absl::StrCat("got axis '", name, "'; wanted each once of ",
                                                   absl::StrJoin(names, ", "), " or its number"));
  }
  return absl::OkStatus();
}

// "0->2" or "1"; false where it is neither.
bool ReadDims(absl::string_view text, Wish& wish) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, "->");
  std::vector<int> dims;
  for (const absl::string_view end : ends) {
    int dim = 0;
    if (!absl::SimpleAtoi(end, &dim)) return false;
    dims.push_back(dim);
  }
  if (dims.size() > 2) return false;
  wish.to = dims.back();
  if (dims.size() == 2) wish.from = dims.front();
  return true;
}

absl::Status CheckDims(const Wish& wish, size_t rank) {
  for (const std::optional<int>& dim : {wish.from, wish.to}) {
    if (!dim.has_value() || (*dim >= 0 && *dim < static_cast<int>(rank))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("got dimension ", *dim, " of a tensor of ", rank, "; wanted 0 to ", rank - 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<Wish> ReadWish(const Problem& problem, absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  Wish wish{.text = std::string(text), .kind = {}, .axes = {}, .from = {}, .to = {}};
  const size_t space = std::min(text.find(' '), text.size());
  wish.kind = KindNamed(text.substr(0, space));
  if (!wish.kind.has_value()) return wish;
  absl::string_view rest = text.substr(space);
  const size_t colon = rest.rfind(':');
  if (colon != absl::string_view::npos && ReadDims(rest.substr(colon + 1), wish)) {
    rest = rest.substr(0, colon);
    ORRERY_RETURN_IF_ERROR(CheckDims(wish, problem.dims.size()));
  }
  rest = absl::StripAsciiWhitespace(rest);
  // "slice a0 to 1" is a name of a move set's.
  if (rest.find(' ') != absl::string_view::npos) {
    wish.kind = std::nullopt;
  } else if (!rest.empty()) {
    ORRERY_RETURN_IF_ERROR(ReadAxes(problem.mesh, rest, wish));
  }
  return wish;
}

bool Matches(const Wish& wish, const MoveSet& move_set, const PackedLayout& at, const Step& step) {
  if (!wish.kind.has_value()) return move_set.NameOf(at, step) == wish.text;
  if (step.kind != *wish.kind) return false;
  if (!wish.axes.empty() && wish.axes.Sorted() != step.axes.Sorted()) return false;
  if (wish.from.has_value()) return step.from == *wish.from && step.to == *wish.to;
  if (!wish.to.has_value()) return true;
  const int only = step.to < 0 ? step.from : step.to;
  return only == *wish.to && (step.from < 0 || step.to < 0 || step.from == step.to);
}

// Why an axis does not do what the step wants of it; "" where it does.
std::string WhyNotAxis(const Problem& problem, const PackedLayout& at, const Wish& wish,
                       AxisIndex axis) {
  const std::string name = problem.mesh.Names(AxisList(axis));
  const AxisRole role = at.role(axis);
  if (problem.mesh.size(axis) == 1) return absl::StrCat(name, " has one rank");
  const auto holds = [&](absl::string_view wanted) {
    if (role == AxisRole::kPartial) return absl::StrCat(name, " is partial, and has ", wanted);
    if (role == AxisRole::kReplicates) return absl::StrCat(name, " replicates, and has ", wanted);
    return absl::StrCat(name, " splits dimension ", at.dim(axis), ", and has ", wanted);
  };
  switch (*wish.kind) {
    case MoveKind::kSlice:
    case MoveKind::kMakePartial:
      return role == AxisRole::kReplicates ? "" : holds("to replicate");
    case MoveKind::kReduceScatter:
    case MoveKind::kAllReduce:
      return role == AxisRole::kPartial ? "" : holds("to be partial");
    case MoveKind::kAllGather:
    case MoveKind::kAllToAll: {
      const int from = wish.from.has_value()                ? *wish.from
                       : *wish.kind == MoveKind::kAllGather ? wish.to.value_or(-1)
                                                            : -1;
      if (role != AxisRole::kSplits) return holds("to split a dimension");
      if (from >= 0 && at.dim(axis) != from) return holds(absl::StrCat("to split ", from));
      const AxisList all = at.axes(at.dim(axis));
      const AxisIndex innermost = all.axes().back();
      if (!wish.axes.contains(innermost)) {
        return absl::StrCat(name, " stands outside of ", problem.mesh.Names(AxisList(innermost)),
                            " in dimension ", at.dim(axis), ", and innermost axes leave first");
      }
      return "";
    }
    default:
      return "";
  }
}

// Why one collective does not reduce over all axes: it has one reduction, or sums and averages,
// which are sums that are divided by a number of ranks afterwards.
std::string WhyNotOneReduction(const Problem& problem, const PackedLayout& at,
                               const AxisList& axes) {
  const AxisIndex first = axes.axes().front();
  for (const AxisIndex axis : axes.axes()) {
    if (ReducedTogether(at.reduction(first), at.reduction(axis))) continue;
    return absl::StrCat(problem.mesh.Names(AxisList(first)), " is partial by ",
                        ir::ToString(at.reduction(first)), " and ",
                        problem.mesh.Names(AxisList(axis)), " by ",
                        ir::ToString(at.reduction(axis)), ", and one collective has one reduction");
  }
  return "";
}

std::string WhyNot(const MoveSet& move_set, const Problem& problem, const PackedLayout& at,
                   const Wish& wish) {
  if (!wish.kind.has_value()) return "no step from there is called so";
  for (const AxisIndex axis : wish.axes.axes()) {
    std::string why = WhyNotAxis(problem, at, wish, axis);
    if (!why.empty()) return why;
  }
  const bool reduces = wish.kind == MoveKind::kAllReduce || wish.kind == MoveKind::kReduceScatter;
  if (reduces && !wish.axes.empty()) {
    std::string why = WhyNotOneReduction(problem, at, wish.axes);
    if (!why.empty()) return why;
  }
  if (wish.axes.empty()) return "what --cost stands for has no such step from there";
  const int only = wish.to.value_or(-1);
  const bool leaves = wish.kind == MoveKind::kAllGather;
  std::string why =
      move_set.Refusal(at, {.kind = *wish.kind,
                            .axes = wish.axes,
                            .from = static_cast<int8_t>(wish.from.value_or(leaves ? only : -1)),
                            .to = static_cast<int8_t>(wish.from.has_value() || !leaves ? only : -1),
                            .after = {}});
  return why.empty() ? "what --cost stands for has no such step from there" : why;
}

// Those of that kind; all where there are none.
std::string Listed(const Problem& problem, const std::vector<Move>& moves, const Wish& wish) {
  const auto texts = [&](bool any_kind) {
    std::vector<std::string> list;
    for (const Move& move : moves) {
      if (!any_kind && move.step.kind != wish.kind) continue;
      std::string text = StepText(problem.mesh, move.step);
      if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
    }
    return list;
  };
  std::vector<std::string> list = texts(false);
  if (list.empty()) list = texts(true);
  if (list.empty()) return "nothing: no step leads on";
  const size_t more = list.size() - std::min(list.size(), kMostListed);
  list.resize(list.size() - more);
  return absl::StrCat("one of: ", absl::StrJoin(list, "; "),
                      more == 0 ? "" : absl::StrCat("; and ", more, " more"));
}

// A way to a layout.
struct Way {
  PackedLayout at;
  double cost = 0;
  std::vector<Move> moves;
};

// Each layout that the step leads to from one of `ways`, by the cheapest way.
std::vector<Way> Take(const MoveSet& move_set, const std::vector<Way>& ways, const Wish& wish) {
  std::vector<Way> next;
  for (const Way& way : ways) {
    std::vector<Move> moves;
    move_set.Expand(way.at, moves);
    for (const Move& move : moves) {
      if (!Matches(wish, move_set, way.at, move.step)) continue;
      Way taken{.at = move.step.after, .cost = way.cost + move.cost, .moves = way.moves};
      taken.moves.push_back(move);
      const auto same = std::ranges::find(next, taken.at, &Way::at);
      if (same == next.end()) {
        next.push_back(std::move(taken));
      } else if (taken.cost < same->cost) {
        *same = std::move(taken);
      }
    }
  }
  return next;
}

// Of the ways that the steps may mean, that which is the nearest to the target, and what is
// missing.
absl::Status EndsElsewhere(const MoveSet& move_set, const Problem& problem,
                           const std::vector<Way>& ways, const LayoutText& text) {
  constexpr size_t kMostTried = 16;
  const PackedLayout to = move_set.Normal(PackedLayout(problem.to));
  std::optional<RedistributionPlan> best;
  PackedLayout end = ways.front().at;
  for (const Way& way : std::span(ways).first(std::min(ways.size(), kMostTried))) {
    auto rest = CheapestPlan(move_set, way.at, to);
    if (!rest.has_value() || (best.has_value() && best->cost <= rest->cost)) continue;
    best = std::move(rest);
    end = way.at;
  }
  std::vector<std::string> missing;
  if (best.has_value()) {
    for (const PlannedStep& step : best->steps) {
      missing.push_back(StepText(problem.mesh, step.step));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the steps end in ", text(end), "; wanted ", text(to),
      missing.empty() ? ""
                      : absl::StrCat("; try, behind them, '", absl::StrJoin(missing, "; "), "'")));
}

}  // namespace
}  // namespace given_steps_cc

std::string StepText(const ir::Mesh& mesh, const Step& step) {
  const std::string text = absl::StrCat(ToString(step.kind), " ", mesh.Names(step.axes));
  const bool both = step.from >= 0 && step.to >= 0 && step.from != step.to;
  if (both) return absl::StrCat(text, ": ", int{step.from}, "->", int{step.to});
  const int only = std::max(step.from, step.to);
  return only < 0 ? text : absl::StrCat(text, ": ", only);
}

absl::StatusOr<RedistributionPlan> GivenPlan(const MoveSet& move_set, const Problem& problem,
                                             absl::string_view steps, const LayoutText& text) {
  using given_steps_cc::Way;
  const PackedLayout from = move_set.Normal(PackedLayout(problem.from));
  std::vector<Way> ways = {{.at = from, .cost = 0, .moves = {}}};
  int number = 0;
  for (const absl::string_view part : absl::StrSplit(steps, ';', absl::SkipWhitespace())) {
    ++number;
    const std::string where =
        absl::StrCat("step ", number, ", '", absl::StripAsciiWhitespace(part), "'");
    const absl::StatusOr<given_steps_cc::Wish> wish = given_steps_cc::ReadWish(problem, part);
    if (!wish.ok()) return Annotate(wish.status(), where);
    std::vector<Way> next = given_steps_cc::Take(move_set, ways, *wish);
    if (next.empty()) {
      std::vector<Move> moves;
      move_set.Expand(ways.front().at, moves);
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": does not apply to ", text(ways.front().at), ": ",
                       given_steps_cc::WhyNot(move_set, problem, ways.front().at, *wish),
                       "; wanted ", given_steps_cc::Listed(problem, moves, *wish)));
    }
    ways = std::move(next);
  }
  const PackedLayout to = move_set.Normal(PackedLayout(problem.to));
  const auto there = std::ranges::find(ways, to, &Way::at);
  if (there == ways.end()) {
    return given_steps_cc::EndsElsewhere(move_set, problem, ways, text);
  }
  RedistributionPlan plan = Priced(move_set, from, there->moves);
  plan.exact = false;
  return plan;
}

}  // namespace orrery::transforms::redistribution
