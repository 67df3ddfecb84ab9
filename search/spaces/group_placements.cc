#include "search/spaces/group_placements.h"

#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/op_info.h"
#include "search/spaces/name_parts.h"
#include "transforms/plan/plan_text.h"
#include "transforms/stages/stage_cuts.h"
#include "transforms/stages/stage_units.h"
#include "transforms/training/step_phases.h"

namespace orrery::search {
namespace group_placements_cc {
namespace {

using transforms::DeviceSet;
using transforms::ParallelPlan;

constexpr double kLeastPart = 0.01;  // of all flops, that a group by names has

struct NamedOp {
  std::vector<std::string> names;  // of its results, one at least
  double flops = 0;
  double place = 0;  // of all named ones, 0 to 1
  bool is_loss = false;

  const std::string& name() const { return names.front(); }
};

// Forward ops that have a name, in their order.
std::vector<NamedOp> NamedOps(const ir::Function& step) {
  std::vector<NamedOp> ops;
  for (const ir::OpId op : transforms::FindChain(step, transforms::FindPhases(step)).ops) {
    NamedOp named = {.names = {},
                     .flops = transforms::FlopsOf(step, op),
                     .place = static_cast<double>(ops.size()),
                     .is_loss = step.info(op).is_loss || step.info(op).seeds_backward};
    for (int32_t i = 0; i < step.result_count(op); ++i) {
      const absl::string_view name = step.value_name(step.result(op, i));
      if (!name.empty()) named.names.emplace_back(name);
    }
    if (!named.names.empty()) ops.push_back(std::move(named));
  }
  for (NamedOp& op : ops) op.place /= static_cast<double>(ops.size());
  return ops;
}

double FlopsOf(std::span<const NamedOp> ops) {
  return std::accumulate(ops.begin(), ops.end(), 0.0,
                         [](double sum, const NamedOp& op) { return sum + op.flops; });
}

// Of ops of which there is one at least.
GroupShare ShareOf(std::span<const NamedOp> ops, double all_flops) {
  GroupShare share = {.flops = all_flops > 0 ? FlopsOf(ops) / all_flops : 0};
  for (const NamedOp& op : ops) share.place += op.place / static_cast<double>(ops.size());
  return share;
}

// Ops whose names begin with `prefix`, and then end or go on behind what is between parts.
struct NameGroup {
  std::string prefix;
  std::vector<NamedOp> ops;
  bool whole = true;  // else those of names that end there
  size_t next = 0;    // where the next part of their names begins

  double flops() const { return FlopsOf(ops); }
  std::string pattern() const {
    const std::string end = whole ? absl::StrCat("([", kNameSeparators, "]|$)") : "$";
    return absl::StrCat("^", QuotedName(prefix), end);
  }
};

// By the next part of their names.
std::vector<NameGroup> Divided(const NameGroup& group) {
  std::vector<NameGroup> parts;
  std::map<std::string, size_t> known;
  for (const NamedOp& op : group.ops) {
    const bool ends = group.next > op.name().size();
    const size_t to =
        std::min(op.name().size(),
                 ends ? op.name().size() : op.name().find_first_of(kNameSeparators, group.next));
    const auto [found, is_new] = known.try_emplace(op.name().substr(0, to), parts.size());
    if (is_new) {
      parts.push_back({.prefix = found->first, .ops = {}, .whole = !ends, .next = to + 1});
    }
    parts[found->second].ops.push_back(op);
  }
  return parts;
}

DeviceSet SetOf(const ParallelPlan& plan, int64_t set) {
  DeviceSet devices = {.dp = plan.dp, .hp = plan.hp};
  devices.devices.resize(static_cast<size_t>(plan.dp * plan.hp));
  std::iota(devices.devices.begin(), devices.devices.end(),
            static_cast<int32_t>(set * plan.dp * plan.hp));
  return devices;
}

}  // namespace
}  // namespace group_placements_cc

absl::StatusOr<OpGroups> GroupsByName(const ir::Function& step, size_t most) {
  using group_placements_cc::NameGroup;
  std::vector<NameGroup> groups = {{.prefix = "", .ops = group_placements_cc::NamedOps(step)}};
  std::erase_if(groups.front().ops,
                [](const group_placements_cc::NamedOp& op) { return op.is_loss; });
  const auto flops = [](const NameGroup& group) { return group.flops(); };
  const double all_flops = flops(groups.front());
  const double least = all_flops * group_placements_cc::kLeastPart;
  std::vector<NameGroup> done;  // that names do not divide, or into too many
  bool divided = false;
  while (!groups.empty()) {
    const auto at = std::ranges::max_element(groups, {}, flops);
    std::vector<NameGroup> parts = group_placements_cc::Divided(*at);
    // Sums and the like; later, what is small belongs to what is large beside it.
    if (!divided) std::erase_if(parts, [&](const NameGroup& part) { return flops(part) < least; });
    const NameGroup whole = std::move(*at);
    groups.erase(at);
    if (parts.size() == 1 && parts.front().whole) {
      groups.push_back(std::move(parts.front()));
      continue;
    }
    const size_t others = done.size() + groups.size();
    if (parts.size() < 2 || (divided && others + parts.size() > most)) {
      done.push_back(whole);
    } else {
      divided = true;
      std::ranges::move(parts, std::back_inserter(groups));
    }
  }
  if (done.size() < 2 || most < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "names of ops tell no 2 to ", most, " groups apart; wanted names with parts, or patterns"));
  }
  std::ranges::stable_sort(done, std::ranges::greater(), flops);
  OpGroups result = {.patterns = {}, .shares = {}, .apart = true};
  for (size_t i = 1; i < std::min(done.size(), most); ++i) {
    result.patterns.push_back(done[i].pattern());
    result.shares.push_back(group_placements_cc::ShareOf(done[i].ops, all_flops));
  }
  return result;
}

