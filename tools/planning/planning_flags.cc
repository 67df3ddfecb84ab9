#include "tools/planning/planning_flags.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/status.h"
#include "transforms/plan/axis.h"

namespace orrery::tools {

namespace po = boost::program_options;

namespace planning_flags_cc {
namespace {

constexpr size_t kMostSizes = 64;

absl::Status NoSizes(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "': wanted numbers of devices, as in 64,128,256, 64..1024 (doubling) "
                   "or 64..1024:64 (in steps), ascending and at most ",
                   kMostSizes));
}

absl::StatusOr<int64_t> SizeOf(absl::string_view number, absl::string_view text) {
  int64_t size = 0;
  if (!absl::SimpleAtoi(number, &size) || size < 1 || size > (int64_t{1} << 20)) {
    return NoSizes(text);
  }
  return size;
}

// "64..1024" or "64..1024:64".
absl::StatusOr<std::vector<int64_t>> ParseRange(absl::string_view text) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  const std::vector<absl::string_view> last_step = absl::StrSplit(ends[1], ':');
  ORRERY_ASSIGN_OR_RETURN(const int64_t first, SizeOf(ends[0], text));
  ORRERY_ASSIGN_OR_RETURN(const int64_t last, SizeOf(last_step[0], text));
  int64_t step = 0;
  if (last_step.size() > 1) {
    ORRERY_ASSIGN_OR_RETURN(step, SizeOf(last_step[1], text));
  }
  if (last_step.size() > 2) return NoSizes(text);
  std::vector<int64_t> sizes;
  for (int64_t size = first; size <= last && sizes.size() <= kMostSizes;
       size = step > 0 ? size + step : 2 * size) {
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace
}  // namespace planning_flags_cc

void AddPlanningFlags(po::options_description& options, PlanningFlags& flags) {
  options.add_options()(
      "price", po::value(&flags.price),
      "what a device costs an hour, in any currency; with several clusters one each or one of all")(
      "goal", po::value(&flags.goal),
      "what is wanted: throughput, time, memory (the least) or price (of a "
      "sample; with --price) [throughput]")(
      "tokens", po::value(&flags.tokens),
      "tokens of the whole training run, as in 15T or 300B: tells its days, device-hours and "
      "price")("samples", po::value(&flags.samples),
               "samples of the whole run, in place of --tokens")(
      "gpus", po::value(&flags.gpus),
      "devices, as in 64..1024 (doubling), 64..1024:64 or 64,96,128: searches the cluster in each "
      "of these sizes, and tells what more devices buy")(
      "fits-on", po::bool_switch(&flags.fits_on),
      "searches the fewest devices on which anything fits: of --gpus, or of all sizes that divide "
      "the cluster's")("emit", po::value(&flags.emit)->composing(),
                       absl::StrCat("prints the best plan for ", EmitterNames(),
                                    ", or writes it: deepspeed=FILE (repeat for more)")
                           .c_str());
}

search::Goal GoalOf(const PlanningFlags& flags) {
  return search::ParseGoal(flags.goal).value_or(search::Goal::kThroughput);
}

absl::StatusOr<double> ParseAmount(absl::string_view text) {
  absl::string_view number = text;
  double factor = 1, amount = 0;
  for (const auto& [unit, size] :
       {std::pair{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}}) {
    if (!absl::ConsumeSuffix(&number, unit)) continue;
    factor = size;
    break;
  }
  const bool spaced = number.find_first_of(" \t") != absl::string_view::npos;
  if (spaced || !absl::SimpleAtod(number, &amount) || !(amount * factor >= 1) ||
      amount * factor > 1e18) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': wanted a number of at least 1, as in 15T, 300B or 1.5e12"));
  }
  return amount * factor;
}

