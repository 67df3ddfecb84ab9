#include "transforms/redistribution/tensorcraft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/status.h"

namespace orrery::transforms::redistribution {

using ir::AxisIndex;
using ir::AxisList;

namespace tensorcraft_cc {
namespace {

constexpr absl::string_view kWanted =
    "wanted alpha=, beta=, gamma= or epsilon= with a number of at least 0, or physical, as in "
    "alpha=0.01,beta=0.00032,physical";

// Keeps bounds below sums that were rounded down.
constexpr double kBelowRounding = 1 - 1e-12;

// The sizes that the library asks for, each once.
std::vector<int64_t> BlocksOf(const TensorcraftLayout& target) {
  std::vector<int64_t> blocks = {1};
  for (const DimSplit& dim : target.dims) {
    if (!dim.axes.empty()) blocks.push_back(dim.block);
  }
  std::ranges::sort(blocks);
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

// Rounds of a collective whose ranks reach twice as many in each.
double Rounds(int64_t ranks) {
  return ranks <= 1 ? 0 : static_cast<double>(std::bit_width(static_cast<uint64_t>(ranks - 1)));
}

// All axes that split anything in either.
AxisList UsedByAny(const PackedLayout& a, const PackedLayout& b) {
  AxisList used;
  for (AxisIndex axis = 0; axis < ir::kMaxAxes; ++axis) {
    if (a.dim(axis) >= 0 || b.dim(axis) >= 0) used.push_back(axis);
  }
  return used;
}

// Whether `part` stands in `whole`, all of it at one position.
bool IsRun(const AxisList& part, const AxisList& whole) {
  const auto run = part.axes(), all = whole.axes();
  return run.empty() || std::search(all.begin(), all.end(), run.begin(), run.end()) != all.end();
}

}  // namespace
}  // namespace tensorcraft_cc

absl::StatusOr<TensorcraftOptions> ParseTensorcraftOptions(absl::string_view text) {
  TensorcraftOptions options;
  if (text.empty()) return options;
  std::vector<absl::string_view> seen;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> option =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto& [name, value] = option;
    double* const weight = name == "alpha"     ? &options.alpha
                           : name == "beta"    ? &options.beta
                           : name == "gamma"   ? &options.gamma
                           : name == "epsilon" ? &options.epsilon
                                               : nullptr;
    const bool again = std::ranges::find(seen, name) != seen.end();
    seen.push_back(name);
    if (part == "physical" && !again) {
      options.physical = true;
      continue;
    }
    const bool fits = weight != nullptr && !again && absl::SimpleAtod(value, weight) &&
                      std::isfinite(*weight) && *weight >= 0;
    if (fits) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tensorcraft: got option '", part, again ? "' again; " : "'; ", tensorcraft_cc::kWanted));
  }
  return options;
}

absl::StatusOr<std::unique_ptr<TensorcraftMoveSet>> TensorcraftMoveSet::Create(
    const Problem& problem, const TensorcraftOptions& options) {
  const TensorcraftTensor tensor(problem.mesh, problem.dims);
  ORRERY_RETURN_IF_ERROR(tensor.Check());
  if (absl::Status from = tensor.Check(PackedLayout(problem.from)); !from.ok()) {
    return Annotate(from, "source");
  }
  if (absl::Status to = tensor.Check(PackedLayout(problem.to)); !to.ok()) {
    return Annotate(to, "target");
  }
  return absl::WrapUnique(new TensorcraftMoveSet(problem, options));
}

TensorcraftMoveSet::TensorcraftMoveSet(const Problem& problem, const TensorcraftOptions& options)
    : tensor_(problem.mesh, problem.dims),
      options_(options),
      from_(tensor_.Normal(PackedLayout(problem.from))),
      to_(tensor_.Normal(PackedLayout(problem.to))),
      target_(tensor_.Open(to_)),
      blocks_(tensorcraft_cc::BlocksOf(target_)) {
  // After the last collective nothing but splits follows, so its layout has at most the target's
  // parts. p ranks gather from layouts with p times as many; every other collective starts from
  // one with as many. Each sends (p-1)/p of its result at least.
  const double parts = static_cast<double>(target_.ranks);
  const double elements = static_cast<double>(tensor_.elements());
  least_collective_ = options_.alpha + options_.beta * elements / parts / 2;
  least_part_elements_ = elements / static_cast<double>(problem.mesh.size());
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(tensor_.axis_count()); ++axis) {
    if (tensor_.size(axis) == 1) least_collective_ = 0;  // collectives of one rank are free
  }
}

void TensorcraftMoveSet::Expand(const PackedLayout& layout, std::vector<Move>& moves) const {
  const TensorcraftLayout open = tensor_.Open(layout);
  for (const TensorcraftOperation& operation :
       ListOperations(tensor_, open, blocks_, Repeats::kNone)) {
    const auto taken = Apply(tensor_, open, operation);
    if (!taken.has_value()) continue;
    moves.push_back({.step = taken->step,
                     .cost = Cost(taken->step, open.elements, taken->elements).total(),
                     .peak = taken->elements});
  }
}

void TensorcraftMoveSet::LastResort(const PackedLayout& layout, std::vector<Move>& moves) const {
  if (layout == to_) return;
  const Step step{.kind = MoveKind::kReblock,
                  .axes = tensorcraft_cc::UsedByAny(layout, to_),
                  .from = -1,
                  .to = -1,
                  .after = to_};
  moves.push_back({.step = step, .cost = CostOf(layout, step).total(), .peak = target_.elements});
}

