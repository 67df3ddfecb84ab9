#include "cluster/spelling.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster/part_file.h"
#include "cluster/quantity.h"
#include "support/status.h"

namespace orrery::cluster {
namespace spelling_cc {
namespace {

// SimpleAtoi would take signs and spaces.
bool ParseNumber(absl::string_view text, int32_t& number) {
  return std::ranges::all_of(text, absl::ascii_isdigit) && absl::SimpleAtoi(text, &number);
}

}  // namespace
}  // namespace spelling_cc

Halves SplitAt(absl::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == absl::string_view::npos) return {.before = text};
  return {.before = text.substr(0, at), .after = text.substr(at + 1), .found = true};
}

absl::StatusOr<int32_t> ParseCount(absl::string_view text, const CountOf& count) {
  const int32_t most = kMaxDevices / count.each;
  int32_t number = 0;
  if (spelling_cc::ParseNumber(text, number) && number >= 1 && number <= most) return number;
  const std::string got = text.empty() ? absl::StrCat("got no number of ", count.things)
                                       : absl::StrCat("got '", text, "' ", count.things);
  return absl::InvalidArgumentError(
      absl::StrCat(got, "; wanted 1 to ", most, ", as in ", count.example));
}

absl::StatusOr<std::vector<int32_t>> ParseSizes(absl::string_view text, absl::string_view example) {
  std::vector<int32_t> sizes;
  int64_t product = 1;
  for (const absl::string_view part : absl::StrSplit(text, 'x')) {
    int32_t size = 0;
    const bool fits = spelling_cc::ParseNumber(part, size) && size >= 1 && size <= kMaxDevices;
    product = std::min<int64_t>(product * size, int64_t{kMaxDevices} + 1);
    if (!fits || product > kMaxDevices || sizes.size() == kMaxLevels) {
      return absl::InvalidArgumentError(absl::StrCat(
          "got sizes '", text, "'; wanted 1 to ", kMaxLevels, " numbers of at least 1 for at most ",
          kMaxDevices, " devices, as in ", example));
    }
    sizes.push_back(size);
  }
  return sizes;
}

absl::StatusOr<PathInfo> ParseSpeed(absl::string_view text) {
  for (const LinkGeneration& generation : AllLinkGenerations()) {
    if (text == generation.name) return generation.speed;
  }
  const Halves rate_latency = SplitAt(text, '+');
  PathInfo speed;
  ORRERY_ASSIGN_OR_RETURN(speed.rate, ParseBandwidth(rate_latency.before));
  if (!rate_latency.found) return speed;
  ORRERY_ASSIGN_OR_RETURN(speed.latency, ParseDuration(rate_latency.after));
  return speed;
}

absl::StatusOr<OptionList> OptionList::Parse(absl::string_view text, absl::string_view known,
                                             absl::string_view example) {
  const std::vector<absl::string_view> names = absl::StrSplit(known, ' ');
  OptionList list;
  list.example_ = std::string(example);
  if (text.empty()) return list;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const Halves name_value = SplitAt(part, '=');
    const bool is_known = std::ranges::find(names, name_value.before) != names.end();
    if (!is_known || list.Has(name_value.before)) {
      return absl::InvalidArgumentError(
          absl::StrCat("got option '", part, is_known ? "' again" : "'", "; wanted ",
                       absl::StrJoin(names, ", "), ", as in ", example));
    }
    list.options_.push_back({name_value.before, name_value.after});
  }
  return list;
}

std::optional<absl::string_view> OptionList::Find(absl::string_view name) const {
  for (const Option& option : options_) {
    if (option.name == name) return option.value;
  }
  return std::nullopt;
}

absl::StatusOr<PathInfo> OptionList::Speed(absl::string_view name,
                                           const PathInfo& otherwise) const {
  const auto value = Find(name);
  if (!value.has_value()) return otherwise;
  auto speed = ParseSpeed(*value);
  if (!speed.ok()) return Annotate(speed.status(), name);
  // A rate alone leaves the latency as it was.
  if (speed->latency == Duration(0)) speed->latency = otherwise.latency;
  return speed;
}

absl::StatusOr<Duration> OptionList::Latency(absl::string_view name, Duration otherwise) const {
  const auto value = Find(name);
  if (!value.has_value()) return otherwise;
  auto latency = ParseDuration(*value);
  return latency.ok() ? latency : Annotate(latency.status(), name);
}

absl::StatusOr<bool> OptionList::Flag(absl::string_view name) const {
  const auto value = Find(name);
  if (!value.has_value() || value->empty()) return value.has_value();
  return absl::InvalidArgumentError(absl::StrCat("got ", name, "=", *value, "; wanted ", name,
                                                 " without a value, or nothing, as in ", example_));
}

absl::StatusOr<int32_t> OptionList::Count(absl::string_view name, int32_t otherwise) const {
  const auto value = Find(name);
  if (!value.has_value()) return otherwise;
  return ParseCount(*value, {.things = name, .example = example_});
}

absl::StatusOr<double> OptionList::Ratio(absl::string_view name) const {
  const auto value = Find(name);
  if (!value.has_value()) return 1;
  double ratio = 0;
  const bool is_plain = std::ranges::all_of(*value, [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.';
  });
  if (is_plain && absl::SimpleAtod(*value, &ratio) && ratio >= 1 && ratio <= kMaxDevices) {
    return ratio;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("got ", name, " '", *value, "'; wanted at least 1, as in ", example_));
}

absl::StatusOr<Device> OptionList::OfDevice(absl::string_view otherwise) const {
  return FindDeviceOrFile(Find("device").value_or(otherwise));
}

std::string SpelledName(const TopologyKind& kind) {
  std::string name(kind.name);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace orrery::cluster