absl::StatusOr<OpGroups> GroupsOfPatterns(const ir::Function& step, absl::string_view patterns) {
  OpGroups groups;
  std::vector<group_placements_cc::NamedOp> left = group_placements_cc::NamedOps(step);
  const double all_flops = group_placements_cc::FlopsOf(left);
  for (const absl::string_view text : absl::StrSplit(patterns, ';')) {
    const RE2 pattern({text.data(), text.size()}, RE2::Quiet);
    if (text.empty() || text.find('=') != absl::string_view::npos || !pattern.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "': wanted patterns of names with ; between, as in ^user;^item"));
    }
    const auto matches = [&](const group_placements_cc::NamedOp& op) {
      return std::ranges::any_of(
          op.names, [&](const std::string& name) { return RE2::PartialMatch(name, pattern); });
    };
    const auto rest = std::stable_partition(left.begin(), left.end(), std::not_fn(matches));
    if (rest == left.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text, "' matches no forward op that no pattern before it does; `opt` prints names"));
    }
    groups.patterns.emplace_back(text);
    groups.shares.push_back(group_placements_cc::ShareOf({rest, left.end()}, all_flops));
    left.erase(rest, left.end());
  }
  groups.covers_all = left.empty();
  return groups;
}

int64_t GroupPlacements::ClassOf(const transforms::ParallelPlan& plan) const {
  if (plan.pp < 2 || plan.unequal() || plan.cp * plan.ep > 1) return 0;
  transforms::ParallelPlan placed = plan;
  const int one = 1;
  Apply({&one, 1}, placed);
  return transforms::CheckPlan(placed).ok() ? plan.pp : 0;
}

std::vector<int> GroupPlacements::OptionsOf(int64_t plan_class, size_t /*thing*/) const {
  std::vector<int> options(static_cast<size_t>(plan_class));
  std::iota(options.begin(), options.end(), 0);
  return options;
}

std::vector<double> GroupPlacements::FeaturesOf(size_t thing) const {
  if (groups_.shares.empty()) return {0, 0};
  return {groups_.shares[thing].flops, groups_.shares[thing].place};
}

void GroupPlacements::Apply(std::span<const int> labels, transforms::ParallelPlan& plan) const {
  transforms::Placement placement;
  std::map<int, int32_t> places;  // in placement.sets
  const auto add = [&](const std::string& pattern, int set) {
    const auto [found, is_new] = places.try_emplace(set, std::ssize(placement.sets));
    if (is_new) placement.sets.push_back(group_placements_cc::SetOf(plan, set));
    placement.groups.push_back({.pattern = pattern, .set = found->second});
  };
  const auto moved = [](int label) { return label != 0; };
  const auto last = std::find_if(labels.rbegin(), labels.rend(), moved);
  if (last == labels.rend()) return;
  const auto end = static_cast<size_t>(labels.rend() - last);
  bool has_rest = !groups_.covers_all || end < groups_.patterns.size();
  for (size_t thing = 0; thing < end; ++thing) {
    // What stays keeps its ops from patterns behind it.
    if (moved(labels[thing]) || !groups_.apart) add(groups_.patterns[thing], labels[thing]);
    has_rest = has_rest || (groups_.apart && !moved(labels[thing]));
  }
  if (has_rest) add("*", 0);
  plan.pp = std::ssize(placement.sets);
  plan.dp = plan.hp = 1;
  plan.placement = std::move(placement);
}

}  // namespace orrery::search