bool TensorcraftMoveSet::SplitsLeadToTarget(const PackedLayout& layout) const {
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(tensor_.axis_count()); ++axis) {
    const int dim = layout.dim(axis);
    if (dim >= 0 && to_.dim(axis) != dim) return false;
  }
  for (int d = 0; d < tensor_.rank(); ++d) {
    if (!tensorcraft_cc::IsRun(layout.axes(d), target_.dims[static_cast<size_t>(d)].axes))
      return false;
  }
  return true;
}

double TensorcraftMoveSet::LowerBound(const PackedLayout& layout) const {
  if (SplitsLeadToTarget(layout)) return 0;
  // An axis that has to leave its dimension takes part in an all-gather or an all-to-all, of parts
  // that are no smaller than those on all ranks. One collective over several axes costs no less
  // than what is added up here: pq - 1 >= (p-1) + (q-1), and one pays as many hops.
  int64_t ranks = 1;
  double peers = 0;
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(tensor_.axis_count()); ++axis) {
    const int dim = layout.dim(axis);
    if (dim < 0 || to_.dim(axis) == dim) continue;
    ranks *= tensor_.size(axis);
    peers += static_cast<double>(tensor_.size(axis) - 1);
  }
  if (options_.physical) peers = 1 - 1 / static_cast<double>(ranks);  // <= (1 - 1/p) + (1 - 1/q)
  const double moves =
      options_.alpha * tensorcraft_cc::Rounds(ranks) + options_.beta * peers * least_part_elements_;
  return std::max(least_collective_, moves) * tensorcraft_cc::kBelowRounding;
}

TensorcraftVolume TensorcraftMoveSet::Volume(const Step& step, int64_t before) const {
  const int64_t ranks = step.kind == MoveKind::kPermute ? 2 : tensor_.size(step.axes);
  const double elements = static_cast<double>(before);
  switch (step.kind) {
    case MoveKind::kAllGather:
    case MoveKind::kAllToAll:
      return {.elements = elements * static_cast<double>(ranks), .ranks = ranks};
    case MoveKind::kPermute:
    case MoveKind::kReblock:
      return {.elements = elements, .ranks = ranks};
    default:
      return {};
  }
}

StepCost TensorcraftMoveSet::CostOfLastResort(const Step& step, int64_t before,
                                              int64_t after) const {
  double rounds = 0;
  for (const AxisIndex axis : step.axes.axes())
    rounds += tensorcraft_cc::Rounds(tensor_.size(axis));
  const double peers = static_cast<double>(tensor_.size(step.axes) - 1);
  return {.latency = options_.alpha * rounds,
          .transfer = options_.beta * peers * static_cast<double>(std::max(before, after)),
          .memory = options_.epsilon * static_cast<double>(tensor_.elements() - before)};
}

StepCost TensorcraftMoveSet::Cost(const Step& step, int64_t before, int64_t after) const {
  if (step.kind == MoveKind::kReblock && step.from < 0) {
    return CostOfLastResort(step, before, after);
  }
  const TensorcraftVolume volume = Volume(step, before);
  const double ranks = static_cast<double>(volume.ranks);
  double rounds = tensorcraft_cc::Rounds(volume.ranks);
  double sent = volume.ranks == 0 ? 0 : (ranks - 1) * volume.elements / ranks;
  if (step.kind == MoveKind::kPermute) {
    rounds = 1;
    sent = volume.elements * ranks;
  } else if (step.kind == MoveKind::kAllToAll && options_.physical) {
    sent /= ranks;
  }
  return {.latency = options_.alpha * rounds,
          .transfer = options_.beta * sent,
          .memory = options_.epsilon * static_cast<double>(std::max<int64_t>(0, after - before))};
}

StepVolume TensorcraftMoveSet::VolumeOf(const PackedLayout& before, const Step& step) const {
  return Volume(step, Elements(before));
}

StepCost TensorcraftMoveSet::CostOf(const PackedLayout& before, const Step& step) const {
  return Cost(step, Elements(before), Elements(step.after));
}

int64_t TensorcraftMoveSet::Elements(const PackedLayout& layout) const {
  return tensor_.Elements(tensor_.Normal(layout));
}

std::string TensorcraftMoveSet::NameOf(const PackedLayout& before, const Step& step) const {
  const TensorcraftLayout open = tensor_.Open(tensor_.Normal(before));
  for (const TensorcraftOperation& operation :
       ListOperations(tensor_, open, blocks_, Repeats::kAll)) {
    const auto taken = Apply(tensor_, open, operation);
    if (taken.has_value() && taken->step == step) return redistribution::NameOf(operation);
  }
  switch (step.kind) {
    case MoveKind::kSlice:
      return "split_*";
    case MoveKind::kReblock:
      return "alltoall_*";
    default:
      return std::string(ToString(step.kind));
  }
}

RedistributionPlan TensorcraftMoveSet::Naive() const {
  std::vector<Move> moves;
  PackedLayout at = from_;
  const auto take = [&](MoveKind kind, const PackedLayout& after) {
    const Step step{.kind = kind,
                    .axes = tensorcraft_cc::UsedByAny(at, after),
                    .from = -1,
                    .to = -1,
                    .after = after};
    moves.push_back({.step = step, .cost = CostOf(at, step).total(), .peak = Elements(after)});
    at = after;
  };
  if (from_ == to_) return Priced(*this, from_, moves);
  if (from_ != PackedLayout()) take(MoveKind::kAllGather, PackedLayout());
  if (to_ != PackedLayout()) take(MoveKind::kSlice, to_);
  return Priced(*this, from_, moves);
}

}  // namespace orrery::transforms::redistribution
