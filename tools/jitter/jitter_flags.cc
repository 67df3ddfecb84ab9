#include "tools/jitter/jitter_flags.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cluster/names/named_links.h"
#include "cluster/quantity.h"
#include "simulator/jitter/distribution.h"
#include "support/names/near_names.h"
#include "support/number_text.h"
#include "support/status.h"
#include "support/threads.h"

namespace orrery::tools {
namespace jitter_flags_cc {
namespace {

namespace po = boost::program_options;
using search::StepsQuestion;
using simulator::Disturbances;
using simulator::Spread;

constexpr int64_t kMostSteps = 1'000'000;

absl::Status Bad(absl::string_view found, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(found, "; wanted ", wanted));
}

// "2%" or "0.02".
std::optional<double> ParseShare(absl::string_view text) {
  const bool percent = absl::ConsumeSuffix(&text, "%");
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return percent ? value / 100 : value;
}

std::string Percent(double share) { return absl::StrCat(ShortNumber(100 * share), " %"); }

// "lognormal:2%" or "2%".
absl::StatusOr<Spread> ParseSpread(absl::string_view text) {
  const std::span<const simulator::JitterDistribution> all = simulator::AllJitterDistributions();
  const simulator::JitterDistribution* of = &all.front();
  if (const size_t colon = text.find(':'); colon != absl::string_view::npos) {
    const absl::string_view name = text.substr(0, colon);
    of = simulator::FindJitterDistribution(name);
    if (of == nullptr) {
      std::vector<absl::string_view> names;
      for (const auto& each : all) names.push_back(each.name);
      return absl::InvalidArgumentError(
          absl::StrCat("no distribution '", name, "'; ", WantedNames(name, names, "list-jitter")));
    }
    text.remove_prefix(colon + 1);
  }
  const std::optional<double> spread = ParseShare(text);
  if (!spread.has_value()) return Bad(absl::StrCat("'", text, "'"), "a spread, such as 2%");
  if (*spread > 0 && *spread <= of->most_spread) return Spread{of, *spread};
  return Bad(absl::StrCat("a spread of ", Percent(*spread)),
             absl::StrCat("more than 0 % and at most ", Percent(of->most_spread), " of ", of->name,
                          of->most_spread < 1 ? ": beyond, times would be below 0; lognormal takes "
                                                "up to 1000 %"
                                              : ""));
}

template <std::optional<Spread> Disturbances::*source>
absl::Status ReadSpread(absl::string_view text, const cluster::Topology&, StepsQuestion& question) {
  ORRERY_ASSIGN_OR_RETURN(question.disturbances.*source, ParseSpread(text));
  return absl::OkStatus();
}

absl::Status ReadPauses(absl::string_view text, const cluster::Topology&, StepsQuestion& question) {
  constexpr absl::string_view kWanted =
      "how long and how often, such as 20ms/30s, or together:20ms/30s";
  simulator::Pauses pauses{.together = absl::ConsumePrefix(&text, "together:")};
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  const absl::StatusOr<Duration> length = cluster::ParseDuration(parts.first);
  const absl::StatusOr<Duration> every = cluster::ParseDuration(parts.second);
  if (!length.ok() || !every.ok()) return Bad(absl::StrCat("'", text, "'"), kWanted);
  pauses.length = *length;
  pauses.every = *every;
  constexpr Duration kLeast(1'000'000'000);  // a step may have as many as fit
  if (pauses.length <= Duration(0) || pauses.every <= pauses.length || pauses.every < kLeast) {
    return Bad(
        absl::StrCat("a pause of ", ToString(pauses.length), " every ", ToString(pauses.every)),
        "one of more than 0 that is shorter than what it comes every, which is at least "
        "1 ms");
  }
  question.disturbances.pauses = pauses;
  return absl::OkStatus();
}

// "nic:0.5". May be repeated, of other links.
absl::Status ReadLink(absl::string_view text, const cluster::Topology& topology,
                      StepsQuestion& question) {
  const size_t colon = text.rfind(':');
  const std::optional<double> share =
      colon == absl::string_view::npos ? std::nullopt : ParseShare(text.substr(colon + 1));
  if (!share.has_value()) {
    return Bad(absl::StrCat("'", text, "'"),
               "links and the share of their rate that is left, such "
               "as nic:0.5 or device3:50%");
  }
  if (*share <= 0 || *share > 1) {
    return Bad(absl::StrCat("a share of ", ShortNumber(*share), " of the rate"),
               "more than 0 and at most 1; of a link that is down, see the layout without it");
  }
  const std::string name(text.substr(0, colon));
  for (const search::DegradedLinks& other : question.links) {
    if (other.name == name) return Bad(absl::StrCat("link ", name, " twice"), "each once");
  }
  ORRERY_ASSIGN_OR_RETURN(std::vector<cluster::LinkNumber> links,
                          cluster::FindLinks(topology, name));
  question.links.push_back({.name = name, .links = std::move(links), .share = *share});
  return absl::OkStatus();
}

// What can be said behind --jitter.
struct Source {
  absl::string_view name;
  absl::string_view example;
  absl::string_view summary;
  absl::Status (*read)(absl::string_view text, const cluster::Topology& topology,
                       StepsQuestion& question);
};

constexpr std::array kSources = {
    Source{"kernel", "kernel=2%", "each kernel of each rank takes another time",
           ReadSpread<&Disturbances::kernel>},
    Source{"rank", "rank=1%", "all kernels of a rank are slower or faster in a step: clocks, heat",
           ReadSpread<&Disturbances::rank>},
    Source{"device", "device=lognormal:1%",
           "a rank is slower or faster in all steps: chips that are not alike",
           ReadSpread<&Disturbances::device>},
    Source{"step", "step=0.5%", "a step is slower or faster on all ranks",
           ReadSpread<&Disturbances::step>},
    Source{
        "gc", "gc=20ms/30s",
        "each rank stops so long every so often, at moments of its own, as Python's collector of "
        "garbage makes it; together:20ms/30s: all at once",
        ReadPauses},
    Source{"link", "link=nic:0.5",
           "links have a share of their rate: all of a kind, of a device (device3), of it those of "
           "a kind (device3/nic), or the one of that name; may be repeated",
           ReadLink},
};

absl::Status ReadSource(absl::string_view entry, const cluster::Topology& topology,
                        std::vector<absl::string_view>& seen, StepsQuestion& question) {
  const size_t equals = entry.find('=');
  const absl::string_view name = entry.substr(0, equals);
  const auto source = std::ranges::find(kSources, name, &Source::name);
  if (source == kSources.end()) {
    std::vector<absl::string_view> names;
    for (const Source& each : kSources) names.push_back(each.name);
    return absl::InvalidArgumentError(absl::StrCat("no source of jitter '", name, "'; ",
                                                   WantedNames(name, names, "list-jitter")));
  }
  if (equals == absl::string_view::npos) {
    return Bad(absl::StrCat("'", entry, "'"), absl::StrCat("a value, such as ", source->example));
  }
  if (name != "link") {
    if (std::ranges::find(seen, name) != seen.end()) {
      return Bad(absl::StrCat(name, " twice"), "each source once");
    }
    seen.push_back(source->name);
  }
  return Annotate(source->read(entry.substr(equals + 1), topology, question), name);
}

absl::Status ReadSlow(absl::string_view entry, int64_t ranks, StepsQuestion& question) {
  constexpr absl::string_view kExample =
      "a rank and how many times as long its kernels take, such as rank=5:1.3";
  absl::string_view text = entry;
  simulator::SlowRank slow;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::ConsumePrefix(&text, "rank=") ? std::pair<absl::string_view, absl::string_view>(
                                                absl::StrSplit(text, absl::MaxSplits(':', 1)))
                                          : std::pair<absl::string_view, absl::string_view>();
  int64_t rank = 0;
  if (!absl::SimpleAtoi(parts.first, &rank) || !absl::SimpleAtod(parts.second, &slow.factor)) {
    return Bad(absl::StrCat("'", entry, "'"), kExample);
  }
  if (rank < 0 || rank >= ranks) {
    return Bad(absl::StrCat("no rank ", rank),
               ranks == 1 ? "0, the only one of the plan"
                          : absl::StrCat("one of the plan's ", ranks, ", 0 to ", ranks - 1));
  }
  if (!(slow.factor > 0) || slow.factor > 1000) {
    return Bad(absl::StrCat("a factor of ", parts.second),
               "more than 0 and at most 1000, such as 1.3 for kernels that take 30 % longer");
  }
  slow.rank = static_cast<int32_t>(rank);
  for (const simulator::SlowRank& other : question.disturbances.slow) {
    if (other.rank == slow.rank)
      return Bad(absl::StrCat("rank ", rank, " twice"), "each rank once");
  }
  question.disturbances.slow.push_back(slow);
  return absl::OkStatus();
}

}  // namespace
}  // namespace jitter_flags_cc

void AddJitterFlags(boost::program_options::options_description& options, JitterFlags& flags) {
  using jitter_flags_cc::po::value;
  options.add_options()("jitter", value(&flags.jitter)->composing(),
                        "play many steps whose kernels take other times: sources with commas "
                        "between, kernel=2%,rank=lognormal:1%,gc=20ms/30s (--list-jitter)")(
      "slow", value(&flags.slow)->composing(),
      "kernels of a rank take so many times as long, rank=5:1.3; more with commas between")(
      "steps", value<int64_t>()->notifier([&flags](int64_t steps) { flags.steps = steps; }),
      "steps to play, of which mean, quantiles and who waited for whom are told; 200 beside "
      "--jitter and --slow")(
      "seed", value<int64_t>()->notifier([&flags](int64_t seed) { flags.seed = seed; }),
      "of what --jitter draws; 1 unless it is given. The same seed draws the same on any number of "
      "threads");
}

absl::Status ParseJitter(absl::string_view text, const cluster::Topology& topology,
                         search::StepsQuestion& question) {
  std::vector<absl::string_view> seen;
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    ORRERY_RETURN_IF_ERROR(jitter_flags_cc::ReadSource(entry, topology, seen, question));
  }
  return absl::OkStatus();
}