absl::StatusOr<std::vector<int64_t>> ParseSizes(absl::string_view text) {
  std::vector<int64_t> sizes;
  if (text.find("..") != absl::string_view::npos) {
    ORRERY_ASSIGN_OR_RETURN(sizes, planning_flags_cc::ParseRange(text));
  } else {
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      ORRERY_ASSIGN_OR_RETURN(sizes.emplace_back(), planning_flags_cc::SizeOf(part, text));
    }
  }
  const bool ascends =
      std::ranges::adjacent_find(sizes, std::ranges::greater_equal()) == sizes.end();
  if (sizes.empty() || !ascends || sizes.size() > planning_flags_cc::kMostSizes) {
    return planning_flags_cc::NoSizes(text);
  }
  return sizes;
}

absl::StatusOr<int64_t> RunSamples(const PlanningFlags& flags, const search::Setting& setting) {
  if (!flags.samples.empty()) {
    ORRERY_ASSIGN_OR_RETURN(const double samples,
                            Annotated(ParseAmount(flags.samples), "--samples"));
    return static_cast<int64_t>(std::ceil(samples));
  }
  if (flags.tokens.empty()) return int64_t{0};
  ORRERY_ASSIGN_OR_RETURN(const double tokens, Annotated(ParseAmount(flags.tokens), "--tokens"));
  if (setting.tokens_a_sample < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tokens ", flags.tokens, ": samples of ", setting.model_name,
                     " are no sequences of tokens; wanted --samples"));
  }
  return static_cast<int64_t>(std::ceil(tokens / static_cast<double>(setting.tokens_a_sample)));
}

absl::Status WidenFor(search::Goal goal, search::Space& space) {
  const transforms::AxisInfo& recompute = *transforms::FindAxis("recompute");
  if (goal != search::Goal::kMemory || !space.saves_memory() || space.takes_all() ||
      !space.Values(recompute).empty()) {
    return absl::OkStatus();
  }
  return space.List(recompute, "none,selective,full");
}

absl::StatusOr<std::vector<EmitTarget>> EmitTargets(const PlanningFlags& flags) {
  std::vector<EmitTarget> targets;
  for (const std::string& text : flags.emit) {
    const std::pair<std::string, std::string> name_file =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    EmitTarget& target = targets.emplace_back();
    ORRERY_ASSIGN_OR_RETURN(target.emitter, Annotated(FindEmitter(name_file.first), "--emit"));
    target.file = name_file.second;
    if (target.file.empty() && text.find('=') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--emit '", text, "': wanted the name of a file behind ="));
    }
  }
  return targets;
}

std::string RunNote(absl::string_view stack) {
  const bool ideal = stack == "ideal";
  return absl::StrCat(
      "as --stack ", stack, " predicts the step",
      ideal ? ", whose software adds nothing (--stack nemo, megatron-core and torchtitan are real)"
            : "",
      "; no stops, checkpoints or evaluations are in it\n");
}

Listing EmitterListing() {
  return {.flag = "list-emitters",
          .about = "names the systems that --emit writes for",
          .of = {"emit"},
          .things = [] {
            std::vector<NamedThing> things;
            for (const Emitter* emitter : AllEmitters()) {
              things.push_back({std::string(emitter->name), std::string(emitter->summary)});
            }
            return things;
          }};
}

absl::Status CheckPlanning(const PlanningFlags& flags) {
  if (!flags.goal.empty()) {
    ORRERY_RETURN_IF_ERROR(Annotate(search::ParseGoal(flags.goal).status(), "--goal"));
  }
  if (GoalOf(flags) == search::Goal::kPrice && flags.price.empty()) {
    return absl::InvalidArgumentError(
        "--goal price: nobody says what a device costs; wanted --price, as in 2.5");
  }
  if (!flags.tokens.empty() && !flags.samples.empty()) {
    return absl::InvalidArgumentError("--tokens and --samples: wanted one of them");
  }
  if (!flags.gpus.empty()) {
    ORRERY_RETURN_IF_ERROR(Annotate(ParseSizes(flags.gpus).status(), "--gpus"));
  }
  return EmitTargets(flags).status();
}

}  // namespace orrery::tools
