#include "transforms/stages/placement.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/status.h"

namespace orrery::transforms {
namespace placement_cc {
namespace {

constexpr int64_t kMost = int64_t{1} << 20;
constexpr size_t kMostGroups = 1 << 12;

std::optional<int64_t> Number(absl::string_view text, int64_t least) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < least || number > kMost) return std::nullopt;
  return number;
}

// "0-3,6" as numbers; nothing for another form.
std::optional<std::vector<int32_t>> ParseList(absl::string_view list) {
  std::vector<int32_t> devices;
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> range =
        absl::StrSplit(item, absl::MaxSplits('-', 1));
    const auto first = Number(range.first, 0);
    const bool one = item.find('-') == absl::string_view::npos;
    const auto last = one ? first : Number(range.second, 0);
    if (!first.has_value() || !last.has_value() || *first > *last) return std::nullopt;
    if (std::ssize(devices) + *last - *first >= kMost) return std::nullopt;
    for (int64_t device = *first; device <= *last; ++device) {
      devices.push_back(static_cast<int32_t>(device));
    }
  }
  return devices;
}

absl::StatusOr<DeviceSet> ParseSet(absl::string_view text) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "': wanted devices, as in 0-3, or dp x hp of them, as in 2x2@4 or 2x1@0,4"));
  };
  const size_t at = text.find('@');
  const bool meshed = at != absl::string_view::npos;
  auto devices = ParseList(meshed ? text.substr(at + 1) : text);
  if (!devices.has_value()) return wrong();
  DeviceSet set{.dp = std::ssize(*devices), .devices = *std::move(devices)};
  if (meshed) {
    const std::pair<absl::string_view, absl::string_view> degrees =
        absl::StrSplit(text.substr(0, at), absl::MaxSplits('x', 1));
    const auto dp = Number(degrees.first, 1), hp = Number(degrees.second, 1);
    if (!dp.has_value() || !hp.has_value() || *dp * *hp > kMost) return wrong();
    set.dp = *dp;
    set.hp = *hp;
    const int32_t first = set.devices.front();
    if (set.devices.size() == 1 && int64_t{first} + *dp * *hp <= kMost) {
      set.devices.resize(static_cast<size_t>(*dp * *hp));
      std::iota(set.devices.begin(), set.devices.end(), first);
    }
    if (std::ssize(set.devices) != *dp * *hp) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", set.devices.size(),
                                                     " devices; wanted ", *dp * *hp,
                                                     ", or the first of them"));
    }
  }
  std::vector<int32_t> sorted = set.devices;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", *twice, " is twice in '", text, "'; wanted each once"));
  }
  return set;
}

absl::Status CheckPattern(absl::string_view pattern) {
  if (pattern == "*") return absl::OkStatus();
  const RE2 read({pattern.data(), pattern.size()}, RE2::Quiet);
  if (read.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", pattern, "': ", read.error(), "; wanted a regular expression, or *"));
}

// One rank runs what a device does, in one mesh.
absl::Status CheckApart(const std::vector<DeviceSet>& sets) {
  std::map<int32_t, const DeviceSet*> set_of;
  for (const DeviceSet& set : sets) {
    for (const int32_t device : set.devices) {
      const auto [found, is_new] = set_of.emplace(device, &set);
      if (is_new) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("device ", device, " is of ", ToString(*found->second), " and of ",
                       ToString(set), "; wanted sets that are the same, or have none in common"));
    }
  }
  return absl::OkStatus();
}

absl::Status NoGroup(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "': wanted a pattern and its devices, as in text=0-3;image=4-7;*=0-3"));
}

int64_t Most(const std::vector<DeviceSet>& sets, int64_t DeviceSet::*degree) {
  int64_t most = 1;
  for (const DeviceSet& set : sets) most = std::max(most, set.*degree);
  return most;
}

std::string ListText(const std::vector<int32_t>& devices) {
  std::vector<std::string> items;
  for (size_t begin = 0, end = 0; begin < devices.size(); begin = end) {
    end = begin + 1;
    while (end < devices.size() && devices[end] == devices[end - 1] + 1) ++end;
    items.push_back(end == begin + 1 ? absl::StrCat(devices[begin])
                                     : absl::StrCat(devices[begin], "-", devices[end - 1]));
  }
  return absl::StrJoin(items, ",");
}

}  // namespace
}  // namespace placement_cc

int64_t Placement::ranks() const {
  int64_t ranks = 0;
  for (const DeviceSet& set : sets) ranks += std::ssize(set.devices);
  return ranks;
}

int64_t Placement::most_dp() const { return placement_cc::Most(sets, &DeviceSet::dp); }

int64_t Placement::most_hp() const { return placement_cc::Most(sets, &DeviceSet::hp); }

absl::StatusOr<Placement> ParsePlacement(absl::string_view text) {
  Placement placement;
  for (const absl::string_view item : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    const size_t equals = item.rfind('=');
    if (equals == absl::string_view::npos || equals == 0) return placement_cc::NoGroup(item);
    const absl::string_view pattern = item.substr(0, equals);
    ORRERY_RETURN_IF_ERROR(placement_cc::CheckPattern(pattern));
    ORRERY_ASSIGN_OR_RETURN(DeviceSet set, placement_cc::ParseSet(item.substr(equals + 1)));
    auto found = std::ranges::find(placement.sets, set);
    if (found == placement.sets.end()) {
      placement.sets.push_back(std::move(set));
      found = std::prev(placement.sets.end());
    }
    placement.groups.push_back({.pattern = std::string(pattern),
                                .set = static_cast<int32_t>(found - placement.sets.begin())});
    if (placement.groups.size() <= placement_cc::kMostGroups) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("over ", placement_cc::kMostGroups, " groups; wanted fewer"));
  }
  if (placement.empty() && !text.empty()) return placement_cc::NoGroup(text);
  ORRERY_RETURN_IF_ERROR(placement_cc::CheckApart(placement.sets));
  return placement;
}

std::string ToString(const DeviceSet& set) {
  if (set.hp == 1) return placement_cc::ListText(set.devices);
  const bool in_row = set.devices.back() - set.devices.front() + 1 == std::ssize(set.devices) &&
                      std::ranges::is_sorted(set.devices);
  return absl::StrCat(
      set.dp, "x", set.hp, "@",
      in_row ? absl::StrCat(set.devices.front()) : placement_cc::ListText(set.devices));
}

std::string ToString(const Placement& placement) {
  return absl::StrJoin(placement.groups, ";", [&](std::string* text, const PlacedGroup& group) {
    absl::StrAppend(text, group.pattern, "=",
                    ToString(placement.sets[static_cast<size_t>(group.set)]));
  });
}

}  // namespace orrery::transforms
