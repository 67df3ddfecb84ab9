#include "tools/goodput/run_texts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/names/near_names.h"
#include "support/status.h"
#include "support/units.h"
#include "support/word_list.h"
#include "tools/goodput/checkpoint_tiers.h"

namespace orrery::tools {

using simulator::goodput::AllComponents;
using simulator::goodput::Component;
using simulator::goodput::FailureRate;
using simulator::goodput::PlannedStop;
using simulator::goodput::Spread;
using simulator::goodput::WhenShort;

namespace run_texts_cc {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 24 * kHour, kYear = 365 * kDay;
// Longest first, as "ms" ends with "s".
constexpr std::pair<absl::string_view, double> kUnits[] = {
    {"ms", 1e-3}, {"min", kMinute}, {"s", 1},     {"m", kMinute},
    {"h", kHour}, {"d", kDay},      {"y", kYear}, {"", 1}};

std::vector<absl::string_view> ComponentNames() {
  std::vector<absl::string_view> names;
  for (const Component& component : AllComponents()) names.push_back(component.name);
  return names;
}

const Component* FindComponent(absl::string_view name) {
  const auto found = std::ranges::find(AllComponents(), name, &Component::name);
  return found == AllComponents().end() ? nullptr : &*found;
}

// Puts what a component's mean time is in place of what was said before.
void SetRate(const Component* component, double mtbf_s, std::vector<FailureRate>& rates) {
  std::erase_if(rates, [&](const FailureRate& rate) { return rate.component == component; });
  if (std::isfinite(mtbf_s)) rates.push_back({component, mtbf_s});
}

absl::Status AddRate(absl::string_view name, absl::string_view value,
                     std::vector<FailureRate>& rates) {
  const Component* component = FindComponent(name);
  if (component == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no component; ", WantedNames(name, ComponentNames(), "")));
  }
  if (value == "never") {
    SetRate(component, HUGE_VAL, rates);
    return absl::OkStatus();
  }
  ORRERY_ASSIGN_OR_RETURN(const double mtbf_s, Annotated(ParseSpan(value), name));
  if (mtbf_s <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "=", value, ": wanted a mean time of more than 0, or never"));
  }
  SetRate(component, mtbf_s, rates);
  return absl::OkStatus();
}

absl::Status SetEvery(absl::string_view value, TierText& tier) {
  if (value == "auto") return absl::OkStatus();
  absl::string_view number = value;
  if (absl::ConsumeSuffix(&number, "steps")) {
    int64_t steps = 0;
    if (!absl::SimpleAtoi(number, &steps) || steps < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("every=", value, ": wanted at least 1 step, as in 100steps"));
    }
    tier.every_steps = steps;
    return absl::OkStatus();
  }
  ORRERY_ASSIGN_OR_RETURN(tier.every_s, Annotated(ParseSpan(value), "every"));
  if (*tier.every_s > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("every=0: wanted a time of more than 0, or auto");
}

absl::Status SetOption(absl::string_view option, TierText& tier) {
  const std::pair<absl::string_view, absl::string_view> pair =
      absl::StrSplit(option, absl::MaxSplits('=', 1));
  if (pair.first == "every") return SetEvery(pair.second, tier);
  if (option == "blocking" || option == "async") {
    tier.blocking = option == "blocking";
    return absl::OkStatus();
  }
  if (option == "own-network") {
    tier.own_network = true;
    return absl::OkStatus();
  }
  if (pair.first == "bandwidth") {
    ORRERY_ASSIGN_OR_RETURN(const Bandwidth rate, ParseBandwidth(pair.second));
    if (rate == Bandwidth(0)) {
      return absl::InvalidArgumentError("bandwidth=0: wanted more than 0 bytes/s");
    }
    tier.bytes_per_second = static_cast<double>(rate.bytes_per_second());
    return absl::OkStatus();
  }
  for (auto& [name, place] : {std::pair("stall", &tier.stall_s), std::pair("write", &tier.write_s),
                              std::pair("load", &tier.load_s)}) {
    if (pair.first != name) continue;
    ORRERY_ASSIGN_OR_RETURN(*place, Annotated(ParseSpan(pair.second), name));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", option,
                   "': wanted every=30m, every=100steps, every=auto, bandwidth=2TB/s, blocking, "
                   "async, own-network, stall=1s, write=1m or load=1m"));
}

}  // namespace
}  // namespace run_texts_cc

absl::StatusOr<double> ParseSpan(absl::string_view text) {
  for (const auto& [unit, size] : run_texts_cc::kUnits) {
    absl::string_view number = text;
    double value = 0;
    if (!absl::ConsumeSuffix(&number, unit)) continue;
    if (number.find_first_of(" \t") != absl::string_view::npos ||
        !absl::SimpleAtod(number, &value) || !(value >= 0) || !std::isfinite(value)) {
      continue;
    }
    // Only nothing is the same in every unit.
    if (unit.empty() && value != 0) break;
    return value * size;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted a time of at least 0, as in 50000h, 30m, 45s or 2d"));
}

absl::StatusOr<Spread> ParseSpread(absl::string_view text) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  ORRERY_ASSIGN_OR_RETURN(const double low_s, ParseSpan(ends.front()));
  ORRERY_ASSIGN_OR_RETURN(const double high_s, ParseSpan(ends.back()));
  if (high_s < low_s) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': wanted the shorter time first, as in 2m..10m"));
  }
  return Spread{low_s, high_s};
}

