#include "transforms/schedules/schedule.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/reports/page.h"
#include "tools/reports/plot_files.h"
#include "tools/reports/schedule_views.h"
#include "tools/terminal/progress.h"
#include "transforms/schedules/steady_bubble.h"
#include "transforms/schedules/text.h"

// One pipeline schedule by itself, in units of time.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

using transforms::ParsedOrders;
using transforms::PipelineSchedule;
using transforms::PipelineShape;
using transforms::StepDurations;
using transforms::Timing;

constexpr int64_t kMaxSteps = 10'000'000;
constexpr int64_t kLongestStep = 1'000'000'000;
constexpr PlotView kPlotViews[] = {{"timeline", "the timeline"}};

// So many fields: a flag each.
struct Flags {
  std::string name;
  std::string from;
  int64_t stages = 4;
  int64_t microbatches = 8;
  int64_t chunks = -1;        // as many as the schedule has
  int64_t memory_limit = -1;  // none
  std::string durations;
  std::string json;
  std::string report;
  std::vector<std::string> plot;
  std::string command;  // for the report
  bool list = false;
  bool timeline = false;
};

// "F=1,I=1,W=1,S=0", any of them, in any order.
absl::StatusOr<StepDurations> ParseDurations(absl::string_view text) {
  StepDurations durations;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t value = 0;
    const bool is_number = part.size() > 2 && part[1] == '=' &&
                           absl::SimpleAtoi(part.substr(2), &value) && value >= 0 &&
                           value <= kLongestStep;
    int64_t* of = nullptr;
    if (is_number && part[0] == 'F') of = &durations.forward;
    if (is_number && part[0] == 'I') of = &durations.input_gradient;
    if (is_number && part[0] == 'W') of = &durations.weight_gradient;
    if (is_number && part[0] == 'S') of = &durations.send;
    if (of == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--durations '", part, "': wanted F=, I=, W= or S= and a whole number from ",
                       "0 to ", kLongestStep, ", as in F=1,I=1,W=1; B is I and W"));
    }
    *of = value;
  }
  return durations;
}

absl::Status CheckSize(const Flags& flags) {
  const int64_t chunks = std::max<int64_t>(1, flags.chunks);
  const bool in_range = flags.stages >= 1 && flags.microbatches >= 1 && flags.stages <= kMaxSteps &&
                        flags.microbatches <= kMaxSteps / flags.stages &&
                        chunks <= kMaxSteps / flags.stages / flags.microbatches;
  if (!in_range) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages ", flags.stages, " --micro-batches ", flags.microbatches,
                     flags.chunks > 0 ? absl::StrCat(" --chunks ", flags.chunks) : "",
                     ": wanted all at least 1, and at most 10000000 steps"));
  }
  if (flags.memory_limit == 0 || flags.memory_limit < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-limit ", flags.memory_limit, ": wanted at least 1 activation"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ParsedOrders> OrdersByName(const Flags& flags, const StepDurations& durations) {
  ORRERY_ASSIGN_OR_RETURN(const PipelineSchedule* schedule, transforms::FindSchedule(flags.name));
  ORRERY_RETURN_IF_ERROR(CheckSize(flags));
  PipelineShape shape = schedule->ShapeOf(static_cast<int32_t>(flags.stages),
                                          static_cast<int32_t>(flags.microbatches));
  if (flags.chunks != -1) shape.chunks = static_cast<int32_t>(flags.chunks);
  shape.durations = durations;
  shape.live_limit = std::max<int64_t>(0, flags.memory_limit);
  ORRERY_RETURN_IF_ERROR(schedule->CheckShape(shape));
  return ParsedOrders{
      .orders = schedule->OrdersOf(shape), .placement = schedule->placement, .shape = shape};
}

absl::StatusOr<ParsedOrders> OrdersOf(const Flags& flags, const StepDurations& durations) {
  if (flags.from.empty()) {
    if (flags.name.empty()) {
      return absl::InvalidArgumentError("wanted --name, --from or --list; see --help");
    }
    return OrdersByName(flags, durations);
  }
  if (!flags.name.empty()) {
    return absl::InvalidArgumentError("--name and --from: wanted one of them");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.from));
  return transforms::ParseOrders(text, flags.from);
}

absl::Status CheckMemory(const ParsedOrders& parsed, int64_t limit) {
  for (size_t rank = 0; limit > 0 && rank < parsed.orders.size(); ++rank) {
    const int64_t peak = transforms::PeakLive(parsed.orders[rank]);
    if (peak <= limit) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", rank, " has ", peak, " live activations; --memory-limit is ", limit));
  }
  return absl::OkStatus();
}

// Units in which ranks run nothing, until the last one has finished.
int64_t Idle(const Timing& timing) {
  return std::accumulate(timing.idle.begin(), timing.idle.end(), int64_t{0});
}

// Of the time of all ranks; what a unit is, is no part of it.
double BubbleFraction(const Timing& timing) {
  const auto all = static_cast<double>(timing.makespan) * static_cast<double>(timing.idle.size());
  return all > 0 ? static_cast<double>(Idle(timing)) / all : 0;
}

// What a run's figures are of.
struct Run {
  const transforms::RankOrders& orders;
  const Timing& timing;
  bool drains = true;            // false: filling and draining are no part of its bubble
  std::optional<double> bubble;  // of all ranks' time; none: too many steps to tell
};

