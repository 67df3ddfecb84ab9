#include "transforms/redistribution/testing/execute.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/layout.h"
#include "ir/tensor_parts.h"
#include "support/status.h"
#include "transforms/redistribution/testing/summands.h"

namespace orrery::transforms::redistribution {
namespace execute_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Sharding;

using Elements = std::vector<int64_t>;

constexpr Number kAbsent = std::numeric_limits<Number>::max();

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// A group of ranks, by their position in it, and what each of them is to hold.
struct Group {
  std::vector<size_t> ranks;
  std::vector<Elements> wanted;
};

class Ranks {
 public:
  explicit Ranks(const Problem& problem)
      : problem_(problem),
        layout_(problem.from),
        ranks_(ir::AllRanks(problem.mesh)),
        values_(ranks_.size()) {}

  void Start() {
    const Folding folding = FoldingOver(layout_.partial, layout_, problem_.mesh);
    for (const int64_t rank : ranks_) {
      std::vector<Number>& values = values_[static_cast<size_t>(rank)];
      values.assign(static_cast<size_t>(ir::ElementCount(problem_.dims)), kAbsent);
      const int64_t part = ir::PartOf(problem_.mesh, rank, layout_.partial);
      for (const int64_t element : HeldElements(layout_, rank)) {
        values[static_cast<size_t>(element)] = SummandOf(element, part, folding);
      }
    }
  }

  absl::Status Take(const Step& step, ExecutedStep& executed) {
    Sharding after = step.after.Unpack(problem_.dims.size());
    if (PackedLayout(after) != step.after) return Wrong("splits a dimension that there is not");
    ORRERY_RETURN_IF_ERROR(ir::CheckSharding(after, problem_.dims, problem_.mesh));
    ORRERY_RETURN_IF_ERROR(CheckPartial(step, after));
    executed.sent.assign(ranks_.size(), 0);
    executed.received.assign(ranks_.size(), 0);
    std::vector<std::vector<Number>> next(values_.size());
    for (std::vector<Number>& values : next) {
      values.assign(static_cast<size_t>(ir::ElementCount(problem_.dims)), kAbsent);
    }
    for (const Group& group : Groups(GroupAxes(step), after)) {
      ORRERY_RETURN_IF_ERROR(Reduces(step.kind) ? Reduce(step, group, next, executed)
                                                : Fetch(step, group, next, executed));
    }
    if (step.kind == MoveKind::kMakePartial) MakePartial(step, after, next);
    ORRERY_RETURN_IF_ERROR(CheckKept(step, next));
    values_ = std::move(next);
    layout_ = std::move(after);
    for (const std::vector<Number>& values : values_) {
      executed.held = std::max(executed.held, HeldCount(values));
    }
    return absl::OkStatus();
  }

  // Whether all is where the target wants it, and right.
  absl::Status Finish() const {
    const Sharding& to = problem_.to;
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(problem_.mesh.axes().size()); ++axis) {
      if (problem_.mesh.size(axis) == 1) continue;
      if (to.partial.contains(axis) != layout_.partial.contains(axis) ||
          to.reductions[axis] != layout_.reductions[axis]) {
        return Wrong(absl::StrCat("axis ", axis, " is not as partial as the target wants it"));
      }
    }
    for (const Group& group : Groups(to.partial, to)) ORRERY_RETURN_IF_ERROR(Check(group));
    return absl::OkStatus();
  }

 private:
  static bool Reduces(MoveKind kind) {
    return kind == MoveKind::kAllReduce || kind == MoveKind::kReduceScatter;
  }

  static int64_t HeldCount(const std::vector<Number>& values) {
    return static_cast<int64_t>(values.size()) - std::ranges::count(values, kAbsent);
  }

  bool Holds(size_t rank, int64_t element) const {
    return values_[rank][static_cast<size_t>(element)] != kAbsent;
  }