absl::Status ParseSlow(absl::string_view text, int64_t ranks, search::StepsQuestion& question) {
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    ORRERY_RETURN_IF_ERROR(jitter_flags_cc::ReadSlow(entry, ranks, question));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<search::StepsQuestion>> ReadJitterFlags(
    const JitterFlags& flags, const cluster::Topology& topology, int64_t ranks) {
  using jitter_flags_cc::Bad;
  if (flags.jitter.empty() && flags.slow.empty() && !flags.steps.has_value()) {
    if (!flags.seed.has_value()) return std::nullopt;
    return Bad("--seed: nothing is drawn", "it beside --jitter, such as --jitter rank=1%");
  }
  search::StepsQuestion question;
  const auto joined = [](const std::vector<std::string>& texts) {
    return absl::StrJoin(texts, ",");
  };
  if (!flags.jitter.empty()) {
    const std::string text = joined(flags.jitter);
    ORRERY_RETURN_IF_ERROR(
        Annotate(ParseJitter(text, topology, question), absl::StrCat("--jitter '", text, "'")));
  }
  if (!flags.slow.empty()) {
    const std::string text = joined(flags.slow);
    ORRERY_RETURN_IF_ERROR(
        Annotate(ParseSlow(text, ranks, question), absl::StrCat("--slow '", text, "'")));
  }
  const int64_t steps = flags.steps.value_or(kUsualSteps);
  if (steps < 1 || steps > jitter_flags_cc::kMostSteps) {
    return Bad(absl::StrCat("--steps ", steps),
               absl::StrCat("1 to ", jitter_flags_cc::kMostSteps, ", such as 200"));
  }
  if (flags.seed.value_or(1) < 0) {
    return Bad(absl::StrCat("--seed ", *flags.seed), "0 or more, such as 1");
  }
  question.steps = static_cast<int32_t>(steps);
  question.disturbances.seed = static_cast<uint64_t>(flags.seed.value_or(1));
  question.threads = static_cast<size_t>(OwnProcessors());
  return question;
}

Listing JitterListing() {
  return {.flag = "list-jitter",
          .about = "names all sources of jitter and its distributions",
          .of = {"jitter"},
          .things = [] {
            std::vector<NamedThing> things;
            for (const jitter_flags_cc::Source& source : jitter_flags_cc::kSources) {
              things.push_back({std::string(source.example), std::string(source.summary)});
            }
            for (const simulator::JitterDistribution& of : simulator::AllJitterDistributions()) {
              things.push_back({absl::StrCat("rank=", of.name, ":1%"), std::string(of.summary)});
            }
            return things;
          }};
}

}  // namespace orrery::tools