// An order from a file fills and drains.
Run RunOf(const Flags& flags, const ParsedOrders& parsed, const Timing& timing) {
  if (flags.from.empty()) {
    const PipelineSchedule& schedule = **transforms::FindSchedule(flags.name);
    if (schedule.asynchronous) {
      return {parsed.orders, timing, false, transforms::SteadyBubble(schedule, parsed.shape)};
    }
  }
  return {parsed.orders, timing, true, BubbleFraction(timing)};
}

std::string Json(const Run& run) {
  const auto& [orders, timing, drains, bubble] = run;
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  std::vector<int64_t> peaks;
  for (const auto& order : orders) {
    ranks.push_back(transforms::StepNames(order));
    peaks.push_back(transforms::PeakLive(order));
  }
  nlohmann::ordered_json whole = {{"ranks", ranks},
                                  {"makespan", timing.makespan},
                                  {"idle", Idle(timing)},
                                  {"idle_of_rank", timing.idle},
                                  {"idle_inside_rank", timing.idle_inside},
                                  {"peak_live", peaks},
                                  {"bubble_fraction", nullptr},
                                  {"drains", drains}};
  if (bubble.has_value()) whole["bubble_fraction"] = *bubble;
  return whole.dump(1) + "\n";
}

void PrintFigures(const Run& run) {
  const auto& [orders, timing, drains, bubble] = run;
  std::cout << "makespan " << timing.makespan << "\nidle " << Idle(timing) << "\nidle of rank";
  for (const int64_t idle : timing.idle) std::cout << " " << idle;
  std::cout << "\npeak live";
  for (const auto& order : orders) std::cout << " " << transforms::PeakLive(order);
  const std::string share = bubble.has_value() ? absl::StrFormat("%.1f %%", 100 * *bubble)
                                               : std::string("not told, of too many steps,");
  std::cout << "\nbubble " << share
            << (drains ? "\n"
                       : " once full: it never drains, as makespan and idle of these microbatches "
                         "alone do\n");
}

void PrintList() {
  size_t width = 0;
  for (const PipelineSchedule* schedule : transforms::AllSchedules()) {
    width = std::max(width, schedule->name.size());
  }
  for (const PipelineSchedule* schedule : transforms::AllSchedules()) {
    std::cout << absl::StrFormat("%-*s %s (%s)\n", static_cast<int>(width), schedule->name,
                                 schedule->summary, schedule->source);
  }
}

absl::Status Schedule(const Flags& flags) {
  if (flags.list) {
    PrintList();
    return absl::OkStatus();
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots, ReadPlots(flags.plot, kPlotViews));
  ORRERY_ASSIGN_OR_RETURN(const StepDurations durations, ParseDurations(flags.durations));
  ORRERY_ASSIGN_OR_RETURN(const ParsedOrders parsed, [&] {
    const Waiting waiting("searching for orders");
    return OrdersOf(flags, durations);
  }());
  ORRERY_RETURN_IF_ERROR(CheckMemory(parsed, flags.memory_limit));
  const Timing timing = TimeOrders(parsed.orders, parsed.placement, parsed.shape, durations);
  const Run run = RunOf(flags, parsed, timing);
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, Json(run)));
  }
  if (!flags.report.empty()) {
    const std::string of = flags.from.empty() ? flags.name : flags.from;
    ORRERY_RETURN_IF_ERROR(
        WritePage({.title = absl::StrCat(of, ", ", parsed.orders.size(), " ranks, ",
                                         parsed.shape.microbatches, " microbatches"),
                   .program = "schedule",
                   .command = flags.command,
                   .sections = ScheduleViews(parsed.orders, timing)},
                  flags.report));
  }
  ORRERY_RETURN_IF_ERROR(WritePlots(plots, [&](size_t view) {
    return PictureOf(ScheduleViews(parsed.orders, timing), kPlotViews[view].name);
  }));
  std::cout << (flags.timeline ? transforms::DrawTimeline(parsed.orders, timing)
                               : transforms::PrintOrders(parsed.orders));
  PrintFigures(run);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "schedule --name NAME --stages P --micro-batches M [flags]",
      .about = "Prints a pipeline schedule: one line a rank, then its figures in units of time.",
      .example = "build/bin/schedule --name 1f1b --stages 4 --micro-batches 8 --timeline",
      .options = po::options_description("Flags")};
  spec.options.add_options()("name", po::value(&flags.name),
                             "1f1b, gpipe, interleaved and so on: --list names all")(
      "from", po::value(&flags.from), "read orders from this file instead, a rank a line")(
      "stages", po::value(&flags.stages), "ranks of the pipeline [4]")(
      "micro-batches", po::value(&flags.microbatches), "microbatches [8]")(
      "chunks", po::value(&flags.chunks), "stages a rank, where they are a choice [2]")(
      "memory-limit", po::value(&flags.memory_limit),
      "most live activations a rank, each of one stage and microbatch [the schedule's own]")(
      "durations", po::value(&flags.durations),
      "units that steps last, and sends: B is I and W [F=1,I=1,W=1,S=0]")(
      "timeline", po::bool_switch(&flags.timeline), "draw it instead: ranks down, time across")(
      "json", po::value(&flags.json), "write ranks, makespan, idle and peak_live to this file")(
      "plot", po::value(&flags.plot)->composing(), PlotHelp(kPlotViews).c_str())(
      "report", po::value(&flags.report), "write a page with the timeline to this file (.html)")(
      "list", po::bool_switch(&flags.list), "name all schedules");
  flags.command = CommandText(argc, argv);
  return RunProgram(argc, argv, spec, [&] { return Schedule(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