  // The elements of the tensor that `rank` holds in `layout`, by row-major number.
  Elements HeldElements(const Sharding& layout, int64_t rank) const {
    Elements elements = {0};
    for (size_t d = 0; d < problem_.dims.size(); ++d) {
      Elements longer;
      const auto ranges =
          ir::HeldPart(ir::SplitOf(layout, problem_.dims, d), problem_.mesh, rank).Ranges();
      for (const int64_t before : elements) {
        for (const ir::Range& range : ranges) {
          for (int64_t at = range.begin; at < range.end; ++at) {
            longer.push_back(before * problem_.dims[d] + at);
          }
        }
      }
      elements = std::move(longer);
    }
    return elements;
  }

  // What a rank does by itself it does in a group of its own.
  AxisList GroupAxes(const Step& step) const {
    if (!Communicates(step.kind)) return {};
    const bool unsaid = step.axes.empty() && step.kind == MoveKind::kReblock && step.from >= 0;
    if (!unsaid || static_cast<size_t>(step.from) >= problem_.dims.size()) return step.axes;
    return layout_.at(static_cast<size_t>(step.from));
  }

  std::vector<Group> Groups(const AxisList& axes, const Sharding& layout) const {
    const auto size = static_cast<size_t>(problem_.mesh.size(axes));
    std::vector<Group> groups(ranks_.size());
    for (const int64_t rank : ranks_) {
      Group& group = groups[static_cast<size_t>(ir::RestOf(problem_.mesh, rank, axes))];
      group.ranks.resize(size);
      group.wanted.resize(size);
      const auto position = static_cast<size_t>(ir::PartOf(problem_.mesh, rank, axes));
      group.ranks[position] = static_cast<size_t>(rank);
      group.wanted[position] = HeldElements(layout, rank);
    }
    std::erase_if(groups, [](const Group& group) { return group.ranks.empty(); });
    return groups;
  }

