#include "transforms/schedules/schedule.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "transforms/schedules/text.h"

// One pipeline schedule by itself, in units of time: forward and backward last one unit each.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

constexpr int64_t kMaxSteps = 10'000'000;

struct Flags {
  std::string name;
  int64_t stages = 4;
  int64_t microbatches = 8;
  std::string json;
  bool list = false;
  bool timeline = false;
};

// Units in which a rank runs nothing, until the last one has finished.
int64_t Idle(const transforms::Timing& timing) {
  return std::accumulate(timing.idle.begin(), timing.idle.end(), int64_t{0});
}

std::string Json(const transforms::RankOrders& orders, const transforms::Timing& timing) {
  nlohmann::ordered_json peaks = nlohmann::ordered_json::array();
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const auto& order : orders) {
    nlohmann::ordered_json rank = nlohmann::ordered_json::array();
    for (const transforms::ScheduleStep& step : order) rank.push_back(transforms::StepName(step));
    ranks.push_back(std::move(rank));
    peaks.push_back(transforms::PeakLive(order));
  }
  const nlohmann::ordered_json whole = {{"ranks", ranks},
                                        {"makespan", timing.makespan},
                                        {"idle", Idle(timing)},
                                        {"peak_live", peaks}};
  return whole.dump(1) + "\n";
}

void PrintFigures(const transforms::RankOrders& orders, const transforms::Timing& timing) {
  std::cout << "makespan " << timing.makespan << "\nidle " << Idle(timing) << "\npeak live";
  for (const auto& order : orders) std::cout << " " << transforms::PeakLive(order);
  std::cout << "\n";
}

absl::Status Schedule(const Flags& flags) {
  if (flags.list) {
    for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
      std::cout << absl::StrFormat("%-10s %s (%s)\n", schedule->name, schedule->summary,
                                   schedule->source);
    }
    return absl::OkStatus();
  }
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule* schedule,
                          transforms::FindSchedule(flags.name));
  const bool in_range = flags.stages >= 1 && flags.microbatches >= 1 && flags.stages <= kMaxSteps &&
                        flags.microbatches <= kMaxSteps / flags.stages;
  if (!in_range) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages ", flags.stages, " --micro-batches ", flags.microbatches,
                     ": wanted both at least 1, and at most 10000000 steps"));
  }
  const transforms::PipelineShape shape = schedule->ShapeOf(
      static_cast<int32_t>(flags.stages), static_cast<int32_t>(flags.microbatches));
  ORRERY_RETURN_IF_ERROR(schedule->CheckShape(shape));
  const transforms::RankOrders orders = schedule->orders(shape);
  const transforms::Timing timing = TimeOrders(orders, schedule->placement, shape, shape.durations);
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, Json(orders, timing)));
  std::cout << (flags.timeline ? transforms::DrawTimeline(orders, timing)
                               : transforms::PrintOrders(orders));
  PrintFigures(orders, timing);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "schedule --name NAME --stages P --micro-batches M [flags]",
      .about = "Prints a pipeline schedule: one line a stage, then its figures in units of time.",
      .example = "build/bin/schedule --name 1f1b --stages 4 --micro-batches 8 --timeline",
      .options = po::options_description("Flags")};
  spec.options.add_options()("name", po::value(&flags.name), "gpipe, 1f1b, pipedream or distir")(
      "stages", po::value(&flags.stages), "pipeline stages [4]")(
      "micro-batches", po::value(&flags.microbatches), "microbatches [8]")(
      "timeline", po::bool_switch(&flags.timeline), "draw it instead: stages down, time across")(
      "json", po::value(&flags.json), "write ranks, makespan, idle and peak_live to this file")(
      "list", po::bool_switch(&flags.list), "name all schedules");
  return RunProgram(argc, argv, spec, [&] { return Schedule(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