std::string SpanText(double seconds) {
  using run_texts_cc::kDay;
  using run_texts_cc::kHour;
  using run_texts_cc::kMinute;
  if (seconds >= 999.5 * kDay) return absl::StrFormat("%.0f d", seconds / kDay);
  if (seconds >= 2 * kDay) return absl::StrFormat("%.3g d", seconds / kDay);
  if (seconds >= 2 * kHour) return absl::StrFormat("%.3g h", seconds / kHour);
  if (seconds >= 2 * kMinute) return absl::StrFormat("%.3g min", seconds / kMinute);
  if (seconds >= 1 || seconds == 0) return absl::StrFormat("%.3g s", seconds);
  return absl::StrFormat("%.3g ms", seconds * 1e3);
}

// Hours of use over failures: 16,384 devices in 2,048 hosts for 54 days, 419 unexpected stops.
// Hosts of RSC-1 and RSC-2 fail 6.50 and 2.34 times in 1,000 days.
const std::vector<FailureProfile>& AllFailureProfiles() {
  static const auto* const kProfiles = new std::vector<FailureProfile>{
      {"llama3-405b",
       "16,384 H100 for 54 days: a failure every 3.1 h",
       "Llama Team, The Llama 3 Herd of Models, 2024, table 5",
       {{"device", 16'384 * 1'296.0 / 268},
        {"host", 2'048 * 1'296.0 / 46},
        {"link", 16'384 * 1'296.0 / 42},
        {"software", 16'384 * 1'296.0 / 63}}},
      {"rsc-1",
       "16,000 A100 of many users: a host every 154 days",
       "Kokolis et al., Revisiting Reliability in Large-Scale Machine Learning Research Clusters, "
       "2024",
       {{"host", 1'000 * 24 / 6.50}}},
      {"rsc-2",
       "8,000 A100 of many users: a host every 427 days",
       "Kokolis et al., 2024",
       {{"host", 1'000 * 24 / 2.34}}}};
  return *kProfiles;
}

absl::StatusOr<std::vector<FailureRate>> ParseMtbf(absl::string_view text) {
  std::vector<FailureRate> rates;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (absl::StrContains(word, '=')) {
      ORRERY_RETURN_IF_ERROR(run_texts_cc::AddRate(pair.first, pair.second, rates));
      continue;
    }
    if (word == "none") continue;
    const auto& profiles = AllFailureProfiles();
    const auto profile = std::ranges::find(profiles, word, &FailureProfile::name);
    if (profile == profiles.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word,
                       "': wanted device=50000h,host=30000h and so on, none, or one of "
                       "--list-failures"));
    }
    for (const auto& [name, hours] : profile->mtbf_hours) {
      run_texts_cc::SetRate(run_texts_cc::FindComponent(name), hours * run_texts_cc::kHour, rates);
    }
  }
  return rates;
}

absl::StatusOr<std::vector<TierText>> ParseTiers(absl::string_view text) {
  std::vector<TierText> tiers;
  if (text == "none") return tiers;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(word, ':');
    TierText& tier = tiers.emplace_back(TierText{.name = std::string(parts[0])});
    if (const absl::StatusOr<double> every = ParseSpan(parts[0]); every.ok()) {
      tier.name = "pfs";
      ORRERY_RETURN_IF_ERROR(run_texts_cc::SetEvery(parts[0], tier));
    } else if (const auto names = TierNames(); std::ranges::count(names, tier.name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", parts[0], "': wanted ", ListWords(names, " or "),
                       ", each once, as in host:every=1m,pfs:every=30m, a time, or none"));
    }
    for (size_t i = 1; i < parts.size(); ++i) {
      ORRERY_RETURN_IF_ERROR(Annotate(run_texts_cc::SetOption(parts[i], tier), tier.name));
    }
    if (std::ranges::count(tiers, tier.name, &TierText::name) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", tier.name, "' is named twice; wanted each tier once"));
    }
  }
  return tiers;
}

absl::StatusOr<PlannedStop> ParseStop(absl::string_view text, const PlannedStop& usual) {
  PlannedStop stop = usual;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (pair.first == "every") {
      ORRERY_ASSIGN_OR_RETURN(stop.every_s, Annotated(ParseSpan(pair.second), "every"));
    } else if (pair.first == "away") {
      ORRERY_ASSIGN_OR_RETURN(stop.away, Annotated(ParseSpread(pair.second), "away"));
    } else if (pair.first == "notice") {
      ORRERY_ASSIGN_OR_RETURN(stop.notice_s, Annotated(ParseSpan(pair.second), "notice"));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "': wanted every=24h,away=30m,notice=2m"));
    }
  }
  if (stop.every_s > 0) return stop;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted more than 0 from one to the next, as in every=24h"));
}

absl::StatusOr<WhenShort> ParseWhenShort(absl::string_view text) {
  if (text == "wait") return WhenShort::kWait;
  if (text == "shrink") return WhenShort::kShrink;
  if (text == "keep-batch") return WhenShort::kKeepBatch;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted wait, shrink or keep-batch"));
}

}  // namespace orrery::tools