  // Which axes are partial before and after, by the kind of the step.
  absl::Status CheckPartial(const Step& step, const Sharding& after) const {
    for (const AxisIndex axis : step.axes.axes()) {
      if (axis < problem_.mesh.axes().size()) continue;
      return Wrong(absl::StrCat("works over axis ", axis, ", which the mesh lacks"));
    }
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(problem_.mesh.axes().size()); ++axis) {
      const bool in_step = step.axes.contains(axis);
      const bool was = layout_.partial.contains(axis), is = after.partial.contains(axis);
      const bool reduced = in_step && Reduces(step.kind);
      const bool made = in_step && step.kind == MoveKind::kMakePartial;
      if (reduced && !was) return Wrong(absl::StrCat("reduces axis ", axis, ", which is whole"));
      if (made && layout_.Uses(axis)) {
        return Wrong(absl::StrCat("makes axis ", axis, " partial, which does not replicate"));
      }
      if (is != ((was && !reduced) || made)) {
        return Wrong(absl::StrCat("leaves axis ", axis, is ? " partial" : " whole",
                                  ", which such a step does not"));
      }
      if (in_step && was && Communicates(step.kind) && !reduced) {
        return Wrong(absl::StrCat("moves summands along axis ", axis, ", which is partial"));
      }
      if (was && is && layout_.reductions[axis] != after.reductions[axis]) {
        return Wrong(absl::StrCat("changes the reduction of axis ", axis));
      }
    }
    return absl::OkStatus();
  }

  // The member of the group that gives `element` to the one at `position`; itself where it can.
  std::optional<size_t> Giver(const Group& group, size_t position, int64_t element) const {
    for (size_t step = 0; step < group.ranks.size(); ++step) {
      const size_t rank = group.ranks[(position + step) % group.ranks.size()];
      if (Holds(rank, element)) return rank;
    }
    return std::nullopt;
  }

  // Each rank gets what it lacks from the others of its group.
  absl::Status Fetch(const Step& step, const Group& group, std::vector<std::vector<Number>>& next,
                     ExecutedStep& executed) const {
    for (size_t position = 0; position < group.ranks.size(); ++position) {
      const size_t rank = group.ranks[position];
      std::optional<size_t> partner;
      for (const int64_t element : group.wanted[position]) {
        const std::optional<size_t> giver = Giver(group, position, element);
        if (!giver.has_value()) {
          return Wrong(absl::StrCat("rank ", rank, " needs element ", element,
                                    ", which no rank of its group holds"));
        }
        const auto e = static_cast<size_t>(element);
        next[rank][e] = values_[*giver][e];
        if (step.kind == MoveKind::kPermute && partner.value_or(*giver) != *giver) {
          return Wrong(absl::StrCat("rank ", rank, " needs elements of ranks ", *partner, " and ",
                                    *giver, "; wanted one rank's"));
        }
        partner = giver;
        if (*giver == rank) continue;
        ++executed.sent[*giver];
        ++executed.received[rank];
      }
    }
    return absl::OkStatus();
  }

  // Each element is taken to one of the ranks that want it, made whole there, and sent on. The
  // ranks of a group share the elements that all of them want.
  absl::Status Reduce(const Step& step, const Group& group, std::vector<std::vector<Number>>& next,
                      ExecutedStep& executed) const {
    std::vector<std::vector<size_t>> wanting(values_[0].size());
    for (size_t position = 0; position < group.ranks.size(); ++position) {
      for (const int64_t element : group.wanted[position]) {
        wanting[static_cast<size_t>(element)].push_back(group.ranks[position]);
      }
    }
    const auto count = static_cast<size_t>(
        std::ranges::count_if(wanting, [](const auto& ranks) { return !ranks.empty(); }));
    const Folding folding = FoldingOver(step.axes, layout_, problem_.mesh);
    std::vector<Number> summands(group.ranks.size());
    for (size_t e = 0, at = 0; e < wanting.size(); ++e) {
      if (wanting[e].empty()) continue;
      const size_t reducer = wanting[e][at++ * wanting[e].size() / count];
      for (size_t position = 0; position < group.ranks.size(); ++position) {
        const size_t rank = group.ranks[position];
        summands[position] = values_[rank][e];
        if (summands[position] == kAbsent) {
          return Wrong(absl::StrCat("rank ", rank, " has no summand of element ", e));
        }
        if (rank == reducer) continue;
        ++executed.sent[rank];
        ++executed.received[reducer];
      }
      const Number whole = Fold(summands, folding);
      for (const size_t rank : wanting[e]) {
        next[rank][e] = whole;
        if (rank == reducer) continue;
        ++executed.sent[reducer];
        ++executed.received[rank];
      }
    }
    return absl::OkStatus();
  }

  void MakePartial(const Step& step, const Sharding& after,
                   std::vector<std::vector<Number>>& next) const {
    for (const int64_t rank : ranks_) {
      for (const AxisIndex axis : step.axes.axes()) {
        if (ir::PartOf(problem_.mesh, rank, AxisList(axis)) == 0) continue;
        for (Number& value : next[static_cast<size_t>(rank)]) {
          if (value != kAbsent) value = MadePartial(value, after.reductions[axis]);
        }
      }
    }
  }

  // A gather drops nothing, a slice adds nothing, and so on: or another step hides in this one.
  absl::Status CheckKept(const Step& step, const std::vector<std::vector<Number>>& next) const {
    const MoveKind kind = step.kind;
    const bool keeps = kind == MoveKind::kAllGather || kind == MoveKind::kAllReduce ||
                       kind == MoveKind::kLocalCopy || kind == MoveKind::kMakePartial;
    for (size_t rank = 0; rank < next.size() && keeps; ++rank) {
      for (size_t e = 0; e < next[rank].size(); ++e) {
        if (values_[rank][e] == kAbsent || next[rank][e] != kAbsent) continue;
        return Wrong(absl::StrCat("rank ", rank, " drops element ", e,
                                  "; such a step keeps what a rank holds"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Check(const Group& group) const {
    const Folding folding = FoldingOver(problem_.to.partial, problem_.to, problem_.mesh);
    for (size_t position = 0; position < group.ranks.size(); ++position) {
      const size_t rank = group.ranks[position];
      const auto held = static_cast<size_t>(HeldCount(values_[rank]));
      for (const int64_t element : group.wanted[position]) {
        if (Holds(rank, element)) continue;
        return Wrong(absl::StrCat("rank ", rank, " lacks element ", element, " at the end"));
      }
      if (held == group.wanted[position].size()) continue;
      return Wrong(absl::StrCat("rank ", rank, " holds ", held, " elements at the end; wanted ",
                                group.wanted[position].size()));
    }
    for (const int64_t element : group.wanted[0]) {
      std::vector<Number> summands;
      for (const size_t rank : group.ranks) {
        summands.push_back(values_[rank][static_cast<size_t>(element)]);
      }
      if (Fold(summands, folding) == TruthOf(element)) continue;
      return Wrong(absl::StrCat("element ", element, " has a wrong value on rank ", group.ranks[0],
                                " at the end"));
    }
    return absl::OkStatus();
  }

  const Problem& problem_;
  Sharding layout_;
  std::vector<int64_t> ranks_;
  std::vector<std::vector<Number>> values_;  // by rank and element
};

absl::Status CheckProblem(const Problem& problem) {
  int64_t room = problem.mesh.size();
  for (const int64_t dim : problem.dims) {
    if (dim < 1 || __builtin_mul_overflow(room, dim, &room) || room > kMostExecuted) {
      return Wrong(absl::StrCat("found a dimension of ", dim,
                                "; wanted dimensions of at least 1, and at ", "most ",
                                kMostExecuted, " elements times ranks"));
    }
  }
  if (problem.dims.size() > PackedLayout::kMaxDims || room > kMostExecuted) {
    return Wrong(absl::StrCat("found ", problem.dims.size(), " dimensions on ",
                              ToString(problem.mesh), "; wanted at most ", PackedLayout::kMaxDims,
                              ", and at most ", kMostExecuted, " elements times ranks"));
  }
  ORRERY_RETURN_IF_ERROR(
      Annotate(ir::CheckSharding(problem.from, problem.dims, problem.mesh), "source"));
  return Annotate(ir::CheckSharding(problem.to, problem.dims, problem.mesh), "target");
}

}  // namespace
}  // namespace execute_cc

int64_t ExecutedStep::most_sent() const { return *std::ranges::max_element(sent); }
int64_t ExecutedStep::most_received() const { return *std::ranges::max_element(received); }

int64_t Execution::sent() const {
  int64_t all = 0;
  for (const ExecutedStep& step : steps) {
    all = std::accumulate(step.sent.begin(), step.sent.end(), all);
  }
  return all;
}

absl::StatusOr<Execution> Execute(const Problem& problem, const std::vector<Step>& steps) {
  ORRERY_RETURN_IF_ERROR(execute_cc::CheckProblem(problem));
  execute_cc::Ranks ranks(problem);
  ranks.Start();
  Execution execution;
  for (size_t i = 0; i < steps.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(Annotate(ranks.Take(steps[i], execution.steps.emplace_back()),
                                    absl::StrCat("step ", i, " (", ToString(steps[i].kind), ")")));
  }
  ORRERY_RETURN_IF_ERROR(ranks.Finish());
  return execution;
}

absl::StatusOr<Execution> Execute(const Problem& problem, const RedistributionPlan& plan) {
  std::vector<Step> steps;
  for (const PlannedStep& planned : plan.steps) steps.push_back(planned.step);
  return Execute(problem, steps);
}

}  // namespace orrery::transforms::redistribution
